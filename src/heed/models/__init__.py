"""Every system of heed, by the name that config files call it."""

from heed.models.bart import Bart, BartClassifier, BartClassifierConfig, BartConfig
from heed.models.marian import Marian, MarianConfig
from heed.models.pegasus import Pegasus, PegasusConfig
from heed.models.rnn_lm import RNNLanguageModel, RNNLanguageModelConfig
from heed.models.seq2seq import Seq2Seq, Seq2SeqConfig
from heed.models.transformer import Transformer, TransformerConfig

MODELS = {
    "transformer": (Transformer, TransformerConfig),
    "marian": (Marian, MarianConfig),
    "bart": (Bart, BartConfig),
    "bart-classifier": (BartClassifier, BartClassifierConfig),
    "pegasus": (Pegasus, PegasusConfig),
    "seq2seq": (Seq2Seq, Seq2SeqConfig),
    "rnn-lm": (RNNLanguageModel, RNNLanguageModelConfig),
}
LANGUAGE_MODELS = (RNNLanguageModel,)  # those that go on with a text, and have no source

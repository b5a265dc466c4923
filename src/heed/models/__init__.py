"""Every system of heed, by the name that config files call it."""

from heed.models.bart import Bart, BartClassifier, BartClassifierConfig, BartConfig
from heed.models.marian import Marian, MarianConfig
from heed.models.pegasus import Pegasus, PegasusConfig
from heed.models.transformer import Transformer, TransformerConfig

MODELS = {
    "transformer": (Transformer, TransformerConfig),
    "marian": (Marian, MarianConfig),
    "bart": (Bart, BartConfig),
    "bart-classifier": (BartClassifier, BartClassifierConfig),
    "pegasus": (Pegasus, PegasusConfig),
}

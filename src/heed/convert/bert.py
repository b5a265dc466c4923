"""BERT of transformers with all its heads."""

from heed.convert.encoders import ACTIVATIONS, LAYER, POSITIONS, SHARED, SIZES, USUAL, Family, body, class_names, words
from heed.models.bert import Bert, BertConfig

NAMES = class_names("Bert", "LMHeadModel", pretraining="ForPreTraining", pair="ForNextSentencePrediction")
ROWS = (
    ("vocab_size", "vocab_size", 30522),
    *SIZES,
    *SHARED,
    POSITIONS,
    ("activation", "hidden_act", "gelu", ACTIVATIONS),
)
PREDICTIONS = words("cls.predictions", "transform.dense", "transform.LayerNorm")
FAMILY = Family(
    Bert,
    BertConfig,
    "bert",
    NAMES,
    ROWS,
    body(LAYER),
    {**USUAL, "words": PREDICTIONS},
    output="cls.predictions.decoder.weight",
    vocabulary="wordpiece",
    prefix="bert.",
)
ARCHITECTURES = FAMILY.architectures()

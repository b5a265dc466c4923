"""RoBERTa of transformers with all its heads. Its positions count from the padding id, Heed's from 0."""

from typing import Any

from heed.convert.config_table import Rule, Settings, read_setting
from heed.convert.encoders import (
    ACTIVATIONS,
    CLASSIFIER,
    CLASSIFIER_DROPOUT,
    LAYER,
    SHARED,
    SIZES,
    USUAL,
    Family,
    body,
    class_names,
    words,
)
from heed.models.roberta import Roberta, RobertaConfig


def _positions(settings: Settings) -> dict[str, Any]:
    pad = read_setting(settings, ("pad_token_id",), 1)
    return {"max_length": read_setting(settings, ("max_position_embeddings",), 512) - pad - 1}


POSITIONS = Rule(_positions, lambda config: {"max_position_embeddings": config.max_length + config.pad + 1})
ROWS = (
    ("vocab_size", "vocab_size", 50265),
    *SIZES,
    *SHARED,
    ("pad", "pad_token_id", 1),
    ("activation", "hidden_act", "gelu", ACTIVATIONS),
)
FAMILY = Family(
    Roberta,
    RobertaConfig,
    "roberta",
    class_names("Roberta", "ForCausalLM"),
    ROWS,
    body(LAYER),
    {**USUAL, "words": words("lm_head", "dense", "layer_norm"), "text": CLASSIFIER},
    output="lm_head.decoder.weight",
    vocabulary="roberta",
    prefix="roberta.",
    rules=(CLASSIFIER_DROPOUT, POSITIONS),
)
ARCHITECTURES = FAMILY.architectures()

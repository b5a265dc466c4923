"""BigBird of transformers with all its heads."""

from typing import Any

from heed.convert.bert import PREDICTIONS
from heed.convert.config_table import Rule
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
)
from heed.models.bigbird import BigBird, BigBirdConfig


def _check_exportable(config: BigBirdConfig) -> dict[str, Any]:
    if config.fixed_random:
        raise ValueError(
            "fixed_random is true, but transformers uses random blocks only in training: the results would differ"
        )
    if config.global_tokens:
        raise ValueError(
            f"global_tokens is {config.global_tokens}, but transformers has no global tokens outside of the text: the "
            "model cannot be written for it"
        )
    return {}


# fmt: off
ROWS = (
    ("vocab_size",    "vocab_size",              50358),
    ("max_length",    "max_position_embeddings", 4096),
    ("sparse",        "attention_type",          "block_sparse", {"block_sparse": True, "original_full": False}),
    ("block",         "block_size",              64),
    ("random_blocks", "num_random_blocks",       3),
    ("scaled",        "rescale_embeddings",      False),
    ("separator",     "sep_token_id",            66),
    ("activation",    "hidden_act",              "gelu_new", ACTIVATIONS),
    *SIZES, *SHARED,
)
ANSWER = (
    ("head.answer.mlp.body.up",   "qa_classifier.intermediate.dense"),
    ("head.answer.mlp.body.down", "qa_classifier.output.dense"),
    ("head.answer.mlp.norm",      "qa_classifier.output.LayerNorm"),
    ("head.answer.out",           "qa_classifier.qa_outputs"),
)
# fmt: on
FAMILY = Family(
    BigBird,
    BigBirdConfig,
    "big_bird",
    class_names("BigBird", "ForCausalLM", pretraining="ForPreTraining"),
    ROWS,
    body(LAYER),
    {**USUAL, "words": PREDICTIONS, "text": CLASSIFIER, "answer": ANSWER},
    output="cls.predictions.decoder.weight",
    vocabulary="bigbird",
    prefix="bert.",
    rules=(CLASSIFIER_DROPOUT, Rule(lambda settings: {}, _check_exportable)),
    constants={"use_bias": True},
    pooler="pooler",
)
ARCHITECTURES = FAMILY.architectures()

"""ELECTRA of transformers with all its heads. A jointly trained model is exported as its discriminator, with the
generator in it.
"""

from dataclasses import replace
from typing import Any

from heed.convert.encoders import (
    ACTIVATIONS,
    CLASSIFIER,
    LAYER,
    POSITIONS,
    SHARED,
    SIZES,
    USUAL,
    Family,
    body,
    class_names,
)
from heed.convert.weight_table import Weights
from heed.models.electra import Electra, ElectraConfig
from heed.models.package import Package

GENERATOR = "generator"  # the folder of it, in that of its discriminator
DEFAULTS = {"hidden_size": 256, "num_attention_heads": 4, "intermediate_size": 1024}
ROWS = (
    ("vocab_size", "vocab_size", 30522),
    ("embedding", "embedding_size", 128),
    ("choice_dropout", "summary_last_dropout", 0.1),
    *((ours, theirs, DEFAULTS.get(theirs, default)) for ours, theirs, default in (*SIZES, *SHARED, POSITIONS)),
    ("activation", "hidden_act", "gelu", ACTIVATIONS),
)
HEADS = {
    **USUAL,
    "words": (
        ("head.words.dense", "generator_predictions.dense"),
        ("head.words.norm", "generator_predictions.LayerNorm"),
        ("head.words.bias", "generator_lm_head.bias"),
    ),
    "text": CLASSIFIER,
    "choice": (("head.choice.dense", "sequence_summary.summary"), ("head.choice.out", "classifier")),
    "replaced": (
        ("head.replaced.dense", "discriminator_predictions.dense"),
        ("head.replaced.out", "discriminator_predictions.dense_prediction"),
    ),
}
FAMILY = Family(
    Electra,
    ElectraConfig,
    "electra",
    class_names("Electra", "ForCausalLM", replaced="ForPreTraining"),
    ROWS,
    body(LAYER, ("widen", "embeddings_project")),
    HEADS,
    output="generator_lm_head.weight",
    vocabulary="wordpiece",
    prefix="electra.",
    constants={"summary_type": "first", "summary_use_proj": True, "summary_activation": "gelu"},
)


def discriminator(config: ElectraConfig, weights: Weights) -> tuple[Any, Weights]:
    """Without the generator of joint training: transformers has no class for both."""
    if config.head != "joint":
        return config, weights
    rest = {name: weight for name, weight in weights.items() if not name.startswith("generator.")}
    return replace(config, head="replaced"), rest


def beside(package: Package) -> dict[str, Package]:
    """The generator of joint training."""
    if package.model.config.head != "joint":
        return {}
    return {GENERATOR: package._replace(model=package.model.split()[0], task="masked")}


ARCHITECTURES = FAMILY.architectures(rearrange=discriminator, beside=beside)

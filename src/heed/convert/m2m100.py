"""M2M100ForConditionalGeneration of Hugging Face's transformers: M2M-100 and NLLB-200."""

from heed.convert.architecture import Architecture
from heed.convert.bart import ENCODER_DECODER, LAYERS, SETTINGS, TIED_TOKENS
from heed.convert.config_table import ConfigTable
from heed.convert.pegasus import NORMS
from heed.convert.weight_table import WeightTable
from heed.models.m2m100 import M2M100, M2M100Config
from heed.nn.positions import sinusoids_of_fairseq

OTHER_DEFAULTS = {"activation_function": "relu", "scale_embedding": True, "attention_dropout": 0.1}
CONFIG_TABLE = ConfigTable(
    M2M100Config,
    ("vocab_size", "vocab_size", 128112),
    *((ours, theirs, OTHER_DEFAULTS.get(theirs, default), *words) for ours, theirs, default, *words in SETTINGS),
    constants={"model_type": "m2m_100", "tie_word_embeddings": True, "is_encoder_decoder": True},
    legacy=ENCODER_DECODER,
)


def weight_table(config: M2M100Config) -> WeightTable:
    return WeightTable(
        TIED_TOKENS,
        *NORMS,
        *LAYERS,
        prefix="model.",
        legacy=_sinusoids(config),
        ignore=("*.embed_positions._float_tensor",),
    )


def _sinusoids(config: M2M100Config) -> dict:
    """Early files contain them, with the two rows before the first position."""
    sinusoids = sinusoids_of_fairseq(config.max_length + 2, config.dim, offset=0)
    sinusoids[1] = 0.0  # the row of padding
    return {f"model.{side}.embed_positions.weights": sinusoids for side in ("encoder", "decoder")}


ARCHITECTURES = (
    Architecture(
        "M2M100ForConditionalGeneration", M2M100, CONFIG_TABLE, weight_table, vocabulary="m2m100", task="translation",
        aliases=("M2M100Model", "m2m_100"), pipeline_tag="translation",
    ),
)  # fmt: skip

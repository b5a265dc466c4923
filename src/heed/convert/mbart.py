"""MBartForConditionalGeneration of Hugging Face's transformers, for mBART-50."""

from heed.convert.architecture import Architecture
from heed.convert.bart import BODY, ENCODER_DECODER, IGNORED, SETTINGS, generation_weight_table, legacy_settings
from heed.convert.config_table import ConfigTable
from heed.convert.pegasus import NORMS
from heed.convert.weight_table import WeightTable
from heed.models.mbart import MBart, MBartConfig

LEGACY = {**legacy_settings(True, True, False), "extra_pos_embeddings": 2}
CONFIG_TABLE = ConfigTable(
    MBartConfig,
    ("vocab_size", "vocab_size", 50265),
    *SETTINGS,
    constants={"model_type": "mbart", "tie_word_embeddings": True, **ENCODER_DECODER},
    legacy=LEGACY,
)


def weight_table(config: MBartConfig) -> WeightTable:
    return generation_weight_table(*BODY, *NORMS, ignore=IGNORED)


ARCHITECTURES = (
    Architecture(
        "MBartForConditionalGeneration", MBart, CONFIG_TABLE, weight_table, vocabulary="mbart50", task="translation",
        aliases=("MBartModel", "mbart"), pipeline_tag="translation",
    ),
)  # fmt: skip

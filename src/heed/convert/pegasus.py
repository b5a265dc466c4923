"""PegasusForConditionalGeneration of Hugging Face's transformers."""

from heed.convert.architecture import Architecture
from heed.convert.bart import ENCODER_DECODER, SETTINGS, TIED_TOKENS, generation_weight_table, legacy_settings
from heed.convert.config_table import ConfigTable
from heed.convert.weight_table import WeightTable
from heed.models.pegasus import Pegasus, PegasusConfig
from heed.nn.positions import sinusoids_in_halves

CONFIG_TABLE = ConfigTable(
    PegasusConfig,
    ("vocab_size", "vocab_size", 50265),
    *SETTINGS,
    constants={"model_type": "pegasus", "tie_word_embeddings": True, **ENCODER_DECODER},
    legacy=legacy_settings(True, False, True),
)
NORMS = (("encoder.norm", "model.encoder.layer_norm"), ("decoder.norm", "model.decoder.layer_norm"))


def weight_table(config: PegasusConfig) -> WeightTable:
    sinusoids = sinusoids_in_halves(config.max_length, config.dim)
    constants = {f"model.{side}.embed_positions.weight": sinusoids for side in ("encoder", "decoder")}
    return generation_weight_table(TIED_TOKENS, *NORMS, constants=constants)


ARCHITECTURES = (
    Architecture(
        "PegasusForConditionalGeneration", Pegasus, CONFIG_TABLE, weight_table, vocabulary="pegasus",
        task="gap-sentences", aliases=("PegasusModel", "pegasus"), pipeline_tag="summarization",
    ),  # it opens as a summarizer
)  # fmt: skip

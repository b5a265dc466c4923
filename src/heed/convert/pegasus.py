"""PegasusForConditionalGeneration of Hugging Face's transformers."""

from heed.convert.architecture import Architecture
from heed.convert.bart import ENCODER_DECODER, LAYERS, SETTINGS, TIED_TOKENS
from heed.convert.config_table import ConfigTable
from heed.convert.weight_table import WeightTable, one_row
from heed.models.pegasus import Pegasus, PegasusConfig
from heed.nn.positions import sinusoids_in_halves

CONFIG_TABLE = ConfigTable(
    PegasusConfig,
    ("vocab_size", "vocab_size", 50265),
    *SETTINGS,
    constants={"model_type": "pegasus", "tie_word_embeddings": True, **ENCODER_DECODER},
    legacy={
        "normalize_before": True,
        "normalize_embedding": False,
        "add_final_layer_norm": True,
        "static_position_embeddings": True,
    },
)


def weight_table(config: PegasusConfig) -> WeightTable:
    sinusoids = sinusoids_in_halves(config.max_length, config.dim)
    return WeightTable(
        TIED_TOKENS,
        ("bias", "final_logits_bias", one_row),
        *LAYERS,
        ("encoder.norm", "model.encoder.layer_norm"),
        ("decoder.norm", "model.decoder.layer_norm"),
        prefix="model.",
        constants={f"model.{side}.embed_positions.weight": sinusoids for side in ("encoder", "decoder")},
        absent={"bias": "tokens.weight"},
    )


ARCHITECTURES = (
    Architecture(
        "PegasusForConditionalGeneration",
        Pegasus,
        CONFIG_TABLE,
        weight_table,
        vocabulary="pegasus",
        task="gap-sentences",  # it opens as a summarizer
        aliases=("PegasusModel", "pegasus"),
        pipeline_tag="summarization",
    ),
)

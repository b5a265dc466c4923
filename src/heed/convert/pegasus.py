"""Hugging Face's PegasusForConditionalGeneration."""

from heed.convert.bart import ALWAYS, LAYERS, ONE_MATRIX, SHAPE
from heed.convert.fields import ConfigTable
from heed.convert.table import WeightTable, row
from heed.models.pegasus import PegasusConfig
from heed.nn.positions import sinusoids_in_halves

FIELDS = ConfigTable(
    PegasusConfig,
    ("vocab_size", "vocab_size", 50265),
    *SHAPE,
    always={"model_type": "pegasus", "tie_word_embeddings": True, **ALWAYS},
    formerly={
        "normalize_before": True,
        "normalize_embedding": False,
        "add_final_layer_norm": True,
        "static_position_embeddings": True,
    },
)


def table(config: PegasusConfig) -> WeightTable:
    waves = sinusoids_in_halves(config.max_length, config.dim)
    return WeightTable(
        ONE_MATRIX,
        ("bias", "final_logits_bias", row),
        *LAYERS,
        ("encoder.norm", "model.encoder.layer_norm"),
        ("decoder.norm", "model.decoder.layer_norm"),
        prefix="model.",
        always={f"model.{side}.embed_positions.weight": waves for side in ("encoder", "decoder")},
        absent={"bias": "tokens.weight"},
    )

"""Hugging Face's MarianMTModel."""

from typing import Any

from heed.convert.bart import ALWAYS, LAYERS, ONE_MATRIX, SHAPE
from heed.convert.fields import ConfigTable, Rule, Settings, agreed
from heed.convert.table import WeightTable, row
from heed.models.marian import MarianConfig
from heed.nn.positions import sinusoids_in_halves


def _vocabularies(settings: Settings) -> dict[str, Any]:
    """Their vocab_size is the source's; the target's, if it is another, is decoder_vocab_size."""
    sources = agreed(settings, ("vocab_size",), 58101)
    target = (
        sources if settings.get("decoder_vocab_size") is None else agreed(settings, ("decoder_vocab_size",), sources)
    )
    shared = agreed(settings, ("share_encoder_decoder_embeddings",), True)
    tied = agreed(settings, ("tie_word_embeddings",), True)
    if shared and not tied:
        raise ValueError(
            "tie_word_embeddings is False, but share_encoder_decoder_embeddings is True: "
            "heed's Marian has an output matrix of its own only where source and target have theirs too"
        )
    if shared and target != sources:
        raise ValueError(
            f"decoder_vocab_size is {target} and vocab_size {sources}, but share_encoder_decoder_embeddings is True: "
            "one matrix cannot have two sizes"
        )
    return {
        "vocab_size": target,
        "source_vocab_size": None if sources == target else sources,
        "tied": "all" if shared else "target" if tied else "none",
    }


def _their_vocabularies(config: MarianConfig) -> dict[str, Any]:
    return {
        "vocab_size": config.source_vocab_size or config.vocab_size,
        "decoder_vocab_size": config.vocab_size,
        "share_encoder_decoder_embeddings": config.tied == "all",
        "tie_word_embeddings": config.tied != "none",
    }


FIELDS = ConfigTable(
    MarianConfig,
    *SHAPE,
    always={"model_type": "marian", **ALWAYS},
    formerly={
        "normalize_before": False,
        "normalize_embedding": False,
        "add_final_layer_norm": False,
        "static_position_embeddings": True,
    },
    rules=(Rule(_vocabularies, _their_vocabularies),),
)

SOURCE = ("source_tokens", "model.encoder.embed_tokens")
TOKENS = {
    "all": [ONE_MATRIX],
    "target": [SOURCE, ("tokens", ("model.decoder.embed_tokens", "lm_head"))],
    "none": [SOURCE, ("tokens", "model.decoder.embed_tokens"), ("output", "lm_head")],
}


def table(config: MarianConfig) -> WeightTable:
    waves = sinusoids_in_halves(config.max_length, config.dim)
    return WeightTable(
        *TOKENS[config.tied],
        ("bias", "final_logits_bias", row),
        *LAYERS,
        prefix="model.",
        formerly={f"model.{side}.embed_positions.weight": waves for side in ("encoder", "decoder")},
        absent={"bias": "tokens.weight"},
    )

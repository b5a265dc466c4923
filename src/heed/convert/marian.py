"""MarianMTModel of Hugging Face's transformers."""

from typing import Any

from heed.convert.architecture import Architecture
from heed.convert.bart import ENCODER_DECODER, SETTINGS, TIED_TOKENS, generation_weight_table, legacy_settings
from heed.convert.config_table import ConfigTable, Rule, Settings, read_setting
from heed.convert.weight_table import WeightTable
from heed.models.marian import Marian, MarianConfig
from heed.nn.positions import sinusoids_in_halves


def _vocabulary_sizes(settings: Settings) -> dict[str, Any]:
    """vocab_size is that of the source; a different target size is decoder_vocab_size."""
    target = source = read_setting(settings, ("vocab_size",), 58101)
    if settings.get("decoder_vocab_size") is not None:
        target = read_setting(settings, ("decoder_vocab_size",), source)
    shared = read_setting(settings, ("share_encoder_decoder_embeddings",), True)
    tied = read_setting(settings, ("tie_word_embeddings",), True)
    if shared and not tied:
        raise ValueError(
            "tie_word_embeddings is False, but share_encoder_decoder_embeddings is True: "
            "heed's Marian has an output matrix of its own only where source and target have theirs too"
        )
    if shared and target != source:
        raise ValueError(
            f"decoder_vocab_size is {target} and vocab_size {source}, but share_encoder_decoder_embeddings is True: "
            "one matrix cannot have two sizes"
        )
    return {
        "vocab_size": target,
        "source_vocab_size": None if source == target else source,
        "tied": "all" if shared else "target" if tied else "none",
    }


def _their_vocabulary_sizes(config: MarianConfig) -> dict[str, Any]:
    return {
        "vocab_size": config.source_vocab_size or config.vocab_size,
        "decoder_vocab_size": config.vocab_size,
        "share_encoder_decoder_embeddings": config.tied == "all",
        "tie_word_embeddings": config.tied != "none",
    }


CONFIG_TABLE = ConfigTable(
    MarianConfig,
    *SETTINGS,
    constants={"model_type": "marian", **ENCODER_DECODER},
    legacy=legacy_settings(False, False, True),
    rules=(Rule(_vocabulary_sizes, _their_vocabulary_sizes),),
)

SOURCE = ("source_tokens", "model.encoder.embed_tokens")
TOKENS = {
    "all": [TIED_TOKENS],
    "target": [SOURCE, ("tokens", ("model.decoder.embed_tokens", "lm_head"))],
    "none": [SOURCE, ("tokens", "model.decoder.embed_tokens"), ("output", "lm_head")],
}


def weight_table(config: MarianConfig) -> WeightTable:
    sinusoids = sinusoids_in_halves(config.max_length, config.dim)
    legacy = {f"model.{side}.embed_positions.weight": sinusoids for side in ("encoder", "decoder")}
    return generation_weight_table(*TOKENS[config.tied], legacy=legacy)


ARCHITECTURES = (
    Architecture(
        "MarianMTModel", Marian, CONFIG_TABLE, weight_table, vocabulary="marian", task="translation",
        aliases=("MarianModel", "marian"), pipeline_tag="translation",
    ),
)  # fmt: skip

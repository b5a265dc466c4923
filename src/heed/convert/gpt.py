"""OpenAIGPTLMHeadModel and OpenAIGPTDoubleHeadsModel of transformers, with the layers of its GPT-2."""

from typing import Any

from heed.convert import gpt2
from heed.convert.config_table import ConfigTable, Rule, Settings, read_setting
from heed.convert.weight_table import WeightTable
from heed.models.gpt import GPT, GPTConfig


def _hidden(settings: Settings) -> dict[str, Any]:
    return {"hidden": 4 * read_setting(settings, ("n_embd", "hidden_size"), 768)}


def _check_hidden(config: GPTConfig) -> dict[str, Any]:
    if config.hidden != 4 * config.dim:
        raise ValueError(f"hidden is {config.hidden}, but transformers' GPT supports only 4 * dim, {4 * config.dim}")
    return {}


ROWS = (("vocab_size", "vocab_size", 40478), ("max_length", gpt2.POSITIONS, 512), *gpt2.SETTINGS)
CONSTANTS = {"model_type": "openai-gpt", "afn": "gelu", "tie_word_embeddings": True}
HIDDEN = Rule(_hidden, _check_hidden)
CONFIG_TABLE = ConfigTable(GPTConfig, *ROWS, constants=CONSTANTS, rules=(HIDDEN,))
DOUBLE_CONFIG_TABLE = ConfigTable(
    GPTConfig,
    *ROWS,
    gpt2.CHOICE_ROW,
    constants={**CONSTANTS, **gpt2.CHOICE_CONSTANTS},
    rules=(HIDDEN, gpt2.CHOICES),
)


def weight_table(config: GPTConfig) -> WeightTable:
    return gpt2.decoder_weight_table("tokens_embed", "positions_embed", choices=config.choices)


ARCHITECTURES = gpt2.architectures(
    "OpenAIGPT", "openai-gpt", GPT, (CONFIG_TABLE, DOUBLE_CONFIG_TABLE), weight_table, "gpt"
)

"""CTRLLMHeadModel of transformers."""

from heed.convert.architecture import Architecture
from heed.convert.config_table import ConfigTable
from heed.convert.weight_table import WeightTable
from heed.models.ctrl import CTRL, CTRLConfig

# fmt: off
CONFIG_TABLE = ConfigTable(
    CTRLConfig,
    ("vocab_size", "vocab_size",                                 246534),
    ("dim",        ("n_embd", "hidden_size"),                    1280),
    ("heads",      ("n_head", "num_attention_heads"),            16),
    ("hidden",     "dff",                                        8192),
    ("layers",     ("n_layer", "num_hidden_layers"),             48),
    ("max_length", ("n_positions", "max_position_embeddings"),   256),
    ("dropout",    "resid_pdrop",                                0.1),
    ("dropout",    "embd_pdrop",                                 0.1),
    ("norm_eps",   "layer_norm_epsilon",                         1e-6),
    ("init_std",   "initializer_range",                          0.02),
    constants={"model_type": "ctrl", "tie_word_embeddings": True},
)
LAYER = (
    *((f"attention.body.{x}", f"multi_head_attention.W{x}") for x in "qkv"),
    ("attention.body.out", "multi_head_attention.dense"),
    ("attention.norm",     "layernorm1"),
    ("mlp.body.up",        "ffn.0"),
    ("mlp.body.down",      "ffn.2"),
    ("mlp.norm",           "layernorm2"),
)
# fmt: on


def weight_table(config: CTRLConfig) -> WeightTable:
    return WeightTable(
        ("tokens.weight", ("transformer.w.weight", "lm_head.weight")),
        ("bias", "lm_head.bias"),
        *((f"stack.layers.{{}}.{ours}", f"transformer.h.{{}}.{theirs}") for ours, theirs in LAYER),
        ("stack.norm", "transformer.layernorm"),
        prefix="transformer.",
        absent={"bias": "tokens.weight"},  # CTRLModel has none
    )


ARCHITECTURES = (
    Architecture(
        "CTRLLMHeadModel",
        CTRL,
        CONFIG_TABLE,
        weight_table,
        vocabulary="ctrl",
        task="language",
        aliases=("CTRLModel", "ctrl"),
        auto_class="AutoModelForCausalLM",
        pipeline_tag="text-generation",
        processors=lambda vocabularies, settings: {"text": vocabularies[0]},
        fits=lambda config: not (config.choices or config.labels or config.prompt_length),
    ),
)

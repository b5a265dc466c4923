"""GPT2LMHeadModel of transformers. Its linear layers are stored transposed, and q, k and v as one."""

from typing import Any

from heed.convert.architecture import Architecture
from heed.convert.config_table import ConfigTable, Rule, Settings, read_setting
from heed.convert.weight_table import WeightTable, transposed
from heed.models.gpt2 import GPT2, GPT2Config


def _hidden(settings: Settings) -> dict[str, Any]:
    """n_inner, which is 4 * n_embd where it is null."""
    inner = settings.get("n_inner")
    return {"hidden": 4 * read_setting(settings, ("n_embd", "hidden_size"), 768) if inner is None else inner}


# fmt: off
CONFIG_TABLE = ConfigTable(
    GPT2Config,
    ("vocab_size",        "vocab_size",                       50257),
    ("dim",               ("n_embd", "hidden_size"),          768),
    ("heads",             ("n_head", "num_attention_heads"),  12),
    ("layers",            ("n_layer", "num_hidden_layers"),   12),
    ("max_length",        ("n_positions", "max_position_embeddings"), 1024),
    ("dropout",           "resid_pdrop",                      0.1),
    ("dropout",           "embd_pdrop",                       0.1),
    ("attention_dropout", "attn_pdrop",                       0.1),
    ("norm_eps",          "layer_norm_epsilon",               1e-5),
    ("init_std",          "initializer_range",                0.02),
    constants={
        "model_type": "gpt2", "activation_function": "gelu_new", "scale_attn_weights": True, "tie_word_embeddings": True,
        "scale_attn_by_inverse_layer_idx": False, "reorder_and_upcast_attn": False, "add_cross_attention": False,
    },
    rules=(Rule(_hidden, lambda config: {"n_inner": config.hidden}),),
)
LAYER = (
    ("attention.norm",         "ln_1"),
    ("attention.body.{q,k,v}", "attn.c_attn", transposed),
    ("attention.body.out",     "attn.c_proj", transposed),
    ("mlp.norm",               "ln_2"),
    ("mlp.body.up",            "mlp.c_fc",    transposed),
    ("mlp.body.down",          "mlp.c_proj",  transposed),
)
# fmt: on


def weight_table(config: GPT2Config) -> WeightTable:
    layers = [(f"stack.layers.{{}}.{ours}", f"transformer.h.{{}}.{theirs}", *layout) for ours, theirs, *layout in LAYER]
    return WeightTable(
        ("tokens", ("transformer.wte", "lm_head")),
        ("positions.places", "transformer.wpe"),
        *layers,
        ("stack.norm", "transformer.ln_f"),
        prefix="transformer.",
        ignore=("*.attn.bias", "*.attn.masked_bias"),  # the causal mask, which older versions saved
    )


ARCHITECTURES = (
    Architecture(
        "GPT2LMHeadModel",
        GPT2,
        CONFIG_TABLE,
        weight_table,
        vocabulary="gpt2",
        task="language",
        aliases=("GPT2Model", "gpt2"),
        auto_class="AutoModelForCausalLM",
        pipeline_tag="text-generation",
        processors=lambda vocabularies, settings: {"text": vocabularies[0]},
    ),
)

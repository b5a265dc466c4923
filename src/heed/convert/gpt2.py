"""GPT2LMHeadModel and GPT2DoubleHeadsModel of transformers. Linear layers are stored transposed there, and q, k and v
as one. OpenAI's first GPT has the same layers under the same names.
"""

from typing import Any

from heed.convert.architecture import Architecture
from heed.convert.config_table import ConfigTable, Rule, Settings, read_setting
from heed.convert.weight_table import WeightTable, transposed
from heed.models.gpt2 import GPT2, GPT2Config


def _hidden(settings: Settings) -> dict[str, Any]:
    """n_inner, which defaults to 4 * n_embd if null."""
    inner = settings.get("n_inner")
    return {"hidden": 4 * read_setting(settings, ("n_embd", "hidden_size"), 768) if inner is None else inner}


# fmt: off
SETTINGS = (
    ("dim",               ("n_embd", "hidden_size"),          768),
    ("heads",             ("n_head", "num_attention_heads"),  12),
    ("layers",            ("n_layer", "num_hidden_layers"),   12),
    ("dropout",           "resid_pdrop",                      0.1),
    ("dropout",           "embd_pdrop",                       0.1),
    ("attention_dropout", "attn_pdrop",                       0.1),
    ("norm_eps",          "layer_norm_epsilon",               1e-5),
    ("init_std",          "initializer_range",                0.02),
)
POSITIONS = ("n_positions", "max_position_embeddings")
ROWS = (("vocab_size", "vocab_size", 50257), ("max_length", POSITIONS, 1024), *SETTINGS)
CONSTANTS = {
    "model_type": "gpt2", "activation_function": "gelu_new", "scale_attn_weights": True, "tie_word_embeddings": True,
    "scale_attn_by_inverse_layer_idx": False, "reorder_and_upcast_attn": False, "add_cross_attention": False,
}
HIDDEN = Rule(_hidden, lambda config: {"n_inner": config.hidden})
CHOICE_ROW = ("choice_dropout", "summary_first_dropout", 0.1)
CHOICE_CONSTANTS = {  # of the head that scores choices
    "summary_type": "cls_index", "summary_use_proj": True, "summary_activation": None, "summary_proj_to_labels": True,
}
CHOICES = Rule(lambda settings: {"choices": True}, lambda config: {"num_labels": 1})
LAYER = (
    ("attention.norm",         "ln_1"),
    ("attention.body.{q,k,v}", "attn.c_attn", transposed),
    ("attention.body.out",     "attn.c_proj", transposed),
    ("mlp.norm",               "ln_2"),
    ("mlp.body.up",            "mlp.c_fc",    transposed),
    ("mlp.body.down",          "mlp.c_proj",  transposed),
)
# fmt: on
CONFIG_TABLE = ConfigTable(GPT2Config, *ROWS, constants=CONSTANTS, rules=(HIDDEN,))
DOUBLE_CONFIG_TABLE = ConfigTable(
    GPT2Config, *ROWS, CHOICE_ROW, constants={**CONSTANTS, **CHOICE_CONSTANTS}, rules=(HIDDEN, CHOICES)
)


def decoder_weight_table(tokens: str, positions: str, *rows: tuple, choices: bool) -> WeightTable:
    """The layers, the embeddings under these names, and further rows."""
    layers = [(f"stack.layers.{{}}.{ours}", f"transformer.h.{{}}.{theirs}", *layout) for ours, theirs, *layout in LAYER]
    return WeightTable(
        ("tokens", (f"transformer.{tokens}", "lm_head")),
        ("positions.places", f"transformer.{positions}"),
        *layers,
        *rows,
        *([("head.out", "multiple_choice_head.summary")] if choices else []),
        prefix="transformer.",
        ignore=("*.attn.bias", "*.attn.masked_bias"),  # the causal mask, which older versions saved
    )


def weight_table(config: GPT2Config) -> WeightTable:
    return decoder_weight_table("wte", "wpe", ("stack.norm", "transformer.ln_f"), choices=config.choices)


# the head reads the state of the last token of each choice; choices are given one by one, so that none needs padding
SCORE_CHOICES = """\
import torch

choices = [tokenizer(text)["input_ids"] for text in ("A text. One choice.", "A text. Another one.")]
print([model(torch.tensor([[ids]]), mc_token_ids=torch.tensor([[len(ids) - 1]])).mc_logits.item() for ids in choices])"""


FRAMED = ("<start>A text.<delimiter>One choice.<extract>", "<start>A text.<delimiter>Another one.<extract>")
SCORE_FRAMED = SCORE_CHOICES.replace('("A text. One choice.", "A text. Another one.")', f"{FRAMED}".replace("'", '"'))


def _language_model(config: Any) -> bool:
    return not (config.choices or config.labels or config.prompt_length)


def architectures(name: str, model_type: str, model: type, tables: tuple, weights: Any, kind: str) -> tuple:
    """The language model `name`LMHeadModel and, with two heads, `name`DoubleHeadsModel."""
    shared = {"vocabulary": kind, "task": "language", "pipeline_tag": "text-generation"}
    shared |= {"processors": lambda vocabularies, settings: {"text": vocabularies[0]}}
    aliases, one, two = (f"{name}Model", model_type), f"{name}LMHeadModel", f"{name}DoubleHeadsModel"
    auto = "AutoModelForCausalLM"
    return (
        Architecture(one, model, tables[0], weights, aliases=aliases, auto_class=auto, fits=_language_model, **shared),
        Architecture(
            two,
            model,
            tables[1],
            weights,
            auto_class=two,
            example=SCORE_CHOICES,
            framed_example=SCORE_FRAMED,
            fits=lambda c: c.choices and not c.prompt_length,
            **shared,
        ),
    )


ARCHITECTURES = architectures("GPT2", "gpt2", GPT2, (CONFIG_TABLE, DOUBLE_CONFIG_TABLE), weight_table, "gpt2")

"""Hugging Face's BartForConditionalGeneration and BartForSequenceClassification.

Its Marian and Pegasus came from the same file, and share most of the names.
"""

from collections.abc import Sequence
from typing import Any

from heed.convert.fields import ConfigTable, Rule, Settings, agreed
from heed.convert.table import WeightTable, row
from heed.models.bart import BartClassifierConfig, BartConfig

# fmt: off
LAYER = (
    # ours                 theirs
    ("attention.body.q",   "self_attn.q_proj"),
    ("attention.body.k",   "self_attn.k_proj"),
    ("attention.body.v",   "self_attn.v_proj"),
    ("attention.body.out", "self_attn.out_proj"),
    ("attention.norm",     "self_attn_layer_norm"),
    ("cross.body.q",       "encoder_attn.q_proj"),
    ("cross.body.k",       "encoder_attn.k_proj"),
    ("cross.body.v",       "encoder_attn.v_proj"),
    ("cross.body.out",     "encoder_attn.out_proj"),
    ("cross.norm",         "encoder_attn_layer_norm"),
    ("mlp.body.up",        "fc1"),
    ("mlp.body.down",      "fc2"),
    ("mlp.norm",           "final_layer_norm"),
)
LAYERS = tuple(
    (f"{side}.layers.{{}}.{ours}", f"model.{side}.layers.{{}}.{theirs}")
    for side in ("encoder", "decoder") for ours, theirs in LAYER
)
ONE_MATRIX = ("tokens", ("model.shared", "model.encoder.embed_tokens", "model.decoder.embed_tokens", "lm_head"))

SHAPE = (
    # ours                theirs                                                theirs where it is not said
    ("dim",               ("d_model", "hidden_size"),                           1024),
    ("heads",             ("encoder_attention_heads", "num_attention_heads"),   16),
    ("heads",             "decoder_attention_heads",                            16),
    ("hidden",            "encoder_ffn_dim",                                    4096),
    ("hidden",            "decoder_ffn_dim",                                    4096),
    ("encoder_layers",    ("encoder_layers", "num_hidden_layers"),              12),
    ("decoder_layers",    "decoder_layers",                                     12),
    ("max_length",        "max_position_embeddings",                            1024),
    ("activation",        "activation_function",                                "gelu",
     {"gelu": "gelu", "relu": "relu", "swish": "swish", "silu": "swish"}),
    ("scaled",            "scale_embedding",                                    False),
    ("dropout",           "dropout",                                            0.1),
    ("attention_dropout", "attention_dropout",                                  0.0),
    ("hidden_dropout",    "activation_dropout",                                 0.0),
    ("init_std",          "init_std",                                           0.02),
)
ALWAYS = {"is_encoder_decoder": True, "is_decoder": False}
FORMERLY = {
    "normalize_before": False,
    "normalize_embedding": True,
    "add_final_layer_norm": False,
    "do_blenderbot_90_layernorm": False,
    "static_position_embeddings": False,
    "extra_pos_embeddings": 2,
}
FIELDS = ConfigTable(
    BartConfig,
    ("vocab_size", "vocab_size", 50265),
    *SHAPE,
    always={"model_type": "bart", "tie_word_embeddings": True, **ALWAYS},
    formerly=FORMERLY,
)
# fmt: on
ONE_LABEL = "single_label_classification"


def _labels(settings: Settings) -> dict[str, Any]:
    names, kind = settings.get("id2label"), settings.get("problem_type")
    if kind not in (None, ONE_LABEL):
        raise ValueError(f"problem_type is {kind!r}; heed's BartClassifier is made for {ONE_LABEL!r} alone")
    labels = agreed(settings, ("num_labels", "_num_labels"), 3) if names is None else len(names)
    if labels < 2:
        said = f"num_labels is {labels}" if names is None else f"id2label is {names}"
        raise ValueError(f"{said}; heed's BartClassifier tells labels apart, so there must be at least two")
    return {"labels": labels}


def label_names(labels: int) -> list[str]:
    """Those that transformers gives to labels without names."""
    return [f"LABEL_{i}" for i in range(labels)]


def their_labels(names: Sequence[str]) -> dict[str, Any]:
    """What config.json says of labels with these names."""
    return {
        "id2label": {str(i): name for i, name in enumerate(names)},
        "label2id": {name: i for i, name in enumerate(names)},
    }


CLASSIFIER_FIELDS = ConfigTable(
    BartClassifierConfig,
    ("vocab_size", "vocab_size", 50265),
    *SHAPE,
    ("classifier_dropout", "classifier_dropout", 0.0),
    ("first", "decoder_start_token_id", 2),
    ("last", "eos_token_id", 2),
    always={"model_type": "bart", "tie_word_embeddings": True, **ALWAYS},
    formerly=FORMERLY,
    rules=(Rule(_labels, lambda config: their_labels(label_names(config.labels))),),
)


def table(config: BartConfig) -> WeightTable:
    """The table of a Bart, or of a BartClassifier."""
    if isinstance(config, BartClassifierConfig):
        top, absent = [("head.dense", "classification_head.dense"), ("head.out", "classification_head.out_proj")], {}
    else:
        top, absent = [("bias", "final_logits_bias", row)], {"bias": "tokens.weight"}
    return WeightTable(
        ONE_MATRIX,
        ("source_positions.places", "model.encoder.embed_positions"),
        ("positions.places", "model.decoder.embed_positions"),
        ("source_norm", "model.encoder.layernorm_embedding"),
        ("norm", "model.decoder.layernorm_embedding"),
        *LAYERS,
        *top,
        prefix="model.",
        ignore=("*encoder.version", "*decoder.version"),
        absent=absent,
    )

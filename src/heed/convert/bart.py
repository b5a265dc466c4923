"""BartForConditionalGeneration and BartForSequenceClassification of Hugging Face's transformers.

Marian and Pegasus are copies of this code in transformers and share most names.
"""

from typing import Any

from heed.convert import labels
from heed.convert.architecture import Architecture
from heed.convert.config_table import ConfigTable
from heed.convert.weight_table import WeightTable, one_row
from heed.models.bart import Bart, BartConfig

# fmt: off
ATTENTIONS = (("attention", "self_attn"), ("cross", "encoder_attn"))  # ours and theirs
LAYER = (
    *((f"{ours}.body.{x}", f"{theirs}.{x}_proj") for ours, theirs in ATTENTIONS for x in ("q", "k", "v", "out")),
    *((f"{ours}.norm", f"{theirs}_layer_norm") for ours, theirs in ATTENTIONS),
    ("mlp.body.up", "fc1"), ("mlp.body.down", "fc2"), ("mlp.norm", "final_layer_norm"),
)
LAYERS = tuple(
    (f"{side}.layers.{{}}.{ours}", f"model.{side}.layers.{{}}.{theirs}")
    for side in ("encoder", "decoder") for ours, theirs in LAYER
)
TIED_TOKENS = ("tokens", ("model.shared", "model.encoder.embed_tokens", "model.decoder.embed_tokens", "lm_head"))

SETTINGS = (
    # ours                theirs                                                their default
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
ENCODER_DECODER = {"is_encoder_decoder": True, "is_decoder": False}
CONSTANTS = {"model_type": "bart", "tie_word_embeddings": True, **ENCODER_DECODER}
ROWS = (("vocab_size", "vocab_size", 50265), *SETTINGS)
HEAD_ROWS = (
    ("classifier_dropout", "classifier_dropout", 0.0),
    ("first", "decoder_start_token_id", 2),
    ("last", "eos_token_id", 2),
)
# fmt: on


def legacy_settings(pre_norm: bool, embedding_norm: bool, sinusoids: bool) -> dict[str, bool]:
    """How older config.json files distinguish architectures that share a class."""
    norms = {"normalize_before": pre_norm, "normalize_embedding": embedding_norm, "add_final_layer_norm": pre_norm}
    return {**norms, "static_position_embeddings": sinusoids}


LEGACY = legacy_settings(False, True, False) | {"do_blenderbot_90_layernorm": False, "extra_pos_embeddings": 2}
BART = {"constants": CONSTANTS, "legacy": LEGACY}
CONFIG_TABLE = ConfigTable(BartConfig, *ROWS, **BART)
CLASSIFIER_CONFIG_TABLE = ConfigTable(
    BartConfig, *ROWS, *HEAD_ROWS, rules=(labels.RULE,), name="Bart classifier", **BART
)
BODY = (
    TIED_TOKENS,
    ("source_positions.places", "model.encoder.embed_positions"),
    ("positions.places", "model.decoder.embed_positions"),
    ("source_norm", "model.encoder.layernorm_embedding"),
    ("norm", "model.decoder.layernorm_embedding"),
)
IGNORED = ("*encoder.version", "*decoder.version")


def generation_weight_table(*rows: tuple, **options: Any) -> WeightTable:
    """These rows, the layers, and the output bias, which is zero if absent."""
    bias = ("bias", "final_logits_bias", one_row)
    return WeightTable(*rows, *LAYERS, bias, prefix="model.", absent={"bias": "tokens.weight"}, **options)


def weight_table(config: BartConfig) -> WeightTable:
    return generation_weight_table(*BODY, ignore=IGNORED)


def classifier_weight_table(config: BartConfig) -> WeightTable:
    head = (("head.dense", "classification_head.dense"), ("head.out", "classification_head.out_proj"))
    return WeightTable(*BODY, *LAYERS, *head, prefix="model.", ignore=IGNORED)


ARCHITECTURES = (
    Architecture(
        "BartForConditionalGeneration", Bart, CONFIG_TABLE, weight_table, vocabulary="bart", task="translation",
        aliases=("BartModel", "bart"), fits=lambda config: not config.labels,
    ),
    Architecture(
        "BartForSequenceClassification", Bart, CLASSIFIER_CONFIG_TABLE, classifier_weight_table, vocabulary="bart",
        task="classification", auto_class="AutoModelForSequenceClassification", pipeline_tag="text-classification",
        generates=False, fits=lambda config: config.labels > 0, processors=labels.text_and_labels,
        settings=labels.settings_of, task_of=labels.task,
    ),
)  # fmt: skip

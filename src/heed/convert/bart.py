"""BartForConditionalGeneration and BartForSequenceClassification of Hugging Face's transformers.

Its Marian and Pegasus are copies of this code there, and share most of the names.
"""

from heed.convert import labels
from heed.convert.architecture import Architecture
from heed.convert.config_table import ConfigTable
from heed.convert.weight_table import WeightTable, one_row
from heed.models.bart import Bart, BartConfig

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
LEGACY = {
    "normalize_before": False,
    "normalize_embedding": True,
    "add_final_layer_norm": False,
    "do_blenderbot_90_layernorm": False,
    "static_position_embeddings": False,
    "extra_pos_embeddings": 2,
}
CONSTANTS = {"model_type": "bart", "tie_word_embeddings": True, **ENCODER_DECODER}
ROWS = (("vocab_size", "vocab_size", 50265), *SETTINGS)
# fmt: on
CONFIG_TABLE = ConfigTable(BartConfig, *ROWS, constants=CONSTANTS, legacy=LEGACY)
CLASSIFIER_CONFIG_TABLE = ConfigTable(
    BartConfig,
    *ROWS,
    ("classifier_dropout", "classifier_dropout", 0.0),
    ("first", "decoder_start_token_id", 2),
    ("last", "eos_token_id", 2),
    constants=CONSTANTS,
    legacy=LEGACY,
    rules=(labels.RULE,),
    name="Bart classifier",
)
BODY = (
    TIED_TOKENS,
    ("source_positions.places", "model.encoder.embed_positions"),
    ("positions.places", "model.decoder.embed_positions"),
    ("source_norm", "model.encoder.layernorm_embedding"),
    ("norm", "model.decoder.layernorm_embedding"),
    *LAYERS,
)
IGNORED = ("*encoder.version", "*decoder.version")


def weight_table(config: BartConfig) -> WeightTable:
    bias = ("bias", "final_logits_bias", one_row)
    return WeightTable(*BODY, bias, prefix="model.", ignore=IGNORED, absent={"bias": "tokens.weight"})


def classifier_weight_table(config: BartConfig) -> WeightTable:
    head = (("head.dense", "classification_head.dense"), ("head.out", "classification_head.out_proj"))
    return WeightTable(*BODY, *head, prefix="model.", ignore=IGNORED)


ARCHITECTURES = (
    Architecture(
        "BartForConditionalGeneration",
        Bart,
        CONFIG_TABLE,
        weight_table,
        vocabulary="bart",
        task="translation",
        aliases=("BartModel", "bart"),
        fits=lambda config: not config.labels,
    ),
    Architecture(
        "BartForSequenceClassification",
        Bart,
        CLASSIFIER_CONFIG_TABLE,
        classifier_weight_table,
        vocabulary="bart",
        task="classification",
        auto_class="AutoModelForSequenceClassification",
        pipeline_tag="text-classification",
        generates=False,
        fits=lambda config: config.labels > 0,
        processors=labels.text_and_labels,
        settings=labels.settings_of,
    ),
)

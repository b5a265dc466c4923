"""ALBERT of transformers with all its heads. Layers that share weights are one layer in both."""

from heed.convert.encoders import ACTIVATIONS, POSITIONS, SHARED, SIZES, USUAL, Family, body, class_names, words
from heed.models.albert import Albert, AlbertConfig

# fmt: off
DEFAULTS = {"hidden_size": 4096, "num_attention_heads": 64, "intermediate_size": 16384, "hidden_dropout_prob": 0.0,
            "attention_probs_dropout_prob": 0.0}  # those of the largest
ROWS = (
    ("vocab_size",         "vocab_size",               30000),
    ("embedding",          "embedding_size",           128),
    ("groups",             "num_hidden_groups",        1),
    ("group_layers",       "inner_group_num",          1),
    ("classifier_dropout", "classifier_dropout_prob",  0.1),
    ("activation",         "hidden_act",               "gelu_new", ACTIVATIONS),
    *((ours, theirs, DEFAULTS.get(theirs, default)) for ours, theirs, default in (*SIZES, *SHARED, POSITIONS)),
)
LAYER = (
    ("attention.body.q",   "attention.query"),
    ("attention.body.k",   "attention.key"),
    ("attention.body.v",   "attention.value"),
    ("attention.body.out", "attention.dense"),
    ("attention.norm",     "attention.LayerNorm"),
    ("mlp.body.up",        "ffn"),
    ("mlp.body.down",      "ffn_output"),
    ("mlp.norm",           "full_layer_layer_norm"),
)
# fmt: on
GROUPS = "encoder.albert_layer_groups.{}.albert_layers.{}"
FAMILY = Family(
    Albert,
    AlbertConfig,
    "albert",
    class_names("Albert", pretraining="ForPreTraining"),
    ROWS,
    body(
        (),
        ("widen", "encoder.embedding_hidden_mapping_in"),
        *((f"stack.groups.{{}}.{{}}.{ours}", f"{GROUPS}.{theirs}") for ours, theirs in LAYER),
    ),
    {
        **USUAL,
        "words": words("predictions", "dense", "LayerNorm"),
        "pair": (("head.pair.out", "sop_classifier.classifier"),),
    },
    output="predictions.decoder.weight",
    vocabulary="albert",
    prefix="albert.",
    rules=(),
    pooler="pooler",
    decodes=False,
)
ARCHITECTURES = FAMILY.architectures()

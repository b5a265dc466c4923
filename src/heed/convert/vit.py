"""ViT of transformers, with and without a classifier, and its image preprocessing."""

import math
from collections.abc import Mapping
from typing import Any, get_args

from heed.convert import labels
from heed.convert.architecture import Architecture
from heed.convert.config_table import ConfigTable, Rule
from heed.convert.encoders import LAYER
from heed.convert.weight_table import Layout, WeightTable
from heed.models.package import Package
from heed.models.vit import ViT, ViTConfig
from heed.vocabularies.images import Images, Resample
from heed.vocabularies.labels import Labels

PREPROCESSOR = "preprocessor_config.json"
ACTIVATIONS = {"gelu": "gelu", "gelu_pytorch_tanh": "gelu_tanh", "gelu_new": "gelu_tanh", "relu": "relu"}
# fmt: off
ROWS = (
    ("size",              "image_size",                    224),
    ("channels",          "num_channels",                  3),
    ("patch",             "patch_size",                    16),
    ("dim",               "hidden_size",                   768),
    ("heads",             "num_attention_heads",           12),
    ("hidden",            "intermediate_size",             3072),
    ("layers",            "num_hidden_layers",             12),
    ("dropout",           "hidden_dropout_prob",           0.0),
    ("attention_dropout", "attention_probs_dropout_prob",  0.0),
    ("activation",        "hidden_act",                    "gelu", ACTIVATIONS),
    ("qkv_bias",          "qkv_bias",                      True),
    ("norm_eps",          "layer_norm_eps",                1e-12),
    ("init_std",          "initializer_range",             0.02),
)
# fmt: on
NAMES = {  # where a layer's parts are called otherwise than BERT's
    "attention.self.": "attention.attention.",
    "attention.output.LayerNorm": "layernorm_before",
    "output.LayerNorm": "layernorm_after",
}  # fmt: skip
ROW = Layout(ours=lambda w: w.flatten(), theirs=lambda w: w[None, None])  # a vector that they keep with three axes
TABLE = Layout(ours=lambda w: w[0], theirs=lambda w: w[None])
POOLING = Rule(lambda settings: {"pooling": "cls"}, lambda config: {})
NO_LABELS = Rule(lambda settings: {"labels": 0}, lambda config: {})
EXAMPLES = {
    "ViTForImageClassification": "print(model.config.id2label[model(**images).logits.argmax().item()])",
    "ViTModel": "print(model(**images).last_hidden_state)",
}


def _their_name(name: str) -> str:
    for before, after in NAMES.items():
        name = name.replace(before, after) if before in name else name
    return name


def _weights(config: ViTConfig) -> WeightTable:
    layers = ((f"stack.layers.{{}}.{ours}", f"vit.encoder.layer.{{}}.{_their_name(name)}") for ours, name in LAYER)
    return WeightTable(
        ("first", "vit.embeddings.cls_token", ROW),
        ("positions", "vit.embeddings.position_embeddings", TABLE),
        ("patches", "vit.embeddings.patch_embeddings.projection"),
        *layers,
        ("stack.norm", "vit.layernorm"),
        ("head", "classifier"),
        prefix="vit.",
        ignore=("vit.pooler.*", "vit.embeddings.mask_token"),
    )


def _fits(config: ViTConfig, labelled: bool) -> bool:
    return config.pooling == "cls" and not config.layer_scale and bool(config.labels) == labelled


def _architecture(name: str, labelled: bool, **more: Any) -> Architecture:
    rules = (POOLING, labels.rule(2, numbers=False) if labelled else NO_LABELS)
    return Architecture(
        name,
        ViT,
        ConfigTable(ViTConfig, *ROWS, constants={"model_type": "vit"}, rules=rules),
        _weights,
        vocabulary=None,
        generates=False,
        token_ids=(),
        example=EXAMPLES[name],
        fits=lambda config: _fits(config, labelled),
        settings=labels.settings_of if labelled else lambda package: {},
        **more,
    )


ARCHITECTURES = (
    _architecture(
        "ViTForImageClassification",
        True,
        task="image-classification",
        auto_class="AutoModelForImageClassification",
        pipeline_tag="image-classification",
    ),
    _architecture(
        "ViTModel",
        False,
        task="image-features",
        aliases=("vit",),
        auto_class="AutoModel",
        pipeline_tag="image-feature-extraction",
    ),
)


def processors(preprocessor: Mapping[str, Any], settings: Mapping[str, Any], config: ViTConfig) -> dict[str, Any]:
    """The processors of a folder: image preprocessing and labels."""
    own = {"images": to_ours(preprocessor, config)}
    return own | ({"labels": Labels(labels.names(settings, 2))} if config.labels else {})


def to_ours(settings: Mapping[str, Any], config: ViTConfig) -> Images:
    """The image preprocessing in preprocessor_config.json, with transformers' defaults."""
    size, fit, resize = _sizes(settings)
    if size != config.size:
        raise ValueError(f"images are resized to {size} pixels, but the model expects {config.size}")
    number = settings.get("resample", 3 if _is_deit(settings) else 2)
    if type(number) is not int or not 0 <= number < len(get_args(Resample)):
        raise ValueError(f"resample is {number!r}; it must be one of Pillow's numbers, 0 to 5")
    factor = settings.get("rescale_factor", 1 / 255)
    if not settings.get("do_rescale", True) or not isinstance(factor, float) or not math.isclose(factor, 1 / 255):
        raise ValueError(f"rescale_factor is {factor!r}; heed always divides by 255")
    normal = settings.get("do_normalize", True)
    mean, std = (settings.get(f"image_{name}", [0.5] * config.channels) for name in ("mean", "std"))
    facts = {"size": size, "channels": config.channels, "fit": fit, "resample": get_args(Resample)[number]}
    facts["resize"] = resize if resize != size else None
    facts |= {"mean": mean, "std": std} if normal else {"mean": [0.0] * config.channels, "std": [1.0] * config.channels}
    return Images.read_facts(facts, "image_mean or image_std, or the size")


def _is_deit(settings: Mapping[str, Any]) -> bool:
    """Whether transformers would read images by DeiT's processor, which has other defaults than ViT's."""
    return str(settings.get("image_processor_type", settings.get("feature_extractor_type"))).startswith("DeiT")


def _sizes(settings: Mapping[str, Any]) -> tuple[Any, str, Any]:
    """The image size of the model; whether images are first stretched or have their shorter side resized; and to what
    size.
    """
    deit = _is_deit(settings)
    size, crop = settings.get("size", 256 if deit else 224), settings.get("crop_size", 224 if deit else None)
    cut, fit = bool(settings.get("do_center_crop", deit)), "stretch"
    if isinstance(size, Mapping) and "shortest_edge" in size:
        size, fit = size["shortest_edge"], "crop"
        if not cut:
            raise ValueError(f"the shorter side is resized to {size}, without a center crop; heed's images are square")
    size = _square("size", size)
    if not cut:
        return size, fit, size
    crop = _square("crop_size", crop)
    if not settings.get("do_resize", True):
        raise ValueError("do_resize is false with a center crop; heed resizes images before it crops them")
    if crop > size:
        raise ValueError(f"crop_size is {crop} and size {size}; heed supports no center crop beyond the image")
    return crop, fit, size


def _square(name: str, size: Any) -> int:
    if isinstance(size, Mapping):
        if size.get("height") != size.get("width"):
            raise ValueError(f"{name} is {size}; heed's images are square")
        size = size.get("height")
    if type(size) is not int:
        raise ValueError(f"{name} is {size!r}; it must be an integer, or a height and a width")
    return size


def to_theirs(package: Package) -> dict[str, Any]:
    """preprocessor_config.json of a model."""
    own: Images = package.processors["images"]
    if own.fit == "pad":
        raise ValueError(
            "images are padded to a square (data.fit), which transformers' ViT does not support: it cannot be exported"
        )
    first, both = own.resize or own.size, {"height": own.size, "width": own.size}
    size = {"shortest_edge": first} if own.fit == "crop" else {"height": first, "width": first}
    cut = {"do_center_crop": True, "crop_size": both} if own.fit == "crop" or own.resize else {}
    return {
        "image_processor_type": "ViTImageProcessor",
        "do_resize": True,
        "size": size,
        **cut,
        "resample": get_args(Resample).index(own.resample),
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": list(own.mean),
        "image_std": list(own.std),
    }

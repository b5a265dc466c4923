"""Attention of a ViT over an image: of each head of a layer, and combined over all layers."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8

from heed.products.image_classifier import ImageClassifier, ImageLabel, Source

MAX_WEIGHTS = 8_000_000  # of a layer; beyond, its heads are averaged


@dataclass(frozen=True)
class ImageLook:
    """An image as the model reads it, its classes, and the attention of one layer.

    `attention` is (heads, t, t), or for very many patches (1, t, t), the mean of all heads. The first of the t is the
    class token if `has_class_token`; the others are patches, row by row. `rollout` is the contribution of each patch
    to the classified vector, through all layers.
    """

    label: ImageLabel
    pixels: UInt8[np.ndarray, "size size c"]
    layer: int  # from 1
    layers: int
    attention: Float[np.ndarray, "heads t t"]
    rollout: Float[np.ndarray, "rows columns"]
    has_class_token: bool


@torch.inference_mode()
def look(classifier: ImageClassifier, source: Source, layer: int | None = None) -> ImageLook:
    """Classify and trace one image; `layer` counts from 1 (default: the last)."""
    model: Any = classifier.model.eval()
    if not hasattr(model, "trace"):
        raise ValueError(f"a {type(model).__name__} has no attention over patches to look at")
    layers = len(model.stack.layers)
    if layer is not None and not 1 <= layer <= layers:
        raise ValueError(f"layer is {layer}; the model has layers 1 to {layers}")
    layer, pixels = layer or layers, classifier.read([source])
    found = model.trace(classifier.inputs(pixels))
    side, first = classifier.images.size // model.config.patch, model.first is not None
    rolled = rollout(torch.stack([own[0].double().mean(dim=0) for own in found.maps]))
    seen = rolled[0, 1:] if first else rolled.mean(dim=0)
    maps = found.maps[layer - 1][0].double()
    maps = maps if maps.numel() <= MAX_WEIGHTS else maps.mean(dim=0, keepdim=True)
    own = found.logits[0].double().softmax(dim=0).cpu().numpy()
    order = np.argsort(-own, kind="stable")
    label = ImageLabel("", classifier.labels[order[0]], {classifier.labels[i]: float(own[i]) for i in order})
    shares = (seen / seen.sum()).view(side, side).cpu().numpy()
    return ImageLook(label, pixels[0], layer, layers, maps.cpu().numpy(), shares, first)


def rollout(maps: Float[torch.Tensor, "l t t"]) -> Float[torch.Tensor, "t t"]:
    """Attention rollout (Abnar and Zuidema, 2020): layer by layer, half of it the residual, half the mean of all heads."""
    whole = torch.eye(maps.shape[1], dtype=maps.dtype, device=maps.device)
    for own in maps:
        whole = (0.5 * own + 0.5 * torch.eye(len(own), dtype=own.dtype, device=own.device)) @ whole
    return whole

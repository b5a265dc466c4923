"""Attention of a ViT over an image: of each head, and combined over all layers."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8

from heed.products.image_classifier import ImageClassifier, ImageLabel, Source

MAX_WEIGHTS = 2_000_000  # of attention that are told; beyond, heads are averaged


@dataclass(frozen=True)
class ImageLook:
    """An image as the model reads it, its classes, and the attention.

    `attention` is (layers, heads, t, t), or of large models (layers, 1, t, t), the mean of all heads. The first of
    the t is the class token if `has_class_token`; the others are patches, row by row. `rollout` is the contribution
    of each patch to the classified vector.
    """

    label: ImageLabel
    pixels: UInt8[np.ndarray, "size size c"]
    attention: Float[np.ndarray, "layers heads t t"]
    rollout: Float[np.ndarray, "rows columns"]
    has_class_token: bool


@torch.inference_mode()
def look(classifier: ImageClassifier, source: Source) -> ImageLook:
    """Classify and trace one image."""
    model: Any = classifier.model.eval()
    if not hasattr(model, "trace"):
        raise ValueError(f"a {type(model).__name__} has no attention over patches to look at")
    pixels = classifier.read([source])
    found = model.trace(classifier.inputs(pixels))
    maps = torch.stack(found.maps)[:, 0].double()
    side, first = classifier.images.size // model.config.patch, model.first is not None
    rolled = rollout(maps.mean(dim=1))
    seen = rolled[0, 1:] if first else rolled.mean(dim=0)
    maps = maps if maps.numel() <= MAX_WEIGHTS else maps.mean(dim=1, keepdim=True)
    own = found.logits[0].double().softmax(dim=0).cpu().numpy()
    order = np.argsort(-own, kind="stable")
    label = ImageLabel("", classifier.labels[order[0]], {classifier.labels[i]: float(own[i]) for i in order})
    return ImageLook(label, pixels[0], maps.cpu().numpy(), (seen / seen.sum()).view(side, side).cpu().numpy(), first)


def rollout(maps: Float[torch.Tensor, "l t t"]) -> Float[torch.Tensor, "t t"]:
    """Attention rollout (Abnar and Zuidema, 2020): layer by layer, half of it the residual, half the mean of all heads."""
    whole = torch.eye(maps.shape[1], dtype=maps.dtype, device=maps.device)
    for own in maps:
        whole = (0.5 * own + 0.5 * torch.eye(len(own), dtype=own.dtype, device=own.device)) @ whole
    return whole

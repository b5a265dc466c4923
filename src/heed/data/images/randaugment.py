"""Batched RandAugment (Cubuk et al., 2019): a few of fourteen operations per image, all with the same magnitude.
Every operation is computed for all images and kept where it was drawn: for small images this is cheaper than grouping
them, and shapes stay fixed. Values are floats from 0 to 255, so that the operations match Pillow's.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from heed.data.images.augment import Numbers, Pixels

STRONGEST = 30  # magnitude at which an operation is at its strongest
Strength = Float[Tensor, "b 1 1 1"]  # from 0 to 1, with a sign where an operation has two directions


def brightness(x: Pixels, strength: Strength) -> Pixels:
    return _blend(torch.zeros_like(x), x, strength)


def contrast(x: Pixels, strength: Strength) -> Pixels:
    mean = (_grey(x).round().mean(dim=(1, 2, 3), keepdim=True) + 0.5).floor()
    return _blend(mean.expand_as(x), x, strength)


def colour(x: Pixels, strength: Strength) -> Pixels:
    return _blend(_grey(x).round().expand_as(x), x, strength)


def sharpness(x: Pixels, strength: Strength) -> Pixels:
    """Blend with a smoothed image, except at the border."""
    padded = F.pad(x, (1, 1, 1, 1))
    around = F.avg_pool2d(padded, 3, stride=1) * 9
    smooth = ((around + 4 * x) / 13).round()
    inner = F.pad(torch.ones_like(x[:, :, 1:-1, 1:-1]), (1, 1, 1, 1))
    return _blend(torch.where(inner > 0, smooth, x), x, strength)


def posterize(x: Pixels, strength: Strength) -> Pixels:
    """Posterize: fewer bits, from 8 to 4."""
    step = torch.exp2((strength.abs() * 4).round())
    return (x / step).floor() * step


def solarize(x: Pixels, strength: Strength) -> Pixels:
    """Solarize: values above a threshold are inverted."""
    return torch.where(x < 256 * (1 - strength.abs()), x, 255 - x)


def autocontrast(x: Pixels, strength: Strength) -> Pixels:
    """Autocontrast: each channel is stretched to the full range."""
    low, high = x.amin(dim=(2, 3), keepdim=True), x.amax(dim=(2, 3), keepdim=True)
    scale = 255 / (high - low).clamp(min=1)
    return torch.where(high > low, ((x - low) * scale).floor().clamp(0, 255), x)


def equalize(x: Pixels, strength: Strength) -> Pixels:
    """Equalize the histogram of each channel."""
    values = x.long().flatten(2).flatten(0, 1)
    counts = torch.zeros(len(values), 256, device=x.device).scatter_add_(
        1, values, torch.ones_like(values, dtype=torch.float32)
    )
    places = torch.arange(256, device=x.device)
    last = counts.gather(1, (places * (counts > 0)).amax(dim=1, keepdim=True))
    step = ((counts.sum(dim=1, keepdim=True) - last) / 255).floor()
    before = counts.cumsum(dim=1) - counts
    table = ((before + (step / 2).floor()) / step.clamp(min=1)).floor().clamp(max=255)
    found = table.gather(1, values).view_as(x).to(x.dtype)
    return torch.where((step > 0).view(*x.shape[:2], 1, 1), found, x)


COLOURS: tuple[Callable[[Pixels, Strength], Pixels], ...] = (
    brightness, contrast, colour, sharpness, posterize, solarize, autocontrast, equalize,
)  # fmt: skip
GEOMETRY = ("shear x", "shear y", "translate x", "translate y", "rotate")
OPERATIONS = 1 + len(GEOMETRY) + len(COLOURS)  # the first changes nothing


def _grey(x: Pixels) -> Float[Tensor, "b 1 h w"]:
    """Pillow's weights of red, green and blue."""
    if x.shape[1] == 1:
        return x
    return 0.299 * x[:, :1] + 0.587 * x[:, 1:2] + 0.114 * x[:, 2:3]


def _blend(other: Pixels, x: Pixels, strength: Strength) -> Pixels:
    """Blend away from another image, or towards it, by up to nine tenths."""
    return (other + (1 + 0.9 * strength) * (x - other)).clamp(0, 255).floor()


def move(x: Pixels, chosen: Tensor, strength: Float[Tensor, " b"]) -> Pixels:
    """Shear, translate or rotate each image, as `chosen`; the outside is black."""
    height, width = x.shape[2:]
    one, zero = torch.ones_like(strength), torch.zeros_like(strength)
    by = {name: torch.where(chosen == 1 + i, strength, zero) for i, name in enumerate(GEOMETRY)}
    angle = by["rotate"] * (STRONGEST * math.pi / 180)
    cos, sin = angle.cos(), angle.sin()
    shift = 2 * 150 / 331  # of half the width, at the strongest: as AutoAugment has it
    rows = (
        torch.stack(
            [cos, -sin * height / width + 0.3 * by["shear x"] * height / width, shift * by["translate x"]], dim=1
        ),
        torch.stack(
            [sin * width / height + 0.3 * by["shear y"] * width / height, cos, shift * by["translate y"]], dim=1
        ),
    )
    grid = F.affine_grid(torch.stack(rows, dim=1) * one[:, None, None], list(x.shape), align_corners=False)
    return F.grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False)


@dataclass(frozen=True)
class RandAugment:
    """`count` operations per image, each with `magnitude` from 0 to 30."""

    count: int
    magnitude: float

    @property
    def columns(self) -> int:
        return 2 * self.count

    def draw(self, random: np.random.Generator, count: int) -> np.ndarray:
        """Which operations, and the sign of each."""
        which = random.integers(0, OPERATIONS, (count, self.count))
        return np.concatenate([which, random.choice([-1, 1], (count, self.count))], axis=1)

    def __call__(self, images: Pixels, numbers: Numbers) -> Pixels:
        x, strength = (images * 255).round(), self.magnitude / STRONGEST
        for i in range(self.count):
            x = apply(x, numbers[:, i].long(), numbers[:, self.count + i] * strength)
        return x / 255


def apply(x: Pixels, chosen: Tensor, strength: Float[Tensor, " b"]) -> Pixels:
    """One operation per image, by its number."""
    own = chosen[:, None, None, None]
    moved = move(x, chosen, strength).round()
    y = torch.where((own >= 1) & (own <= len(GEOMETRY)), moved, x)
    for number, operation in enumerate(COLOURS, 1 + len(GEOMETRY)):
        y = torch.where(own == number, operation(x, strength[:, None, None, None]), y)
    return y

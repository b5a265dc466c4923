"""Batched augmentation, on the CPU or a GPU. Each augmentation draws a row of random numbers per image with numpy
from a seed. Its tensors have fixed shapes and it uses no scalars from the host (as in torch.where with a number), so
that it can be part of a CUDA graph. Images are (b, c, h, w), from 0 to 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

Pixels = Float[Tensor, "b c h w"]
Numbers = Float[Tensor, "b k"]


@runtime_checkable
class Augmentation(Protocol):
    columns: int  # numbers for each image

    def draw(self, random: np.random.Generator, count: int) -> np.ndarray: ...

    def __call__(self, images: Pixels, numbers: Numbers) -> Pixels: ...


@dataclass(frozen=True)
class CropAndFlip:
    """Random crops of the image with `padding` black pixels around it, and horizontal flips with probability 1/2."""

    padding: int
    flip: bool
    columns: int = 3

    def draw(self, random: np.random.Generator, count: int) -> np.ndarray:
        shifts = random.integers(-self.padding, self.padding + 1, (count, 2))
        return np.concatenate([shifts, random.integers(0, 2, (count, 1)) * self.flip], axis=1)

    def __call__(self, images: Pixels, numbers: Numbers) -> Pixels:
        (_, channels, height, width), shifts = images.shape, numbers.long()
        rows, columns = (torch.arange(size, device=images.device) for size in (height, width))
        columns = torch.where(shifts[:, 2:] > 0, width - 1 - columns, columns)
        rows, columns = rows + shifts[:, :1], columns + shifts[:, 1:2]
        inside = ((rows >= 0) & (rows < height))[:, None, :, None] & ((columns >= 0) & (columns < width))[:, None, None]
        places = rows.clamp(0, height - 1)[:, :, None] * width + columns.clamp(0, width - 1)[:, None]
        found = images.flatten(2).gather(2, places.flatten(1)[:, None].expand(-1, channels, -1))
        return found.view_as(images) * inside


@dataclass(frozen=True)
class Erase:
    """Random erasing: in a share of the images a rectangle is replaced by noise (Zhong et al., 2017)."""

    share: float
    smallest: float = 0.02  # of the area
    largest: float = 0.33
    columns: int = 6

    def draw(self, random: np.random.Generator, count: int) -> np.ndarray:
        area = random.uniform(self.smallest, self.largest, count)
        ratio = np.exp(random.uniform(np.log(0.3), np.log(1 / 0.3), count))
        sides = np.minimum(1, np.stack([np.sqrt(area * ratio), np.sqrt(area / ratio)], axis=1))
        corner = random.uniform(0, 1, (count, 2)) * (1 - sides)
        chosen = random.uniform(0, 1, (count, 1)) < self.share
        return np.concatenate(
            [corner, np.where(chosen, corner + sides, corner), random.uniform(0, 1e4, (count, 2))], axis=1
        )

    def __call__(self, images: Pixels, numbers: Numbers) -> Pixels:
        inside = boxes(images, numbers[:, :4])
        return torch.where(inside, _noise(images, numbers[:, 4:]), images)


def boxes(images: Pixels, corners: Float[Tensor, "b 4"]) -> Tensor:
    """The pixels inside the box of each image; corners are (top, left, bottom, right) from 0 to 1."""
    height, width = images.shape[2:]
    rows = (torch.arange(height, device=images.device) + 0.5) / height
    columns = (torch.arange(width, device=images.device) + 0.5) / width
    down = (rows >= corners[:, :1]) & (rows < corners[:, 2:3])
    across = (columns >= corners[:, 1:2]) & (columns < corners[:, 3:])
    return (down[:, None, :, None] & across[:, None, None, :]).expand(-1, 1, -1, -1)


def _noise(images: Pixels, seeds: Float[Tensor, "b 2"]) -> Pixels:
    """Pseudo-random numbers from 0 to 1, a function of the seeds alone: an integer hash of each pixel's position."""
    place = torch.arange(images[0].numel(), device=images.device)
    own = (seeds * 997).long()
    mixed = (place * 2654435761 + own[:, :1] * 40503 + own[:, 1:] * 69069) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 15)) * 739982445) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 12)) * 695872825) & 0xFFFFFFFF
    mixed = mixed ^ (mixed >> 15)
    return (mixed.to(images.dtype) / 2**32).view_as(images)


@dataclass(frozen=True)
class Mixing:
    """Mix each image with a partner: blended (mixup, Zhang et al., 2018), or with a box of it (CutMix, Yun et al.,
    2019). `mixup` and `cutmix` are the parameters of the beta distribution; 0 is off. If both are on, each image gets
    one or the other. `share`: the share of images that are mixed.
    """

    mixup: float
    cutmix: float
    share: float = 1.0
    columns: int = 5

    def draw(self, random: np.random.Generator, count: int) -> np.ndarray:
        """The mixing weight of the image itself, and the box of its partner, empty if they are blended."""
        both = self.mixup and self.cutmix
        cut = random.uniform(0, 1, count) < (0.5 if both else float(self.cutmix > 0))
        shares = [random.beta(one or 1, one or 1, count) for one in (self.mixup, self.cutmix)]
        mixed = random.uniform(0, 1, count) < self.share
        own = np.where(mixed, np.where(cut, shares[1], shares[0]), 1.0)
        side = np.sqrt(1 - own)
        centre = random.uniform(0, 1, (count, 2))
        corners = [np.clip(centre + sign * side[:, None] / 2, 0, 1) for sign in (-1, 1)]
        box = np.concatenate(corners, axis=1) * (cut & mixed)[:, None]
        return np.concatenate([np.where(cut, 1.0, own)[:, None], box], axis=1).astype(np.float32)

    def __call__(self, images: Pixels, partners: Pixels, numbers: Numbers) -> tuple[Pixels, Float[Tensor, " b"]]:
        """The mixed images, and the weight of each image itself in the result, by pixels."""
        weights = numbers[:, :1, None, None] * ~boxes(images, numbers[:, 1:])
        return weights * images + (1 - weights) * partners, weights.mean(dim=(1, 2, 3))


@dataclass(frozen=True)
class Pipeline:
    """A sequence of augmentations."""

    parts: Sequence[Augmentation]

    @property
    def columns(self) -> int:
        return sum(part.columns for part in self.parts)

    def draw(self, random: np.random.Generator, count: int) -> np.ndarray:
        rows = [part.draw(random, count) for part in self.parts]
        return np.concatenate([np.zeros((count, 0)), *rows], axis=1).astype(np.float32)

    def __call__(self, images: Pixels, numbers: Numbers) -> Pixels:
        start = 0
        for part in self.parts:
            images = part(images, numbers[:, start : start + part.columns])
            start += part.columns
        return images

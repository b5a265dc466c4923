"""From bytes to the input of an image model."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, UInt8
from torch import Tensor


def from_bytes(images: UInt8[Tensor, "b h w c"], dtype: torch.dtype = torch.float32) -> Float[Tensor, "b c h w"]:
    """Values from 0 to 1, channels first."""
    return images.permute(0, 3, 1, 2).to(dtype) / 255


class Normalize:
    """(x - mean) / std per channel. The constants are kept on each device: a CUDA graph cannot copy them there."""

    def __init__(self, mean: Sequence[float], std: Sequence[float]):
        self.numbers = torch.tensor([mean, std], dtype=torch.float64)[:, :, None, None]
        self.kept: dict[tuple[torch.device, torch.dtype], Tensor] = {}

    def __call__(self, images: Float[Tensor, "b c h w"]) -> Float[Tensor, "b c h w"]:
        key = images.device, images.dtype
        if key not in self.kept:
            self.kept[key] = self.numbers.to(images.device, images.dtype)
        mean, std = self.kept[key]
        return (images - mean) / std


def shrink(images: UInt8[Tensor, "b h w c"], size: int) -> UInt8[Tensor, "b s s c"]:
    """Images with `size` pixels per side, each the rounded mean of a square."""
    step = images.shape[1] // size
    parts = images.unflatten(1, (size, step)).unflatten(3, (size, step)).to(torch.float32)
    return parts.mean(dim=(2, 4)).round().to(torch.uint8)

"""What is near a pixel: those before it and, if an image is enlarged, the pixels of the small one."""

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from heed.nn.local_pixels import NONE, read_before

GAIN = 1.0  # of the weights of places: the exact ones are far from the initial ones, and AdamW's steps are small


class Context(nn.Module):
    """The intensities of the previous pixels near each step and, with a small image, of the nine small pixels around it:
    `project` embeds them (a masked convolution, as in PixelCNN), and `predict` expects a pixel between those at its left
    and above it, until it has learned better.
    """

    def __init__(self, order: Int[Tensor, " t"], c: Any):
        super().__init__()
        turns = order.cpu().numpy()
        self.before = read_before(turns, c.size, c.channels, c.values, c.context)
        self.register_buffer("table", torch.from_numpy(self.before.table), persistent=False)
        nine, places = small_pixels(turns // c.values, c.size, c.small, c.channels)
        self.register_buffer("nine", torch.from_numpy(nine), persistent=False)
        inputs = len(self.before.places) + nine.shape[1]
        self.project = nn.Linear(inputs, c.dim, bias=False)
        self.predict = PlaceLinear(inputs, c.channels, places) if c.output == "logistic" else None

    @torch.no_grad()
    def initialize(self) -> None:
        if self.predict is not None:
            first = torch.zeros_like(self.predict.weight[0])
            for weights, (down, right, channel) in zip(first.T, self.before.places, strict=False):
                weights[channel] = 0.5 * ((down, right) in ((0, -1), (-1, 0)))
            self.predict.weight.copy_(first / self.predict.gain)

    def intensities(
        self, values: Int[Tensor, "b n"], small: UInt8[Tensor, "b s s c"] | None, turns: slice
    ) -> Float[Tensor, "b t k"]:
        """From -1 to 1, and 0 where there is no such pixel; from the values of images in generation order."""
        table, exact = self.table[turns], torch.promote_types(self.project.weight.dtype, torch.float32)
        near = (values[:, table.clamp(min=0)].to(exact) / 127.5 - 1) * (table != NONE)
        if small is None:
            return near
        return torch.cat([near, small.flatten(1)[:, self.nine[turns]].to(exact) / 127.5 - 1], dim=-1)

    def embed(
        self, values: Int[Tensor, "b n"], small: UInt8[Tensor, "b s s c"] | None = None, turns: slice = slice(None)
    ) -> Float[Tensor, "b t dim"]:
        return self.project(self.intensities(values, small, turns).to(self.project.weight.dtype))

    def expected(
        self, values: Int[Tensor, "b n"], small: UInt8[Tensor, "b s s c"] | None = None, turns: slice = slice(None)
    ) -> Float[Tensor, "b t c"] | None:
        """What the context alone predicts, which a mixture of logistics starts from."""
        return None if self.predict is None else self.predict(self.intensities(values, small, turns), turns)


class PlaceLinear(nn.Module):
    """A linear layer with a matrix for each place of a pixel within its small one, in single precision at least."""

    def __init__(self, inputs: int, outputs: int, places: Int[np.ndarray, " t"]):
        super().__init__()
        count = int(places.max()) + 1
        self.gain = GAIN if count > 1 else 1.0
        self.weight = nn.Parameter(torch.zeros(count, outputs, inputs))
        self.register_buffer("places", torch.from_numpy(places), persistent=False)

    def forward(self, x: Float[Tensor, "b t k"], turns: slice) -> Float[Tensor, "b t c"]:
        with torch.autocast(x.device.type, enabled=False):
            weight = self.weight.to(torch.promote_types(self.weight.dtype, torch.float32)) * self.gain
            if len(weight) == 1:
                return F.linear(x.to(weight.dtype), weight[0])
            return torch.einsum("btk,tck->btc", x.to(weight.dtype), weight[self.places[turns]])


def small_pixels(
    pixels: Int[np.ndarray, " t"], size: int, small: int, channels: int
) -> tuple[Int[np.ndarray, "t n"], Int[np.ndarray, " t"]]:
    """For each pixel the numbers of the values of the nine small pixels around it (at the border, those inside twice), and
    its place within its own small pixel. Without a small image, no numbers and one place.
    """
    if not small:
        return np.zeros((len(pixels), 0), dtype=np.int64), np.zeros(len(pixels), dtype=np.int64)
    times = size // small
    (rows, columns), near = np.divmod(pixels, size), np.arange(-1, 2)
    down, right = (np.clip(own[:, None] // times + near, 0, small - 1) for own in (rows, columns))
    nine = (down[:, :, None] * small + right[:, None, :]).reshape(len(pixels), 9, 1)
    return (nine * channels + np.arange(channels)).reshape(len(pixels), -1), rows % times * times + columns % times

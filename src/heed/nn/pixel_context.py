"""What is near a pixel: those before it and, if an image is enlarged, the pixels of the small one."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn
from torch.overrides import handle_torch_function, has_torch_function_unary

from heed.nn.local_pixels import NONE, read_before

DISTANCE = 8.0  # pixels, at which the correlation of two has fallen by a factor of e, to begin with


class Context(nn.Module):
    """The intensities of the previous pixels near each step and, with a small image, of the nine small pixels around it:
    `project` embeds them (a masked convolution, as in PixelCNN). Until it has learned better, `predict` expects a pixel
    between those at its left and above it; with a small image, what correlations that fall with distance imply.
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
            expect_(self.predict.weight, self.before.places, self.nine.shape[1] > 0)

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
        self.weight = nn.Parameter(torch.zeros(int(places.max()) + 1, outputs, inputs))
        self.register_buffer("places", torch.from_numpy(places), persistent=False)

    def forward(self, x: Float[Tensor, "b t k"], turns: slice) -> Float[Tensor, "b t c"]:
        with torch.autocast(x.device.type, enabled=False):
            weight = self.weight.to(torch.promote_types(self.weight.dtype, torch.float32))
            if len(weight) == 1:
                return F.linear(x.to(weight.dtype), weight[0])
            return torch.einsum("btk,tck->btc", x.to(weight.dtype), weight[self.places[turns]])


def expect_(tensor: Tensor, near: Sequence[tuple[int, int, int]], small: bool) -> Tensor:
    """Fill the weights of a `PlaceLinear` with the best prediction. It can be left out by name where the weights come
    from a file.
    """
    if has_torch_function_unary(tensor):
        return handle_torch_function(expect_, (tensor,), tensor, near, small)
    tensor.zero_()
    places, channels, _ = tensor.shape
    if not small:
        for weights, (down, right, channel) in zip(tensor[0].T, near, strict=True):
            weights[channel] = 0.5 * ((down, right) in ((0, -1), (-1, 0)))
        return tensor
    sites = [place[:2] for place in near if not place[2]]
    expected = torch.from_numpy(best_weights(sites, round(places**0.5))).to(tensor)
    for channel in range(channels):
        tensor[:, channel, channel::channels] = expected
    return tensor


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


def best_weights(near: Sequence[tuple[int, int]], times: int) -> Float[np.ndarray, "places n"]:
    """The weights of the best linear prediction of the pixel at each place of a small pixel, which stands for `times`
    rows and columns, from the pixels `near` (rows down, columns right) and from nine small ones, their means, if the
    correlation of two pixels falls exponentially with their distance.
    """
    inside = np.stack(np.divmod(np.arange(times**2), times), axis=1)
    around = times * (np.stack(np.divmod(np.arange(9), 3), axis=1) - 1)
    points = np.array([(0, 0), *near])  # the pixel itself is the first
    mean = _block_means(times, 3 * times + int(np.abs(points).max()))
    count = len(points) + len(around)
    alike = np.zeros((times**2, count, count))
    alike[:, : len(points), : len(points)] = _correlation(points[:, None] - points)
    alike[:, : len(points), len(points) :] = mean(around - inside[:, None, None] - points[:, None])
    alike[:, len(points) :, : len(points)] = alike[:, : len(points), len(points) :].swapaxes(1, 2)
    alike[:, len(points) :, len(points) :] = mean((around[:, None] - around)[..., None, :] - inside).mean(axis=-1)
    return np.linalg.solve(alike[:, 1:, 1:] + 1e-4 * np.eye(count - 1), alike[:, 1:, :1])[..., 0]


def _correlation(apart: Int[np.ndarray, "*n 2"]) -> Float[np.ndarray, "*n"]:
    return 0.5 + np.exp(-np.linalg.norm(apart, axis=-1) / DISTANCE)


def _block_means(times: int, reach: int) -> Callable[[Int[np.ndarray, "*n 2"]], Float[np.ndarray, "*n"]]:
    """The mean correlation of a pixel with those of a small pixel, by where the latter begins as seen from the former;
    no pixel is further than `reach` rows or columns away. The sums of any small pixel are differences of four others.
    """
    grid = np.arange(-reach, reach + 1)
    every = _correlation(np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1))
    sums = np.pad(every.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))

    def mean(first: Int[np.ndarray, "*n 2"]) -> Float[np.ndarray, "*n"]:
        (up, left), (down, right) = np.moveaxis(first + reach, -1, 0), np.moveaxis(first + reach + times, -1, 0)
        return (sums[down, right] - sums[up, right] - sums[down, left] + sums[up, left]) / times**2

    return mean

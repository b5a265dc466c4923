"""The candidates of bench/feed_forward_kernels.py: the parts of an encoder layer in inference, each computed in several ways."""

import copy
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heed.kernels import fused_feed_forward, linear, linear_activation, linear_norm, residual_norm, short_attention
from heed.kernels import window_attention as windows
from heed.kernels.linear_activation import ProductTile
from heed.kernels.linear_activation import linear_activation as product
from heed.kernels.linear_norm import Tile
from heed.nn.packing import WindowMask, attend_windows

WIDTH, HIDDEN, LENGTH, HEAD_DIM = 384, 1536, 65, 64  # recipes/vit-cifar10.toml, with a class token
CHECKED = 4  # windows at each end that are compared with float64
OUTPUT_TILES = Tile(64, 64, 2, 4), Tile(64, 32, 4, 4), Tile(64, 64, 2, 8, 128), Tile(128, 64, 3, 8)
DOWN_TILES = Tile(128, 64, 3, 8), Tile(128, 64, 2, 8), Tile(128, 32, 5, 8), Tile(64, 64, 2, 4)
WHOLE_TILES = Tile(128, 32, 2, 8), Tile(64, 32, 3, 8)
PRODUCT_TILES = [
    ProductTile(*sizes)
    for sizes in ((128, 128, 64, 3, 4, 2), (128, 128, 64, 3, 8, 2), (128, 256, 64, 3, 8, 1), (256, 128, 64, 3, 8, 1))
]


class Candidate(NamedTuple):
    """`setting`: the module, name and value that make this the default of the fused stack."""

    group: str
    name: str
    run: Callable[[], Any]
    setting: tuple[Any, str, Any] | None = None
    compiles: bool = False

    @property
    def title(self) -> str:
        return f"{self.group}: {self.name}"


class Layer:
    """The weights and inputs of one layer; norms and the biases before them are in float32."""

    def __init__(self, count: int, device: torch.device, dtype: torch.dtype):
        torch.manual_seed(0)
        self.windows, rows = WindowMask(count, LENGTH), count * LENGTH
        self.up, self.down, self.out = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.qkv, self.before, self.after = nn.Linear(WIDTH, 3 * WIDTH), nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        for part in (self.up, self.down, self.out, self.qkv):
            part.to(device, dtype).requires_grad_(False)
        for part in (self.before, self.after):
            part.to(device).requires_grad_(False)
            nn.init.normal_(part.weight, 1.0, 0.1)
        for part in (self.down, self.out):
            part.bias.data = part.bias.data.float()
        self.total = torch.randn(rows, WIDTH, device=device).to(dtype)
        self.x = self.before(self.total.float()).to(dtype)
        self.columns = F.linear(self.x, self.qkv.weight, self.qkv.bias)
        self.attended = attend_windows(*self.columns.chunk(3, dim=1), self.windows, HEAD_DIM, False)
        self.packed = self.windows.packed(device).keys

    def ends(self) -> Tensor:
        """The rows that are compared."""
        rows, some = len(self.x), CHECKED * LENGTH
        every = torch.arange(rows, device=self.x.device)
        return every if rows <= 2 * some else torch.cat([every[:some], every[-some:]])

    def hidden(self) -> Tensor:
        return linear.linear_activation(self.x, self.up, linear.GELU)[0]

    def sum_and_norm(self, y: Tensor, last: nn.Linear) -> tuple[Tensor, Tensor]:
        """As the fused stack does it today: the product, and a kernel for the bias, the residual sum and its norm."""
        return residual_norm.add_norm(self.total, linear.linear_without_bias(y, last), last.bias, self.after)

    def linear_norm(self, y: Tensor, last: nn.Linear, tile: Tile) -> tuple[Tensor, Tensor]:
        return linear_norm.linear_norm(y, last.weight, last.bias, self.total, self.after, tile=tile)


def compiled(layer: Layer) -> Callable[[], Tensor]:
    """What torch makes of the feed-forward sublayer of the peer: norm, both layers and the residual sum."""
    norm, down = (copy.deepcopy(part).to(layer.x.dtype) for part in (layer.before, layer.down))

    @torch.compile(dynamic=False)
    def run(total: Tensor) -> Tensor:
        return total + down(F.gelu(layer.up(norm(total))))

    return lambda: run(layer.total)


def candidates(layer: Layer) -> Iterator[Candidate]:
    yield Candidate("queries, keys, values", "today", lambda: torch.addmm(layer.qkv.bias, layer.x, layer.qkv.weight.T))
    for tile in PRODUCT_TILES:
        run = partial(product, layer.x, layer.qkv.weight, layer.qkv.bias, linear.NO_ACTIVATION, tile)
        yield Candidate("queries, keys, values", describe(tile), run, None, True)
    yield from attentions(layer)
    yield Candidate("output", "today", lambda: layer.sum_and_norm(layer.attended, layer.out))
    for tile in OUTPUT_TILES:
        run = partial(layer.linear_norm, layer.attended, layer.out, tile)
        yield Candidate("output", describe(tile), run, (linear_norm, "SHORT_TILE", tile), True)
    yield from feed_forwards(layer)
    yield Candidate("up and GELU", "today", layer.hidden)
    for tile in PRODUCT_TILES:
        run = partial(product, layer.x, layer.up.weight, layer.up.bias, linear.GELU, tile)
        yield Candidate("up and GELU", describe(tile), run, (linear_activation, "TILE", tile), True)
    inner = layer.hidden()
    yield Candidate("parts", "up alone", lambda: torch.addmm(layer.up.bias, layer.x, layer.up.weight.T))
    yield Candidate("parts", "down alone", lambda: linear.linear_without_bias(inner, layer.down))
    yield Candidate("parts", "residual sum and norm", lambda: residual_norm.add_norm(layer.total, layer.x, layer.out.bias, layer.after))  # fmt: skip


def attentions(layer: Layer) -> Iterator[Candidate]:
    columns, starts, longest = layer.columns, (layer.packed.starts,) * 2, (layer.packed.longest,) * 2
    yield Candidate("attention", "today", lambda: short_attention.attend_short(columns, None, starts, longest, head_dim=HEAD_DIM))  # fmt: skip
    yield Candidate("attention", "torch", lambda: attend_windows(*columns.chunk(3, 1), layer.windows, HEAD_DIM, False))
    for warps in (4, 2, 1):
        run = partial(windows.attend_window, columns, layer.windows, HEAD_DIM, warps)
        yield Candidate("attention", f"windows, {warps} warps", run, (windows, "WARPS", warps), True)


def feed_forwards(layer: Layer) -> Iterator[Candidate]:
    yield Candidate("feed-forward", "today", lambda: layer.sum_and_norm(layer.hidden(), layer.down))
    yield Candidate("feed-forward", "torch compiled, its norm before", compiled(layer), None, True)
    for tile in DOWN_TILES:
        run = partial(lambda tile: layer.linear_norm(layer.hidden(), layer.down, tile), tile)
        yield Candidate("feed-forward", f"down: {describe(tile)}", run, (linear_norm, "LONG_TILE", tile), True)
    for tile in WHOLE_TILES:
        run = partial(fused_feed_forward.feed_forward_norm, layer.x, layer.up, linear.GELU, layer.down, layer.total, layer.after, tile)  # fmt: skip
        yield Candidate("feed-forward", f"whole: {describe(tile)}", run, (fused_feed_forward, "TILE", tile), True)


def describe(tile: Tile | ProductTile) -> str:
    columns = f"{tile.columns} columns, " if isinstance(tile, ProductTile) else ""
    return f"{tile.rows} rows, {columns}{tile.depth} deep, {tile.stages} stages, {tile.warps} warps"


def error(layer: Layer, group: str, found: Any) -> float | None:
    """The largest difference from float64. Of a compiled peer the sum alone, since it has no norm behind it."""
    rows = layer.ends()
    wanted = exact(layer, group, rows)
    found = found if isinstance(found, tuple) else (found,)
    differences = [float((own[rows].double() - right).abs().max()) for own, right in zip(found, wanted, strict=False)]
    return max(differences, default=None)


def exact(layer: Layer, group: str, rows: Tensor) -> tuple[Tensor, ...]:
    """What the candidates of a group should give for these rows, in float64; nothing for parts."""
    qkv, out, up, down, after = (copy.deepcopy(part).double() for part in (layer.qkv, layer.out, layer.up, layer.down, layer.after))  # fmt: skip
    x, total = layer.x[rows].double(), layer.total[rows].double()
    if group == "queries, keys, values":
        return (qkv(x),)
    if group == "attention":
        parts = layer.columns[rows].double().chunk(3, dim=1)
        return (attend_windows(*parts, WindowMask(len(rows) // LENGTH, LENGTH), HEAD_DIM, False),)
    if group == "up and GELU":
        return (F.gelu(up(x)),)
    if group == "parts":
        return ()
    total = total + (out(layer.attended[rows].double()) if group == "output" else down(F.gelu(up(x))))
    return total, after(total)

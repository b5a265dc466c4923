"""Language models with weights in 8-bit integers, for generating text on a CPU: each row of a weight matrix has a scale.

Inputs keep their precision, since a few of the states of a large language model are far larger than the others: one row,
as in each step of one text, stays in float32, and more rows become two 8-bit integers, which are 16 bits.
"""

from functools import cache as remembered
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, Int8, UInt8
from torch import Tensor, nn

from heed.kernels import int8
from heed.nn.attention import attend
from heed.nn.cache import Cache, LayerCache, StackCache
from heed.nn.transformer import Layer, PostNorm, Stack

SMALLEST = 1e-30  # the scale of a row of zeros
TILE = 384  # outputs that are summed at once: as many as there are registers for
FINE = 254  # steps of the lower integer in one of the upper


class Int8Weights(int8.Int8Linear):
    """The same layers for inputs of any precision. Their weights are held in two orders in memory: the first is read by
    sums of rows, which are fastest for one row, and the second by products of integers.
    """

    def hold(self, values: Int8[Tensor, "out dim"]) -> None:
        super().hold(values)
        self.size, self.dim = values.shape
        self.table, self.tiles = tiles(values), -(-self.size // TILE)
        self.index, self.starts = places(self.tiles, self.dim)

    def forward(self, x: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch out"]:
        if x.numel() == self.dim:
            return self.sums(x)
        return self.products(x.reshape(-1, self.dim)).view(*x.shape[:-1], -1)

    def sums(self, x: Float[Tensor, "*ones dim"]) -> Float[Tensor, "*ones out"]:
        """The product as a sum of the rows of each tile, weighted by the input."""
        weights = x.reshape(1, -1).expand(self.tiles, -1).reshape(-1)
        y = weighted_sums(self.table, self.index, self.starts, weights).view(*x.shape[:-1], -1)
        return torch.addcmul(self.bias, y if self.size % TILE == 0 else y[..., : self.size], self.scale)

    def products(self, x: Float[Tensor, "n dim"]) -> Float[Tensor, "n out"]:
        """The products with the upper and the lower integer of each number."""
        scale = x.abs().amax(dim=1, keepdim=True).clamp_(min=SMALLEST).mul_(1 / int8.LARGEST)
        exact = x.div(scale)
        upper = exact.round()
        values = torch.cat([upper, exact.sub_(upper).mul_(FINE).round_()]).add_(int8.ZERO).byte()
        high, low = int8.integer_product(values, self.weight, self.scale).chunk(2)
        return torch.addcmul(self.bias, high.add_(low, alpha=1 / FINE), scale)


def tiles(values: Int8[Tensor, "out dim"]) -> UInt8[Tensor, "rows tile"]:
    """A weight in tiles of outputs, one below the other: the numbers of each input, then their scale and smallest number
    as bytes.
    """
    blocks = F.pad(values, (0, 0, 0, -len(values) % TILE)).unflatten(0, (-1, TILE)).transpose(1, 2)
    ends = torch.tensor([1.0, -float(int8.ZERO)]).view(torch.uint8).expand(*blocks.shape[:2], -1)
    return torch.cat([blocks.contiguous().view(torch.uint8) ^ int8.ZERO, ends], dim=-1).flatten(0, 1)


@remembered
def places(count: int, dim: int) -> tuple[Int[Tensor, " rows"], Int[Tensor, " starts"]]:
    """The rows of a table with so many tiles, and where each tile begins and the last ends."""
    return torch.arange(count * dim, dtype=torch.int32), torch.arange(count + 1, dtype=torch.int32) * dim


def weighted_sums(table: Tensor, index: Tensor, starts: Tensor, weights: Float[Tensor, " rows"]) -> Tensor:
    """For each tile the sum of its rows times `weights`."""
    bag = torch.ops.quantized.embedding_bag_byte_rowwise_offsets.default
    return bag(table, index, starts, False, 0, False, weights, None, True)


class TextStack(nn.Module):
    """`Stack` for inference, with these weights."""

    def __init__(self, stack: Stack):
        super().__init__()
        self.layers, self.norm = nn.ModuleList(map(TextLayer, stack.layers)), stack.norm

    def forward(
        self, x: Float[Tensor, "b t dim"], *, mask: Any = None, causal: bool = False, cache: StackCache | None = None
    ) -> Float[Tensor, "b t dim"]:
        for layer, own in zip(self.layers, cache or [None] * len(self.layers), strict=True):
            x = layer.forward(x, mask, causal, own)
        return x if self.norm is None else normed(self.norm, x)


class TextLayer(nn.Module):
    """`Layer` without a memory. At one row the start-up of operators counts, and that of modules: there are few."""

    def __init__(self, layer: Layer):
        super().__init__()
        attention, mlp = layer.attention.body, layer.mlp.body
        self.width, self.activation = attention.width, mlp.activation
        self.first, self.second = layer.attention.norm, layer.mlp.norm
        self.after = type(layer.attention) is PostNorm, type(layer.mlp) is PostNorm
        self.qkv, self.out = Int8Weights(attention.q, attention.k, attention.v), Int8Weights(attention.out)
        self.up, self.down = Int8Weights(mlp.up), Int8Weights(mlp.down)

    def forward(
        self, x: Float[Tensor, "b t dim"], mask: Any, causal: bool, cache: LayerCache | None
    ) -> Float[Tensor, "b t dim"]:
        own = None if cache is None else cache.attention
        x = around(self.first, self.after[0], x, lambda x: self.attend(x, mask, causal, own))
        return around(self.second, self.after[1], x, self.feed)

    def attend(self, x: Tensor, mask: Any, causal: bool, cache: Cache | None) -> Tensor:
        """Attention itself is in float32."""
        q, k, v = self.qkv.forward(x).unflatten(-1, (3, -1, self.width)).permute(2, 0, 3, 1, 4)
        if cache is not None:
            k, v = cache.append(k, v)
        return self.out.forward(attend(q, k, v, mask=mask, causal=causal).transpose(1, 2).flatten(2))

    def feed(self, x: Tensor) -> Tensor:
        return self.down.forward(self.activation(self.up.forward(x)))


def around(norm: nn.LayerNorm, after: bool, x: Tensor, body: Any) -> Tensor:
    """A body with its residual sum and its norm, before or after it."""
    return normed(norm, x + body(x)) if after else x + body(normed(norm, x))


def normed(norm: nn.LayerNorm, x: Tensor) -> Tensor:
    return torch.layer_norm(x, norm.normalized_shape, norm.weight, norm.bias, norm.eps)


class Int8Text(nn.Module):
    """A copy of a language model for a search: what a search asks of a model. Embeddings, positions and norms are those
    of the model.
    """

    def __init__(self, model: nn.Module):
        super().__init__()
        self.config, self.model = model.config, int8.int8_copy(model, {Stack: TextStack})
        self.output = Int8Weights(int8.Matrix(*model.output_weights()))

    def start(self, rows: int) -> Any:
        return self.model.start(rows)

    def hidden_states(self, tokens: Tensor, state: Any = None) -> Float[Tensor, "b t dim"]:
        return self.model.hidden_states(tokens, state)

    def project(self, x: Float[Tensor, "*rows dim"]) -> Float[Tensor, "*rows vocab"]:
        return self.output.forward(x)

    def step(self, tokens: Tensor, state: Any) -> Float[Tensor, "b vocab"]:
        return self.output.forward(self.model.hidden_states(tokens[:, None], state)[:, 0])

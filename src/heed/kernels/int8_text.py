"""Linear layers with weights in 8-bit integers, for generating text on a CPU: each row of a weight matrix has a scale.

Inputs keep their precision, since a few of the states of a large language model are far larger than the others: one row,
as in each step of one text, stays in float32, and each number of more rows becomes two 8-bit integers, which are 16 bits.
"""

from functools import cache

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, Int8, UInt8
from torch import Tensor

from heed.kernels import int8

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


@cache
def places(count: int, dim: int) -> tuple[Int[Tensor, " rows"], Int[Tensor, " starts"]]:
    """The rows of a table with so many tiles, and where each tile begins and the last ends."""
    return torch.arange(count * dim, dtype=torch.int32), torch.arange(count + 1, dtype=torch.int32) * dim


def weighted_sums(table: Tensor, index: Tensor, starts: Tensor, weights: Float[Tensor, " rows"]) -> Tensor:
    """For each tile the sum of its rows times `weights`."""
    bag = torch.ops.quantized.embedding_bag_byte_rowwise_offsets.default
    return bag(table, index, starts, False, 0, False, weights, None, True)

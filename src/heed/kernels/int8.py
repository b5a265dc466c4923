"""Linear layers in 8-bit integers, for inference on CPUs with instructions for them (AVX-512 VNNI).

Each row of a weight matrix has its own scale, and so has each row of the input, by its largest absolute value: what a
row becomes does not depend on the others in its batch. Products are summed as 32-bit integers, without rounding.
"""

import copy
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Float32, Int8, UInt8
from torch import Tensor, nn

from heed.kernels import fused_stack
from heed.nn.attention import Attention, attend
from heed.nn.capabilities import declares
from heed.nn.transformer import MLP

LARGEST = 127  # of an 8-bit integer
ROWS = 256  # of a weight that are quantized at once: they fit into the caches
ZERO = 128  # added to those of the input: the instructions multiply unsigned by signed ones


class QuantizedRows(NamedTuple):
    """`values` are 128 plus each number in units of its row's `scale`."""

    values: UInt8[Tensor, "n dim"]
    scale: Float32[Tensor, "n 1"]
    shape: torch.Size  # of the rows, without their last axis


def scales(rows: Float32[Tensor, "n dim"]) -> Float32[Tensor, "n 1"]:
    """The largest absolute value of each row becomes 127."""
    largest = torch.maximum(rows.amax(dim=1, keepdim=True), rows.amin(dim=1, keepdim=True).neg_())
    return largest.clamp_(min=1e-30).mul_(1 / LARGEST)


def to_int8(
    rows: Float32[Tensor, "n dim"], overwrite: bool = False
) -> tuple[Int8[Tensor, "n dim"], Float32[Tensor, "n 1"]]:
    """Rows in units of their scales. `overwrite`: they are not needed any more, and their memory is used."""
    scale = scales(rows)
    return torch.mul(rows, scale.reciprocal(), out=rows if overwrite else None).round_().to(torch.int8), scale


def quantize(x: Float32[Tensor, "*batch dim"], overwrite: bool = False) -> QuantizedRows:
    values, scale = to_int8(x.flatten(0, -2), overwrite)
    return QuantizedRows(values.add_(-ZERO).view(torch.uint8), scale, x.shape[:-1])  # wraps around: unsigned, + 128


class Matrix(NamedTuple):
    """A linear layer that is not a module: an output matrix that is also the embedding."""

    weight: Float32[Tensor, "out dim"]
    bias: Float32[Tensor, " out"] | None


class Int8Linear(nn.Module):
    """One or more linear layers of the same input; their outputs are next to each other."""

    def __init__(self, *layers: nn.Linear | Matrix):
        super().__init__()
        rounded, scales = zip(
            *(to_int8(part) for own in layers for part in own.weight.detach().split(ROWS)), strict=True
        )
        self.hold(torch.cat(rounded))
        self.scale = torch.cat(scales)[:, 0].contiguous()
        zeros = torch.zeros_like(self.scale)
        biases = [zeros[: len(own.weight)] if own.bias is None else own.bias.detach() for own in layers]
        self.bias = torch.cat(biases)

    def hold(self, values: Int8[Tensor, "out dim"]) -> None:
        """Keep the rounded weights."""
        self.weight = pack(values)

    def forward(self, x: Float32[Tensor, "*batch dim"]) -> Float32[Tensor, "*batch out"]:
        return self.product(quantize(x))

    def product(self, x: QuantizedRows) -> Float32[Tensor, "*batch out"]:
        y = integer_product(x.values, self.weight, self.scale)
        return torch.addcmul(self.bias, y, x.scale, out=y).unflatten(0, x.shape)


def pack(weight: Int8[Tensor, "out dim"]) -> Tensor:
    """A weight in the order in memory that `integer_product` reads."""
    return torch.ops.onednn.qlinear_prepack(weight, None)


def integer_product(
    values: UInt8[Tensor, "n dim"], weight: Tensor, scale: Float32[Tensor, " out"]
) -> Float32[Tensor, "n out"]:
    """(values - 128) times a packed weight, each output times its scale. The scales of rows are left to the caller: the
    operator has one for all.
    """
    multiply, zeros = torch.ops.onednn.qlinear_pointwise, torch.zeros_like(scale, dtype=torch.int32)
    return multiply(values, 1.0, ZERO, weight, scale, zeros, None, 1.0, 0, torch.float32, "none", [], "")


class Int8Attention(nn.Module):
    """`Attention` with these products; attention itself is in float32."""

    def __init__(self, part: Attention):
        super().__init__()
        self.width = part.width
        self.q, self.kv, self.out = Int8Linear(part.q), Int8Linear(part.k, part.v), Int8Linear(part.out)

    def forward(self, x: Float[Tensor, "b q dim"], memory: Float[Tensor, "b k dim"] | None = None, **options):
        own = quantize(x)
        q, kv = self.q.product(own), self.kv.product(own if memory is None else quantize(memory))
        heads = [y.unflatten(-1, (-1, self.width)).transpose(1, 2) for y in (q, *kv.chunk(2, dim=-1))]
        options.pop("cache", None)
        return self.out.product(quantize(attend(*heads, **options).transpose(1, 2).flatten(2), overwrite=True))


class Int8MLP(nn.Module):
    """`MLP` with these products."""

    def __init__(self, part: MLP):
        super().__init__()
        self.up, self.activation, self.down = Int8Linear(part.up), part.activation, Int8Linear(part.down)

    def forward(self, x: Float[Tensor, "b t dim"]) -> Float[Tensor, "b t dim"]:
        return self.down.product(quantize(self.activation(self.up(x)), overwrite=True))


INT8 = {Attention: Int8Attention, MLP: Int8MLP}


def supports(model: nn.Module) -> bool:
    """Whether `int8_copy` supports a model."""
    return declares(model, "int8") and fused_stack.has_plain_layers(model)


def int8_copy(model: nn.Module, parts: Mapping[type, Callable[[Any], nn.Module]] = INT8) -> nn.Module:
    """A copy for inference of a model in float32 that `supports` accepts. It shares all other weights. `parts` are what
    modules become, by type.
    """
    made = {id(part): parts[type(part)](part) for part in model.modules() if type(part) in parts}
    return copy.deepcopy(model, {**{id(weight): weight for weight in model.parameters()}, **made}).eval()


@cache
def unavailable() -> str | None:
    """Why this CPU does not run these products, or None if it does."""
    if not torch.cpu._is_vnni_supported():
        return "this CPU has no instructions for 8-bit integers (AVX-512 VNNI)"
    try:
        return None if _is_exact() else "the products of 8-bit integers overflow here"
    except (AttributeError, RuntimeError, TypeError, NotImplementedError) as error:
        reason = str(error).strip().split("\n")[0]
        return f"this torch does not multiply 8-bit integers: {reason}"


def _is_exact() -> bool:
    """Whether the largest numbers are summed without overflow: older instructions stop at 16 bits."""
    rows, inner, columns = 4, 64, 16
    values = torch.full((rows, inner), ZERO + LARGEST, dtype=torch.uint8)
    weight = pack(torch.full((columns, inner), LARGEST, dtype=torch.int8))
    found = integer_product(values, weight, torch.ones(columns))
    return bool((found == inner * LARGEST**2).all())

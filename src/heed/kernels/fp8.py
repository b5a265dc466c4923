"""The layers of an image model with products of 8-bit floats (e4m3), for inference on a GPU that multiplies them.

Each row of a weight matrix has its own scale, and so has each row of the input: what an image becomes does not depend
on the others in its batch. Attention, its output matrix, sums and norms are as in kernels/fused_stack.py.
"""

from importlib.util import find_spec
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Float32
from torch import Tensor, nn

from heed.kernels import fused_stack
from heed.kernels.fused_stack import FusedStack
from heed.nn.capabilities import declares
from heed.nn.packing import SHORT, PackedMask, WindowMask, attend_windows
from heed.nn.transformer import MLP, gelu_tanh

FP8 = torch.float8_e4m3fn
LARGEST = 448.0  # of e4m3
ROUNDED = 1 + 2**-4  # most by which rounding makes a number longer
UNIT = 16  # widths are multiples of it


class Rows(NamedTuple):
    """Rows in e4m3: their values, in units of their scales; and scales with which hidden units fit."""

    values: Tensor
    scale: Float32[Tensor, "n 1"]
    bound: Float32[Tensor, "n 1"] | None = None


def product(
    x: Rows, weight: Tensor, scale: Float32[Tensor, "1 out"], bias: Float[Tensor, " out"] | None, dtype: torch.dtype
) -> Float[Tensor, "n out"]:
    """A linear layer by cuBLAS, whose sums have the precision of the tensor cores."""
    return torch._scaled_mm(
        x.values, weight.T, scale_a=x.scale, scale_b=scale, bias=bias, out_dtype=dtype, use_fast_accum=True
    )


class Fp8Linear(nn.Module):
    """One or more linear layers of the same input; their outputs are next to each other."""

    def __init__(self, *layers: nn.Linear, bias: bool = True):
        super().__init__()
        weight = torch.cat([own.weight.detach() for own in layers])
        self.dtype, weight = weight.dtype, weight.float()
        scale = weight.abs().amax(dim=1, keepdim=True).clamp(min=1e-30) / LARGEST
        self.weight, self.scale = (weight / scale).to(FP8), scale[:, 0].contiguous()
        self.bias = torch.cat([own.bias.detach() for own in layers]) if bias else None

    def forward(self, x: Rows, outputs: slice = slice(None)) -> Float[Tensor, "n out"]:
        """All outputs, or some of them."""
        bias = None if self.bias is None else self.bias[outputs]
        return product(x, self.weight[outputs], self.scale[None, outputs], bias, self.dtype)


class Fp8Attention(nn.Module):
    """Self-attention without its last bias; its first product is in e4m3."""

    def __init__(self, part: nn.Module):
        super().__init__()
        self.body, self.norm, self.bias = part.body, part.norm, part.body.out.bias
        self.qkv = Fp8Linear(part.body.q, part.body.k, part.body.v)

    def forward(self, x: Rows, windows: WindowMask) -> Float[Tensor, "t dim"]:
        qkv = self.qkv(x)
        if windows.length > SHORT:
            y = attend_windows(*qkv.chunk(3, dim=1), windows, self.body.width, False)
        else:
            y = fused_stack.attend_sequences(self.body, qkv, None, windows, False)
        return y @ self.body.out.weight.T

    def first(
        self, x: Rows, total: Float[Tensor, "t dim"], windows: WindowMask
    ) -> tuple[Float[Tensor, "n dim"], Float[Tensor, "n dim"]]:
        """The attention of the first position of each window to all of it; and its residual."""
        dim, keys = total.shape[1], windows.packed(total.device).keys
        values, scale, total = (part.unflatten(0, windows)[:, 0].contiguous() for part in (x.values, x.scale, total))
        q, kv = self.qkv(Rows(values, scale), slice(dim)), self.qkv(x, slice(dim, None))
        mask = PackedMask(WindowMask(windows.rows, 1).packed(total.device).keys, keys)
        return fused_stack.attend_sequences(self.body, q, kv, mask, False) @ self.body.out.weight.T, total


class Fp8MLP(nn.Module):
    """A feed-forward network with GELU, without its last bias."""

    def __init__(self, part: nn.Module):
        super().__init__()
        self.norm, self.bias = part.norm, part.body.down.bias
        self.up, self.down = Fp8Linear(part.body.up), Fp8Linear(part.body.down, bias=False)
        self.limits = self._limits()

    def forward(self, x: Rows) -> Float[Tensor, "t dim"]:
        from heed.kernels import fp8_rows

        hidden = fp8_rows.linear_gelu(*x, self.up.weight, self.up.scale, self.up.bias)
        return self.down(Rows(hidden, x.bound))

    def _limits(self) -> tuple[float, float]:
        """Two numbers a and b: no hidden unit is above a times the length of the input plus b, before GELU or after it.
        By the inequality of Cauchy and Schwarz, a is the length of the longest row of weights.
        """
        lengths = self.up.weight.float().norm(dim=1) * self.up.scale
        return ROUNDED * float(lengths.max()), float(self.up.bias.float().abs().max()) + 1e-30


class Fp8Stack(nn.Module):
    """A fused pre-norm stack for windows, without gradients."""

    def __init__(self, fused: FusedStack):
        super().__init__()
        self.attentions = nn.ModuleList(Fp8Attention(layer.attention) for layer in fused.layers)
        self.networks = nn.ModuleList(Fp8MLP(layer.mlp) for layer in fused.layers)
        self.norm = fused.norm

    def forward(
        self, x: Float[Tensor, "1 t dim"], *, mask: WindowMask, first_only: bool = False
    ) -> Float[Tensor, "1 n dim"]:
        """As `FusedStack.forward`."""
        from heed.kernels import fp8_rows, residual_norm

        total, added = x.squeeze(0).to(self.networks[0].up.dtype), None
        for attention, network in zip(self.attentions, self.networks, strict=True):
            total, *rows = fp8_rows.norm_rows(total, attention.norm, added)
            if first_only and attention is self.attentions[-1]:
                y, total = attention.first(Rows(*rows), total, mask)
            else:
                y = attention(Rows(*rows), mask)
            total, *rows = fp8_rows.norm_rows(total, network.norm, (y, attention.bias), network.limits)
            added = network(Rows(*rows)), network.bias
        return residual_norm.add_norm(total, *added, self.norm)[1][None]


def supports(model: nn.Module) -> bool:
    """Whether a model can be fused and its fused stack be replaced by an `Fp8Stack`."""
    if not declares(model, "fp8") or not fused_stack.supports(model):
        return False
    return all(_has_kernels(part) for part in model.modules() if type(part) is MLP)


def _has_kernels(body: MLP) -> bool:
    return body.activation in (F.gelu, gelu_tanh) and not any(size % UNIT for size in body.up.weight.shape)


def unavailable(device: torch.device) -> str | None:
    """Why a device does not run these products, or None if it does."""
    if device.type != "cuda":
        return f"it only runs on a GPU, and the model is on {device}"
    if torch.version.hip is not None or torch.cuda.get_device_capability(device) < (9, 0):
        return "it needs an NVIDIA GPU since Hopper (compute capability 9.0)"
    return "Triton is not installed (pip install triton)" if find_spec("triton") is None else None

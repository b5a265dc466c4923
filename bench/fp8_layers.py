"""Layers whose products are in 8-bit floats (e4m3), for inference on a Hopper GPU: what can replace a fused stack.

Each row of activations and of weights has its own scale. Attention itself, sums and norms are as in the fused stack.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from heed.kernels import fused_stack
from heed.kernels.fused_stack import FusedStack
from heed.nn.packing import PackedMask, WindowMask
from heed.nn.transformer import MLP

FP8 = torch.float8_e4m3fn
LARGEST = 448.0  # of e4m3
ROUNDED = 1 + 2**-4  # most by which rounding makes a number longer


class Rows(NamedTuple):
    """Rows in e4m3: their values, their scales (n, 1), and scales (n, 1) in which all hidden units fit."""

    values: Tensor
    scale: Tensor
    bound: Tensor | None = None


class How(NamedTuple):
    """Who multiplies: cuBLAS, with sums in the precision of the tensor cores (`fast`) or more; or Triton, by a tile."""

    tile: Any = None
    fast: bool = True


class Plan(NamedTuple):
    """How each product of a layer is computed; None: in bfloat16. With a tile, `up` includes GELU."""

    qkv: How | None = None
    out: How | None = None
    up: How | None = None
    down: How | None = None


class Product:
    """One or more linear layers of the same input; their outputs are next to each other."""

    def __init__(self, layers: list[nn.Linear], how: How):
        weight = torch.cat([own.weight.detach() for own in layers]).float()
        scale = weight.abs().amax(dim=1, keepdim=True).clamp(min=1e-12) / LARGEST
        self.values, self.scale, self.how = (weight / scale).to(FP8), scale.T.contiguous(), how
        self.dtype = layers[0].weight.dtype
        self.bias = torch.cat([own.bias.detach() for own in layers]).to(self.dtype)

    def __call__(self, x: Rows, bias: bool = True) -> Tensor:
        added = self.bias if bias else None
        if self.how.tile is not None:
            from bench import fp8_kernels

            return fp8_kernels.product(x.values, x.scale, self.values, self.scale, added, self.how.tile, self.dtype)
        if not x.values.is_cuda:
            return emulated(x, self.values, self.scale, added, self.dtype)
        return torch._scaled_mm(
            x.values, self.values.T, scale_a=x.scale, scale_b=self.scale, bias=added, out_dtype=self.dtype,
            use_fast_accum=self.how.fast,
        )  # fmt: skip

    def with_gelu(self, x: Rows) -> Tensor | Rows:
        """GELU of the outputs by one kernel, in e4m3 if x has a bound for them."""
        from bench import fp8_kernels

        parts = (x.values, x.scale, self.values, self.scale, self.bias, self.how.tile, self.dtype)
        y = fp8_kernels.product(*parts, gelu=True, bound=x.bound)
        return y if x.bound is None else Rows(y, x.bound)

    def limits(self) -> tuple[float, float]:
        """Two numbers a and b: no output is above a times the length of the input plus b, nor is its GELU. By the
        inequality of Cauchy and Schwarz, a is the length of the longest row of weights.
        """
        lengths = (self.values.float() * self.scale.T).norm(dim=1)
        return ROUNDED * float(lengths.max()), float(self.bias.float().abs().max()) + 1e-6


def emulated(x: Rows, values: Tensor, scale: Tensor, bias: Tensor | None, dtype: torch.dtype) -> Tensor:
    """What `torch._scaled_mm` computes, without rounded sums."""
    y = (x.values.float() @ values.float().T) * x.scale * scale
    return (y if bias is None else y + bias).to(dtype)


def quantize(x: Tensor, gelu: bool = False) -> Rows:
    from bench import fp8_kernels

    return Rows(*fp8_kernels.rows_to_fp8(x, gelu))


class Fp8Attention:
    """Self-attention without its last bias."""

    def __init__(self, body: nn.Module, plan: Plan):
        self.body, self.reads_fp8, self.limits = body, plan.qkv is not None, None
        self.out = plan.out and Product([body.out], plan.out)
        if plan.qkv is not None:
            self.qkv = Product([body.q, body.k, body.v], plan.qkv)
            self.q, self.kv = Product([body.q], plan.qkv), Product([body.k, body.v], plan.qkv)

    def __call__(self, x: Tensor | Rows, mask: WindowMask) -> Tensor:
        if not isinstance(x, Rows) and self.out is None:
            return fused_stack._attention(self.body, x, None, mask, False)[0]
        from heed.kernels import linear

        body = self.body
        qkv = self.qkv(x) if isinstance(x, Rows) else linear.linear(x, body.q, body.k, body.v)[0]
        y = fused_stack._attend(body, qkv, None, mask, False)
        return linear.linear_without_bias(y, body.out) if self.out is None else self.out(quantize(y), bias=False)

    def first(self, x: Tensor | Rows, total: Tensor, windows: WindowMask) -> tuple[Tensor, Tensor, WindowMask]:
        """The attention of the first position of each window; its residual, and the remaining mask."""
        if not isinstance(x, Rows):
            return fused_stack._first_attention(self.body, x, total, windows)
        from heed.kernels import linear

        left, keys = WindowMask(windows.rows, 1), windows.packed(total.device).keys
        values, scale, total = (part.unflatten(0, windows)[:, 0].contiguous() for part in (x.values, x.scale, total))
        mask = PackedMask(left.packed(total.device).keys, keys)
        y = fused_stack._attend(self.body, self.q(Rows(values, scale)), self.kv(x), mask, False)
        return linear.linear_without_bias(y, self.body.out), total, left


class Fp8MLP:
    """A feed-forward network with GELU, without its last bias."""

    def __init__(self, body: MLP, plan: Plan):
        from heed.kernels import linear

        if fused_stack.activation_codes()[body.activation] not in (linear.GELU, linear.GELU_TANH):
            raise ValueError("the activation of the feed-forward network is not GELU, which these kernels compute")
        self.body, self.reads_fp8 = body, plan.up is not None
        self.up, self.down = plan.up and Product([body.up], plan.up), plan.down and Product([body.down], plan.down)
        one_kernel = plan.up is not None and plan.up.tile is not None
        self.limits = self.up.limits() if one_kernel and plan.down is not None else None

    def __call__(self, x: Tensor | Rows) -> Tensor:
        if self.up is None and self.down is None:
            return fused_stack._feed_forward(self.body, x)[0]
        hidden = self._hidden(x)
        return self.down(hidden, bias=False) if isinstance(hidden, Rows) else hidden @ self.body.down.weight.T

    def _hidden(self, x: Tensor | Rows) -> Tensor | Rows:
        from heed.kernels import linear

        if self.up is None:
            up = self.body.up
            return quantize(torch.addmm(up.bias, x, up.weight.T), gelu=True)
        if self.up.how.tile is not None:
            return self.up.with_gelu(x)
        pre = self.up(x)
        return linear.activate(pre, linear.GELU_TANH, None, 0, 1.0) if self.down is None else quantize(pre, gelu=True)


class Fp8Stack(FusedStack):
    """A fused pre-norm stack for windows, without gradients, with these products."""

    def __init__(self, fused: FusedStack, plan: Plan):
        super().__init__(fused)
        parts = [part for layer in self.layers for part in layer.sublayers()]
        self.bodies = [(Fp8MLP if type(part.body) is MLP else Fp8Attention)(part.body, plan) for part in parts]
        self.biases = [fused_stack._last_linear(part.body).bias for part in parts]
        self.norms, self.dtype = [*(part.norm for part in parts), self.norm], parts[0].body.q.weight.dtype

    def forward(self, x: Tensor, *, mask: WindowMask, first_only: bool = False) -> Tensor:
        total, y = self._normed(0, x.squeeze(0).to(self.dtype))
        for number, body in enumerate(self.bodies):
            if isinstance(body, Fp8MLP):
                y = body(y)
            elif first_only and number == len(self.bodies) - 2:
                y, total, mask = body.first(y, total, mask)
            else:
                y = body(y, mask)
            total, y = self._normed(number + 1, total, (y, self.biases[number]))
        return y[None]

    def _normed(self, number: int, x: Tensor, added: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Any]:
        """The residual sum, and its norm as the sublayer of this number reads it."""
        from heed.kernels import residual_norm

        norm, body = self.norms[number], self.bodies[number] if number < len(self.bodies) else None
        if body is not None and body.reads_fp8:
            from bench import fp8_kernels

            total, *rows = fp8_kernels.norm_to_fp8(x, norm, added, body.limits)
            return total, Rows(*rows)
        if added is None:
            return x, residual_norm.layer_norm(x, norm)
        return residual_norm.add_norm(x, *added, norm, share=True)


def use_fp8(model: nn.Module, plan: Plan) -> nn.Module:
    """Replace the stack of a fused copy; its weights are kept."""
    model.stack = Fp8Stack(model.stack, plan)
    return model

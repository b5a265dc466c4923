"""Linear layers and activations, with their backward passes, for training on a GPU.

One kernel computes the gradient of an activation and that of the bias before it.
"""

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor, nn

from heed.kernels.gradient_buffers import adjacent_view, claim_buffer, concatenated
from heed.kernels.reduce import column_sums
from heed.kernels.residual_norm import draw_seed, keep_mask, program_count

NO_ACTIVATION, RELU, GELU, SWISH, GELU_TANH = -1, 0, 1, 2, 3


@triton.jit
def _activation_and_derivative(x, ACTIVATION: tl.constexpr):
    """The activation at x, and its derivative."""
    if ACTIVATION == 0:
        return tl.maximum(x, 0.0), tl.where(x > 0, 1.0, 0.0)
    elif ACTIVATION == 1:
        gate = 0.5 * (1 + tl.erf(x * 0.7071067811865476))
        return x * gate, gate + x * 0.3989422804014327 * tl.exp(-0.5 * x * x)
    elif ACTIVATION == 2:
        gate = tl.sigmoid(x)
        return x * gate, gate * (1 + x * (1 - gate))
    else:  # (1 + tanh(u)) / 2 is sigmoid(2 u)
        gate = tl.sigmoid(1.5957691216057308 * x * (1 + 0.044715 * x * x))
        slope = 1.5957691216057308 * (1 + 0.134145 * x * x)
        return x * gate, gate * (1 + x * (1 - gate) * slope)


@triton.jit
def _activation_forward(x_ptr, out_ptr, seed_ptr, threshold, keep_scale, size,
                        ACTIVATION: tl.constexpr, DROP: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < size
    y, _ = _activation_and_derivative(tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32), ACTIVATION)
    if DROP:
        y = tl.where(keep_mask(seed_ptr, offsets, threshold), y * keep_scale, 0.0)
    tl.store(out_ptr + offsets, y.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def _activation_backward(
    d_ptr, x_ptr, dx_ptr, partials_ptr, seed_ptr, threshold, keep_scale, rows, WIDTH,
    ACTIVATION: tl.constexpr, DROP: tl.constexpr, COLUMNS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """The gradient through dropout and activation, and its column sums, one partial sum per program."""
    program, programs = tl.program_id(1), tl.num_programs(1)
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    column_mask = column < WIDTH
    bias_grad = tl.zeros((ROWS, COLUMNS), tl.float32)
    for first in range(program * ROWS, rows, programs * ROWS):
        row = first + tl.arange(0, ROWS)
        offsets = row[:, None].to(tl.int64) * WIDTH + column[None, :]
        mask = (row < rows)[:, None] & column_mask[None, :]
        d = tl.load(d_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
        if DROP:
            d = tl.where(keep_mask(seed_ptr, offsets, threshold), d * keep_scale, 0.0)
        if ACTIVATION >= 0:
            x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
            _, derivative = _activation_and_derivative(x, ACTIVATION)
            d = (d * derivative).to(dx_ptr.dtype.element_ty)
            tl.store(dx_ptr + offsets, d, mask=mask)
        bias_grad += d.to(tl.float32)
    tl.store(partials_ptr + program * WIDTH + column, tl.sum(bias_grad, axis=0), mask=column_mask)


ACTIVATION_TILE = {"columns": 256, "rows": 4, "warps": 8, "programs": 1056}
SUM_TILE = {"columns": 128, "rows": 32, "warps": 4, "programs": 1056}  # without an activation
JOIN_TILE = SUM_TILE | {"programs": 528}


def _activation_gradient(
    d: Tensor, pre: Tensor | None, activation: int, seed: Tensor | None, threshold: int, keep_scale: float,
    bias_buffer: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The gradient at `pre`, the input of an activation (without one, d itself), and its sum over the rows."""
    rows, width = d.shape
    d = d.contiguous()
    pre_grad = d if pre is None else torch.empty_like(pre)
    tile = SUM_TILE if pre is None else ACTIVATION_TILE
    across = triton.cdiv(width, tile["columns"])
    down = program_count(rows, tile["rows"], max(1, tile["programs"] // across))
    partials = d.new_empty(down, width, dtype=torch.float32)
    _activation_backward[(across, down)](
        d, d if pre is None else pre, pre_grad, partials, d if seed is None else seed, threshold, keep_scale, rows,
        width, ACTIVATION=activation, DROP=seed is not None, COLUMNS=tile["columns"], ROWS=tile["rows"],
        num_warps=tile["warps"],
    )  # fmt: skip
    return pre_grad, column_sums(partials[None], [bias_buffer], d.dtype)[0]


@triton.jit
def _join(a_ptr, b_ptr, c_ptr, out_ptr, partials_ptr, rows, WIDTH, COLUMNS: tl.constexpr, ROWS: tl.constexpr):
    """Three matrices side by side, and their column sums, one partial sum per program."""
    part, program, programs = tl.program_id(2), tl.program_id(1), tl.num_programs(1)
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    column_mask = column < WIDTH
    d_ptr = a_ptr
    if part == 1:
        d_ptr = b_ptr
    if part == 2:
        d_ptr = c_ptr
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for first in range(program * ROWS, rows, programs * ROWS):
        row = (first + tl.arange(0, ROWS))[:, None].to(tl.int64)
        mask = (row < rows) & column_mask[None, :]
        d = tl.load(d_ptr + row * WIDTH + column[None, :], mask=mask, other=0.0)
        tl.store(out_ptr + (row * 3 + part) * WIDTH + column[None, :], d, mask=mask)
        total += d.to(tl.float32)
    tl.store(partials_ptr + (program * 3 + part) * WIDTH + column, tl.sum(total, axis=0), mask=column_mask)


def _joined_gradients(parts: Sequence[Tensor], bias_buffer: Tensor | None) -> tuple[Tensor, Tensor]:
    """Gradients of queries, keys and values side by side, and their sum over the rows."""
    (rows, width), tile = parts[0].shape, JOIN_TILE
    across = triton.cdiv(width, tile["columns"])
    down = program_count(rows, tile["rows"], max(1, tile["programs"] // (3 * across)))
    out, partials = parts[0].new_empty(rows, 3 * width), parts[0].new_empty(down, 3 * width, dtype=torch.float32)
    _join[(across, down, 3)](
        *(part.contiguous() for part in parts), out, partials, rows, width,
        COLUMNS=tile["columns"], ROWS=tile["rows"], num_warps=tile["warps"],
    )  # fmt: skip
    return out, column_sums(partials[None], [bias_buffer], out.dtype)[0]


def weight_gradient(d: Tensor, x: Tensor, buffer: Tensor | None) -> Tensor:
    """The gradient of a linear layer's matrix, in its buffer or in a new tensor."""
    return d.T @ x if buffer is None else torch.mm(d.T, x, out=buffer)


class _Linear(torch.autograd.Function):
    """Several linear layers as one; and their input, so that one product adds to the gradient of its later uses."""

    @staticmethod
    def forward(ctx: Any, x, *parameters):
        weights, biases = parameters[: len(parameters) // 2], parameters[len(parameters) // 2 :]
        ctx.sizes = [len(bias) for bias in biases]
        ctx.buffers = [_claim_joint_buffer(group) for group in (weights, biases)]
        weight = concatenated(weights)
        ctx.save_for_backward(x, weight)
        ctx.set_materialize_grads(False)
        return torch.addmm(concatenated(biases), x, weight.T), x

    @staticmethod
    def backward(ctx: Any, d, x_grad):
        d = d.contiguous()
        _, bias_grad = _activation_gradient(d, None, NO_ACTIVATION, None, 0, 1.0, ctx.buffers[1])
        return _linear_gradients(ctx, d, bias_grad, x_grad)


class _LinearTriple(torch.autograd.Function):
    """As `_Linear` for three layers of equal size, whose outputs are views of one matrix."""

    @staticmethod
    def forward(ctx: Any, x, *parameters):
        y, _ = _Linear.forward(ctx, x, *parameters)
        return *y.view(len(y), 3, -1).unbind(1), x

    @staticmethod
    def backward(ctx: Any, q_grad, k_grad, v_grad, x_grad):
        d, bias_grad = _joined_gradients((q_grad, k_grad, v_grad), ctx.buffers[1])
        return _linear_gradients(ctx, d, bias_grad, x_grad)


def _linear_gradients(ctx: Any, d: Tensor, bias_grad: Tensor, x_grad: Tensor | None) -> tuple[Tensor, ...]:
    x, weight = ctx.saved_tensors
    weight_grad = weight_gradient(d, x, ctx.buffers[0])
    return input_gradient(d, weight, x_grad), *weight_grad.split(ctx.sizes), *bias_grad.split(ctx.sizes)


def _claim_joint_buffer(weights: Sequence[Tensor]) -> Tensor | None:
    return adjacent_view([claim_buffer(weight) for weight in weights])


class _LinearWithoutBias(torch.autograd.Function):
    """A linear layer without its bias, which a later kernel adds."""

    @staticmethod
    def forward(ctx: Any, x, weight):
        ctx.save_for_backward(x, weight)
        ctx.buffer = claim_buffer(weight)
        return x @ weight.T

    @staticmethod
    def backward(ctx: Any, d):
        x, weight = ctx.saved_tensors
        d = d.contiguous()
        return d @ weight, weight_gradient(d, x, ctx.buffer)


def input_gradient(d: Tensor, weight: Tensor, x_grad: Tensor | None) -> Tensor:
    """The gradient of a linear layer's input, added in place to that of its other uses, which nobody else reads."""
    return d @ weight if x_grad is None else x_grad.addmm_(d, weight)


def linear(x: Tensor, *layers: nn.Linear) -> tuple[Tensor, Tensor]:
    """The outputs of several linear layers on x, concatenated, and x: later uses must take the returned one."""
    return _Linear.apply(x, *(layer.weight for layer in layers), *(layer.bias for layer in layers))


def linear_triple(x: Tensor, *layers: nn.Linear) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The outputs of three linear layers of equal size, as views of one matrix, and x as above."""
    return _LinearTriple.apply(x, *(layer.weight for layer in layers), *(layer.bias for layer in layers))


def linear_without_bias(x: Tensor, layer: nn.Linear) -> Tensor:
    return _LinearWithoutBias.apply(x, layer.weight)


def activate(pre: Tensor, activation: int, seed: Tensor | None, threshold: int, keep_scale: float) -> Tensor:
    """An activation with dropout."""
    out = torch.empty_like(pre)
    _activation_forward[(triton.cdiv(out.numel(), 2048),)](
        pre, out, out if seed is None else seed, threshold, keep_scale, out.numel(),
        ACTIVATION=activation, DROP=seed is not None, BLOCK=2048,
    )  # fmt: skip
    return out


class _LinearActivation(torch.autograd.Function):
    """A linear layer, its activation and dropout; and the input again."""

    @staticmethod
    def forward(ctx: Any, x, weight, bias, activation: int, dropout: float):
        seed, threshold, keep_scale = draw_seed(dropout, x.device)
        if activation == RELU and seed is None:  # the output tells its derivative
            pre = out = torch._addmm_activation(bias, x, weight.T)
        else:
            pre = torch.addmm(bias, x, weight.T)
            out = activate(pre, activation, seed, threshold, keep_scale)
        ctx.save_for_backward(x, weight, pre, seed)
        ctx.constants, ctx.buffers = (activation, threshold, keep_scale), (claim_buffer(weight), claim_buffer(bias))
        ctx.set_materialize_grads(False)
        return out, x

    @staticmethod
    def backward(ctx: Any, d, x_grad):
        x, weight, pre, seed = ctx.saved_tensors
        activation, threshold, keep_scale = ctx.constants
        pre_grad, bias_grad = _activation_gradient(d, pre, activation, seed, threshold, keep_scale, ctx.buffers[1])
        weight_grad = weight_gradient(pre_grad, x, ctx.buffers[0])
        return input_gradient(pre_grad, weight, x_grad), weight_grad, bias_grad, None, None


def linear_activation(x: Tensor, layer: nn.Linear, activation: int, dropout: float = 0.0) -> tuple[Tensor, Tensor]:
    """The activation of layer(x) with dropout, and x: later uses must take the returned one.

    Without gradients, GELU is part of the product, in its tanh form: in bfloat16 the two forms differ less than rounding does.
    """
    if (
        activation in (GELU, GELU_TANH)
        and x.is_cuda
        and x.dtype.itemsize < 4
        and not (torch.is_grad_enabled() or dropout)
    ):
        return torch._addmm_activation(layer.bias, x, layer.weight.T, use_gelu=True), x
    return _LinearActivation.apply(x, layer.weight, layer.bias, activation, dropout)

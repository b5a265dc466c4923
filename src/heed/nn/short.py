"""Attention within short sequences, each wholly in one tile of the chip: written in Triton, for training on a GPU.

A general kernel cuts sequences into tiles of 128, keeps running sums, and needs a second pass for gradients. A sentence
fits into one tile: softmax at once, gradients at once, nothing kept but the inputs.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _tile(base, start, length, head, stride, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    """The addresses of one head of one sequence, and which of them exist."""
    rows, columns = tl.arange(0, ROWS), tl.arange(0, WIDTH)
    places = base + (start + rows)[:, None] * stride + head * WIDTH + columns[None, :]
    return places, (rows < length)[:, None]


@triton.jit
def _weights(q, k, keys, scale, CAUSAL: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr):
    """softmax(q . k / sqrt(d)) over the keys that are there."""
    scores = tl.dot(q, tl.trans(k)) * scale
    row, column = tl.arange(0, QUERIES)[:, None], tl.arange(0, KEYS)[None, :]
    seen = column < keys
    if CAUSAL:
        seen = seen & (column <= row)
    scores = tl.where(seen, scores, float("-inf"))
    raised = tl.exp(scores - tl.max(scores, axis=1)[:, None])
    return raised / tl.sum(raised, axis=1)[:, None]


@triton.jit
def _forward(
    q_at, k_at, v_at, out_at, q_starts, k_starts, q_stride, k_stride, v_stride, out_stride, scale,
    CAUSAL: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    number, head = tl.program_id(0), tl.program_id(1)
    q_start, k_start = tl.load(q_starts + number), tl.load(k_starts + number)
    queries, keys = tl.load(q_starts + number + 1) - q_start, tl.load(k_starts + number + 1) - k_start
    if (queries > 0) & (keys > 0):
        q_places, q_there = _tile(q_at, q_start, queries, head, q_stride, QUERIES, WIDTH)
        k_places, k_there = _tile(k_at, k_start, keys, head, k_stride, KEYS, WIDTH)
        v_places, v_there = _tile(v_at, k_start, keys, head, v_stride, KEYS, WIDTH)
        q, k = tl.load(q_places, mask=q_there, other=0.0), tl.load(k_places, mask=k_there, other=0.0)
        v = tl.load(v_places, mask=v_there, other=0.0)
        p = _weights(q, k, keys, scale, CAUSAL, QUERIES, KEYS)
        out_places, out_there = _tile(out_at, q_start, queries, head, out_stride, QUERIES, WIDTH)
        tl.store(out_places, tl.dot(p.to(v.dtype), v).to(out_at.dtype.element_ty), mask=out_there)


@triton.jit
def _backward(
    q_at, k_at, v_at, d_at, dq_at, dk_at, dv_at, q_starts, k_starts, q_stride, k_stride, v_stride, d_stride,
    dq_stride, dk_stride, scale,
    CAUSAL: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    number, head = tl.program_id(0), tl.program_id(1)
    q_start, k_start = tl.load(q_starts + number), tl.load(k_starts + number)
    queries, keys = tl.load(q_starts + number + 1) - q_start, tl.load(k_starts + number + 1) - k_start
    if (queries > 0) & (keys > 0):
        q_places, q_there = _tile(q_at, q_start, queries, head, q_stride, QUERIES, WIDTH)
        k_places, k_there = _tile(k_at, k_start, keys, head, k_stride, KEYS, WIDTH)
        v_places, v_there = _tile(v_at, k_start, keys, head, v_stride, KEYS, WIDTH)
        d_places, d_there = _tile(d_at, q_start, queries, head, d_stride, QUERIES, WIDTH)
        q, k = tl.load(q_places, mask=q_there, other=0.0), tl.load(k_places, mask=k_there, other=0.0)
        v, d = tl.load(v_places, mask=v_there, other=0.0), tl.load(d_places, mask=d_there, other=0.0)
        p = _weights(q, k, keys, scale, CAUSAL, QUERIES, KEYS)
        dk_places, dk_there = _tile(dk_at, k_start, keys, head, dk_stride, KEYS, WIDTH)
        dv_places, dv_there = _tile(dv_at, k_start, keys, head, dk_stride, KEYS, WIDTH)
        tl.store(dv_places, tl.dot(tl.trans(p.to(d.dtype)), d).to(dv_at.dtype.element_ty), mask=dv_there)
        dp = tl.dot(d, tl.trans(v))
        ds = (p * (dp - tl.sum(p * dp, axis=1)[:, None]) * scale).to(q.dtype)
        dq_places, dq_there = _tile(dq_at, q_start, queries, head, dq_stride, QUERIES, WIDTH)
        tl.store(dq_places, tl.dot(ds, k).to(dq_at.dtype.element_ty), mask=dq_there)
        tl.store(dk_places, tl.dot(tl.trans(ds), q).to(dk_at.dtype.element_ty), mask=dk_there)


def _sizes(q: Tensor, longest_q: int, longest_k: int) -> dict:
    """Tiles of a power of two, 16 at least: what the chip's matrix units take."""
    queries, keys = (max(16, triton.next_power_of_2(n)) for n in (longest_q, longest_k))
    return {"QUERIES": queries, "KEYS": keys, "WIDTH": q.shape[2], "num_warps": 8 if queries * keys > 64 * 64 else 4}


@torch.library.custom_op("heed::attend_short", mutates_args=())
def attend_short(
    q: Tensor, k: Tensor, v: Tensor, q_starts: Tensor, k_starts: Tensor, longest_q: int, longest_k: int, causal: bool
) -> Tensor:
    """(tokens, heads, width) in and out; sequence i is tokens starts[i] to starts[i + 1], none longer than said."""
    out = torch.zeros(q.shape, dtype=q.dtype, device=q.device)
    _forward[(len(q_starts) - 1, q.shape[1])](
        q, k, v, out, q_starts, k_starts, q.stride(0), k.stride(0), v.stride(0), out.stride(0), q.shape[2] ** -0.5,
        CAUSAL=causal, **_sizes(q, longest_q, longest_k),
    )  # fmt: skip
    return out


@attend_short.register_fake
def _(q, k, v, q_starts, k_starts, longest_q, longest_k, causal):
    return torch.empty(q.shape, dtype=q.dtype, device=q.device)


@torch.library.custom_op("heed::attend_short_backward", mutates_args=())
def _attend_short_backward(
    d: Tensor, q: Tensor, k: Tensor, v: Tensor, q_starts: Tensor, k_starts: Tensor, longest_q: int, longest_k: int,
    causal: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    d = d.contiguous()
    dq, dk, dv = (torch.zeros(part.shape, dtype=part.dtype, device=part.device) for part in (q, k, v))
    _backward[(len(q_starts) - 1, q.shape[1])](
        q, k, v, d, dq, dk, dv, q_starts, k_starts, q.stride(0), k.stride(0), v.stride(0), d.stride(0), dq.stride(0),
        dk.stride(0), q.shape[2] ** -0.5, CAUSAL=causal, **_sizes(q, longest_q, longest_k),
    )  # fmt: skip
    return dq, dk, dv


@_attend_short_backward.register_fake
def _(d, q, k, v, q_starts, k_starts, longest_q, longest_k, causal):
    return tuple(torch.empty(part.shape, dtype=part.dtype, device=part.device) for part in (q, k, v))


def _keep(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:5])
    ctx.rest = inputs[5:]


def _gradients(ctx, d):
    q, k, v, q_starts, k_starts = ctx.saved_tensors
    return (*_attend_short_backward(d, q, k, v, q_starts, k_starts, *ctx.rest), None, None, None, None, None)


attend_short.register_autograd(_gradients, setup_context=_keep)

"""Attention within short windows of equal length, such as the patches of images, for inference on a GPU.

The size of a tile must be a power of two. A length of 65 in a tile of 128 would compute four times as many scores as
it needs: here the last positions have a tile of their own.
"""

import triton
import triton.language as tl
from torch import Tensor

from heed.kernels.short_attention import LOG2E
from heed.nn.packing import WindowMask


@triton.jit
def _load(ptr, LENGTH: tl.constexpr, STRIDE: tl.constexpr, SIZE: tl.constexpr, HEAD_DIM: tl.constexpr):
    """LENGTH rows of one head, and zeros up to SIZE."""
    row = tl.arange(0, SIZE)[:, None]
    return tl.load(ptr + row * STRIDE + tl.arange(0, HEAD_DIM)[None, :], mask=row < LENGTH, other=0.0)


@triton.jit
def _attend(
    q_ptr, out_ptr, k0, v0, k1, v1, scale, LENGTH: tl.constexpr, SIZE: tl.constexpr, TAIL: tl.constexpr,
    TAIL_SIZE: tl.constexpr, STRIDE: tl.constexpr, OUT_STRIDE: tl.constexpr, HEAD_DIM: tl.constexpr,
):  # fmt: skip
    """The attention of LENGTH queries to all keys: k0, and TAIL more in k1. A tile has SIZE queries."""
    q = _load(q_ptr, LENGTH, STRIDE, SIZE, HEAD_DIM)
    s0 = tl.dot(q, tl.trans(k0)) * (scale * LOG2E)
    maximum = tl.max(s0, axis=1)
    if TAIL:
        s1 = tl.dot(q, tl.trans(k1)) * (scale * LOG2E)
        s1 = tl.where(tl.arange(0, TAIL_SIZE)[None, :] < TAIL, s1, float("-inf"))
        maximum = tl.maximum(maximum, tl.max(s1, axis=1))
    p0 = tl.exp2(s0 - maximum[:, None])
    total = tl.sum(p0, axis=1)
    out = tl.dot(p0.to(v0.dtype), v0)
    if TAIL:
        p1 = tl.exp2(s1 - maximum[:, None])
        total += tl.sum(p1, axis=1)
        out = tl.dot(p1.to(v1.dtype), v1, out)
    row = tl.arange(0, SIZE)[:, None]
    out_ptrs = out_ptr + row * OUT_STRIDE + tl.arange(0, HEAD_DIM)[None, :]
    tl.store(out_ptrs, (out / total[:, None]).to(out_ptr.dtype.element_ty), mask=row < LENGTH)


@triton.jit
def _window_attention(
    qkv_ptr, out_ptr, scale, LENGTH: tl.constexpr, MAIN: tl.constexpr, TAIL_SIZE: tl.constexpr, DIM: tl.constexpr,
    HEAD_DIM: tl.constexpr,
):  # fmt: skip
    """One head of one window: MAIN positions, a power of two, and the TAIL after them."""
    HEADS: tl.constexpr = DIM // HEAD_DIM
    TAIL: tl.constexpr = LENGTH - MAIN
    STRIDE: tl.constexpr = 3 * DIM
    start, head = (tl.program_id(0) // HEADS).to(tl.int64) * LENGTH, tl.program_id(0) % HEADS
    q_ptr, out_ptr = qkv_ptr + start * STRIDE + head * HEAD_DIM, out_ptr + start * DIM + head * HEAD_DIM
    k0 = _load(q_ptr + DIM, MAIN, STRIDE, MAIN, HEAD_DIM)
    v0 = _load(q_ptr + 2 * DIM, MAIN, STRIDE, MAIN, HEAD_DIM)
    k1, v1 = k0, v0
    if TAIL:
        k1 = _load(q_ptr + DIM + MAIN * STRIDE, TAIL, STRIDE, TAIL_SIZE, HEAD_DIM)
        v1 = _load(q_ptr + 2 * DIM + MAIN * STRIDE, TAIL, STRIDE, TAIL_SIZE, HEAD_DIM)
    _attend(q_ptr, out_ptr, k0, v0, k1, v1, scale, MAIN, MAIN, TAIL, TAIL_SIZE, STRIDE, DIM, HEAD_DIM)
    if TAIL:
        q_ptr, out_ptr = q_ptr + MAIN * STRIDE, out_ptr + MAIN * DIM
        _attend(q_ptr, out_ptr, k0, v0, k1, v1, scale, TAIL, TAIL_SIZE, TAIL, TAIL_SIZE, STRIDE, DIM, HEAD_DIM)


WARPS = 4


def supports(length: int) -> bool:
    """Whether a length has a tile of at most 64 positions, and the last ones a smaller one. 128 fills a tile of
    short_attention, and would need more shared memory here than smaller GPUs have.
    """
    return 32 <= length < 128 and _tail_size(length) <= length // 2


def _tail_size(length: int) -> int:
    tail = length - (1 << length.bit_length() - 1)
    return max(16, triton.next_power_of_2(tail)) if tail else 16


def attend_window(qkv: Tensor, windows: WindowMask, head_dim: int) -> Tensor:
    """Self-attention within each window, without gradients: queries, keys and values side by side in, (tokens, dim) out."""
    (tokens, columns), length = qkv.shape, windows.length
    out = qkv.new_empty(tokens, columns // 3)
    _window_attention[(windows.rows * columns // 3 // head_dim,)](
        qkv, out, head_dim**-0.5, LENGTH=length, MAIN=1 << length.bit_length() - 1, TAIL_SIZE=_tail_size(length),
        DIM=columns // 3, HEAD_DIM=head_dim, num_warps=WARPS,
    )  # fmt: skip
    return out

"""Triton kernels of a decoding step, one token per row.

A step computes little and is bound by latency. So a norm runs inside the kernel that needs it, and for few rows the
matrix products are kernels too, which load weights while the previous kernel still runs: programmatic dependent launch,
in which a kernel waits before it reads what others write. PDL: the next kernel may start with this one (1), near its
end (2), or after it (0).
"""

import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait


@triton.jit
def wait_for_previous(PDL: tl.constexpr):
    """Wait for the previous kernel."""
    if PDL == 1:
        gdc_launch_dependents()
    if PDL > 0:
        gdc_wait()


@triton.jit
def launch_next(PDL: tl.constexpr):
    """Let the next kernel start."""
    if PDL == 2:
        gdc_launch_dependents()


@triton.jit
def layer_norm(x, mask, norm_weight_ptr, norm_bias_ptr, k, eps, DIM: tl.constexpr):
    """Layer norm of one row."""
    x = tl.where(mask, x - tl.sum(x, axis=0) / DIM, 0.0)
    x = x / tl.sqrt(tl.sum(x * x, axis=0) / DIM + eps)
    weight = tl.load(norm_weight_ptr + k, mask=mask, other=0.0)
    return x * weight + tl.load(norm_bias_ptr + k, mask=mask, other=0.0)


@triton.jit
def activate(x, ACTIVATION: tl.constexpr):
    if ACTIVATION == "relu":
        x = tl.maximum(x, 0.0)
    if ACTIVATION == "gelu":
        x = 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))
    if ACTIVATION == "swish":
        x = x / (1 + tl.exp(-x))
    if ACTIVATION == "gelu_tanh":
        x = x / (1 + tl.exp(-1.5957691216057308 * x * (1 + 0.044715 * x * x)))
    return x


@triton.jit(do_not_specialize=["beams"])
def embed(
    tokens_ptr, positions_ptr, table_ptr, position_table_ptr, out_ptr, scale, beams,
    DIM: tl.constexpr, BLOCK: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """The embedding of a token times `scale`, plus that of its position."""
    wait_for_previous(PDL)
    row, k = tl.program_id(0), tl.arange(0, BLOCK)
    token, position = tl.load(tokens_ptr + row).to(tl.int64), tl.load(positions_ptr + row // beams).to(tl.int64)
    x = tl.load(table_ptr + token * DIM + k, mask=k < DIM, other=0.0).to(tl.float32) * scale
    x += tl.load(position_table_ptr + position * DIM + k, mask=k < DIM, other=0.0)
    launch_next(PDL)
    tl.store(out_ptr + row.to(tl.int64) * DIM + k, x, mask=k < DIM)


@triton.jit
def add_norm(
    residual_ptr, pending_ptr, norm_weight_ptr, norm_bias_ptr, residual_out_ptr, out_ptr, eps,
    PENDING: tl.constexpr, NORM: tl.constexpr, STORE_RESIDUAL: tl.constexpr, DIM: tl.constexpr, BLOCK: tl.constexpr,
    PDL: tl.constexpr,
):  # fmt: skip
    """Add the pending output of a sublayer to the residual, and norm the sum for the next matrix.

    STORE_RESIDUAL: the next residual is the sum (1), the normed sum (2), or not needed (0).
    """
    wait_for_previous(PDL)
    k = tl.arange(0, BLOCK)
    mask, offsets = k < DIM, tl.program_id(0).to(tl.int64) * DIM + k
    x = tl.load(residual_ptr + offsets, mask=mask, other=0.0)
    if PENDING:
        x += tl.load(pending_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    launch_next(PDL)
    if STORE_RESIDUAL == 1:
        tl.store(residual_out_ptr + offsets, x, mask=mask)
    if NORM:
        x = layer_norm(x, mask, norm_weight_ptr, norm_bias_ptr, k, eps, DIM)
    if STORE_RESIDUAL == 2:
        tl.store(residual_out_ptr + offsets, x, mask=mask)
    tl.store(out_ptr + offsets, x.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def matvec(
    x_ptr, w_ptr, bias_ptr, norm_weight_ptr, norm_bias_ptr, residual_ptr, residual_out_ptr, out_ptr, columns, eps,
    BIAS: tl.constexpr, NORM: tl.constexpr, STORE_RESIDUAL: tl.constexpr, ADD: tl.constexpr, ACTIVATION: tl.constexpr,
    DIM: tl.constexpr, BLOCK: tl.constexpr, BLOCK_N: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """One row times a matrix, with an optional norm before, and an activation or a residual sum after."""
    n, k = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N), tl.arange(0, BLOCK)
    row, mask, column_mask = tl.program_id(1), k < DIM, n < columns
    w = tl.load(w_ptr + n[:, None] * DIM + k[None, :], mask=column_mask[:, None] & mask[None, :], other=0.0)
    wait_for_previous(PDL)
    x = tl.load(x_ptr + row * DIM + k, mask=mask, other=0.0).to(tl.float32)
    if NORM:
        x = layer_norm(x, mask, norm_weight_ptr, norm_bias_ptr, k, eps, DIM)
        if STORE_RESIDUAL and tl.program_id(0) == 0:
            tl.store(residual_out_ptr + row * DIM + k, x, mask=mask)
    launch_next(PDL)
    y = tl.sum(w.to(tl.float32) * x[None, :], axis=1)
    if BIAS:
        y += tl.load(bias_ptr + n, mask=column_mask, other=0.0).to(tl.float32)
    y = activate(y, ACTIVATION)
    if ADD:
        y += tl.load(residual_ptr + row * columns + n, mask=column_mask, other=0.0)
    tl.store(out_ptr + row * columns + n, y.to(out_ptr.dtype.element_ty), mask=column_mask)


@triton.jit(do_not_specialize=["rows"])
def matmul(
    x_ptr, w_ptr, bias_ptr, residual_ptr, out_ptr, rows, columns,
    ADD: tl.constexpr, ACTIVATION: tl.constexpr, DIM: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """Some rows times a matrix, then an activation or a residual sum."""
    n, r = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N), tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    k, column_mask, row_mask = tl.arange(0, BLOCK_K), n < columns, r < rows
    w = tl.load(w_ptr + n[:, None] * DIM + k[None, :], mask=column_mask[:, None] & (k < DIM)[None, :], other=0.0)
    bias = tl.load(bias_ptr + n, mask=column_mask, other=0.0).to(tl.float32)
    wait_for_previous(PDL)
    x = tl.load(x_ptr + r[:, None] * DIM + k[None, :], mask=row_mask[:, None] & (k < DIM)[None, :], other=0.0)
    y = tl.dot(x, tl.trans(w), input_precision="ieee")
    for start in range(BLOCK_K, DIM, BLOCK_K):
        depth = start + k
        inside = (depth < DIM)[None, :]
        next_x = tl.load(x_ptr + r[:, None] * DIM + depth[None, :], mask=row_mask[:, None] & inside, other=0.0)
        next_w = tl.load(w_ptr + n[:, None] * DIM + depth[None, :], mask=column_mask[:, None] & inside, other=0.0)
        y += tl.dot(next_x, tl.trans(next_w), input_precision="ieee")
    launch_next(PDL)
    offsets, mask = r[:, None] * columns + n[None, :], row_mask[:, None] & column_mask[None, :]
    y = activate(y + bias[None, :], ACTIVATION)
    if ADD:
        y += tl.load(residual_ptr + offsets, mask=mask, other=0.0)
    tl.store(out_ptr + offsets, y.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def self_attention(
    qkv_ptr, keys_ptr, ancestors_ptr, generated_ptr, done_ptr, out_ptr, max_length, scale,
    BEAMS: tl.constexpr, DIM: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_KEYS: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """One beam over its past and itself. `ancestors` says which beam holds the keys of each past position."""
    wait_for_previous(PDL)
    row, head, d = tl.program_id(0), tl.program_id(1), tl.arange(0, HEAD_DIM)
    sentence = row // BEAMS
    if tl.load(done_ptr + sentence) == 0:
        generated, q_ptr = tl.load(generated_ptr + sentence), qkv_ptr + row.to(tl.int64) * 3 * DIM + head * HEAD_DIM + d
        q, k, v = tl.load(q_ptr).to(tl.float32) * scale, tl.load(q_ptr + DIM), tl.load(q_ptr + 2 * DIM)
        cached_ptr = keys_ptr + (row.to(tl.int64) * max_length + generated) * 2 * DIM + head * HEAD_DIM + d
        tl.store(cached_ptr, k)
        tl.store(cached_ptr + DIM, v)
        maximum, out = tl.sum(q * k.to(tl.float32), axis=0), v.to(tl.float32)
        total = tl.exp(maximum - maximum)
        for start in range(0, generated, BLOCK_KEYS):
            position = start + tl.arange(0, BLOCK_KEYS)
            mask = position < generated
            beam_row = row + tl.zeros([BLOCK_KEYS], tl.int32)
            if BEAMS > 1:
                beam_row = sentence * BEAMS + tl.load(ancestors_ptr + row * max_length + position, mask=mask, other=0)
            offsets = (beam_row.to(tl.int64) * max_length + position) * 2 * DIM
            key_ptr = keys_ptr + offsets[:, None] + head * HEAD_DIM + d[None, :]
            keys = tl.load(key_ptr, mask=mask[:, None], other=0.0)
            values = tl.load(key_ptr + DIM, mask=mask[:, None], other=0.0)
            scores = tl.where(mask, tl.sum(q[None, :] * keys.to(tl.float32), axis=1), float("-inf"))
            new_maximum = tl.maximum(maximum, tl.max(scores, axis=0))
            rescale, weights = tl.exp(maximum - new_maximum), tl.exp(scores - new_maximum)
            total = total * rescale + tl.sum(weights, axis=0)
            out = out * rescale + tl.sum(weights[:, None] * values.to(tl.float32), axis=0)
            maximum = new_maximum
        launch_next(PDL)
        tl.store(out_ptr + row.to(tl.int64) * DIM + head * HEAD_DIM + d, (out / total).to(out_ptr.dtype.element_ty))


@triton.jit
def packed_attention(
    q_ptr, keys_ptr, starts_ptr, lengths_ptr, done_ptr, out_ptr, q_stride, stride, scale,
    BEAMS: tl.constexpr, BLOCK_Q: tl.constexpr, DIM: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_KEYS: tl.constexpr,
    PDL: tl.constexpr,
):  # fmt: skip
    """All beams of a sentence over its source, whose keys are read once; with BEAMS 0, the source over itself.

    Sources are packed. The values of a token follow its keys.
    """
    wait_for_previous(PDL)
    sentence, head = tl.program_id(0), tl.program_id(1)
    start, length = tl.load(starts_ptr + sentence), tl.load(lengths_ptr + sentence)
    first, queries = start, length
    if BEAMS > 0:
        first, queries = sentence * BEAMS, tl.where(tl.load(done_ptr + sentence) == 0, BEAMS, 0)
    query, d = tl.program_id(2) * BLOCK_Q + tl.arange(0, BLOCK_Q), tl.arange(0, HEAD_DIM)
    if tl.program_id(2) * BLOCK_Q < queries:
        row, query_mask = (first + query).to(tl.int64)[:, None], (query < queries)[:, None]
        q = tl.load(q_ptr + row * q_stride + head * HEAD_DIM + d[None, :], mask=query_mask, other=0.0)
        maximum = tl.full([BLOCK_Q], float("-inf"), tl.float32)
        total, out = tl.zeros([BLOCK_Q], tl.float32), tl.zeros([BLOCK_Q, HEAD_DIM], tl.float32)
        for begin in range(0, length, BLOCK_KEYS):
            position = begin + tl.arange(0, BLOCK_KEYS)
            mask = (position < length)[:, None]
            key_ptr = keys_ptr + (start + position).to(tl.int64)[:, None] * stride + head * HEAD_DIM + d[None, :]
            k, v = tl.load(key_ptr, mask=mask, other=0.0), tl.load(key_ptr + DIM, mask=mask, other=0.0)
            scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
            scores = tl.where((position < length)[None, :], scores, float("-inf"))
            new_maximum = tl.maximum(maximum, tl.max(scores, axis=1))
            rescale, weights = tl.exp(maximum - new_maximum), tl.exp(scores - new_maximum[:, None])
            total = total * rescale + tl.sum(weights, axis=1)
            out = out * rescale[:, None] + tl.dot(weights.to(v.dtype), v, input_precision="ieee")
            maximum = new_maximum
        launch_next(PDL)
        out = (out / total[:, None]).to(out_ptr.dtype.element_ty)
        tl.store(out_ptr + row * DIM + head * HEAD_DIM + d[None, :], out, mask=query_mask)

"""A decoder at work, one token a row: what its layers do between and within matrix products, written in Triton for a GPU.

A step has little to compute and much to wait for. So what a row needs is done where the row is: a norm in the kernel that
needs it, and for a few rows the matrix products too, each kernel fetching its weights while the one before still works:
programmatic dependent launch, in which a kernel waits before it touches what others write. AHEAD: the next one may begin
with this one (1), when this one has little left to do (2), or when it is done (0).
"""

import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait


@triton.jit
def follow(AHEAD: tl.constexpr):
    """Wait for the kernel before."""
    if AHEAD == 1:
        gdc_launch_dependents()
    if AHEAD > 0:
        gdc_wait()


@triton.jit
def release(AHEAD: tl.constexpr):
    """Let the next kernel begin."""
    if AHEAD == 2:
        gdc_launch_dependents()


@triton.jit
def normed(x, there, gain_at, shift_at, k, eps, DIM: tl.constexpr):
    """Mean 0 and variance 1, then gain and shift."""
    x = tl.where(there, x - tl.sum(x, axis=0) / DIM, 0.0)
    x = x / tl.sqrt(tl.sum(x * x, axis=0) / DIM + eps)
    gain = tl.load(gain_at + k, mask=there, other=0.0)
    return x * gain + tl.load(shift_at + k, mask=there, other=0.0)


@triton.jit
def bent(x, ACTIVATION: tl.constexpr):
    if ACTIVATION == "relu":
        x = tl.maximum(x, 0.0)
    if ACTIVATION == "gelu":
        x = 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))
    if ACTIVATION == "swish":
        x = x / (1 + tl.exp(-x))
    return x


@triton.jit(do_not_specialize=["beams"])
def embed(
    tokens_at, places_at, table_at, waves_at, out_at, scale, beams,
    DIM: tl.constexpr, WIDTH: tl.constexpr, AHEAD: tl.constexpr,
):  # fmt: skip
    """A token times `scale`, and its place."""
    follow(AHEAD)
    row, k = tl.program_id(0), tl.arange(0, WIDTH)
    token, place = tl.load(tokens_at + row).to(tl.int64), tl.load(places_at + row // beams).to(tl.int64)
    x = tl.load(table_at + token * DIM + k, mask=k < DIM, other=0.0).to(tl.float32) * scale
    x += tl.load(waves_at + place * DIM + k, mask=k < DIM, other=0.0)
    release(AHEAD)
    tl.store(out_at + row.to(tl.int64) * DIM + k, x, mask=k < DIM)


@triton.jit
def settle(
    base_at, more_at, gain_at, shift_at, kept_at, out_at, eps,
    MORE: tl.constexpr, NORM: tl.constexpr, KEEP: tl.constexpr, DIM: tl.constexpr, WIDTH: tl.constexpr,
    AHEAD: tl.constexpr,
):  # fmt: skip
    """What is still to be added is added, and the sum normed: for the next matrix, and for the next sum.

    KEEP: the next sum is of the sum (1), of the normed (2), or of nothing (0).
    """
    follow(AHEAD)
    k = tl.arange(0, WIDTH)
    there, at = k < DIM, tl.program_id(0).to(tl.int64) * DIM + k
    x = tl.load(base_at + at, mask=there, other=0.0)
    if MORE:
        x += tl.load(more_at + at, mask=there, other=0.0).to(tl.float32)
    release(AHEAD)
    if KEEP == 1:
        tl.store(kept_at + at, x, mask=there)
    if NORM:
        x = normed(x, there, gain_at, shift_at, k, eps, DIM)
    if KEEP == 2:
        tl.store(kept_at + at, x, mask=there)
    tl.store(out_at + at, x.to(out_at.dtype.element_ty), mask=there)


@triton.jit
def vector(
    x_at, w_at, bias_at, gain_at, shift_at, base_at, kept_at, out_at, columns, eps,
    BIAS: tl.constexpr, NORM: tl.constexpr, KEEP: tl.constexpr, ADD: tl.constexpr, ACTIVATION: tl.constexpr,
    DIM: tl.constexpr, WIDTH: tl.constexpr, COLUMNS: tl.constexpr, AHEAD: tl.constexpr,
):  # fmt: skip
    """One row times a matrix: normed before, bent or added to `base` after."""
    n, k = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS), tl.arange(0, WIDTH)
    row, there, exists = tl.program_id(1), k < DIM, n < columns
    w = tl.load(w_at + n[:, None] * DIM + k[None, :], mask=exists[:, None] & there[None, :], other=0.0)
    follow(AHEAD)
    x = tl.load(x_at + row * DIM + k, mask=there, other=0.0).to(tl.float32)
    if NORM:
        x = normed(x, there, gain_at, shift_at, k, eps, DIM)
        if KEEP and tl.program_id(0) == 0:
            tl.store(kept_at + row * DIM + k, x, mask=there)
    release(AHEAD)
    y = tl.sum(w.to(tl.float32) * x[None, :], axis=1)
    if BIAS:
        y += tl.load(bias_at + n, mask=exists, other=0.0).to(tl.float32)
    y = bent(y, ACTIVATION)
    if ADD:
        y += tl.load(base_at + row * columns + n, mask=exists, other=0.0)
    tl.store(out_at + row * columns + n, y.to(out_at.dtype.element_ty), mask=exists)


@triton.jit(do_not_specialize=["rows"])
def tile(
    x_at, w_at, bias_at, base_at, out_at, rows, columns,
    ADD: tl.constexpr, ACTIVATION: tl.constexpr, DIM: tl.constexpr, STEP: tl.constexpr, ROWS: tl.constexpr,
    COLUMNS: tl.constexpr, AHEAD: tl.constexpr,
):  # fmt: skip
    """Some rows times a matrix, STEP of its depth at a time; then bent, or added to `base`."""
    n, r = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS), tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    k, some, asked = tl.arange(0, STEP), n < columns, r < rows
    w = tl.load(w_at + n[:, None] * DIM + k[None, :], mask=some[:, None] & (k < DIM)[None, :], other=0.0)
    bias = tl.load(bias_at + n, mask=some, other=0.0).to(tl.float32)
    follow(AHEAD)
    x = tl.load(x_at + r[:, None] * DIM + k[None, :], mask=asked[:, None] & (k < DIM)[None, :], other=0.0)
    y = tl.dot(x, tl.trans(w), input_precision="ieee")
    for start in range(STEP, DIM, STEP):
        at = start + k
        more = tl.load(x_at + r[:, None] * DIM + at[None, :], mask=asked[:, None] & (at < DIM)[None, :], other=0.0)
        next_w = tl.load(w_at + n[:, None] * DIM + at[None, :], mask=some[:, None] & (at < DIM)[None, :], other=0.0)
        y += tl.dot(more, tl.trans(next_w), input_precision="ieee")
    release(AHEAD)
    out, there = r[:, None] * columns + n[None, :], asked[:, None] & some[None, :]
    y = bent(y + bias[None, :], ACTIVATION)
    if ADD:
        y += tl.load(base_at + out, mask=there, other=0.0)
    tl.store(out_at + out, y.to(out_at.dtype.element_ty), mask=there)


@triton.jit
def attend_own(
    qkv_at, keys_at, lineage_at, said_at, done_at, out_at, longest, scale,
    BEAMS: tl.constexpr, DIM: tl.constexpr, WIDTH: tl.constexpr, PLACES: tl.constexpr, AHEAD: tl.constexpr,
):  # fmt: skip
    """One beam over its past, which stands where `lineage` says, and over itself; its own key stays in its own row."""
    follow(AHEAD)
    row, head, d = tl.program_id(0), tl.program_id(1), tl.arange(0, WIDTH)
    sentence = row // BEAMS
    if tl.load(done_at + sentence) == 0:
        said, own = tl.load(said_at + sentence), qkv_at + row.to(tl.int64) * 3 * DIM + head * WIDTH + d
        q, k, v = tl.load(own).to(tl.float32) * scale, tl.load(own + DIM), tl.load(own + 2 * DIM)
        mine = keys_at + (row.to(tl.int64) * longest + said) * 2 * DIM + head * WIDTH + d
        tl.store(mine, k)
        tl.store(mine + DIM, v)
        top, mixed = tl.sum(q * k.to(tl.float32), axis=0), v.to(tl.float32)
        total = tl.exp(top - top)
        for start in range(0, said, PLACES):
            place = start + tl.arange(0, PLACES)
            there = place < said
            whose = row + tl.zeros([PLACES], tl.int32)
            if BEAMS > 1:
                whose = sentence * BEAMS + tl.load(lineage_at + row * longest + place, mask=there, other=0)
            at = keys_at + ((whose.to(tl.int64) * longest + place) * 2 * DIM)[:, None] + head * WIDTH + d[None, :]
            keys = tl.load(at, mask=there[:, None], other=0.0)
            values = tl.load(at + DIM, mask=there[:, None], other=0.0)
            scores = tl.where(there, tl.sum(q[None, :] * keys.to(tl.float32), axis=1), float("-inf"))
            higher = tl.maximum(top, tl.max(scores, axis=0))
            fade, raised = tl.exp(top - higher), tl.exp(scores - higher)
            total = total * fade + tl.sum(raised, axis=0)
            mixed = mixed * fade + tl.sum(raised[:, None] * values.to(tl.float32), axis=0)
            top = higher
        release(AHEAD)
        tl.store(out_at + row.to(tl.int64) * DIM + head * WIDTH + d, (mixed / total).to(out_at.dtype.element_ty))


@triton.jit
def attend(
    q_at, keys_at, starts_at, lengths_at, done_at, out_at, q_stride, stride, scale,
    BEAMS: tl.constexpr, ROWS: tl.constexpr, DIM: tl.constexpr, WIDTH: tl.constexpr, PLACES: tl.constexpr,
    AHEAD: tl.constexpr,
):  # fmt: skip
    """All beams of a sentence over its source, of which the keys are read once; without BEAMS, the source over itself.

    Sources are end to end. Values stand behind their keys.
    """
    follow(AHEAD)
    sentence, head = tl.program_id(0), tl.program_id(1)
    start, length = tl.load(starts_at + sentence), tl.load(lengths_at + sentence)
    first, asking = start, length
    if BEAMS > 0:
        first, asking = sentence * BEAMS, tl.where(tl.load(done_at + sentence) == 0, BEAMS, 0)
    query, d = tl.program_id(2) * ROWS + tl.arange(0, ROWS), tl.arange(0, WIDTH)
    if tl.program_id(2) * ROWS < asking:
        row, exists = (first + query).to(tl.int64)[:, None], (query < asking)[:, None]
        q = tl.load(q_at + row * q_stride + head * WIDTH + d[None, :], mask=exists, other=0.0)
        top = tl.full([ROWS], float("-inf"), tl.float32)
        total, mixed = tl.zeros([ROWS], tl.float32), tl.zeros([ROWS, WIDTH], tl.float32)
        for begin in range(0, length, PLACES):
            place = begin + tl.arange(0, PLACES)
            there = (place < length)[:, None]
            at = keys_at + (start + place).to(tl.int64)[:, None] * stride + head * WIDTH + d[None, :]
            k, v = tl.load(at, mask=there, other=0.0), tl.load(at + DIM, mask=there, other=0.0)
            scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
            scores = tl.where((place < length)[None, :], scores, float("-inf"))
            higher = tl.maximum(top, tl.max(scores, axis=1))
            fade, raised = tl.exp(top - higher), tl.exp(scores - higher[:, None])
            total = total * fade + tl.sum(raised, axis=1)
            mixed = mixed * fade[:, None] + tl.dot(raised.to(v.dtype), v, input_precision="ieee")
            top = higher
        release(AHEAD)
        mixed = (mixed / total[:, None]).to(out_at.dtype.element_ty)
        tl.store(out_at + row * DIM + head * WIDTH + d[None, :], mixed, mask=exists)

"""Cross entropy in Triton: the loss, and its gradient in place of the logits.

A program has one row of logits, or both rows of R-Drop. A row stays in the L2 cache between the passes over it.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 4096  # for R-Drop and distillation
LOG2_E = 1.4426950408889634
LAUNCH = {"block": 8192, "group": 8, "warps": 16}  # for plain cross entropy; `group` neighbours share a running maximum


@triton.jit
def _logsumexp_and_mean(z_ptr, VOCAB, BLOCK: tl.constexpr):
    """The logsumexp of a row, and its mean."""
    maximum, sum_exp = tl.full((BLOCK,), -1e30, tl.float32), tl.zeros((BLOCK,), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, VOCAB, BLOCK):
        column = first + tl.arange(0, BLOCK)
        z = tl.load(z_ptr + column, mask=column < VOCAB, other=-1e30).to(tl.float32)
        new_maximum = tl.maximum(maximum, z)
        sum_exp = sum_exp * tl.exp(maximum - new_maximum) + tl.where(column < VOCAB, tl.exp(z - new_maximum), 0.0)
        maximum = new_maximum
        total += tl.where(column < VOCAB, z, 0.0)
    row_maximum = tl.max(maximum, axis=0)
    return row_maximum + tl.log(tl.sum(sum_exp * tl.exp(maximum - row_maximum), axis=0)), tl.sum(total, axis=0) / VOCAB


@triton.jit
def _store_loss(logit, lse, mean, target, loss_ptr, nll_ptr, row, smoothing, VOCAB):
    """Store the loss of a row; returns whether it counts, the smoothing term of its gradient, the target's gradient."""
    counted = tl.where(target >= 0, 1.0, 0.0)
    tl.store(nll_ptr + row, (lse - logit) * counted)
    tl.store(loss_ptr + row, ((1 - smoothing) * (lse - logit) + smoothing * (lse - mean)) * counted)
    target_grad = tl.exp(logit - lse) - smoothing / VOCAB - (1 - smoothing)
    return counted, counted * smoothing / VOCAB, counted * target_grad


@triton.jit
def _cross_entropy(
    z_ptr, target_ptr, loss_ptr, nll_ptr, stride, smoothing, VOCAB, COLUMNS, LOG2_E: tl.constexpr,
    BLOCK: tl.constexpr, GROUP: tl.constexpr, DIVISIBLE: tl.constexpr,
):  # fmt: skip
    """Two passes over a row. GROUP neighbours in one thread share a maximum; the target's gradient is stored last.

    Of COLUMNS the first VOCAB are logits. Memory is masked by COLUMNS, whose multiple of 16 allows wide accesses.
    """
    row = tl.program_id(0)
    target = tl.load(target_ptr + row).to(tl.int32)
    z_ptr += row.to(tl.int64) * stride
    logit = tl.load(z_ptr + tl.maximum(target, 0)).to(tl.float32)
    GROUPS: tl.constexpr = BLOCK // GROUP
    maximum, sum_exp = tl.full((GROUPS,), -1e30, tl.float32), tl.zeros((GROUPS,), tl.float32)
    total = tl.zeros((GROUPS,), tl.float32)
    lane = tl.arange(0, GROUPS)[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    for first in range(0, VOCAB, BLOCK):
        if DIVISIBLE:
            z = tl.load(z_ptr + first + lane, eviction_policy="evict_last").to(tl.float32)
            total += tl.sum(z, axis=1)
        else:
            z = tl.load(z_ptr + first + lane, mask=first + lane < COLUMNS, other=-1e30).to(tl.float32)
            z = tl.where(first + lane < VOCAB, z, -1e30)
            total += tl.sum(tl.where(first + lane < VOCAB, z, 0.0), axis=1)
        new_maximum = tl.maximum(maximum, tl.max(z, axis=1))
        added = tl.sum(tl.exp2(z * LOG2_E - (new_maximum * LOG2_E)[:, None]), axis=1)
        sum_exp = sum_exp * tl.exp2((maximum - new_maximum) * LOG2_E) + added
        maximum = new_maximum
    row_maximum = tl.max(maximum, axis=0)
    lse = row_maximum + tl.log(tl.sum(tl.where(maximum > -1e29, sum_exp * tl.exp(maximum - row_maximum), 0.0), axis=0))
    mean = tl.sum(total, axis=0) / VOCAB
    counted, smooth_grad, target_grad = _store_loss(logit, lse, mean, target, loss_ptr, nll_ptr, row, smoothing, VOCAB)
    tl.debug_barrier()  # the target logit must be read before it is overwritten
    scaled_lse = lse * LOG2_E
    for first in range(0, COLUMNS, BLOCK):
        if DIVISIBLE:
            z = tl.load(z_ptr + first + lane, eviction_policy="evict_first").to(tl.float32)
            grad = tl.exp2(z * LOG2_E - scaled_lse) * counted - smooth_grad
            tl.store(z_ptr + first + lane, grad.to(z_ptr.dtype.element_ty), eviction_policy="evict_first")
        else:
            z = tl.load(z_ptr + first + lane, mask=first + lane < COLUMNS, other=-1e30).to(tl.float32)
            grad = tl.exp2(z * LOG2_E - scaled_lse) * counted - smooth_grad
            grad = tl.where(first + lane < VOCAB, grad, 0.0)
            tl.store(z_ptr + first + lane, grad.to(z_ptr.dtype.element_ty), mask=first + lane < COLUMNS)
    tl.debug_barrier()
    tl.store(z_ptr + tl.maximum(target, 0), target_grad.to(z_ptr.dtype.element_ty))


@triton.jit
def _r_drop(z_ptr, target_ptr, loss_ptr, nll_ptr, stride, y_offset, smoothing, agreement, VOCAB, BLOCK: tl.constexpr):
    """The mean cross entropy of two passes z and y, plus `agreement` times their KL divergences (Wu et al., 2021)."""
    row = tl.program_id(0)
    target = tl.load(target_ptr + row).to(tl.int32)
    z_ptr += row.to(tl.int64) * stride
    y_ptr = z_ptr + y_offset.to(tl.int64)
    lse_z, mean_z = _logsumexp_and_mean(z_ptr, VOCAB, BLOCK)
    lse_y, mean_y = _logsumexp_and_mean(y_ptr, VOCAB, BLOCK)
    counted, index = tl.where(target >= 0, 1.0, 0.0), tl.maximum(target, 0)
    nll = lse_z - tl.load(z_ptr + index).to(tl.float32) + lse_y - tl.load(y_ptr + index).to(tl.float32)
    kl_zy_parts, kl_yz_parts = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    for first in range(0, VOCAB, BLOCK):
        column = first + tl.arange(0, BLOCK)
        z = tl.load(z_ptr + column, mask=column < VOCAB, other=-1e30).to(tl.float32) - lse_z
        y = tl.load(y_ptr + column, mask=column < VOCAB, other=-1e30).to(tl.float32) - lse_y
        kl_zy_parts += tl.where(column < VOCAB, tl.exp(z) * (z - y), 0.0)
        kl_yz_parts += tl.where(column < VOCAB, tl.exp(y) * (y - z), 0.0)
    kl_zy, kl_yz = tl.sum(kl_zy_parts, axis=0), tl.sum(kl_yz_parts, axis=0)
    smoothed_nll = (lse_z - mean_z + lse_y - mean_y) * smoothing + nll * (1 - smoothing)
    tl.store(nll_ptr + row, nll / 2 * counted)
    tl.store(loss_ptr + row, (smoothed_nll / 2 + agreement / 4 * (kl_zy + kl_yz)) * counted)
    tl.debug_barrier()
    for first in range(0, VOCAB, BLOCK):
        column = first + tl.arange(0, BLOCK)
        mask = column < VOCAB
        z = tl.load(z_ptr + column, mask=mask, other=0.0).to(tl.float32) - lse_z
        y = tl.load(y_ptr + column, mask=mask, other=0.0).to(tl.float32) - lse_y
        p, q, label = tl.exp(z), tl.exp(y), smoothing / VOCAB + tl.where(column == target, 1 - smoothing, 0.0)
        grad_z = (p - label) / 2 + agreement / 4 * (p * (z - y - kl_zy) + p - q)
        grad_y = (q - label) / 2 + agreement / 4 * (q * (y - z - kl_yz) + q - p)
        tl.store(z_ptr + column, (grad_z * counted).to(z_ptr.dtype.element_ty), mask=mask)
        tl.store(y_ptr + column, (grad_y * counted).to(z_ptr.dtype.element_ty), mask=mask)


@triton.jit
def _distillation(
    z_ptr, target_ptr, loss_ptr, nll_ptr, stride, y_ptr, y_stride, smoothing, teacher_weight, VOCAB, BLOCK: tl.constexpr
):
    """`teacher_weight` of the loss is the cross entropy with the distribution of a teacher's logits y."""
    row = tl.program_id(0)
    target = tl.load(target_ptr + row).to(tl.int32)
    z_ptr += row.to(tl.int64) * stride
    y_ptr += row.to(tl.int64) * y_stride
    lse, mean = _logsumexp_and_mean(z_ptr, VOCAB, BLOCK)
    teacher_lse, _ = _logsumexp_and_mean(y_ptr, VOCAB, BLOCK)
    mean_parts = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, VOCAB, BLOCK):
        column = first + tl.arange(0, BLOCK)
        z = tl.load(z_ptr + column, mask=column < VOCAB, other=0.0).to(tl.float32)
        mean_parts += tl.exp(tl.load(y_ptr + column, mask=column < VOCAB, other=-1e30).to(tl.float32) - teacher_lse) * z
    counted = tl.where(target >= 0, 1.0, 0.0)
    nll = lse - tl.load(z_ptr + tl.maximum(target, 0)).to(tl.float32)
    smoothed_nll = (1 - smoothing) * nll + smoothing * (lse - mean)
    teacher_nll = lse - tl.sum(mean_parts, axis=0)
    tl.store(nll_ptr + row, nll * counted)
    tl.store(loss_ptr + row, ((1 - teacher_weight) * smoothed_nll + teacher_weight * teacher_nll) * counted)
    tl.debug_barrier()  # the target logit must be read before it is overwritten
    for first in range(0, VOCAB, BLOCK):
        column = first + tl.arange(0, BLOCK)
        z = tl.load(z_ptr + column, mask=column < VOCAB, other=0.0).to(tl.float32)
        q = tl.exp(tl.load(y_ptr + column, mask=column < VOCAB, other=-1e30).to(tl.float32) - teacher_lse)
        label = smoothing / VOCAB + tl.where(column == target, 1 - smoothing, 0.0)
        grad = tl.exp(z - lse) - (1 - teacher_weight) * label - teacher_weight * q
        tl.store(z_ptr + column, (grad * counted).to(z_ptr.dtype.element_ty), mask=column < VOCAB)


def cross_entropy_gradients(
    logits: Tensor, target: Tensor, smoothing: float, agreement: float = 0.0,
    teacher: tuple[Tensor, float] | None = None, vocab: int | None = None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """The smoothed loss, the nll, and the gradient, which overwrites `logits`; of two passes: R-Drop.

    Columns after the first `vocab` are padding.
    """
    passes, rows, columns = logits.shape
    vocab = vocab or columns
    loss, nll = logits.new_empty(2, rows, dtype=torch.float32)
    common, vocab_block = (logits, target, loss, nll, logits.stride(1)), triton.next_power_of_2(vocab)
    if teacher is not None:
        (y, weight), block = teacher, min(BLOCK, vocab_block)
        _distillation[(rows,)](*common, y, y.stride(0), smoothing, weight, vocab, BLOCK=block, num_warps=8)
    elif passes == 1:
        block = max(LAUNCH["group"], min(LAUNCH["block"], vocab_block))
        _cross_entropy[(rows,)](
            *common, smoothing, vocab, columns, LOG2_E=LOG2_E, BLOCK=block, GROUP=LAUNCH["group"],
            DIVISIBLE=vocab == columns and vocab % block == 0, num_warps=LAUNCH["warps"],
        )  # fmt: skip
    else:
        block = min(BLOCK, vocab_block)
        _r_drop[(rows,)](*common, logits.stride(0), smoothing, agreement, vocab, BLOCK=block, num_warps=8)
    if vocab < columns and (teacher is not None or passes > 1):
        logits[..., vocab:] = 0
    return loss.sum(), nll.sum(), logits

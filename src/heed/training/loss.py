"""A loss as sums and a count, so that parts of a batch add up to the whole."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from heed.kernels.gradient_buffers import claim_buffer
from heed.training.loss_gradients import loss_and_gradient


class Part(NamedTuple):
    """One term of a loss, a sum with its own count."""

    total: Float[Tensor, ""]
    count: int


class Loss(NamedTuple):
    """`total` is minimized; `nll` is the plain -log p of the targets, which is logged as the loss.

    `parts` are for the log. An objective with parts names them all in its attribute `parts`; a batch may lack some.
    """

    total: Float[Tensor, ""]
    nll: Float[Tensor, ""]
    count: int
    parts: Mapping[str, Part] | None = None


def smoothed_cross_entropy(
    logits: Float[Tensor, "n vocab"], expected: Int[Tensor, " n"], smoothing: float
) -> tuple[Loss, Float[Tensor, "n vocab"]]:
    """Cross entropy with label smoothing (Szegedy et al., 2016), and the log-probabilities.

    The target has 1 - smoothing on the expected token, and the rest spread evenly over the vocabulary.
    """
    logp = logits.float().log_softmax(dim=-1) if logits.dtype.itemsize < 4 else logits.log_softmax(dim=-1)
    nll = -logp.gather(1, expected[:, None]).sum()
    total = nll
    if smoothing:
        total = (1 - smoothing) * nll - smoothing * logp.mean(dim=1).sum()
    return Loss(total, nll.detach(), len(expected)), logp


def distillation_loss(
    logits: Float[Tensor, "n vocab"],
    teacher_logits: Float[Tensor, "n vocab"],
    expected: Int[Tensor, " n"],
    smoothing: float,
    share: float,
) -> Loss:
    """`smoothed_cross_entropy`, of which a `share` is replaced by cross entropy against the teacher's distribution."""
    loss, logp = smoothed_cross_entropy(logits, expected, smoothing)
    from_teacher = -(teacher_logits.to(logp.dtype).softmax(dim=-1) * logp).sum()
    return Loss((1 - share) * loss.total + share * from_teacher, loss.nll, loss.count)


def ensemble_logits(logits: Sequence[Float[Tensor, "n vocab"]]) -> Float[Tensor, "n vocab"]:
    """Logits whose softmax is the mean of the softmax of each; those of a single model are returned unchanged."""
    if len(logits) == 1:
        return logits[0]
    exact = torch.promote_types(logits[0].dtype, torch.float32)
    total = logits[0].to(exact).log_softmax(dim=-1)
    for other in logits[1:]:
        total = torch.logaddexp(total, other.to(exact).log_softmax(dim=-1))
    return total


class TeacherOutput(NamedTuple):
    """A teacher's last hidden states, and the weights of its output layer."""

    states: Float[Tensor, "n dim"]
    weight: Float[Tensor, "vocab dim"]
    bias: Float[Tensor, " vocab"] | None


class Distillation(NamedTuple):
    """The teachers, and the `share` of the loss that compares with their mean distribution."""

    teachers: Sequence[TeacherOutput]
    share: float


MAX_LOGITS = {"cuda": 2**30, "cpu": 2**22}  # in memory at one time; on a CPU, what its caches take
VOCAB_MULTIPLE = 64  # of rows of the output matrix, and so of columns of logits, that tensor cores take at full speed


def chunked_cross_entropy(
    states: Float[Tensor, "n dim"] | Float[Tensor, "2 n dim"],
    weight: Float[Tensor, "vocab dim"],
    bias: Float[Tensor, " vocab"] | None,
    expected: Int[Tensor, " n"],
    smoothing: float,
    agreement: float = 0.0,
    distillation: Distillation | None = None,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """The total and the nll of `smoothed_cross_entropy` or `distillation_loss` of the logits `states @ weight.T + bias`.

    The logits are computed in chunks and never exist all at once; their gradients are computed in the forward pass.
    For two passes it is the mean, plus `agreement` / 2 times half of their symmetric divergence (R-Drop). Positions
    where `expected` is negative are ignored.
    """
    kind = states.device.type
    states = states if states.ndim == 3 else states[None]
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else states.dtype
    return _ChunkedCrossEntropy.apply(states, weight, bias, expected, (smoothing, agreement), distillation, dtype)


def weighted_cross_entropy(
    states: Float[Tensor, "n dim"],
    weight: Float[Tensor, "vocab dim"],
    bias: Float[Tensor, " vocab"] | None,
    expected: Int[Tensor, " n"],
    weights: Float[Tensor, " n"],
) -> Float[Tensor, ""]:
    """The weighted sum of -log p of the expected tokens. The logits are computed in chunks, and again in the backward
    pass.
    """

    def part(rows: Tensor, targets: Tensor, factors: Tensor) -> Tensor:
        logits = F.linear(rows, weight, bias)
        logits = logits.float() if logits.dtype.itemsize < 4 else logits
        return (F.cross_entropy(logits, targets, reduction="none") * factors).sum()

    chunk = _chunk_rows(len(states), 1, weight)
    pieces = (part_of.split(chunk) for part_of in (states, expected, weights))
    return sum(checkpoint(part, *each, use_reentrant=False) for each in zip(*pieces, strict=True))


def unit_gradient(total: Float[Tensor, ""]) -> Float[Tensor, ""]:
    """A gradient of one for `total`, marked as such, so that a backward pass can skip the multiplication. (Comparing
    a number on a device with one would wait for the device.)
    """
    one = torch.ones_like(total)
    one.unit_gradient = True
    return one


class _ChunkedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, states, weight, bias, expected, rates: tuple[float, float], distillation: Distillation | None, dtype
    ):
        vocab, exact = len(weight), torch.promote_types(dtype, torch.float32)
        padding = padded_vocab(vocab, dtype, weight.device) - vocab
        matrix = F.pad(weight.to(dtype), (0, 0, 0, padding)) if padding else weight.to(dtype)
        offset = None if bias is None else F.pad(bias.to(dtype), (0, padding))
        total = nll = torch.zeros((), dtype=exact, device=states.device)
        grad_states, grad_weight, buffer = [], None, claim_buffer(weight)
        grad_bias = None if bias is None else torch.zeros(bias.shape, dtype=exact, device=bias.device)
        teachers = () if distillation is None else distillation.teachers
        chunk = _chunk_rows(states.shape[1], len(states) + len(teachers), weight)
        single = chunk >= states.shape[1]
        direct = (
            single and not padding
        )  # else the gradient of the matrix is rounded and copied to the buffer afterwards
        for start in range(0, max(1, states.shape[1]), chunk):  # a worker may have a batch without rows
            rows = states[:, start : start + chunk].to(dtype).flatten(0, 1)
            logits = F.linear(rows, matrix, offset).unflatten(0, (len(states), -1))
            teacher = (
                None if distillation is None else _teacher_logits(distillation, slice(start, start + chunk), dtype)
            )
            part, part_nll, grad = loss_and_gradient(logits, expected[start : start + chunk], *rates, teacher, vocab)
            total, nll, grad = total + part, nll + part_nll, grad.flatten(0, 1)
            grad_states.append((grad @ matrix).unflatten(0, (len(states), -1)))
            added = _matmul(grad.T, rows, *((weight.dtype, buffer) if direct else (exact, None)))[:vocab]
            grad_weight = added if grad_weight is None else grad_weight.add_(added)
            if bias is not None:
                grad_bias += grad[:, :vocab].sum(dim=0, dtype=exact)
        if buffer is not None and grad_weight is not buffer:
            grad_weight = buffer.copy_(grad_weight)
        grad_states = (grad_states[0] if single else torch.cat(grad_states, dim=1)).to(states.dtype)
        grad_bias = None if bias is None else grad_bias.to(bias.dtype)
        ctx.save_for_backward(grad_states, grad_weight.to(weight.dtype), grad_bias)
        ctx.buffer = None if buffer is None else weight.gradient_buffer
        ctx.mark_non_differentiable(nll)
        return total, nll

    @staticmethod
    def backward(ctx: Any, grad_total: Tensor, _: Tensor):
        grads = ctx.saved_tensors
        if not hasattr(grad_total, "unit_gradient"):
            grads = [None if grad is None else grad * grad_total.to(grad.dtype) for grad in grads]
        elif ctx.buffer is not None:
            ctx.buffer.filled = True
        return *grads, None, None, None, None


def padded_vocab(vocab: int, dtype: torch.dtype, device: torch.device) -> int:
    """The padded number of logit columns: tensor cores are slow for rows that are not a multiple of 16 bytes."""
    aligned = device.type != "cuda" or dtype.itemsize >= 4 or vocab % 8 == 0
    return vocab if aligned else -(-vocab // VOCAB_MULTIPLE) * VOCAB_MULTIPLE


def _chunk_rows(rows: int, passes: int, weight: Tensor) -> int:
    """How many rows to compute logits for at a time."""
    most = MAX_LOGITS.get(weight.device.type, MAX_LOGITS["cpu"]) // len(weight)
    return max(1, -(-rows // max(1, -(-rows * passes // max(1, most)))))


def _teacher_logits(distillation: Distillation, rows: slice, dtype: torch.dtype) -> tuple[Tensor, float]:
    """The logits of all teachers as one ensemble, and their share of the loss."""
    biases = [None if teacher.bias is None else teacher.bias.to(dtype) for teacher in distillation.teachers]
    logits = [
        F.linear(teacher.states[rows].to(dtype), teacher.weight.to(dtype), bias)
        for teacher, bias in zip(distillation.teachers, biases, strict=True)
    ]
    return ensemble_logits(logits), distillation.share


def _matmul(one: Tensor, other: Tensor, dtype: torch.dtype, buffer: Tensor | None) -> Tensor:
    """A matrix product, written to `buffer` if it fits; in float32 if requested and the GPU accumulates in it
    anyway.
    """
    if buffer is not None and buffer.dtype == one.dtype:
        return torch.mm(one, other, out=buffer)
    if one.is_cuda and one.dtype.itemsize < 4 and dtype == torch.float32:
        return torch.mm(one, other, out_dtype=torch.float32)
    return one @ other

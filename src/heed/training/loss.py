"""A loss as sums and a count, so that parts of a batch add up to the whole."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from heed.kernels.gradient_buffers import claim_buffer


class Loss(NamedTuple):
    """`total` is what is made small; `nll` the plain -log p of what was expected, for perplexity."""

    total: Float[Tensor, ""]
    nll: Float[Tensor, ""]
    count: int


def smoothed_cross_entropy(
    logits: Float[Tensor, "n vocab"], expected: Int[Tensor, " n"], smoothing: float
) -> tuple[Loss, Float[Tensor, "n vocab"]]:
    """Cross entropy against (1 - smoothing) on what is expected and the rest spread over the vocabulary.

    (Szegedy et al., 2016.) The log probabilities come along for whoever needs them.
    """
    logp = logits.float().log_softmax(dim=-1) if logits.dtype.itemsize < 4 else logits.log_softmax(dim=-1)
    nll = -logp.gather(1, expected[:, None]).sum()
    total = nll
    if smoothing:
        total = (1 - smoothing) * nll - smoothing * logp.mean(dim=1).sum()
    return Loss(total, nll.detach(), len(expected)), logp


def distillation_loss(
    logits: Float[Tensor, "n vocab"],
    heard: Float[Tensor, "n vocab"],
    expected: Int[Tensor, " n"],
    smoothing: float,
    share: float,
) -> Loss:
    """The same, of which `share` is cross entropy against the probabilities that a teacher's scores `heard` give."""
    own, logp = smoothed_cross_entropy(logits, expected, smoothing)
    from_teacher = -(heard.to(logp.dtype).softmax(dim=-1) * logp).sum()
    return Loss((1 - share) * own.total + share * from_teacher, own.nll, own.count)


def together(scores: Sequence[Float[Tensor, "n vocab"]]) -> Float[Tensor, "n vocab"]:
    """Scores whose softmax is the mean of what each one's says; of one, its own."""
    if len(scores) == 1:
        return scores[0]
    exact = torch.promote_types(scores[0].dtype, torch.float32)
    total = scores[0].to(exact).log_softmax(dim=-1)
    for own in scores[1:]:
        total = torch.logaddexp(total, own.to(exact).log_softmax(dim=-1))
    return total


class TeacherOutput(NamedTuple):
    """What a teacher's last layer is given and made of."""

    states: Float[Tensor, "n width"]
    weight: Float[Tensor, "vocab width"]
    bias: Float[Tensor, " vocab"] | None


class Distillation(NamedTuple):
    """Teachers, and which `share` of the loss is to say what they say together."""

    teachers: Sequence[TeacherOutput]
    share: float


SCORES = {"cuda": 2**30, "cpu": 2**27}  # of the output that are there at one time


def chunked_cross_entropy(
    states: Float[Tensor, "n dim"] | Float[Tensor, "2 n dim"],
    weight: Float[Tensor, "vocab dim"],
    bias: Float[Tensor, " vocab"] | None,
    expected: Int[Tensor, " n"],
    smoothing: float,
    agreement: float = 0.0,
    lesson: Distillation | None = None,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """What `smoothed_cross_entropy` and `distillation_loss` give of the scores `states @ weight.T + bias`, which never exist all at once: the total, and the surprise.

    Of two passes, their mean, and `agreement` / 2 times half of their symmetric divergence (R-Drop). Where less than
    nothing is expected, nothing counts. Gradients are made on the way, part by part.
    """
    kind = states.device.type
    states = states if states.ndim == 3 else states[None]
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else states.dtype
    return _InParts.apply(states, weight, bias, expected, (smoothing, agreement), lesson, dtype)


def unit_gradient(total: Float[Tensor, ""]) -> Float[Tensor, ""]:
    """A gradient of one for `total`, known to be one: whoever is handed it need not multiply by it.

    (To look whether a number on a device is one is to wait for it.)
    """
    one = torch.ones_like(total)
    one.unit_gradient = True
    return one


class _InParts(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, states, weight, bias, expected, rates: tuple[float, float], lesson: Distillation | None, dtype
    ):
        matrix, exact = weight.to(dtype), torch.promote_types(dtype, torch.float32)
        total = nll = torch.zeros((), dtype=exact, device=states.device)
        to_states, to_weight, memory = [], None, claim_buffer(weight)
        to_bias = None if bias is None else torch.zeros(bias.shape, dtype=exact, device=bias.device)
        each = _each(states.shape[1], len(states) + (0 if lesson is None else len(lesson.teachers)), weight)
        alone = each >= states.shape[1]  # else what is added up is rounded and put in its place after that
        for start in range(0, states.shape[1], each):
            rows = states[:, start : start + each].to(dtype).flatten(0, 1)
            scores = F.linear(rows, matrix, None if bias is None else bias.to(dtype)).unflatten(0, (len(states), -1))
            heard = None if lesson is None else _heard(lesson, slice(start, start + each), dtype)
            own, plain, slope = _slopes(scores, expected[start : start + each], *rates, heard)
            total, nll, slope = total + own, nll + plain, slope.flatten(0, 1)
            to_states.append((slope @ matrix).unflatten(0, (len(states), -1)))
            added = _product(slope.T, rows, *((weight.dtype, memory) if alone else (exact, None)))
            to_weight = added if to_weight is None else to_weight.add_(added)
            if bias is not None:
                to_bias += slope.sum(dim=0, dtype=exact)
        if memory is not None and to_weight is not memory:
            to_weight = memory.copy_(to_weight)
        to_states = (to_states[0] if alone else torch.cat(to_states, dim=1)).to(states.dtype)
        ctx.save_for_backward(to_states, to_weight.to(weight.dtype), None if bias is None else to_bias.to(bias.dtype))
        ctx.place = None if memory is None else weight.gradient_buffer
        ctx.mark_non_differentiable(nll)
        return total, nll

    @staticmethod
    def backward(ctx: Any, change: Tensor, _: Tensor):
        found = ctx.saved_tensors
        if not hasattr(change, "unit_gradient"):
            found = [None if part is None else part * change.to(part.dtype) for part in found]
        elif ctx.place is not None:
            ctx.place.filled = True
        return *found, None, None, None, None


def _each(rows: int, passes: int, weight: Tensor) -> int:
    """How many rows of a pass have their scores at one time."""
    most = SCORES.get(weight.device.type, SCORES["cpu"]) // len(weight)
    return -(-rows // max(1, -(-rows * passes // max(1, most))))


def _heard(lesson: Distillation, rows: slice, dtype: torch.dtype) -> tuple[Tensor, float]:
    """The teachers' scores, and their share."""
    biases = [None if own.bias is None else own.bias.to(dtype) for own in lesson.teachers]
    scores = [
        F.linear(own.states[rows].to(dtype), own.weight.to(dtype), bias)
        for own, bias in zip(lesson.teachers, biases, strict=True)
    ]
    return together(scores), lesson.share


def _product(one: Tensor, other: Tensor, dtype: torch.dtype, memory: Tensor | None) -> Tensor:
    """A matrix product: in `memory`, where there is some; or in float32 if asked, where the device sums in it anyway."""
    if memory is not None and memory.dtype == one.dtype:
        return torch.mm(one, other, out=memory)
    if one.is_cuda and one.dtype.itemsize < 4 and dtype == torch.float32:
        return torch.mm(one, other, out_dtype=torch.float32)
    return one @ other


def _slopes(
    scores: Float[Tensor, "passes n vocab"],
    expected: Int[Tensor, " n"],
    smoothing: float,
    agreement: float,
    heard: tuple[Tensor, float] | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Of each row's cross entropy the sum, the plain one, and the gradient to its scores."""
    if scores.is_cuda and scores.dtype.itemsize < 4:
        from heed.kernels.cross_entropy import cross_entropy_gradients

        return cross_entropy_gradients(scores, expected, smoothing, agreement, heard)
    z = scores if scores.dtype == torch.float64 else scores.float()
    due, hits = (expected >= 0).to(z.dtype), expected.clamp(min=0).expand(z.shape[:2])[..., None]
    size = torch.logsumexp(z, dim=-1)
    plain = ((size - z.gather(2, hits)[..., 0]) * due).sum() / len(z)
    even = ((size - z.mean(dim=-1)) * due).sum() / len(z)
    logp = z - size[..., None]
    p = logp.exp()
    sure = torch.full((), smoothing - 1, dtype=z.dtype, device=z.device).expand(hits.shape)
    slope = (p - smoothing / z.shape[-1]).scatter_add(2, hits, sure) / len(z)
    total = (1 - smoothing) * plain + smoothing * even
    if heard is not None:
        q, share = heard[0].to(z.dtype).softmax(dim=-1), heard[1]
        total = (1 - share) * total + share * ((size - (q * z).sum(dim=-1)) * due).sum()
        slope = (1 - share) * slope + share * (p - q)
    if len(z) == 2:
        gap = logp - logp.flip(0)
        apart = (p * gap).sum(dim=-1, keepdim=True)
        total = total + agreement / 4 * (apart[..., 0] * due).sum()
        slope = slope + agreement / 4 * (p * (gap - apart) + p - p.flip(0))
    return total, plain, (slope * due[:, None]).to(scores.dtype)

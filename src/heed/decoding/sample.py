"""Greedy decoding and sampling: one sequence for each source, token by token."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heed.decoding.hypothesis import Hypothesis
from heed.decoding.limits import Rule, apply_rules
from heed.decoding.ranking import Penalty, wu_penalty
from heed.decoding.steps import State, StepModel, Stops
from heed.models.outputs import check_outputs

Choose = Callable[[Tensor, Tensor], Tensor]  # (log-probabilities, the sentence of each row) -> tokens


def greedy(logp: Float[Tensor, "r vocab"], sentence: Int[Tensor, " r"]) -> Int[Tensor, " r"]:
    """The most likely token of each row."""
    if logp.dtype == torch.float32 and logp.device.type == "cpu":
        return torch.from_numpy(logp.numpy().argmax(axis=-1))  # a tenth of the time of torch's
    return logp.argmax(dim=-1)


def random_sampling(
    seeds: Sequence[int],
    *,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    min_p: float = 0.0,
    typical_p: float = 1.0,
) -> Choose:
    """Sample after applying temperature, top_k, top_p, min_p and typical_p, in this order.

    Each sentence has its own random generator, so the other sentences of a batch do not matter.
    """
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]

    def choose(logp: Float[Tensor, "r vocab"], sentence: Int[Tensor, " r"]) -> Int[Tensor, " r"]:
        logp = filter_top_k_top_p((logp.double() / temperature).log_softmax(dim=-1), top_k, top_p)
        logp = filter_typical(filter_min_p(logp, min_p), typical_p)
        uniform = torch.stack(
            [torch.rand(logp.shape[-1], generator=generators[i], dtype=torch.double) for i in sentence.tolist()]
        )
        gumbel = -torch.log(-torch.log(uniform.to(logp.device)))
        return (logp + gumbel).argmax(dim=-1)

    return choose


def filter_top_k_top_p(logp: Float[Tensor, "r vocab"], top_k: int, top_p: float) -> Float[Tensor, "r vocab"]:
    """Set all but the most likely tokens to -inf."""
    if top_k:
        threshold = logp.topk(min(top_k, logp.shape[-1])).values[:, -1:]
        logp = logp.masked_fill(logp < threshold, -torch.inf)
    if top_p < 1:
        ordered, index = logp.softmax(dim=-1).sort(descending=True)
        beyond = ordered.cumsum(dim=-1) - ordered >= top_p  # those before it hold top_p already
        logp = logp.masked_fill(beyond.scatter(1, index, beyond), -torch.inf)
    return logp


def filter_min_p(logp: Float[Tensor, "r vocab"], min_p: float) -> Float[Tensor, "r vocab"]:
    """Set tokens less than `min_p` times as likely as the most likely one to -inf (Nguyen et al., 2024)."""
    if not min_p:
        return logp
    return logp.masked_fill(logp < logp.amax(dim=-1, keepdim=True) + math.log(min_p), -torch.inf)


def filter_typical(logp: Float[Tensor, "r vocab"], mass: float) -> Float[Tensor, "r vocab"]:
    """Keep the tokens whose surprisal is closest to the entropy, with total probability `mass` (Meister et al.,
    2023).
    """
    if mass >= 1:
        return logp
    logp = logp.log_softmax(dim=-1)
    entropy = torch.special.entr(logp.exp()).sum(dim=-1, keepdim=True)
    distance, index = (-logp - entropy).abs().sort(dim=-1)
    held = logp.exp().gather(1, index).cumsum(dim=-1)
    last = (held < mass).sum(dim=-1, keepdim=True).clamp(max=logp.shape[-1] - 1)
    beyond = distance > distance.gather(1, last)  # equal ones stay
    return logp.masked_fill(beyond.scatter(1, index, beyond), -torch.inf)


class Step(NamedTuple):
    """One step of a stepwise search, by row: its sentence, the tokens so far with scores, all next tokens, and
    whether it ends.
    """

    sentence: Int[Tensor, " r"]
    tokens: Int[Tensor, "r t"]
    scores: Float[Tensor, "r t"]
    logp: Float[Tensor, "r vocab"]
    ends: Bool[Tensor, " r"]


def search_steps(  # noqa: PLR0913 (the parts of a search, each by its name)
    model: StepModel,
    state: State,
    longest: Int[Tensor, " b"],
    choose: Choose = greedy,
    *,
    first: int | Tensor,
    last: int,
    rules: Sequence[Rule] = (),
    renormalize: bool = False,
    stops: Stops | None = None,
) -> Iterator[Step]:
    """The steps of a search, on demand. Finished rows leave the batch; `stops` says which end early."""
    device = longest.device
    sentence = torch.arange(len(longest), device=device)
    tokens = torch.zeros(len(longest), 0, dtype=torch.long, device=device)
    scores = torch.zeros(len(longest), 0, device=device)
    previous = torch.as_tensor(first, device=device).expand(len(longest))
    while len(sentence):
        with torch.inference_mode():  # not while others work between two steps
            logp = apply_rules(model.step(previous, state), tokens, sentence, rules, renormalize)
            check_outputs(logp.amax(dim=-1), infinite=True)  # which is NaN if one of them is
            previous = choose(logp, sentence)
            tokens = torch.cat([tokens, previous[:, None]], dim=1)
            scores = torch.cat([scores.to(logp.dtype), logp.gather(1, previous[:, None])], dim=1)
            ends = (previous == last) | (tokens.shape[1] >= longest[sentence])
            ends = ends if stops is None else ends | stops(tokens, sentence)
        yield Step(sentence, tokens, scores, logp, ends)
        if ends.any():
            with torch.inference_mode():
                rows = (~ends).nonzero().flatten()
                sentence, tokens, scores, previous = sentence[rows], tokens[rows], scores[rows], previous[rows]
                if len(rows):
                    state.reorder(rows)


def stepwise_search(
    model: StepModel,
    state: State,
    longest: Int[Tensor, " b"],
    choose: Choose = greedy,
    *,
    alpha: float = 0.6,
    penalty: Penalty = wu_penalty,
    **options: Any,
) -> list[list[Hypothesis]]:
    """One sequence for each row of `state`; `options` are those of `search_steps`."""
    done: list[list[Hypothesis]] = [[] for _ in longest]
    for step in search_steps(model, state, longest, choose, **options):
        if step.ends.any():
            parts = step.sentence, step.tokens, step.scores
            for i, ids, own in zip(*(part[step.ends].tolist() for part in parts), strict=True):
                done[i].append(Hypothesis(ids, sum(own) / penalty(len(ids), alpha), own))
    return done

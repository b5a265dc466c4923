"""Greedy decoding and sampling: one sequence for each source, token by token."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heed.decoding.hypothesis import Hypothesis
from heed.decoding.limits import Rule, apply_rules
from heed.decoding.ranking import Penalty, wu_penalty
from heed.decoding.steps import State, StepModel, Stops
from heed.models.outputs import check_outputs

Choose = Callable[[Tensor, Sequence[int]], Tensor]  # (log-probabilities, the sentence of each row) -> tokens


def greedy(logp: Float[Tensor, "r vocab"], sentence: Sequence[int]) -> Int[Tensor, " r"]:
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

    def choose(logp: Float[Tensor, "r vocab"], sentence: Sequence[int]) -> Int[Tensor, " r"]:
        logp = filter_top_k_top_p((logp.double() / temperature).log_softmax(dim=-1), top_k, top_p)
        logp = filter_typical(filter_min_p(logp, min_p), typical_p)
        uniform = torch.stack(
            [torch.rand(logp.shape[-1], generator=generators[i], dtype=torch.double) for i in sentence]
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
    """One step of a stepwise search. By row: its sentence, the tokens so far with scores, whether it ends, and the
    log-probabilities of all next tokens. The next step extends the lists of tokens and scores.
    """

    sentence: list[int]
    tokens: list[list[int]]
    scores: list[list[float]]
    ends: list[bool]
    logp: Float[Tensor, "r vocab"]


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
    """The steps of a search, on demand. Finished rows leave the batch; `stops` says which end early.

    A step of a language model evicts everything from the CPU's caches, so each operator of torch here takes 0.1 ms.
    """
    device, most = longest.device, longest.tolist()
    sentence, rows = list(range(len(most))), torch.arange(len(most), device=device)
    words: list[list[int]] = [[] for _ in most]
    scores: list[list[float]] = [[] for _ in most]
    tokens = torch.zeros(len(most), 0, dtype=torch.long, device=device)
    previous = torch.as_tensor(first, device=device).expand(len(most))
    while sentence:
        with torch.inference_mode():  # not while others work between two steps
            logp = apply_rules(model.step(previous, state), tokens, rows, rules, renormalize)
            previous = choose(logp, sentence)
            for own, token in zip(words, previous.tolist(), strict=True):
                own.append(token)
            for own, score in zip(scores, logp.gather(1, previous[:, None]).flatten().tolist(), strict=True):
                own.append(score)
            if not all(math.isfinite(own[-1]) for own in scores):  # one NaN makes its whole row NaN
                check_outputs(logp.amax(dim=-1), infinite=True)
            tokens = torch.cat([tokens, previous[:, None]], dim=1)
            pairs = zip(words, sentence, strict=True)
            ends = [own[-1] == last or len(own) >= most[i] for own, i in pairs]
            if stops is not None:
                ends = [a or b for a, b in zip(ends, stops(tokens, rows).tolist(), strict=True)]
        yield Step(sentence, words, scores, ends, logp)
        if any(ends):
            left = [i for i, end in enumerate(ends) if not end]
            sentence, words, scores = ([own[i] for i in left] for own in (sentence, words, scores))
            if left:
                with torch.inference_mode():
                    kept = torch.tensor(left, device=device)
                    rows, tokens, previous = rows[kept], tokens[kept], previous[kept]
                    state.reorder(kept)


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
        for i, ids, own, ended in zip(*step[:4], strict=True):
            if ended:
                done[i].append(Hypothesis(ids, sum(own) / penalty(len(ids), alpha), own))
    return done

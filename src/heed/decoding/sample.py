"""One token after another, each chosen for good: the likeliest (greedy), or one drawn by chance."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heed.decoding.limits import Rule, ruled
from heed.decoding.ranking import Penalty, wu
from heed.decoding.steps import Hypothesis, State, Steps

Choose = Callable[[Tensor, Tensor], Tensor]  # (log probabilities, which sentences they are of) -> tokens


def likeliest(logp: Float[Tensor, "r vocab"], sentence: Int[Tensor, " r"]) -> Int[Tensor, " r"]:
    """Greedy search."""
    return logp.argmax(dim=-1)


def drawn(seeds: Sequence[int], *, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0) -> Choose:
    """By chance, from the `top_k` likeliest and the fewest that hold `top_p` of the probability.

    Each sentence has its own stream of chance: what shares a batch with it does not matter.
    """
    chance = [torch.Generator().manual_seed(seed) for seed in seeds]

    def choose(logp: Float[Tensor, "r vocab"], sentence: Int[Tensor, " r"]) -> Int[Tensor, " r"]:
        logp = trimmed((logp.double() / temperature).log_softmax(dim=-1), top_k, top_p)
        luck = torch.stack(
            [torch.rand(logp.shape[-1], generator=chance[i], dtype=torch.double) for i in sentence.tolist()]
        )
        gumbel = -torch.log(-torch.log(luck.to(logp.device)))
        return (logp + gumbel).argmax(dim=-1)

    return choose


def trimmed(logp: Float[Tensor, "r vocab"], top_k: int, top_p: float) -> Float[Tensor, "r vocab"]:
    """All but the likeliest tokens made impossible."""
    if top_k:
        least = logp.topk(min(top_k, logp.shape[-1])).values[:, -1:]
        logp = logp.masked_fill(logp < least, -torch.inf)
    if top_p < 1:
        ordered, place = logp.softmax(dim=-1).sort(descending=True)
        beyond = ordered.cumsum(dim=-1) - ordered >= top_p  # what is before it holds top_p already
        logp = logp.masked_fill(beyond.scatter(1, place, beyond), -torch.inf)
    return logp


@torch.inference_mode()
def one_by_one(  # noqa: PLR0913 (the parts of a search, each by its name)
    model: Steps,
    state: State,
    longest: Int[Tensor, " b"],
    choose: Choose = likeliest,
    *,
    first: int,
    last: int,
    alpha: float = 0.6,
    penalty: Penalty = wu,
    rules: Sequence[Rule] = (),
    renormalize: bool = False,
) -> list[list[Hypothesis]]:
    """One sequence for each row of `state`. Rows that have ended leave the batch."""
    device = longest.device
    done: list[list[Hypothesis]] = [[] for _ in longest]
    sentence = torch.arange(len(longest), device=device)
    tokens = torch.zeros(len(longest), 0, dtype=torch.long, device=device)
    scores = torch.zeros(len(longest), 0, device=device)
    said = torch.full((len(longest),), first, device=device)
    while len(sentence):
        logp = ruled(model.step(said, state), tokens, sentence, rules, renormalize)
        said = choose(logp, sentence)
        tokens = torch.cat([tokens, said[:, None]], dim=1)
        scores = torch.cat([scores.to(logp.dtype), logp.gather(1, said[:, None])], dim=1)
        ends = (said == last) | (tokens.shape[1] >= longest[sentence])
        if ends.any():
            for i, ids, parts in zip(
                sentence[ends].tolist(), tokens[ends].tolist(), scores[ends].tolist(), strict=True
            ):
                done[i].append(Hypothesis(ids, sum(parts) / penalty(len(ids), alpha), parts))
            rows = (~ends).nonzero().flatten()
            sentence, tokens, scores, said = sentence[rows], tokens[rows], scores[rows], said[rows]
            if len(rows):
                state.reorder(rows)
    return done

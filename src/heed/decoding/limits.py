"""What a search may not say next. A rule marks tokens in a table of what is banned, (rows, vocab).

It is told which sentence of the batch each row belongs to and what the row has said so far. It may answer in which rows
the one token that it leaves is certain: that one is said at no cost.
"""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

Rule = Callable[[Tensor, Tensor, Tensor], Tensor | None]


def ruled(
    logits: Float[Tensor, "r vocab"],
    said: Int[Tensor, "r t"],
    sentence: Int[Tensor, " r"],
    rules: Sequence[Rule],
    renormalize: bool = False,
) -> Float[Tensor, "r vocab"]:
    """The log probability of each next token under rules; `renormalize` shares what is banned among the rest."""
    logp = logits.log_softmax(dim=-1)
    if not rules:
        return logp
    banned = torch.zeros_like(logp, dtype=torch.bool)
    certain = torch.zeros_like(banned[:, 0])
    for rule in rules:
        answer = rule(banned, said, sentence)
        if answer is not None:
            certain = certain | answer
    if renormalize:
        logp = logp.masked_fill(banned, -torch.inf).log_softmax(dim=-1)
    return logp.masked_fill(certain[:, None], 0.0).masked_fill(banned, -torch.inf)


def never(tokens: Sequence[int]) -> Rule:
    """These tokens at no time."""

    def rule(banned: Bool[Tensor, "r vocab"], said: Int[Tensor, "r t"], sentence: Int[Tensor, " r"]) -> None:
        banned[:, list(tokens)] = True

    return rule


def never_runs(runs: Sequence[Sequence[int]]) -> Rule:
    """None of these runs of tokens."""

    def rule(banned: Bool[Tensor, "r vocab"], said: Int[Tensor, "r t"], sentence: Int[Tensor, " r"]) -> None:
        for *start, end in runs:
            if len(start) <= said.shape[1]:
                tail = said[:, said.shape[1] - len(start) :]
                banned[:, end] |= (tail == tail.new_tensor(start)).all(dim=1)

    return rule


def among(lists: Bool[Tensor, "b vocab"]) -> Rule:
    """Sentence i says nothing but what is on its list."""

    def rule(banned: Bool[Tensor, "r vocab"], said: Int[Tensor, "r t"], sentence: Int[Tensor, " r"]) -> None:
        banned |= ~lists[sentence]

    return rule


def at_least(length: int, last: int) -> Rule:
    """No end before so many tokens."""

    def rule(banned: Bool[Tensor, "r vocab"], said: Int[Tensor, "r t"], sentence: Int[Tensor, " r"]) -> None:
        if said.shape[1] < length:
            banned[:, last] = True

    return rule


def no_repeat(n: int) -> Rule:
    """No run of n tokens twice."""

    def rule(banned: Bool[Tensor, "r vocab"], said: Int[Tensor, "r t"], sentence: Int[Tensor, " r"]) -> None:
        if said.shape[1] < n:
            return
        runs = said.unfold(1, n, 1)
        tail = said[:, said.shape[1] - n + 1 :]
        again = (runs[:, :, :-1] == tail[:, None]).all(dim=-1)
        row, run = again.nonzero(as_tuple=True)
        banned[row, runs[row, run, -1]] = True

    return rule


def prefix(forced: Sequence[Sequence[int]]) -> Rule:
    """Sentence i must begin with `forced[i]`, whatever other rules say: give this one last."""

    def rule(banned: Bool[Tensor, "r vocab"], said: Int[Tensor, "r t"], sentence: Int[Tensor, " r"]) -> None:
        place = said.shape[1]
        for row, i in enumerate(sentence.tolist()):
            if place < len(forced[i]):
                banned[row] = True
                banned[row, forced[i][place]] = False

    return rule


def begins(tokens: Sequence[int]) -> Rule:
    """Every sequence begins with these, at no cost: give this one after all but `ends`."""

    def rule(banned: Bool[Tensor, "r vocab"], said: Int[Tensor, "r t"], sentence: Int[Tensor, " r"]) -> Tensor | None:
        if (place := said.shape[1]) < len(tokens):
            return _only(tokens[place], torch.ones_like(banned[:, 0]), banned)
        return None

    return rule


def ends(longest: Int[Tensor, " b"], last: int) -> Rule:
    """What is as long as its sentence allows ends there, at no cost: give this one last."""

    def rule(banned: Bool[Tensor, "r vocab"], said: Int[Tensor, "r t"], sentence: Int[Tensor, " r"]) -> Tensor:
        return _only(last, said.shape[1] + 1 >= longest[sentence], banned)

    return rule


def _only(token: int, rows: Bool[Tensor, " r"], banned: Bool[Tensor, "r vocab"]) -> Bool[Tensor, " r"]:
    """Ban all else in these rows."""
    banned |= rows[:, None]
    banned[:, token] &= ~rows
    return rows

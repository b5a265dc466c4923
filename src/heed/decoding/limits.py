"""What a search may not say next. A rule marks tokens in a table of what is banned, (rows, vocab).

It is told which sentence of the batch each row belongs to and what the row has said so far.
"""

from collections.abc import Callable, Sequence

from jaxtyping import Bool, Int
from torch import Tensor

Rule = Callable[[Tensor, Tensor, Tensor], None]


def never(tokens: Sequence[int]) -> Rule:
    """These tokens at no time."""

    def rule(banned: Bool[Tensor, "r vocab"], said: Int[Tensor, "r t"], sentence: Int[Tensor, " r"]) -> None:
        banned[:, list(tokens)] = True

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

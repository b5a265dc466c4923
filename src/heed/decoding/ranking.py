"""Which sequence is the best, and when a search has found it: two parts of a search.

Wu's penalty and `exact` are Heed's own way. `power` with `exact`, `heuristic` or `first` is what transformers does when
its `early_stopping` is "never", False or True; CTranslate2 does `power` with `first`, and renormalizes.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

Penalty = Callable[[int, float], float]


def wu(length: int, alpha: float) -> float:
    """((5 + length) / 6)^alpha, by which log probabilities are divided (Wu et al., 2016)."""
    return ((5 + length) / 6) ** alpha


def power(length: int, alpha: float) -> float:
    """length^alpha, the end mark counted and what a decoder is given first not."""
    return length**alpha


PENALTIES: dict[str, Penalty] = {"wu": wu, "length": power}


class Standing(NamedTuple):
    """How the search for one sentence stands. `found` are scores, best first; `live` is the log probability of the best
    unfinished sequence, all of which have `length` tokens now and may have `longest`.
    """

    found: Sequence[float]
    live: float
    length: int
    longest: int
    beams: int
    nbest: int
    penalty: Callable[[int], float]


Stop = Callable[[Standing], bool]


def exact(now: Standing) -> bool:
    """Done when no unfinished sequence can still come among the `nbest`.

    Log probabilities only fall, so none can score more than its own over the largest penalty it may meet.
    """
    if len(now.found) < now.nbest:
        return False
    return now.found[now.nbest - 1] >= now.live / max(now.penalty(now.length), now.penalty(now.longest))


def heuristic(now: Standing) -> bool:
    """Done when `beams` are found, and the best unfinished one would not be among them if it ended here."""
    return len(now.found) >= now.beams and now.found[now.beams - 1] >= now.live / now.penalty(now.length)


def first(now: Standing) -> bool:
    """Done as soon as `beams` are found."""
    return len(now.found) >= now.beams


STOPPING: dict[str, Stop] = {"exact": exact, "heuristic": heuristic, "first": first}

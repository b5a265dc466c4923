"""How sequences are ranked (the length penalty), and when a search stops.

The defaults are Wu's penalty and exact stopping. `length_power` with `stop_exact`, `stop_heuristic` or `stop_first` is
what transformers does with `early_stopping` "never", False or True; CTranslate2 uses `length_power` with `stop_first`,
and renormalizes.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

Penalty = Callable[[int, float], float]


def wu_penalty(length: int, alpha: float) -> float:
    """((5 + length) / 6)^alpha, by which log-probabilities are divided (Wu et al., 2016)."""
    return ((5 + length) / 6) ** alpha


def length_power(length: int, alpha: float) -> float:
    """length^alpha; the length includes the end token, but not the decoder's first input."""
    return length**alpha


PENALTIES: dict[str, Penalty] = {"wu": wu_penalty, "length": length_power}


class SearchStatus(NamedTuple):
    """The state of the search for one sentence. `finished` are scores, best first; `live` is the log-probability of the
    best unfinished sequence. All of these have `length` tokens now and may have `longest`.
    """

    finished: Sequence[float]
    live: float
    length: int
    longest: int
    beams: int
    nbest: int
    penalty: Callable[[int], float]


Stop = Callable[[SearchStatus], bool]


def stop_exact(status: SearchStatus) -> bool:
    """Stop when no unfinished sequence can still become one of the `nbest`.

    Log-probabilities only fall, so no sequence can score more than its present one over the largest penalty it may meet.
    """
    if len(status.finished) < status.nbest:
        return False
    bound = status.live / max(status.penalty(status.length), status.penalty(status.longest))
    return status.finished[status.nbest - 1] >= bound


def stop_heuristic(status: SearchStatus) -> bool:
    """Stop when `beams` are finished, and the best unfinished sequence would not be among them if it ended now."""
    if len(status.finished) < status.beams:
        return False
    return status.finished[status.beams - 1] >= status.live / status.penalty(status.length)


def stop_first(status: SearchStatus) -> bool:
    """Stop as soon as `beams` are finished."""
    return len(status.finished) >= status.beams


STOPPING: dict[str, Stop] = {"exact": stop_exact, "heuristic": stop_heuristic, "first": stop_first}

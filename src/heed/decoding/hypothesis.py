"""The result of a search. Nothing here needs torch."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from heed.models.outputs import NOT_FINITE


class Hypothesis(NamedTuple):
    """Tokens, with the end token if it was reached; `scores` are their log-probabilities, None if they were not kept."""

    tokens: list[int]
    score: float
    scores: list[float] | None


def check_found(found: Sequence[Sequence[Hypothesis]]) -> None:
    """Refuse the results of a search by a library if a sequence has no score that is a number."""
    if any(not nbest or math.isnan(nbest[0].score) for nbest in found):
        raise ValueError(NOT_FINITE)

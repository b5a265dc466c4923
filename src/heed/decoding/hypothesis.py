"""The result of a search. Nothing here needs torch."""

from typing import NamedTuple


class Hypothesis(NamedTuple):
    """Tokens, with the end token if it was reached; `scores` are their log-probabilities, None if they were not kept."""

    tokens: list[int]
    score: float
    scores: list[float] | None

"""Token scores that a search has not kept."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from heed.data.batching import by_length
from heed.decoding.steps import Hypothesis

if TYPE_CHECKING:
    from heed.products.translator.translator import Translator

Scores = list[float] | Callable[[], list[float]]


class Later:
    """The log probabilities of tokens, computed when some are asked for: those of one batch at once."""

    def __init__(self, translator: "Translator", pairs: Sequence[tuple[list[int], list[int]]], batch_tokens: int):
        self.translator, self.pairs, self.batch_tokens = translator, pairs, batch_tokens
        self.known: dict[int, list[float]] = {}

    def of(self, number: int) -> list[float]:
        """Of pair number so-and-so; what a text is made to begin with was said at no cost."""
        if number not in self.known:
            sizes = [len(source) + len(said) + 1 for source, said in self.pairs]
            rows = next(rows for rows in by_length(sizes, max(1, self.batch_tokens)) if number in rows)
            own = [(source, self.translator.stripped(said)[0]) for source, said in (self.pairs[row] for row in rows)]
            free = len(self.translator.marks[1].before)
            for row, scores in zip(rows, self.translator.forced_scores(own), strict=True):
                self.known[row] = [0.0] * free + scores[free : len(self.pairs[row][1])]
        return self.known[number]


def scores(
    translator: "Translator", ids: list[list[int]], found: list[list[Hypothesis]], batch_tokens: int
) -> list[list[Scores]]:
    """Of each hypothesis the scores that were kept, or what computes them."""
    places = [(row, k) for row, own in enumerate(found) for k, h in enumerate(own) if h.scores is None]
    later = Later(translator, [(ids[row], found[row][k].tokens) for row, k in places], batch_tokens)
    numbers = {place: number for number, place in enumerate(places)}
    return [
        [partial(later.of, numbers[row, k]) if h.scores is None else h.scores for k, h in enumerate(own)]
        for row, own in enumerate(found)
    ]

"""Token scores that a search did not keep, computed on first use."""

from collections.abc import Callable, Sequence
from functools import partial

from heed.data.batching import by_length
from heed.products.translator.model_bundle import Hypotheses, IdPair, ModelBundle, Sentences

Scores = list[float] | Callable[[], list[float]]


class LazyScores:
    """Token log probabilities of (source, translation) pairs; accessing one computes its whole batch."""

    def __init__(self, bundle: ModelBundle, pairs: Sequence[IdPair], batch_tokens: int):
        self.bundle, self.pairs, self.batch_tokens = bundle, pairs, batch_tokens
        self.computed: dict[int, list[float]] = {}

    def of(self, number: int) -> list[float]:
        """The scores of one pair; forced start tokens cost nothing."""
        if number not in self.computed:
            sizes = [len(source) + len(target) + 1 for source, target in self.pairs]
            rows = next(rows for rows in by_length(sizes, max(1, self.batch_tokens)) if number in rows)
            batch = [(source, self.bundle.strip(target)[0]) for source, target in (self.pairs[row] for row in rows)]
            forced = len(self.bundle.special[1].before)
            for row, scores in zip(rows, self.bundle.token_logprobs(batch), strict=True):
                self.computed[row] = [0.0] * forced + scores[forced : len(self.pairs[row][1])]
        return self.computed[number]


def token_scores(
    bundle: ModelBundle, sources: Sentences, found: Hypotheses, batch_tokens: int
) -> Sequence[list[Scores] | None]:
    """For each source None if the search kept the scores of its hypotheses; else these, or functions that compute them."""
    unscored = [(row, k) for row, nbest in enumerate(found) for k, h in enumerate(nbest) if h.scores is None]
    if not unscored:
        return [None] * len(found)
    lazy = LazyScores(bundle, [(sources[row], found[row][k].tokens) for row, k in unscored], batch_tokens)
    numbers = {at: number for number, at in enumerate(unscored)}
    return [
        [partial(lazy.of, numbers[row, k]) if h.scores is None else h.scores for k, h in enumerate(nbest)]
        for row, nbest in enumerate(found)
    ]

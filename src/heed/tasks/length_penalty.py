"""Which length penalty translates the validation set best: the hypotheses of one beam search, ranked by each."""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import nn

from heed.data.batching import by_length
from heed.decoding.config import DecodingConfig
from heed.decoding.ranking import PENALTIES
from heed.decoding.steps import Hypothesis
from heed.evaluation.translation import metrics
from heed.products.translator.model_bundle import ModelBundle
from heed.tasks.validation import sample_rows
from heed.vocabularies.vocabulary import Pair

ALPHAS = (0.6, 0.8, 1.0, 1.2, 1.4)
GAIN = 0.2  # points of BLEU from which another penalty is taken: less may be chance

Texts = Sequence[tuple[str, str]]  # sources and references


class LengthPenalty(NamedTuple):
    """A choice of alpha, by BLEU on `sentences`; `scores` are those of each alpha that was tried."""

    alpha: float
    before: float
    scores: dict[float, float]
    sentences: int

    def describe(self) -> str:
        own, old = self.scores[self.alpha], self.scores[self.before]
        where = f"on {self.sentences:,} validation sentences with a beam"
        if self.alpha == self.before:
            return f"The length penalty stays {self.alpha:g}: {where}, none of {min(self.scores):g} to {max(self.scores):g} is clearly better (BLEU {own:.2f})."
        return f"The length penalty is {self.alpha:g}: {where}, BLEU {own:.2f}; {old:.2f} with {self.before:g}."


def choose(
    model: nn.Module, sets: Sequence[tuple[Pair, Texts]], search: DecodingConfig, sentences: int, batch_tokens: int
) -> LengthPenalty | None:
    """The best alpha for a model on at most so many sentences of `sets`, one of each direction; None if there is no beam to rank."""
    if search.beam == 1 or search.sample:
        return None
    alphas, count = sorted({*ALPHAS, search.length_penalty}), 0
    scores = dict.fromkeys(alphas, 0.0)
    bleu = metrics(False, "13a")[0]
    for vocabularies, texts in sets:
        few = [texts[row] for row in sample_rows(len(texts), max(1, sentences // len(sets)))]
        found, references = hypotheses(model, vocabularies, few, search, batch_tokens)
        count += len(found)
        for alpha in alphas:
            outputs = [vocabularies[1].decode(rank(own, search, alpha).tokens) for own in found]
            scores[alpha] += (bleu.corpus_score(outputs, [references]).score if found else 0.0) / len(sets)
    best = max(alphas, key=lambda alpha: (scores[alpha], -abs(alpha - search.length_penalty)))
    enough = scores[best] >= scores[search.length_penalty] + GAIN
    return LengthPenalty(best if enough else search.length_penalty, search.length_penalty, scores, count)


@torch.inference_mode()
def hypotheses(
    model: nn.Module, vocabularies: Pair, texts: Texts, search: DecodingConfig, batch_tokens: int
) -> tuple[list[list[Hypothesis]], list[str]]:
    """All that a beam search found for each source, and the references; sources that the model has no positions for are left out."""
    bundle = ModelBundle([model.eval()], vocabularies)
    ids = vocabularies[0].encode([source for source, _ in texts])
    kept = [row for row, own in enumerate(ids) if 0 < len(own) < bundle.max_length]
    wide = dataclasses.replace(
        search, nbest=search.beam, stopping="heuristic"
    )  # exact stopping is slow for all of a beam
    found: dict[int, list[Hypothesis]] = {}
    for rows in by_length([len(ids[row]) + 1 for row in kept], max(1, batch_tokens // search.beam)):
        batch = [kept[row] for row in rows]
        found.update(zip(batch, bundle.search([ids[row] for row in batch], wide), strict=True))
    return [found[row] for row in kept], [texts[row][1] for row in kept]


def rank(found: Sequence[Hypothesis], search: DecodingConfig, alpha: float) -> Hypothesis:
    """The best hypothesis of a search, had its length penalty been `alpha`."""
    penalty = PENALTIES[search.penalty]

    def score(one: Hypothesis) -> float:
        size = len(one.tokens)
        return one.score * penalty(size, search.length_penalty) / penalty(size, alpha)

    return max(found, key=score)

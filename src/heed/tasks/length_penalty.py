"""Tuning of the length penalty on the validation set: one beam search, ranked with each, and one more to confirm."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import nn

from heed.decoding.config import DecodingConfig
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.ranking import PENALTIES
from heed.evaluation.translation import metrics
from heed.products.translator.engines.validation import EngineMaker, only_torch
from heed.products.translator.model_bundle import ModelBundle
from heed.tasks.validation import sample_rows
from heed.vocabularies.vocabulary import Pair

ALPHAS = (0.6, 0.8, 1.0, 1.2, 1.4)
TRIED = 16  # sentences whose search is timed, where time is short
FEWEST = 50  # sentences: BLEU of fewer says little
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
            return f"Length penalty kept at {self.alpha:g}: {where}, none of {min(self.scores):g} to {max(self.scores):g} is clearly better (BLEU {own:.2f})."
        return f"Length penalty set to {self.alpha:g}: {where}, BLEU {own:.2f}; {old:.2f} with {self.before:g}."


def choose(
    model: nn.Module,
    sets: Sequence[tuple[Pair, Texts]],
    search: DecodingConfig,
    sentences: int,
    batch_tokens: int,
    engines: EngineMaker = only_torch,
) -> LengthPenalty | None:
    """The best alpha for a model on at most this many sentences of `sets`, one per direction; None if there is no
    beam to rank. Reranking one beam is cheap, but a search with a higher penalty may find worse, longer hypotheses:
    so the nearest alpha that promises a gain must confirm it in a search.
    """
    if search.beam == 1 or search.sample:
        return None
    few = [
        (pair, [texts[row] for row in sample_rows(len(texts), max(1, sentences // len(sets)))]) for pair, texts in sets
    ]

    def bleu(config: DecodingConfig, alphas: Sequence[float]) -> dict[float, float]:
        """The BLEU of each alpha by reranking one search, averaged over all sets."""
        found = [(pair, *hypotheses(model, pair, texts, config, batch_tokens, engines)) for pair, texts in few]
        return {alpha: sum(_bleu(*own, config, alpha) for own in found) / len(found) for alpha in alphas}

    before = search.length_penalty
    wide = replace(search, nbest=search.beam, stopping="heuristic")  # exact stopping is slow for all of a beam
    scores = bleu(wide, sorted({*ALPHAS, before}))
    count = sum(len(texts) for _, texts in few)
    promising = [alpha for alpha in scores if scores[alpha] >= scores[before] + GAIN]
    if promising:
        alpha = min(promising, key=lambda one: abs(one - before))
        kept = bleu(replace(search, nbest=1, length_penalty=alpha), [alpha])[alpha]
        if kept >= scores[before] + GAIN:
            return LengthPenalty(alpha, before, {**scores, alpha: kept}, count)
    return LengthPenalty(before, before, scores, count)


def affordable(
    model: nn.Module,
    sets: Sequence[tuple[Pair, Texts]],
    search: DecodingConfig,
    sentences: int,
    batch_tokens: int,
    engines: EngineMaker,
    seconds: float,
    clock: Callable[[], float] = time.monotonic,
) -> int:
    """How many of these sentences `choose` can search twice in this time, as measured on a few of them; 0 if they are
    too few to choose by.
    """
    few, began = max(1, min(sentences, TRIED) // len(sets)), clock()
    if seconds <= 0:
        return 0
    wide = replace(search, nbest=search.beam, stopping="heuristic")
    for pair, texts in sets:
        hypotheses(model, pair, [texts[row] for row in sample_rows(len(texts), few)], wide, batch_tokens, engines)
    took = clock() - began
    count = int((seconds - took) / (2 * max(took, 1e-9) / (few * len(sets))))
    return 0 if count < min(sentences, FEWEST) else min(sentences, count)


def _bleu(
    pair: Pair, found: Sequence[Sequence[Hypothesis]], references: list[str], search: DecodingConfig, alpha: float
) -> float:
    outputs = [pair[1].decode(rank(own, search, alpha).tokens) for own in found]
    return metrics(False, "13a")[0].corpus_score(outputs, [references]).score if outputs else 0.0


@torch.inference_mode()
def hypotheses(
    model: nn.Module,
    vocabularies: Pair,
    texts: Texts,
    search: DecodingConfig,
    batch_tokens: int,
    engines: EngineMaker = only_torch,
) -> tuple[list[list[Hypothesis]], list[str]]:
    """The hypotheses of a beam search for each source, and the references; sources too long for the model are
    skipped.
    """
    bundle = ModelBundle([model.eval()], vocabularies)
    ids = vocabularies[0].encode([source for source, _ in texts])
    kept = [row for row, own in enumerate(ids) if 0 < len(own) < bundle.max_length]
    sources, prefixes = [ids[row] for row in kept], [[] for _ in kept]
    engine = next(own for own in engines(bundle) if own.takes(search, prefixes))
    found = engine.search(sources, search, prefixes, max(1, batch_tokens // search.beam))
    return found, [texts[row][1] for row in kept]


def rank(found: Sequence[Hypothesis], search: DecodingConfig, alpha: float) -> Hypothesis:
    """The best hypothesis of a search with another length penalty, `alpha`."""
    penalty = PENALTIES[search.penalty]

    def score(one: Hypothesis) -> float:
        size = len(one.tokens)
        return one.score * penalty(size, search.length_penalty) / penalty(size, alpha)

    return max(found, key=score)

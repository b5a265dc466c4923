"""Source attribution (Keskar et al., 2019): the most likely control code of a text."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import nn

from heed.data.batching import plan
from heed.data.documents import DocumentBatches, Pieces, cut_documents
from heed.data.streams import join_lines
from heed.evaluation.perplexity import BATCH, independent_nll
from heed.vocabularies.codes import code_id, codes_of
from heed.vocabularies.vocabulary import Vocabulary


@dataclass(frozen=True)
class Attribution:
    """The most likely control code of a text; `logp` is log p(text | code) by code."""

    text: str
    code: str
    logp: dict[str, float]

    @property
    def probability(self) -> dict[str, float]:
        """p(code | text) if all codes are equally frequent."""
        best = max(self.logp.values())
        odds = {code: math.exp(logp - best) for code, logp in self.logp.items()}
        return {code: own / sum(odds.values()) for code, own in odds.items()}


def attribute(
    model: nn.Module, vocabulary: Vocabulary, texts: Sequence[str], window: int, codes: Sequence[str] = ()
) -> list[Attribution]:
    """Score each text under each code; longer texts are split into windows that each begin with the code."""
    known = codes_of(vocabulary)
    if not known:
        raise ValueError("the model has no control codes, so it cannot attribute a text")
    lines = [join_lines(vocabulary.encode(text.split("\n")), vocabulary.special.last) for text in texts]
    if not lines:
        return []
    ids, starts = np.concatenate(lines), np.cumsum([0, *map(len, lines)])[:-1]
    scores: dict[str, np.ndarray] = {}
    for code in codes or known:
        before = [code_id(vocabulary, code)]
        pieces = cut_documents(ids, starts, np.zeros_like(starts), window, vocabulary.special.last, before)
        scores[code] = -_totals(model, ids, pieces, starts, vocabulary.special.pad)
    found = []
    for i, text in enumerate(texts):
        logp = {code: float(own[i]) for code, own in scores.items()}
        found.append(Attribution(text, max(logp, key=logp.get), logp))
    return found


def _totals(model: nn.Module, ids: np.ndarray, pieces: Pieces, starts: np.ndarray, pad: int) -> np.ndarray:
    """-log p of each text; `starts` are their beginnings."""
    owner = np.searchsorted(starts, pieces.starts, side="right") - 1
    batches = DocumentBatches(ids, pieces, budget=BATCH, pad=pad, grouping=plan)
    planned, totals = batches.plan(0), np.zeros(len(starts))
    for rows, nll in zip(planned, independent_nll(model, map(batches.make, planned)), strict=True):
        np.add.at(totals, np.repeat(owner[rows], pieces.lengths[rows]), nll.double().cpu().numpy())
    return totals

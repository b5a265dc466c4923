"""Scores of answers as SQuAD's official script computes them (Rajpurkar et al., 2016 and 2018)."""

import re
import string
from collections import Counter
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

_ARTICLES, _PUNCTUATION = re.compile(r"\b(a|an|the)\b", re.UNICODE), set(string.punctuation)


def normalize(text: str) -> str:
    """Lower case, without punctuation, articles and white space that says nothing."""
    bare = "".join(char for char in text.lower() if char not in _PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def exact_match(found: str, expected: str) -> float:
    return float(normalize(found) == normalize(expected))


def word_f1(found: str, expected: str) -> float:
    """F1 of the words that two answers share; of no words at all, whether both have none."""
    ours, theirs = normalize(found).split(), normalize(expected).split()
    if not ours or not theirs:
        return float(ours == theirs)
    shared = sum((Counter(ours) & Counter(theirs)).values())
    return 2 * shared / (len(ours) + len(theirs))


def answer_scores(found: Sequence[str], expected: Sequence[Sequence[str]]) -> Float[np.ndarray, "n 2"]:
    """Exact match and F1 of each answer, against the expected one that fits best. No expected answer: none is right."""
    rows = []
    for text, own in zip(found, expected, strict=True):
        right = [answer for answer in own if normalize(answer)] or [""]
        rows.append([max(score(text, answer) for answer in right) for score in (exact_match, word_f1)])
    return np.array(rows).reshape(-1, 2)


def measure(scores: Float[np.ndarray, "n 2"], answerable: Bool[np.ndarray, " n"]) -> dict[str, float]:
    """The means in per cent; where some questions have no answer, also of both kinds by themselves."""
    found = _means(scores, "")
    if not answerable.all():
        found |= _means(scores[answerable], "_HasAns") | _means(scores[~answerable], "_NoAns")
    return found


def measure_both(scores: Float[np.ndarray, "n 2"], answerable: Bool[np.ndarray, " n"]) -> dict[str, float]:
    """The same with both kinds by themselves, also where a sample of the bootstrap has only one."""
    return _means(scores, "") | _means(scores[answerable], "_HasAns") | _means(scores[~answerable], "_NoAns")


def _means(scores: Float[np.ndarray, "n 2"], kind: str) -> dict[str, float]:
    values = 100 * scores.mean(axis=0) if len(scores) else np.zeros(2)
    return {f"{name}{kind}": float(value) for name, value in zip(("exact", "f1"), values, strict=True)}


def best_threshold(
    differences: Float[np.ndarray, " n"],
    f1: Float[np.ndarray, " n"],
    answerable: Bool[np.ndarray, " n"],
    written: Bool[np.ndarray, " n"],
) -> float:
    """The threshold with the best F1: above it, the score of no answer minus that of the best one means that there is none.

    `f1` are of the best answers, `written` whether they have any text. Of several thresholds it is halfway to the next.
    """
    order = np.argsort(differences, kind="stable")
    gains = np.where(answerable, f1, -written.astype(float))[order]
    totals = np.concatenate([[0.0], gains.cumsum()])  # of answering the questions with the least differences
    values = differences[order]
    ends = (
        np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1], [True]])) if len(values) else np.zeros(1, int)
    )
    best = int(ends[totals[ends].argmax()])
    if not len(values):
        return 0.0
    if best == 0:
        return float(values[0]) - 1
    return float(values[best - 1] + values[best]) / 2 if best < len(values) else float(values[-1]) + 1

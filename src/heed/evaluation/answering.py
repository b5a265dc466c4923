"""Answer scores as in SQuAD's official script (Rajpurkar et al., 2016 and 2018)."""

import re
import string
from collections import Counter
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

_ARTICLES, _PUNCTUATION = re.compile(r"\b(a|an|the)\b", re.UNICODE), set(string.punctuation)


def normalize(text: str) -> str:
    """Lowercase, without punctuation, articles and extra whitespace."""
    bare = "".join(char for char in text.lower() if char not in _PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def exact_match(found: str, expected: str) -> float:
    return float(normalize(found) == normalize(expected))


def word_f1(found: str, expected: str) -> float:
    """F1 over the words of two answers; if one is empty, whether both are."""
    ours, theirs = normalize(found).split(), normalize(expected).split()
    if not ours or not theirs:
        return float(ours == theirs)
    shared = sum((Counter(ours) & Counter(theirs)).values())
    return 2 * shared / (len(ours) + len(theirs))


def answer_scores(found: Sequence[str], expected: Sequence[Sequence[str]]) -> Float[np.ndarray, "n 2"]:
    """Exact match and F1 of each answer, against the best-matching reference. Without references, an empty answer is
    correct.
    """
    rows = []
    for text, own in zip(found, expected, strict=True):
        right = [answer for answer in own if normalize(answer)] or [""]
        rows.append([max(score(text, answer) for answer in right) for score in (exact_match, word_f1)])
    return np.array(rows).reshape(-1, 2)


def measure(scores: Float[np.ndarray, "n 2"], answerable: Bool[np.ndarray, " n"]) -> dict[str, float]:
    """Means in per cent; if some questions are unanswerable, also for both kinds separately."""
    found = _means(scores, "")
    if not answerable.all():
        found |= _means(scores[answerable], "_HasAns") | _means(scores[~answerable], "_NoAns")
    return found


def measure_both(scores: Float[np.ndarray, "n 2"], answerable: Bool[np.ndarray, " n"]) -> dict[str, float]:
    """The same for both kinds separately, even if a bootstrap sample has only one."""
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
    """The threshold with the best F1 for the score of no answer minus that of the best answer: above it the answer is
    empty. `f1` are those of the best answers, `written` whether they have any text. The threshold lies halfway to the
    next value.
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

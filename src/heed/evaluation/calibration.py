"""Predicted probabilities against outcomes: the rank of the correct class, and calibration."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from heed.evaluation.classification import Measure

BINS = 15  # of equal width, as usual
Probabilities = Float[np.ndarray, "n labels"]


class Reliability(NamedTuple):
    """By bins of confidence, the probability of the predicted class: count, mean confidence and accuracy."""

    counts: np.ndarray
    confidence: np.ndarray
    accuracy: np.ndarray


def label_ranks(probabilities: Probabilities, labels: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """How many classes are more likely than the correct one; ties count as more likely if they come first."""
    own = probabilities[np.arange(len(labels)), labels]
    before = np.arange(probabilities.shape[1])[None] < labels[:, None]
    return ((probabilities > own[:, None]) | ((probabilities == own[:, None]) & before)).sum(axis=1)


def rank_accuracy(classes: int) -> Measure:
    """Accuracy from ranks and, with more than five classes, top-5 accuracy."""

    def measure(found: np.ndarray, expected: np.ndarray) -> dict[str, float]:
        scores = {"accuracy": 100 * float((found == 0).mean())}
        return scores | ({"top5": 100 * float((found < 5).mean())} if classes > 5 else {})

    return measure


def reliability(probabilities: Probabilities, labels: Int[np.ndarray, " n"], bins: int = BINS) -> Reliability:
    sure, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    which = np.clip(np.ceil(sure * bins).astype(int) - 1, 0, bins - 1)
    counts = np.bincount(which, minlength=bins)
    most = np.maximum(counts, 1)
    return Reliability(
        counts, np.bincount(which, sure, minlength=bins) / most, np.bincount(which, right, minlength=bins) / most
    )


def expected_calibration_error(probabilities: Probabilities, labels: Int[np.ndarray, " n"], bins: int = BINS) -> float:
    """Expected calibration error: the mean distance of confidence from accuracy (Guo et al., 2017)."""
    found = reliability(probabilities, labels, bins)
    return float((found.counts * np.abs(found.confidence - found.accuracy)).sum() / max(1, found.counts.sum()))

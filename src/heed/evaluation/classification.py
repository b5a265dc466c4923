"""Scores of classifiers, with bootstrap confidence intervals (Efron, 1979)."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

Measure = Callable[
    [np.ndarray, np.ndarray], dict[str, float]
]  # from what was found and what was expected to scores by name


class Interval(NamedTuple):
    """A score and its 95 % confidence interval."""

    value: float
    low: float
    high: float


class Difference(NamedTuple):
    """Two systems on the same texts: the second minus the first, and the p-value."""

    value: float
    p_value: float


def accuracy(found: Int[np.ndarray, " n"], expected: Int[np.ndarray, " n"]) -> float:
    return 100 * float((found == expected).mean()) if len(found) else 0.0


def confusion(found: Int[np.ndarray, " n"], expected: Int[np.ndarray, " n"], labels: int) -> Float[np.ndarray, "l l"]:
    """Confusion matrix: rows are reference labels, columns predicted ones."""
    return np.bincount(expected * labels + found, minlength=labels**2).reshape(labels, labels).astype(float)


def f1(table: Float[np.ndarray, "l l"]) -> float:
    """For two labels, F1 of the second; for more, macro F1."""
    right, both = np.diag(table), table.sum(axis=0) + table.sum(axis=1)
    each = np.divide(2 * right, both, out=np.zeros(len(table)), where=both > 0)
    return 100 * float(each[1] if len(each) == 2 else each.mean())


def matthews(table: Float[np.ndarray, "l l"]) -> float:
    """Matthews correlation; for more than two labels, Gorodkin's (2004). 0 if one side has a single label."""
    total, found, expected = table.sum(), table.sum(axis=0), table.sum(axis=1)
    spread = (total**2 - (found**2).sum()) * (total**2 - (expected**2).sum())
    return 100 * float((np.trace(table) * total - found @ expected) / np.sqrt(spread)) if spread > 0 else 0.0


def pearson(found: Float[np.ndarray, " n"], expected: Float[np.ndarray, " n"]) -> float:
    """Pearson correlation; 0 if one side is constant."""
    one, other = found - found.mean(), expected - expected.mean()
    spread = np.sqrt((one @ one) * (other @ other))
    return 100 * float(one @ other / spread) if spread > 0 else 0.0


def spearman(found: Float[np.ndarray, " n"], expected: Float[np.ndarray, " n"]) -> float:
    """Spearman's rank correlation; ties share their mean rank."""
    return pearson(_ranks(found), _ranks(expected))


def _ranks(values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = counts.cumsum()
    return (last - (counts - 1) / 2)[which]


def label_scores(labels: int) -> Measure:
    def measure(found: np.ndarray, expected: np.ndarray) -> dict[str, float]:
        table = confusion(found, expected, labels)
        return {"accuracy": accuracy(found, expected), "f1": f1(table), "matthews": matthews(table)}

    return measure


def number_scores(found: np.ndarray, expected: np.ndarray) -> dict[str, float]:
    return {"pearson": pearson(found, expected), "spearman": spearman(found, expected)}


def choice_scores(found: np.ndarray, expected: np.ndarray) -> dict[str, float]:
    return {"accuracy": accuracy(found, expected)}


def intervals(
    measure: Measure, found: np.ndarray, expected: np.ndarray, samples: int = 1000, seed: int = 0
) -> dict[str, Interval]:
    """Each score with the 95 % interval of resampled texts."""
    whole, drawn = measure(found, expected), _resampled(measure, found, expected, samples, seed)
    return {
        name: Interval(value, *(float(end) for end in np.quantile(drawn[name], [0.025, 0.975])))
        for name, value in whole.items()
    }


def differences(
    measure: Measure, first: np.ndarray, second: np.ndarray, expected: np.ndarray, samples: int = 1000, seed: int = 0
) -> dict[str, Difference]:
    """The paired bootstrap: both systems are resampled together. p is two-sided: how often the better one is not
    better.
    """
    one, other = (_resampled(measure, found, expected, samples, seed) for found in (first, second))
    values = {name: measure(second, expected)[name] - value for name, value in measure(first, expected).items()}
    found = {}
    for name, value in values.items():
        drawn = (other[name] - one[name]) * (1 if value >= 0 else -1)
        found[name] = Difference(value, min(1.0, 2 * (1 + int((drawn <= 0).sum())) / (samples + 1)))
    return found


def _resampled(
    measure: Measure, found: np.ndarray, expected: np.ndarray, samples: int, seed: int
) -> Mapping[str, np.ndarray]:
    random, drawn = np.random.default_rng(seed), []
    for _ in range(samples):
        rows = random.integers(0, len(found), len(found))
        drawn.append(measure(found[rows], expected[rows]))
    return {name: np.array([scores[name] for scores in drawn]) for name in drawn[0]}

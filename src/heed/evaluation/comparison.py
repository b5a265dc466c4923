"""Whether one system is significantly better than another: sacreBLEU's paired bootstrap resampling (Koehn, 2004)."""

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from heed.evaluation.translation import check, metrics


@dataclass(frozen=True)
class Difference:
    """One metric of two systems: values, 95% half-widths, and the p-value of their difference."""

    name: str
    first: float
    second: float
    first_width: float
    second_width: float
    p_value: float
    signature: str

    @property
    def difference(self) -> float:
        return self.second - self.first

    @property
    def gain(self) -> float:
        """Return the difference, negated for TER (an error rate): positive if the second system is better."""
        return -self.difference if self.name == "TER" else self.difference


@dataclass(frozen=True)
class Comparison:
    """Two systems on one test set."""

    bleu: Difference
    chrf: Difference
    ter: Difference
    lines: int
    samples: int
    seed: int


def compare(
    first: Sequence[str],
    second: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    lowercase: bool = False,
    tokenize: str = "13a",
    samples: int = 1000,
    seed: int = 12345,
) -> Comparison:
    """Compare two systems' hypotheses for the same sources by paired bootstrap resampling."""
    from sacrebleu.significance import PairedTest

    check(first, references, "first")
    check(second, references, "second")
    if samples < 1:
        raise ValueError(f"samples is {samples}; it must be at least 1, and 1000 is usual.")
    if seed < 1:
        # sacreBLEU treats a seed of 0 as no seed.
        raise ValueError(f"seed is {seed}; it must be at least 1, or the p-values would not be reproducible.")
    scorers = {type(scorer).__name__: scorer for scorer in metrics(lowercase, tokenize)}
    with _quiet_and_seeded(seed):
        test = PairedTest([("first", first), ("second", second)], scorers, references, "bs", samples, n_jobs=1)
        signatures, results = test()
    bleu, chrf, ter = (_difference(name, *results[name], str(signatures[name])) for name in signatures)
    return Comparison(bleu, chrf, ter, len(first), samples, seed)


def half_widths(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    lowercase: bool = False,
    tokenize: str = "13a",
    samples: int = 1000,
    seed: int = 12345,
) -> dict[str, float]:
    """Return the half-widths of the 95 % intervals of one system's BLEU and chrF, by bootstrap resampling."""
    from sacrebleu.significance import PairedTest

    check(hypotheses, references)
    if len(hypotheses) < 2:
        return {}  # there is nothing to resample
    scorers = {type(scorer).__name__: scorer for scorer in metrics(lowercase, tokenize)[:2]}
    with _quiet_and_seeded(seed):
        _, results = PairedTest([("only", hypotheses)], scorers, references, "bs", samples, n_jobs=1)()
    kept = [found[0] for found in results.values() if hasattr(found[0], "ci")]  # beside the names of the systems
    return {name: float(one.ci) for name, one in zip(("bleu", "chrf"), kept, strict=True)}


def _difference(name: str, first, second, signature: str) -> Difference:
    # sacreBLEU gives two equal outputs its smallest p-value, 1 / (samples + 1), although they do not differ at all.
    p_value = 1.0 if first.score == second.score else second.p_value
    return Difference(name, first.score, second.score, float(first.ci), float(second.ci), float(p_value), signature)


@contextmanager
def _quiet_and_seeded(seed: int) -> Iterator[None]:
    """Silence sacreBLEU's progress messages, and set its seed, which it reads from the environment only."""
    logger = logging.getLogger("sacrebleu")
    level, seed_before = logger.level, os.environ.get("SACREBLEU_SEED")
    logger.setLevel(logging.ERROR)
    os.environ["SACREBLEU_SEED"] = str(seed)
    try:
        yield
    finally:
        logger.setLevel(level)
        del os.environ["SACREBLEU_SEED"]
        if seed_before is not None:
            os.environ["SACREBLEU_SEED"] = seed_before

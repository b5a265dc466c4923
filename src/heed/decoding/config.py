"""The settings of a search."""

from dataclasses import dataclass
from typing import Literal

MOST = 1_000_000  # of anything that is counted: more is a slip of the hand
# What a float may be: with more, powers and lengths have no number, and in float32 all scores are alike.
HIGHEST = {"beam": 1000, "length_penalty": 10.0, "max_growth": 1000.0}
COLDEST, WARMEST = 1e-6, 1000.0


@dataclass(frozen=True)
class DecodingConfig:
    """`beam` 1 is greedy. A translation has at most `max_growth` times the source's subwords and 20 more.

    length_penalty: alpha, the power of the penalty that log probabilities are divided by.
    penalty: what is taken to that power: "wu" is (5 + length) / 6, "length" the length with its end mark.
    stopping: a sentence is done when nothing unfinished can still be among the n best ("exact"), when `beam` are found and
    the best unfinished one scores less as it stands ("heuristic"), or as soon as `beam` are found ("first").
    min_length, max_length: fewest tokens before the end mark, most tokens with it.
    force_begin: what every text of a vocabulary begins with (BART's <s>) is said at no cost; if not, it is left to the model.
    force_end: the last token a translation has room for is its end mark, at no cost; if not, it is cut there without one.
    renormalize: the probabilities of what may be said sum to one; if not, what may not be said keeps its share.
    """

    beam: int = 5
    nbest: int = 1
    length_penalty: float = 0.6
    penalty: Literal["wu", "length"] = "wu"
    stopping: Literal["exact", "heuristic", "first"] = "exact"
    min_length: int = 0
    max_length: int | None = None
    max_growth: float = 2.0
    force_begin: bool = True
    force_end: bool = False
    no_repeat: int = 0
    renormalize: bool = False
    sample: bool = False
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 1

    def __post_init__(self):
        if self.beam < 1 or self.nbest < 1:
            raise ValueError(f"beam is {self.beam} and nbest is {self.nbest}; both must be at least 1")
        if self.nbest > self.beam and not self.sample:
            raise ValueError(f"nbest is {self.nbest}, but beam is {self.beam}: a beam gives no more than its width")
        if not COLDEST <= self.temperature <= WARMEST:  # which nothing is that is no number
            raise ValueError(
                f"temperature is {self.temperature}; it must be above 0 (near 0 is greedy), {COLDEST:g} to {WARMEST:g}"
            )
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p is {self.top_p}; it must be above 0 and at most 1")
        for name in ("min_length", "no_repeat", "top_k", "length_penalty", "max_growth"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it must not be negative")
        for name in ("nbest", "min_length", "no_repeat", "top_k", *HIGHEST):
            if not getattr(self, name) <= (most := HIGHEST.get(name, MOST)):
                raise ValueError(f"{name} is {getattr(self, name)}; it must be a number of at most {most:,.0f}")
        if self.max_length is not None and self.max_length < max(1, self.min_length):
            raise ValueError(f"max_length is {self.max_length}; it must be at least 1 and not below min_length")


def longest(config: DecodingConfig, source: int, most: int) -> int:
    """How many tokens a source of so many may become, when the model allows `most`."""
    asked = config.max_length or int(config.max_growth * source) + 20
    return max(1, min(asked, most))

"""The settings of a search."""

from dataclasses import dataclass
from typing import Literal

from heed.vocabularies.vocabulary import SpecialTokens

MAX_COUNT = 1_000_000  # more is a typing error
# With larger values powers and lengths overflow, or all scores become equal in float32.
MAXIMA = {"beam": 1000, "length_penalty": 10.0, "max_growth": 1000.0}
MIN_TEMPERATURE, MAX_TEMPERATURE = 1e-6, 1000.0
MAX_REPETITION_PENALTY = 100.0
# What is found stays, whatever its faults.
UNGUARDED = {"avoid_loops": False, "avoid_overlong": False, "avoid_copies": False}


@dataclass(frozen=True)
class DecodingConfig:
    beam: int = 5  # beam size; 1 is greedy
    nbest: int = 1  # how many translations of each text
    length_penalty: float = 0.6  # alpha, the exponent of the penalty that log-probabilities are divided by
    penalty: Literal["wu", "length"] = "wu"  # "wu" is ((5 + length) / 6)^alpha, "length" length^alpha
    stopping: Literal["exact", "heuristic", "first"] = "exact"  # "exact": nothing unfinished can win
    min_length: int = 0  # tokens before the end token
    max_length: int | None = None  # tokens with the end token; max_growth decides by default
    max_growth: float = 2.0  # at most this many times the source's subwords, and 20 more
    force_begin: bool = True  # the special tokens that start a text (BART's <s>) are not left to the model
    force_end: bool = False  # the last position is for the end token; else a text may be truncated there
    no_repeat: int = 0  # never repeat an n-gram of this length; 0 is off
    avoid_loops: bool = True  # search again where a few tokens are repeated more often than anything in the source is
    avoid_overlong: bool = True  # search again where a translation does not end within max_growth: the best that does
    avoid_copies: bool = True  # search again where the source is copied: the best translation that is no copy
    renormalize: bool = False  # share the probability of banned tokens among the allowed ones
    sample: bool = False  # draw tokens at random instead of searching
    temperature: float = 1.0
    top_k: int = 0  # draw from the k likeliest tokens; 0 is all
    top_p: float = 1.0  # draw from the fewest tokens that hold this much probability
    min_p: float = 0.0  # draw from tokens that are at least this many times as likely as the likeliest; 0 is all
    typical_p: float = 1.0  # draw from the tokens of most typical information that hold this much probability
    repetition_penalty: float = 1.0  # logits of tokens that were said are divided by it (CTRL); 1 is off
    seed: int = 1
    rerank: Literal["none", "mbr"] = "none"  # "mbr": of several candidates the one that is most like all of them
    candidates: int = 16  # how many there are for that, of each kind
    candidates_from: Literal["beam", "samples", "both"] = "beam"  # the best of the beam, samples, or as many of each
    utility: Literal["bleu", "chrf"] = "bleu"  # how like two candidates are: sentence BLEU, or chrF (no spaces needed)

    def __post_init__(self):
        self._check_counts()
        if not MIN_TEMPERATURE <= self.temperature <= MAX_TEMPERATURE:  # also refuses NaN
            raise ValueError(
                f"temperature is {self.temperature}; it must be above 0 (near 0 is greedy), {MIN_TEMPERATURE:g} to {MAX_TEMPERATURE:g}"
            )
        self._check_filters()
        for name in ("min_length", "no_repeat", "top_k", "length_penalty", "max_growth"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it must not be negative")
        for name in ("nbest", "min_length", "no_repeat", "top_k", *MAXIMA):
            if not getattr(self, name) <= (most := MAXIMA.get(name, MAX_COUNT)):
                raise ValueError(f"{name} is {getattr(self, name)}; it must be a number of at most {most:,.0f}")
        if self.max_length is not None and self.max_length < max(1, self.min_length):
            raise ValueError(f"max_length is {self.max_length}; it must be at least 1 and not below min_length")

    def _check_counts(self) -> None:
        if self.beam < 1 or self.nbest < 1:
            raise ValueError(f"beam is {self.beam} and nbest is {self.nbest}; both must be at least 1")
        if self.rerank == "mbr":
            self._check_candidates()
        elif self.nbest > self.beam and not self.sample:
            raise ValueError(f"nbest is {self.nbest}, but beam is {self.beam}: a beam cannot return more than its size")

    def _check_filters(self) -> None:
        for name in ("top_p", "typical_p"):
            if not 0 < getattr(self, name) <= 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be above 0 and at most 1")
        if not 0 <= self.min_p <= 1:
            raise ValueError(f"min_p is {self.min_p}; it must be at least 0 (off) and at most 1")
        if not 0 < self.repetition_penalty <= MAX_REPETITION_PENALTY:
            most = f"at most {MAX_REPETITION_PENALTY:g}"
            raise ValueError(
                f"repetition_penalty is {self.repetition_penalty}; it must be above 0 and {most} (1 is off, CTRL uses "
                "1.2)"
            )

    def _check_candidates(self) -> None:
        if self.sample:
            raise ValueError('rerank is "mbr" and sample is true: set candidates_from to "samples" instead of sample')
        if not max(2, self.nbest) <= self.candidates <= MAXIMA["beam"]:
            least = f"at least {max(2, self.nbest)}" + (", as many as nbest" if self.nbest > 2 else "")
            raise ValueError(f"candidates is {self.candidates}; it must be {least}, and at most {MAXIMA['beam']:,}")


def max_output_length(config: DecodingConfig, source_length: int, model_limit: int) -> int:
    """How many tokens the translation of a source may have."""
    wanted = config.max_length or int(config.max_growth * source_length) + 20
    return max(1, min(wanted, model_limit))


def forced_start(config: DecodingConfig, special: SpecialTokens) -> tuple[int, ...]:
    """The tokens that every text is made to begin with."""
    return special.before if config.force_begin else ()

"""The settings of a search."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from heed import config as settings
from heed.vocabularies.vocabulary import SpecialTokens

MAX_COUNT = 1_000_000  # more is a typing error
# With larger values powers and lengths overflow, or all scores become equal in float32.
MAXIMA = {"beam": 1000, "length_penalty": 10.0, "max_growth": 1000.0}
MIN_TEMPERATURE, MAX_TEMPERATURE = 1e-6, 1000.0
MAX_REPETITION_PENALTY = 100.0
# What is found stays, whatever its faults.
UNGUARDED = {"avoid_loops": False, "avoid_overlong": False, "avoid_copies": False}
# The settings that the guard against overlong translations replaces: its limit depends on the source.
UNLIMITED = {"max_length": None, "force_end": False}


@dataclass(frozen=True)
class DecodingConfig:
    beam: int = 5  # beam size; 1 is greedy
    nbest: int = 1  # number of translations per text
    length_penalty: float = 0.6  # alpha, the exponent of the length penalty; larger favours longer texts
    penalty: Literal["wu", "length"] = "wu"  # "wu" is ((5 + length) / 6)^alpha, "length" length^alpha
    stopping: Literal["exact", "heuristic", "first"] = "exact"  # "exact": stop when no unfinished hypothesis can win
    min_length: int = 0  # minimum number of tokens, without the end token
    max_length: int | None = None  # maximum number of tokens, with the end token (default: from max_growth)
    max_growth: float = 2.0  # maximum length: this many times the source's subwords, plus 20
    force_begin: bool = True  # force the special tokens that start a text (BART's <s>)
    force_end: bool = False  # force the end token at the last position; otherwise the text may be cut off there
    no_repeat: int = 0  # never repeat an n-gram of this length; 0 is off
    avoid_loops: bool = True  # decode again if tokens repeat more often than anything in the source
    avoid_overlong: bool = True  # decode again if a translation does not end within max_growth
    avoid_copies: bool = True  # decode again if the source is copied
    renormalize: bool = False  # renormalize probabilities after banning tokens
    sample: bool = False  # sample tokens instead of searching
    temperature: float = 1.0
    top_k: int = 0  # sample from the k most likely tokens; 0 is all
    top_p: float = 1.0  # nucleus sampling: sample from the smallest set of tokens with this total probability
    min_p: float = 0.0  # sample from tokens at least this many times as likely as the most likely one; 0 is all
    typical_p: float = 1.0  # locally typical sampling, with this total probability
    repetition_penalty: float = 1.0  # penalty on the logits of tokens that already occurred (CTRL); 1 is off
    seed: int = 1
    rerank: Literal["none", "mbr"] = "none"  # "mbr": minimum Bayes risk, the candidate most similar to all the others
    candidates: int = 16  # number of MBR candidates of each kind
    candidates_from: Literal["beam", "samples", "both"] = (
        "beam"  # where MBR candidates come from; "both": as many of each
    )
    utility: Literal["bleu", "chrf"] = "bleu"  # similarity of MBR candidates; chrF suits languages without spaces

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


def changed(own: DecodingConfig, changes: Mapping[str, Any]) -> DecodingConfig:
    """The search settings of a model with some changes. The guard against overlong translations, if asked for, takes
    the place of the model's own maximum length. A guard that could not work is refused.
    """
    if changes.get("avoid_overlong"):
        changes = {**UNLIMITED, **changes}
    config = settings.read(DecodingConfig, {**asdict(own), **changes})
    for name in ("avoid_overlong", "avoid_copies"):
        if changes.get(name) and (why := _without_alternatives(config)):
            raise ValueError(f"{name} is true, but {why}, or leave it out")
    return config


def _without_alternatives(config: DecodingConfig) -> str:
    """Why a search finds nothing to choose from, and what to do; empty if it does find something."""
    if config.rerank == "mbr":
        only = config.candidates_from == "samples"
        return 'samples have no alternatives: set candidates_from to "beam" or "both"' if only else ""
    if has_alternatives(config):
        return ""
    how = "sampling" if config.sample else "greedy search (beam 1)"
    return f"{how} has no alternatives: use a beam search (beam 2 or more)"


def has_alternatives(config: DecodingConfig) -> bool:
    """Whether a search compares hypotheses, unlike greedy search and sampling."""
    return config.beam > 1 and not config.sample


def max_output_length(config: DecodingConfig, source_length: int, model_limit: int) -> int:
    """The maximum number of tokens in the translation of a source."""
    wanted = config.max_length or int(config.max_growth * source_length) + 20
    return max(1, min(wanted, model_limit))


def forced_start(config: DecodingConfig, special: SpecialTokens) -> tuple[int, ...]:
    """The tokens that every text is forced to begin with."""
    return special.before if config.force_begin else ()

"""Results of the order experiment, as plain numbers and texts."""

from dataclasses import dataclass

from heed.lab.experiments.by_hand import Matrix
from heed.lab.language import tr

POSITIONS = ("sinusoidal", "learned", "none")
DIRECTIONS = ("en-ko", "ko-en plain", "ko-en polite")
WORDS = ("I", "go", "home")
SENTENCE = ("투빅아,", "나는", "너를", "많이", "사랑해.")  # of the lecture notes


@dataclass(frozen=True)
class Outputs:
    """The encoder's output for "I go home" and for "home go I", without positions and with sinusoids, and the largest
    difference between the two with the same words aligned; for the decoder, that of its last state only.
    """

    none: list[Matrix]
    waves: list[Matrix]
    none_difference: float
    waves_difference: float
    decoder_difference: float


@dataclass(frozen=True)
class ToyRow:
    """The vector of "I" as the first and as the last of three words, their cosine, and that of "I" and "home", both first."""

    way: str
    first: list[float]
    last: list[float]
    same_word: float
    same_place: float


@dataclass(frozen=True)
class Sum:
    """Embeddings times √d, positions and their sum, a row for each word."""

    words: list[str]
    embedding: Matrix
    position: Matrix
    total: Matrix


@dataclass(frozen=True)
class Score:
    """BLEU of a translator, the share of correct translations, and of those whose twin is translated the same."""

    direction: str
    positions: str
    bleu: float
    right: float
    as_twin: float
    sentences: int


@dataclass(frozen=True)
class Example:
    """A source, its reference, and the translation for each kind of positions."""

    direction: str
    source: str
    expected: str
    outputs: dict[str, str]


@dataclass(frozen=True)
class Order:
    seed: int
    steps: int
    outputs: Outputs
    toy: list[ToyRow]
    sum: Sum
    scores: list[Score]
    examples: list[Example]


def direction_names() -> dict[str, str]:
    """The name of each direction."""
    return {
        "en-ko": tr("English → Korean"),
        "ko-en plain": tr("plain Korean → English"),
        "ko-en polite": tr("polite Korean → English"),
    }


def position_names() -> dict[str, str]:
    """The name of each kind of positions."""
    return {"sinusoidal": tr("sinusoids"), "learned": tr("learned"), "none": tr("none")}

"""Examples and results of the attention experiment, as plain numbers."""

import math
from dataclasses import dataclass

from heed.lab.experiments.by_hand import Matrix

DICTIONARY = {"alpha": 2023, "beta": 2017, "gamma": 2015, "delta": 2010}  # of the lecture notes
KEYS = [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)]  # a vector for each key, a right angle apart
HALFWAY = (math.sqrt(0.5), math.sqrt(0.5))  # between alpha and beta
TEMPERATURES = (10.0, 3.0, 1.0, 0.5, 0.3, 0.1, 0.03, 0.01)
U = (2.0, 1.0)
OTHERS = [(2.0, 1.0), (4.0, 2.0), (1.0, 1.5), (-1.0, 2.0), (-2.0, -1.0)]
HEADS, WIDTH, DIM = 8, 3, 4  # of the lecture notes: 8 × 3 = 24, and W_O is 24×4
LENGTHS = (5, 6, 8, 16, 32, 64, 128, 256, 512)


@dataclass(frozen=True)
class LookUp:
    """For each temperature the weights of all keys and the result, for the queries alpha, delta and between two
    keys.
    """

    temperatures: list[float]
    weights: list[list[float]]
    alpha: list[float]
    delta: list[float]
    halfway: list[float]


@dataclass(frozen=True)
class Similarity:
    """The vector u = (2, 1) with another v, by each measure; `by_angle` is |u||v| cos θ, `by_coordinates` x1x2 + y1y2."""

    vector: tuple[float, float]
    distance: float
    cosine: float
    dot: float
    by_angle: float
    by_coordinates: float


@dataclass(frozen=True)
class ThreeWords:
    """Every number of attention over three words, by hand; `difference` is the largest to heed.nn.attention.

    `untransposed` is Q K, which can be computed only because there are as many words as numbers in a head.
    """

    q: Matrix
    k: Matrix
    v: Matrix
    scores: Matrix
    untransposed: Matrix
    scaled: Matrix
    weights: Matrix
    mixed: Matrix
    output: Matrix
    difference: float


@dataclass(frozen=True)
class Masks:
    """The weights of three words, later ones set to 0, renormalised (001), and masked before the softmax (003)."""

    weights: Matrix
    zeroed: Matrix
    after: Matrix
    before: Matrix
    difference: float


@dataclass(frozen=True)
class Padding:
    """How much the logits change if a source of 5 words is padded to each length: with the mask, and without it."""

    lengths: list[int]
    masked: list[float]
    unmasked: list[float]


@dataclass(frozen=True)
class AttentionLab:
    seed: int
    look_up: LookUp
    similarities: list[Similarity]
    words: ThreeWords
    heads: list[Matrix]
    heads_difference: float
    masks: Masks
    padding: Padding

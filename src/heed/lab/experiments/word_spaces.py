"""What the word vectors trained here have learned: co-occurrence ratios, neighbours and analogies."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log

import numpy as np
from jaxtyping import Float64

from heed.data.synthetic import world
from heed.data.vectors import Vectors, similarity
from heed.data.vectors.word_text import WordText, cooccurrences, ngrams
from heed.training.word_vectors import Trained

PROBES = ("solid", "gas", "water", "fashion")
# P(k | ice), P(k | steam) and their ratio, as printed in the lecture notes (from Pennington et al., 2014)
NOTES = {
    "solid": (1.9e-4, 2.2e-5, 8.9),
    "gas": (6.6e-5, 7.8e-4, 8.5e-2),
    "water": (3.0e-3, 2.2e-3, 1.36),
    "fashion": (1.7e-5, 1.8e-5, 0.96),
}
NEAR = ("king", "ice", "seoul", "books", "walked")


@dataclass(frozen=True)
class Ratio:
    """P(word | ice), P(word | steam), their ratio; the ratio by the rules of the corpus and by the notes; GloVe's, later."""

    word: str
    ice: float
    steam: float
    ratio: float
    rule: float
    notes: tuple[float, float, float]


@dataclass(frozen=True)
class Space:
    """For one method: the loss of each epoch, the nearest words of some words with their cosines, and the analogies:
    for each kind how many of how many are correct, and the words found for one example.
    """

    losses: list[float]
    near: dict[str, list[tuple[str, float]]]
    analogies: dict[str, tuple[int, int]]
    queen: list[tuple[str, float]]


def count_ratios(text: WordText, window: int) -> list[Ratio]:
    """P(k | i) = X_ik / X_i, counted in a text."""
    ice, steam = (probabilities(text, window, word) for word in ("ice", "steam"))
    return [
        Ratio(word, ice[word], steam[word], ice[word] / steam[word], world.expected_ratio(word), NOTES[word])
        for word in PROBES
    ]


def probabilities(text: WordText, window: int, word: str, *, by_distance: bool = False) -> dict[str, float]:
    """P(k | word) for all words k that occur within the window around it."""
    centres, contexts, counts = cooccurrences(text, window, by_distance=by_distance)
    own = centres == text.words.index(word)
    shares = counts[own] / counts[own].sum()
    return {text.words[k]: float(share) for k, share in zip(contexts[own], shares, strict=True)}


def glove_ratio(text: WordText, window: int, trained: Trained, word: str) -> tuple[float, float]:
    """P(word | ice) / P(word | steam) by the counts that GloVe saw, and by its vectors: exp((w_ice - w_steam)·w̃_word) and biases.

    GloVe fits w_i·w̃_k + b_i + b̃_k = log X_ik, so log X_i is subtracted.
    """
    at = {name: i for i, name in enumerate(text.words)}
    centres, _, counts = cooccurrences(text, window, by_distance=True)
    totals = {name: counts[centres == at[name]].sum() for name in ("ice", "steam")}
    counted = [probabilities(text, window, name, by_distance=True)[word] for name in totals]
    words = trained.matrix - trained.contexts  # the file has the sum of both
    fitted = [
        words[at[name]] @ trained.contexts[at[word]] + trained.biases[0, at[name]] - log(total)
        for name, total in totals.items()
    ]
    return counted[0] / counted[1], exp(fitted[0] - fitted[1])


def questions() -> dict[str, list[tuple[str, str, str, str]]]:
    """Analogies a : b = c : d that the rules of the corpus imply, by kind."""
    people, countries = list(world.PEOPLE), list(world.COUNTRIES.items())
    forms = [(verb, verb + "ed") for verb in world.VERBS]
    genders = [(*one, *other) for one in people for other in people if one != other]
    capitals = [(a[0], one, b[0], other) for one, a in countries for other, b in countries if one != other]
    verbs = [(*one, *other) for one in forms for other in forms if one != other]
    return {"man and woman": genders, "capital and country": capitals, "verb and past": verbs}


def describe(words: Sequence[str], trained: Trained, count: int = 4) -> Space:
    """Neighbours and analogies by cosine similarity, as `heed vectors` finds them."""
    at, unit = {word: i for i, word in enumerate(words)}, similarity.unit_rows(trained.matrix)
    near = {word: _nearest(words, unit, unit[at[word]], {word}, count) for word in NEAR if word in at}
    right: dict[str, tuple[int, int]] = {}
    for kind, implied in questions().items():
        asked = [four for four in implied if all(word in at for word in four)]  # a short text may lack a word
        found = [_nearest(words, unit, _fourth(unit, at, one), set(one[:3]), 1)[0][0] == one[3] for one in asked]
        right[kind] = sum(found), len(found)
    queen = _nearest(words, unit, _fourth(unit, at, ("man", "king", "woman")), {"man", "king", "woman"}, count)
    return Space(trained.losses, near, right, queen)


def unseen(words: Sequence[str], trained: Trained, word: str, count: int = 4) -> list[tuple[str, float]]:
    """The words nearest to one that is not in the text, whose vector is the mean of its n-grams."""
    number = {gram: i for i, gram in enumerate(trained.ngrams)}
    lengths = {len(gram) for gram in number}
    known = [number[gram] for gram in ngrams(word, min(lengths), max(lengths)) if gram in number]
    made = trained.ngram_matrix[known].mean(axis=0)
    return similarity.nearest([Vectors(list(words), trained.matrix)], made[None], count, [set()])[0]


def _fourth(unit: Float64[np.ndarray, "words dim"], at: dict[str, int], asked: Sequence[str]) -> np.ndarray:
    first, second, third = (unit[at[word]] for word in asked[:3])
    return second - first + third


def _nearest(words: Sequence[str], unit: np.ndarray, query: np.ndarray, skip: set[str], count: int):
    cosines = unit @ (query / np.linalg.norm(query))
    order = (i for i in np.argsort(-cosines, kind="stable") if words[i] not in skip)
    return [(words[i], float(cosines[i])) for i, _ in zip(order, range(count), strict=False)]

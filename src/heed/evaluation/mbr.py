"""Minimum Bayes risk: the candidate translation most similar to all the others (Kumar and Byrne, 2004)."""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float, Int
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.metrics.helpers import extract_all_char_ngrams, extract_word_ngrams

DECIMALS = 9  # beyond them utilities are equal: sums of the same numbers in another order differ in the last places


def pairwise_chrf(texts: Sequence[str]) -> Float[np.ndarray, "n n"]:
    """Sentence chrF of each text (row) with each text (column) as its reference, as sacreBLEU computes it."""
    n, factor = len(texts), CHRF.BETA**2
    ngrams = [extract_all_char_ngrams(text, CHRF.CHAR_ORDER, False) for text in texts]
    precision, recall, orders = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n))
    for order in range(CHRF.CHAR_ORDER):
        matches, totals = _matches([own[order] for own in ngrams])
        counted = (totals[:, None] > 0) & (totals > 0)
        precision += np.where(counted, matches / np.maximum(totals, 1)[:, None], 0.0)
        recall += np.where(counted, matches / np.maximum(totals, 1), 0.0)
        orders += counted
    precision, recall = precision / np.maximum(orders, 1), recall / np.maximum(orders, 1)
    below = factor * precision + recall
    return 100 * (1 + factor) * precision * recall / np.where(below > 0, below, 1.0)


def pairwise_bleu(texts: Sequence[str]) -> Float[np.ndarray, "n n"]:
    """Sentence BLEU of each text (row) with each text (column) as its reference, as sacreBLEU computes it."""
    bleu = BLEU(effective_order=True)
    words = [bleu.tokenizer(text.rstrip()).split() for text in texts]
    orders = range(1, bleu.max_ngram_order + 1)
    every = [_matches([extract_word_ngrams(own, order) for own in words]) for order in orders]
    matches, totals = np.stack([own for own, _ in every], axis=2), np.stack([own for _, own in every], axis=1)

    def score(row: int, column: int) -> float:
        options = {
            "smooth_method": bleu.smooth_method,
            "effective_order": True,
            "max_ngram_order": bleu.max_ngram_order,
        }
        counts = matches[row, column].tolist(), totals[row].tolist()
        return BLEU.compute_bleu(*counts, len(words[row]), len(words[column]), **options).score

    return np.array([[score(i, j) for j in range(len(texts))] for i in range(len(texts))]).reshape(matches.shape[:2])


UTILITIES: dict[str, Callable[[Sequence[str]], Float[np.ndarray, "n n"]]] = {
    "chrf": pairwise_chrf,
    "bleu": pairwise_bleu,
}


def expected_utilities(texts: Sequence[str], utility: str) -> Float[np.ndarray, " n"]:
    """The mean similarity of each text to all texts; duplicates count separately."""
    counts = Counter(texts)
    mean = UTILITIES[utility](list(counts)) @ np.array([*counts.values()]) / max(1, len(texts))
    by_text = dict(zip(counts, mean.round(DECIMALS).tolist(), strict=True))
    return np.array([by_text[text] for text in texts])


def mbr_order(texts: Sequence[str], scores: Sequence[float], utility: str) -> list[int]:
    """The indices of the texts by expected utility, highest first; ties are broken by score. Duplicates come after
    all others.
    """
    utilities = expected_utilities(texts, utility)
    order = sorted(range(len(texts)), key=lambda i: (-utilities[i], -scores[i], i))
    seen: set[str] = set()
    first = [i for i in order if not (texts[i] in seen or seen.add(texts[i]))]
    return [*first, *(i for i in order if i not in set(first))]


def _matches(counts: Sequence[Counter]) -> tuple[Int[np.ndarray, "n n"], Int[np.ndarray, " n"]]:
    """How many n-grams each pair of texts shares, and how many each text has."""
    columns = {ngram: column for column, ngram in enumerate(dict.fromkeys(ngram for own in counts for ngram in own))}
    table = np.zeros((len(counts), len(columns)), dtype=np.int64)
    for row, own in enumerate(counts):
        table[row, [columns[ngram] for ngram in own]] = list(own.values())
    shared = [np.minimum(row, table).sum(axis=1) for row in table]
    return np.array(shared, dtype=np.int64).reshape(len(counts), len(counts)), table.sum(axis=1)

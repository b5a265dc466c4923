"""Where the terms of a glossary belong in a translation: in the places of the words that a model would have said for them."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from heed.data.batching import by_length
from heed.decoding.constraints import Replaced
from heed.decoding.terms import Term
from heed.products.translator import attention_trace
from heed.products.translator.alignment import words_of
from heed.products.translator.term_tokens import Spelling, Wanted
from heed.vocabularies.vocabulary import Vocabulary

if TYPE_CHECKING:
    from heed.products.translator.translator import Translator

ALIKE = 0.6  # as much of a word in common makes two words forms of one


def places(
    translator: "Translator", ids: list[list[int]], said: list[list[int]], wanted: Sequence[Wanted], batch_tokens: int
) -> list[Replaced]:
    """For each source and what was said to it: the tokens in whose places terms stand, by the token that begins a term.

    Of the words that looked at the term more than at anything else it is the one that looked most. Where there is none, or no
    attention, a term is as likely as the model says.
    """
    found: list[Replaced] = [{} for _ in ids]
    pairs = [(source, translator.stripped(own)[0]) for source, own in zip(ids, said, strict=True)]
    spoken = [row for row, (_, own) in enumerate(pairs) if own]
    for rows in by_length([len(pairs[row][0]) + len(pairs[row][1]) + 1 for row in spoken], max(1, batch_tokens)):
        own = [spoken[row] for row in rows]
        cross = attention_trace.recorded(translator.model, [pairs[row] for row in own], translator.marks).maps["cross"]
        if not cross:
            return found
        for row, weights in zip(own, translator.alignment_rows.of(cross), strict=True):
            found[row] = _of_one(translator, pairs[row][1], weights, wanted[row])
    return found


def _of_one(translator: "Translator", said: list[int], weights: np.ndarray, wanted: Wanted) -> Replaced:
    target, (left, top) = translator.target, (len(marks.before) for marks in translator.marks)
    numbers = np.array(words_of(target.pieces(said)))
    texts = [_text(target, said, numbers, word) for word in range(numbers[-1] + 1)]
    rows = weights[top : top + len(said), left:]
    found: dict[int, frozenset[int]] = {}
    for term, (start, end) in zip(wanted.terms, wanted.spans, strict=True):
        looks = rows[:, start:end].sum(axis=1)
        peaks = [i for i, row in enumerate(rows) if start <= row.argmax() < end and texts[numbers[i]]]
        if peaks:
            word = numbers[max(peaks, key=lambda i: looks[i])]
            first = said[int((numbers == word).argmax())]
            _note(found, term, alike(translator.spelling, first, texts[word]), target)
    return found


def _text(vocabulary: Vocabulary, said: list[int], numbers: np.ndarray, word: int) -> str:
    """The letters of a word."""
    text = vocabulary.decode([token for token, own in zip(said, numbers.tolist(), strict=True) if own == word])
    return "".join(char for char in text if char.isalnum())


def _note(found: dict[int, frozenset[int]], term: Term, tokens: frozenset[int], vocabulary: Vocabulary) -> None:
    """A token that begins a word stands in the place of such."""
    for way in term:
        first = vocabulary.pieces(way.tokens[:1])[0].startswith("▁")
        same = frozenset(own for own in tokens if vocabulary.pieces([own])[0].startswith("▁") == first)
        if same:
            found[way.tokens[0]] = found.get(way.tokens[0], frozenset()) | same


def alike(spelling: Spelling, first: int, word: str) -> frozenset[int]:
    """The tokens that begin a word or other forms of it (cat, cats), the one that began it among them."""
    least = max(2, math.ceil(ALIKE * len(word)))
    mark = spelling.vocabulary.pieces([first])[0].startswith("▁")
    known = spelling.by_letters[mark]
    found, place = [first], bisect_left(known, (word[:least], -1))
    while place < len(known) and known[place][0].startswith(word[:least]):
        own, token = known[place]
        if len(own) >= least and (word.startswith(own) or own.startswith(word)):
            found.append(token)
        place += 1
    return frozenset(found)

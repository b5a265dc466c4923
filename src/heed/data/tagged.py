"""Words and their pieces: the first piece of a word carries its label, the others are ignored."""

import string
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int

from heed.data.batching import LabelledBatch, pad
from heed.data.text_windows import best_windows, split_windows
from heed.vocabularies.ragged import Ids
from heed.vocabularies.vocabulary import AlignedPieces, SpecialPair

Span = tuple[int, int]  # characters: the first, and the one after the last


class Words(NamedTuple):
    """Where the words of a text are, and the first piece of each; None for a word without pieces."""

    spans: list[Span]
    first: list[int | None]


def join_words(words: Sequence[str]) -> tuple[str, list[Span]]:
    """The words joined by spaces, and the position of each."""
    ends = np.cumsum([len(word) + 1 for word in words]) - 1
    return " ".join(words), [(int(end) - len(word), int(end)) for word, end in zip(words, ends, strict=True)]


def align_words(pieces: AlignedPieces, spans: Sequence[Span]) -> Words:
    """The first piece of each of these words."""
    first: list[int | None] = [None] * len(spans)
    word = 0
    for place, (start, _) in enumerate(pieces.spans):
        while word < len(spans) and spans[word][1] <= start:
            word += 1
        if word < len(spans) and spans[word][0] <= start and first[word] is None:
            first[word] = place
    return Words(list(spans), first)


def find_words(text: str, pieces: AlignedPieces) -> Words:
    """The words of an untokenized text: those of its vocabulary, with punctuation separated as far as pieces allow."""
    spans: list[Span] = []
    first: list[int | None] = []
    before, end = None, 0
    for place, ((start, stop), word) in enumerate(zip(pieces.spans, pieces.words, strict=True)):
        broken = start >= end and start > 0 and (_is_mark(text[start - 1]) or (start < stop and _is_mark(text[start])))
        if place and word == before and not broken:
            spans[-1] = spans[-1][0], max(stop, spans[-1][1])
        else:
            spans.append((start, stop))
            first.append(place)
        before, end = word, max(stop, end)
    kept = [number for number, (start, stop) in enumerate(spans) if start < stop]
    return Words([spans[i] for i in kept], [first[i] for i in kept])


def each_piece(pieces: AlignedPieces) -> Words:
    """Every piece as a separate word."""
    return Words(list(pieces.spans), list(range(len(pieces.ids))))


@lru_cache(1 << 16)
def _is_mark(char: str) -> bool:
    return char in string.punctuation or unicodedata.category(char).startswith("P")


def tagged_rows(
    ids: Sequence[int], first: Sequence[int | None], labels: Sequence[int], room: int, overlap: int
) -> Iterator[tuple[list[int], Int[np.ndarray, " n"]]]:
    """The windows of a sentence, each with 1 + the label of its pieces, 0 for ignored ones: every word counts in one
    window.
    """
    windows, marks = split_windows(len(ids), room, overlap), np.zeros(len(ids), dtype=np.int64)
    best = best_windows(windows, len(ids))
    for place, label in zip(first, labels, strict=True):
        if place is not None:
            marks[place] = label + 1
    for number, (start, end) in enumerate(windows):
        if end > start:
            yield list(ids[start:end]), np.where(best[start:end] == number, marks[start:end], 0)


def collate_tagged(source: Sequence[Ids], target: Sequence[Ids], special: SpecialPair) -> LabelledBatch:
    """A padded batch; `labels` are as wide as the texts, and -1 where they are ignored."""
    tokens, valid = pad(source, special[0])
    labels, first = np.full(tokens.shape, -1, dtype=np.int64), len(special[0].before)
    for row, own in enumerate(target):
        labels[row, first : first + len(own)] = np.asarray(own, dtype=np.int64) - 1
    return LabelledBatch(*map(torch.from_numpy, (tokens, valid, labels)))

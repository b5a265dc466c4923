"""Word differences between a reference and a hypothesis, for display: which words are missing, which were added."""

import re
import unicodedata
from difflib import SequenceMatcher
from itertools import groupby

# Scripts written without spaces (Han, kana, and their punctuation) are compared by character.
_UNSPACED = r"\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef"
_PIECE = re.compile(rf"\s+|[{_UNSPACED}]|[^\s{_UNSPACED}]+")

Run = tuple[int, str]  # a kind (see `diff`) and a text


def split(text: str) -> list[str]:
    """Split a text into words, punctuation around words, and spaces; joined, they give the text again."""
    return [part for piece in _PIECE.findall(text) for part in _strip_punctuation(piece)]


def missing_and_added(reference: list[str], hypothesis: list[str]) -> tuple[list[bool], list[bool]]:
    """For each piece of the reference whether it is missing, and for each of the hypothesis whether it was added."""
    indices = [[i for i, piece in enumerate(side) if not piece.isspace()] for side in (reference, hypothesis)]
    words = [reference[i] for i in indices[0]], [hypothesis[i] for i in indices[1]]
    differs = [not piece.isspace() for piece in reference], [not piece.isspace() for piece in hypothesis]
    for start, other_start, size in SequenceMatcher(None, *words, autojunk=False).get_matching_blocks():
        for side, first in enumerate((start, other_start)):
            for i in indices[side][first : first + size]:
                differs[side][i] = False
    return differs


def merge_runs(pieces: list[str], kinds: list[int]) -> list[Run]:
    """Join neighbours of the same kind, and the space between them; kind 0 is plain."""
    filled = list(kinds)
    for i in range(1, len(pieces) - 1):
        if pieces[i].isspace() and filled[i - 1] == kinds[i + 1]:
            filled[i] = kinds[i + 1]
    pairs = zip(filled, pieces, strict=True)
    return [(kind, "".join(piece for _, piece in group)) for kind, group in groupby(pairs, key=lambda pair: pair[0])]


def diff(reference: str, hypothesis: str, second: str | None = None) -> list[list[Run]]:
    """Reference, hypothesis and second as runs: 0 plain; 1, 2, 3 missing in the first, second, both; 4 added."""
    pieces = split(reference)
    kinds, texts = [0] * len(pieces), []
    for bit, text in ((1, hypothesis), (2, second)):
        if text is not None:
            other = split(text)
            missing, added = missing_and_added(pieces, other)
            kinds = [kind | bit * lost for kind, lost in zip(kinds, missing, strict=True)]
            texts.append(merge_runs(other, [4 * new for new in added]))
    return [merge_runs(pieces, kinds), *texts]


def _strip_punctuation(piece: str) -> list[str]:
    """Split punctuation off both ends of a word; inside a word, as in don't, it stays."""
    start, end = 0, len(piece)
    while start < end and unicodedata.category(piece[start])[0] == "P":
        start += 1
    while end > start and unicodedata.category(piece[end - 1])[0] == "P":
        end -= 1
    word = [piece[start:end]] if start < end else []
    return [*piece[:start], *word, *piece[end:]]

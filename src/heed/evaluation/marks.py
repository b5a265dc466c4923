"""Word differences between a reference and a hypothesis, for eyes: which words were missed, which were added."""

import re
import unicodedata
from difflib import SequenceMatcher
from itertools import groupby

# Scripts written without spaces are compared by character: Han, kana, and their punctuation.
_UNSPACED = r"\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef"
_PIECE = re.compile(rf"\s+|[{_UNSPACED}]|[^\s{_UNSPACED}]+")

Piece = tuple[int, str]


def split(text: str) -> list[str]:
    """Cut a text into words, punctuation around words, and spaces; joined, they are the text again."""
    return [part for piece in _PIECE.findall(text) for part in _peel(piece)]


def missed(reference: list[str], hypothesis: list[str]) -> tuple[list[bool], list[bool]]:
    """Say of each piece of the reference whether it was missed, and of each of the hypothesis whether it was added."""
    places = [[at for at, piece in enumerate(side) if not piece.isspace()] for side in (reference, hypothesis)]
    words = [reference[at] for at in places[0]], [hypothesis[at] for at in places[1]]
    marks = [False] * len(reference), [False] * len(hypothesis)
    for tag, a, b, c, d in SequenceMatcher(None, *words, autojunk=False).get_opcodes():
        if tag != "equal":
            for at in places[0][a:b]:
                marks[0][at] = True
            for at in places[1][c:d]:
                marks[1][at] = True
    return marks


def runs(pieces: list[str], kinds: list[int]) -> list[Piece]:
    """Join neighbours of one kind, with the space between two marked words marked too; kind 0 is plain."""
    filled = list(kinds)
    for at in range(1, len(pieces) - 1):
        if pieces[at].isspace() and filled[at - 1] == kinds[at + 1]:
            filled[at] = kinds[at + 1]
    pairs = zip(filled, pieces, strict=True)
    return [(kind, "".join(piece for _, piece in group)) for kind, group in groupby(pairs, key=lambda pair: pair[0])]


def marked(reference: str, hypothesis: str, second: str | None = None) -> list[list[Piece]]:
    """Return reference, hypothesis and second as runs: 0 plain; 1, 2, 3 missed by the first, second, both; 4 added."""
    pieces = split(reference)
    kinds, texts = [0] * len(pieces), []
    for bit, text in ((1, hypothesis), (2, second)):
        if text is not None:
            own = split(text)
            lost, added = missed(pieces, own)
            kinds = [kind | bit * gone for kind, gone in zip(kinds, lost, strict=True)]
            texts.append(runs(own, [4 * new for new in added]))
    return [runs(pieces, kinds), *texts]


def _peel(piece: str) -> list[str]:
    """Take the punctuation off both ends of a word; what is inside, as in don't, stays."""
    start, end = 0, len(piece)
    while start < end and unicodedata.category(piece[start])[0] == "P":
        start += 1
    while end > start and unicodedata.category(piece[end - 1])[0] == "P":
        end -= 1
    word = [piece[start:end]] if start < end else []
    return [*piece[:start], *word, *piece[end:]]

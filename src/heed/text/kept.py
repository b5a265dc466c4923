"""What must stay, found again in a translation: a sign in the place of each piece, so that it is one letter whatever it holds.

Korean particles follow a piece without a space ({n}개의, `f`에서), and a piece of code may have spaces in it: words do not tell.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from heed.text import protect

SIGNS = 0xF0000  # of Unicode's private use
MOST = 1000  # different pieces of a sentence that are looked for
FEW = 50  # of one piece, for which the best places are chosen
_WORDS = re.compile(r"\S+")


class Kept(NamedTuple):
    """A translation with signs in it, its alignment, and for each sign the number of its piece."""

    text: str
    alignment: list[tuple[int, int]]
    signs: dict[str, int]


class Piece(NamedTuple):
    """What must stay, and from where to where it stands in the source."""

    text: str
    start: int
    end: int


def signs(texts: Sequence[str]) -> Iterator[str]:
    """Letters that are in no text."""
    there = {ord(char) for text in texts for char in text if ord(char) >= SIGNS}
    return (chr(number) for number in range(SIGNS, 0x10FFFE) if number not in there)


def found(
    source: str, pieces: Sequence[Piece], said: str, alignment: Sequence[tuple[int, int]], free: Iterator[str]
) -> Kept:
    """Each piece of a source in what was said to it, where it is there; the words it goes with count more than how far along."""
    by_text: dict[str, list[int]] = {}
    for number, piece in enumerate(pieces):
        if piece.text.strip():
            by_text.setdefault(piece.text, []).append(number)
    if not by_text or len(by_text) > MOST:
        return Kept(said, list(alignment), {})
    look = _Look(source, said, alignment)
    taken = bytearray(len(said))
    places: dict[int, tuple[int, int]] = {}
    for text in sorted(by_text, key=len, reverse=True):
        spots = [match.span() for match in _rule(text).finditer(said) if not any(taken[match.start() : match.end()])]
        for number, (start, end) in look.chosen(by_text[text], [pieces[own] for own in by_text[text]], spots):
            taken[start:end] = b"\1" * (end - start)
            places[number] = start, end
    return look.signed(places, pieces, free)


def lost(pieces: Sequence[Piece], said: str) -> bool:
    """Whether a piece is not as often in what was said as it should be."""
    wanted = Counter(piece.text for piece in pieces if piece.text.strip())
    return len(wanted) <= MOST and any(len(_rule(text).findall(said)) < many for text, many in wanted.items())


def ticked(source: str, pieces: Sequence[Piece]) -> str:
    """A source with its pieces as code, unless they stay anyway (heed.text.protect)."""
    parts, place = [], 0
    for piece in pieces:
        stays = "`" in piece.text or [own.text for own in protect.find(piece.text)] == [piece.text]
        tick = "" if stays or not piece.text.strip() else "`"
        parts += [source[place : piece.start], tick, piece.text, tick]
        place = piece.end
    return "".join([*parts, source[place:]])


def unticked(said: str, pieces: Sequence[Piece]) -> str:
    """What was said to that, with the pieces as they are."""
    for text in sorted({piece.text for piece in pieces if piece.text.strip()}, key=len, reverse=True)[:MOST]:
        said = said.replace(f"`{text}`", text)
    return said


def _rule(text: str) -> re.Pattern:
    """Not within another word of the same letters; what follows may be a particle."""
    before, after = (r"(?<![A-Za-z0-9_])", r"(?![A-Za-z0-9_])")
    ascii_ends = [char.isascii() and (char.isalnum() or char == "_") for char in (text[0], text[-1])]
    return re.compile((before if ascii_ends[0] else "") + re.escape(text) + (after if ascii_ends[1] else ""))


class _Look:
    def __init__(self, source: str, said: str, alignment: Sequence[tuple[int, int]]):
        self.source, self.said, self.alignment = source, said, alignment
        self.starts = [[match.start() for match in _WORDS.finditer(text)] for text in (source, said)]
        self.linked: dict[int, set[int]] = {}
        for one, other in alignment:
            self.linked.setdefault(one, set()).add(other)

    def _word(self, side: int, place: int) -> int:
        """The number of the word in which a place is."""
        return max(0, bisect_left(self.starts[side], place + 1) - 1)

    def chosen(
        self, numbers: Sequence[int], pieces: Sequence[Piece], spots: Sequence[tuple[int, int]]
    ) -> Iterator[tuple[int, tuple[int, int]]]:
        """Pieces of one text, each with its place."""
        if len(spots) == len(numbers) or max(len(spots), len(numbers)) > FEW:
            yield from zip(numbers, spots, strict=False)
            return
        left = list(spots)
        for number, piece in zip(numbers, pieces, strict=True):
            wanted = piece.start * len(self.said) / max(1, len(self.source))
            linked = self.linked.get(self._word(0, piece.start), set())
            ranks = [(self._word(1, start) not in linked, abs(start - wanted), start) for start, _ in left]
            if ranks:
                yield number, left.pop(ranks.index(min(ranks)))

    def signed(self, places: dict[int, tuple[int, int]], pieces: Sequence[Piece], free: Iterator[str]) -> Kept:
        parts, place, known = [], 0, {}
        joined: set[int] = set()  # words that are one with the word before them
        sure: list[tuple[int, int]] = []
        for number, (start, end) in sorted(places.items(), key=lambda own: own[1]):
            if (sign := next(free, "")) == "":
                break
            known[sign] = number
            parts += [self.said[place:start], sign]
            place = end
            first, last = self._word(1, start), self._word(1, end - 1)
            joined |= set(range(first + 1, last + 1))
            sure += [
                (word, first)
                for word in range(self._word(0, pieces[number].start), self._word(0, pieces[number].end - 1) + 1)
            ]
        before = sorted(joined)
        new = [word - bisect_left(before, word + 1) for word in range(len(self.starts[1]))]
        links = {(one, new[other]) for one, other in [*self.alignment, *sure] if 0 <= other < len(new)}
        return Kept("".join([*parts, self.said[place:]]), sorted(links), known)

"""Glossaries: how terms are to be translated, and where they stand in a text.

A term is found where words begin and end. A Korean noun may have particles behind it (투빅스 is in 투빅스가). A term in small letters is
found in any case, another as it is written; of terms that overlap the longest counts.
"""

import codecs
import json
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from pathlib import Path
from typing import Any, NamedTuple

from heed.text import protect

LONGEST = 200  # characters of a term: more is a sentence
_PARTICLES = (
    "은|는|이|가|을|를|의|에|에서|에게|에게서|께|께서|한테|한테서|더러|보고|로|으로|로서|으로서|로써|으로써|와|과|랑|이랑|하고|도|만|뿐|부터|까지|조차|마저|밖에|처럼|"
    "보다|같이|만큼|대로|마다|씩|나|이나|든지|이든지|든|이든|라도|이라도|야|이야|아|여|이여|요|이요|들|님|씨|란|이란|라는|이라는|라고|이라고|라면|이라면|인|인가|일|"
    "다|이다|입니다|이에요|예요|였다|이었다|였어요|이었어요|였습니다|이었습니다|입니까|입니다만|이니|이고|이며|며|지만|이지만|인데|인데요|이죠|죠|네요|이네요|라서|이라서|여서|이어서|이므로|므로|"
    "이거나|거나|이냐|치고|커녕|이야말로|야말로"
)
_AFTER = re.compile(rf"(?:{_PARTICLES}){{1,4}}(?![가-힣])")
_HALF = re.compile("[\ud800-\udfff]")
_HANGUL = re.compile(r"[가-힣ㄱ-ㆎᄀ-ᇿ]")
_UNSPACED = re.compile(r"[぀-ヿ㐀-鿿豈-﫿ｦ-ﾟ฀-๿຀-໿ក-៿က-႟\U00020000-\U0003ffff]")  # no spaces between words


class Match(NamedTuple):
    """Where a term stands in a text, and what is to become of it."""

    start: int
    end: int
    source: str
    target: str


class Glossary:
    """Terms with their translations; what is in `keep` stays as it is."""

    def __init__(self, terms: Mapping[str, str] | None = None, keep: Iterable[str] = ()):
        if isinstance(keep, str):
            raise ValueError(f"keep is the text {keep!r}; it is a list of terms")
        self.terms: dict[str, str] = {}
        for source, target in (terms or {}).items():
            self._add(_checked(source, "the glossary"), _checked(target, f"the glossary, {source!r}"))
        self.keep = tuple(dict.fromkeys(_checked(term, "keep") for term in keep))
        for term in self.keep:
            if self.terms.get(term, term) != term:
                raise ValueError(
                    f"{term!r} is to be kept, and to become {self.terms[term]!r}: a term can be in keep or in the glossary"
                )
        self._exact, self._folded, self._lengths = self._index()

    def __bool__(self) -> bool:
        return bool(self.terms or self.keep)

    def _add(self, source: str, target: str) -> None:
        if self.terms.setdefault(source, target) != target:
            raise ValueError(f"the glossary has {source!r} twice, as {self.terms[source]!r} and as {target!r}")

    def _index(self) -> tuple[dict[str, str | None], dict[str, str | None], dict[str, list[int]]]:
        """Terms as they are, those in small letters, and by their first letter how long terms are; None is kept."""
        exact: dict[str, str | None] = {**self.terms, **dict.fromkeys(self.keep)}
        folded = {term: target for term, target in exact.items() if term == _folded(term)}
        lengths: dict[str, set[int]] = {}
        for term in exact:
            lengths.setdefault(_folded(term[0]), set()).add(len(term))
        return exact, folded, {first: sorted(own, reverse=True) for first, own in lengths.items()}

    def matches(self, text: str) -> list[Match]:
        """The terms in a text, in their order; their places are those in its NFC. In an address, a tag or code there are none."""
        if not self:
            return []
        text = unicodedata.normalize("NFC", text)
        both = text, _folded(text)
        found = [match for start in range(len(text)) if (match := self._longest(both, start, len(text) - start))]
        found = _outside(found, text)
        heap = [(match.start - match.end, match) for match in found]
        heapify(heap)
        taken, kept = bytearray(len(text)), []
        while heap:
            match = heappop(heap)[1]
            other = taken.find(1, match.start, match.end)
            if other < 0:
                taken[match.start : match.end] = b"\1" * (match.end - match.start)
                kept.append(match)
            elif shorter := self._longest(both, match.start, other - match.start):
                heappush(heap, (shorter.start - shorter.end, shorter))
        return sorted(kept)

    def _longest(self, both: tuple[str, str], start: int, room: int) -> Match | None:
        """The longest term that begins here, of so many characters at most."""
        text, folded = both
        lengths = self._lengths.get(folded[start])
        if lengths is None or not _begins(text, start):
            return None
        for length in lengths:
            own, end = text[start : start + length], start + length
            known = self._exact if own in self._exact else self._folded
            term = own if known is self._exact else folded[start:end]
            if length <= room and term in known and _ends(text, end):
                return Match(start, end, own, own if known[term] is None else known[term])
        return None


def _outside(matches: list[Match], text: str) -> list[Match]:
    """Those that are no part of what must stay as it is; they may be all of it."""
    pieces = protect.find(text) if matches else []
    if not pieces:
        return matches
    starts = [piece.start for piece in pieces]
    around = [pieces[max(0, bisect_right(starts, match.start) - 1)] for match in matches]
    each = zip(matches, around, strict=True)
    return [own for own, it in each if own[:2] == it[:2] or own.start < it.start or own.end > it.end]


def read(path: str | Path, keep: Iterable[str] = ()) -> Glossary:
    """A glossary from a file: a JSON object, or lines of a term, a tab and its translation."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ValueError(f"{path}: the glossary cannot be read: {error.strerror}") from None
    encoding = "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ValueError(f"{path}, line {line} is not UTF-8: convert it first, for example with iconv") from None
    return parse(text, str(path), keep)


def parse(text: str, name: str = "the glossary", keep: Iterable[str] = ()) -> Glossary:
    """A glossary from its text: a JSON object, or lines of a term, a tab and its translation."""
    text = text.removeprefix("\ufeff")
    first = text.lstrip().partition("\n")[0]
    if name.endswith(".json") or (first[:1] in ("{", "[", '"') and ("\t" not in first or _is_json(text))):
        return Glossary(_from_json(text, name), keep)
    return Glossary(_from_lines(text, name), keep)


def _is_json(text: str) -> bool:
    """Of a text that may be lines, too: terms can begin with brackets."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _from_json(text: str, name: str) -> dict[str, str]:
    def read(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for source, target in pairs:
            if found.setdefault(_checked(source, name), target) != target:
                raise ValueError(f"{name} has {source!r} twice: a term has one translation")
        return found

    try:
        terms = json.loads(text, object_pairs_hook=read)
    except json.JSONDecodeError as error:
        raise ValueError(f"{name}, line {error.lineno}: not JSON ({error.msg}, column {error.colno})") from None
    except RecursionError:
        raise ValueError(f"{name}: a glossary is one object of terms, and this has many within each other") from None
    if not isinstance(terms, dict):
        raise ValueError(f'{name} is JSON, but no object: it must be {{"term": "its translation", ...}}')
    return {source: _checked(target, f"{name}, {source!r}") for source, target in terms.items()}


def _from_lines(text: str, name: str) -> dict[str, str]:
    terms: dict[str, str] = {}
    lines: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        cells, where = line.removesuffix("\r").split("\t"), f"{name}, line {number}"
        if len(cells) != 2:
            raise ValueError(f"{where} has {len(cells)} columns; it must be a term, a tab and its translation")
        source, target = (_checked(cell, where) for cell in cells)
        if terms.setdefault(source, target) != target:
            raise ValueError(f"{where} has {source!r} again; line {lines[source]} gives it another translation")
        lines.setdefault(source, number)
    return terms


def _checked(term: Any, where: str) -> str:
    """A term as it is looked for and written: NFC, with single spaces."""
    if not isinstance(term, str):
        raise ValueError(f"{where}: a term is a text, not {term!r}")
    clean = " ".join(unicodedata.normalize("NFC", term).split())
    if _HALF.search(clean):
        raise ValueError(f"{where}: {clean[:30]!r} has half of a character in it (a surrogate); write it again")
    if not clean:
        raise ValueError(f"{where}: a term is empty; leave the line out, or write it")
    if len(clean) > LONGEST:
        raise ValueError(f"{where}: {clean[:30]!r}… has {len(clean)} characters; a term has at most {LONGEST}")
    return clean


def _folded(text: str) -> str:
    """Small letters, as many as there were."""
    return "".join(small if len(small := char.lower()) == 1 else char for char in text)


def kind(char: str) -> str:
    """Of which kind of writing a character is: "hangul", "unspaced" (no spaces between words), "word" or ""."""
    if _HANGUL.match(char):
        return "hangul"
    if _UNSPACED.match(char):
        return "unspaced"
    return "word" if char.isalnum() or char == "_" or unicodedata.category(char).startswith("M") else ""


def _apart(before: str, after: str) -> bool:
    """Whether a word may end, and another begin, between two characters."""
    one, other = kind(before), kind(after)
    return one != other or one in ("", "unspaced")


def _begins(text: str, place: int) -> bool:
    return place == 0 or _apart(text[place - 1], text[place])


def _ends(text: str, place: int) -> bool:
    if place >= len(text) or _apart(text[place - 1], text[place]):
        return True
    return kind(text[place]) == "hangul" and _AFTER.match(text, place) is not None


def merged(one: "Glossary | Mapping[str, str] | None", keep: Sequence[str] = ()) -> Glossary:
    """A glossary of what a caller has: one that is read, a dictionary, nothing; and what is to be kept."""
    if isinstance(one, Glossary):
        return Glossary(one.terms, [*one.keep, *keep]) if keep else one
    return Glossary(one, keep)

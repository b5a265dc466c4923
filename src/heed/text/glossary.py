"""Glossaries: how terms must be translated, and where they occur in a text.

A term matches whole words; Korean particles may follow it (투빅스 matches in 투빅스가). A lower-case term matches in any case, other
terms match exactly as written. Of overlapping terms the longest wins.
"""

import codecs
import json
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from heapq import heapify, heappop, heappush
from pathlib import Path
from typing import Any, NamedTuple

from heed.text import protect

MAX_LENGTH = 200  # characters of a term; anything longer is a sentence
_PARTICLES = (
    "은|는|이|가|을|를|의|에|에서|에게|에게서|께|께서|한테|한테서|더러|보고|로|으로|로서|으로서|로써|으로써|와|과|랑|이랑|하고|도|만|뿐|부터|까지|조차|마저|밖에|처럼|"
    "보다|같이|만큼|대로|마다|씩|나|이나|든지|이든지|든|이든|라도|이라도|야|이야|아|여|이여|요|이요|들|님|씨|란|이란|라는|이라는|라고|이라고|라면|이라면|인|인가|일|"
    "다|이다|입니다|이에요|예요|였다|이었다|였어요|이었어요|였습니다|이었습니다|입니까|입니다만|이니|이고|이며|며|지만|이지만|인데|인데요|이죠|죠|네요|이네요|라서|이라서|여서|이어서|이므로|므로|"
    "이거나|거나|이냐|치고|커녕|이야말로|야말로"
)
_PARTICLES_END = re.compile(rf"(?:{_PARTICLES}){{1,4}}(?![가-힣])")
_SURROGATE = re.compile("[\ud800-\udfff]")
_HANGUL = re.compile(r"[가-힣ㄱ-ㆎᄀ-ᇿ]")
_UNSPACED = re.compile(r"[぀-ヿ㐀-鿿豈-﫿ｦ-ﾟ฀-๿຀-໿ក-៿က-႟\U00020000-\U0003ffff]")  # no spaces between words


class Match(NamedTuple):
    """An occurrence of a term in a text, and its required translation."""

    start: int
    end: int
    source: str
    target: str


class Glossary:
    """Terms with their translations; the terms in `keep` are not translated."""

    def __init__(self, terms: Mapping[str, str] | None = None, keep: Iterable[str] = ()):
        if isinstance(keep, str):
            raise ValueError(f"keep is the text {keep!r}; it must be a list of terms")
        self.terms: dict[str, str] = {}
        for source, target in (terms or {}).items():
            term, target = _checked(source, "the glossary"), _checked(target, f"the glossary, {source!r}")
            if self.terms.setdefault(term, target) != target:
                raise ValueError(f"the glossary has {term!r} twice, as {self.terms[term]!r} and as {target!r}")
        self.keep = tuple(dict.fromkeys(_checked(term, "keep") for term in keep))
        for term in self.keep:
            if self.terms.get(term, term) != term:
                raise ValueError(
                    f"{term!r} is to be kept and also translated as {self.terms[term]!r}: a term can be in keep or in "
                    "the glossary, not both"
                )
        self._exact, self._folded, self._lengths = self._index()

    def keeping(self, names: Sequence[str]) -> "Glossary":
        """The same with more terms to keep; existing terms are not checked again."""
        own = copy(self)
        own.keep = tuple(dict.fromkeys([*self.keep, *(_checked(name, "keep") for name in names)]))
        own._exact, own._folded, own._lengths = own._index()
        return own

    def __bool__(self) -> bool:
        return bool(self.terms or self.keep)

    def _index(self) -> tuple[dict[str, str | None], dict[str, str | None], dict[str, list[int]]]:
        """Terms as written, lowercase terms, and the lengths of terms by first letter. A kept term has target None."""
        exact: dict[str, str | None] = {**self.terms, **dict.fromkeys(self.keep)}
        folded = {term: target for term, target in exact.items() if term == _folded(term)}
        lengths: dict[str, set[int]] = {}
        for term in exact:
            lengths.setdefault(_folded(term[0]), set()).add(len(term))
        return exact, folded, {first: sorted(sizes, reverse=True) for first, sizes in lengths.items()}

    def matches(self, text: str) -> list[Match]:
        """The terms in a text, in order, with positions in its NFC form. URLs, tags and code have none."""
        if not self:
            return []
        text = unicodedata.normalize("NFC", text)
        folded = _folded(text)
        found = [match for i in range(len(text)) if (match := self._longest(text, folded, i, len(text) - i))]
        heap = [(match.start - match.end, match) for match in _outside_protected(found, text)]
        heapify(heap)
        taken, chosen = bytearray(len(text)), []
        while heap:
            match = heappop(heap)[1]
            next_taken = taken.find(1, match.start, match.end)
            if next_taken < 0:
                taken[match.start : match.end] = b"\1" * (match.end - match.start)
                chosen.append(match)
            elif shorter := self._longest(text, folded, match.start, next_taken - match.start):
                heappush(heap, (shorter.start - shorter.end, shorter))
        return sorted(chosen)

    def _longest(self, text: str, folded: str, start: int, max_length: int) -> Match | None:
        """The longest term that begins at `start`."""
        lengths = self._lengths.get(folded[start])
        if lengths is None or not _begins_word(text, start):
            return None
        for length in lengths:
            found, end = text[start : start + length], start + length
            terms = self._exact if found in self._exact else self._folded
            term = found if terms is self._exact else folded[start:end]
            if length <= max_length and term in terms and _ends_word(text, end):
                return Match(start, end, found, found if terms[term] is None else terms[term])
        return None


def _outside_protected(matches: list[Match], text: str) -> list[Match]:
    """The matches that are not part of a protected span; one may be a whole span."""
    spans = protect.find(text) if matches else []
    if not spans:
        return matches
    starts = [span.start for span in spans]
    nearest = [spans[max(0, bisect_right(starts, match.start) - 1)] for match in matches]
    pairs = zip(matches, nearest, strict=True)
    return [m for m, span in pairs if m[:2] == span[:2] or m.start < span.start or m.end > span.end]


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
    """Whether it is JSON rather than lines: terms can begin with brackets, too."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _from_json(text: str, name: str) -> dict[str, str]:
    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for source, target in pairs:
            if found.setdefault(_checked(source, name), target) != target:
                raise ValueError(f"{name} has {source!r} twice: a term has one translation")
        return found

    try:
        terms = json.loads(text, object_pairs_hook=collect, parse_int=_number)
    except json.JSONDecodeError as error:
        raise ValueError(f"{name}, line {error.lineno}: not JSON ({error.msg}, column {error.colno})") from None
    except RecursionError:
        raise ValueError(f"{name}: a glossary is a flat object of terms, and this one is deeply nested") from None
    if not isinstance(terms, dict):
        raise ValueError(f'{name} is JSON, but not an object: it must be {{"term": "its translation", ...}}')
    return {source: _checked(target, f"{name}, {source!r}") for source, target in terms.items()}


def _number(digits: str) -> float:
    """A number, which is never a valid term; Python refuses to parse one with thousands of digits."""
    return int(digits) if len(digits) < 20 else float(digits)


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
    """A term as it is searched and written: NFC, with single spaces."""
    if not isinstance(term, str):
        raise ValueError(f"{where}: a term must be a string, not {term!r}")
    clean = " ".join(unicodedata.normalize("NFC", term).split())
    if _SURROGATE.search(clean):
        raise ValueError(f"{where}: {clean[:30]!r} contains a lone surrogate; enter it again")
    if not clean:
        raise ValueError(f"{where}: a term is empty; remove the line, or fill it in")
    if len(clean) > MAX_LENGTH:
        raise ValueError(f"{where}: {clean[:30]!r}… has {len(clean)} characters; a term has at most {MAX_LENGTH}")
    return clean


def _folded(text: str) -> str:
    """Lower case, of the same length."""
    return "".join(lower if len(lower := char.lower()) == 1 else char for char in text)


def char_class(char: str) -> str:
    """How a character forms words: "hangul", "unspaced" (no spaces between words), "word", or "" for punctuation."""
    if _HANGUL.match(char):
        return "hangul"
    if _UNSPACED.match(char):
        return "unspaced"
    return "word" if char.isalnum() or char == "_" or unicodedata.category(char).startswith("M") else ""


def _is_boundary(before: str, after: str) -> bool:
    """Whether one word may end and another begin between two characters."""
    one, other = char_class(before), char_class(after)
    return one != other or one in ("", "unspaced")


def _begins_word(text: str, position: int) -> bool:
    return position == 0 or _is_boundary(text[position - 1], text[position])


def _ends_word(text: str, position: int) -> bool:
    if position >= len(text) or _is_boundary(text[position - 1], text[position]):
        return True
    return char_class(text[position]) == "hangul" and _PARTICLES_END.match(text, position) is not None


def as_glossary(terms: "Glossary | Mapping[str, str] | None", keep: Sequence[str] = ()) -> Glossary:
    """A Glossary from a Glossary, a dictionary or None, with `keep` added."""
    if isinstance(terms, Glossary):
        return Glossary(terms.terms, [*terms.keep, *keep]) if keep else terms
    return Glossary(terms, keep)

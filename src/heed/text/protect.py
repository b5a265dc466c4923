"""What must come through a translation as it is: addresses, placeholders, tags, code, emoji, and long numbers.

No model is trusted to keep them. A text is first translated as it stands; if a piece was changed, with short names in the
pieces' places; and in parts, cut around those that are lost even so. What comes out has each piece as often as what went in.
A number may be written in another way (1,234.5 or 1.234,5); where its digits are lost it is such a piece.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import count
from typing import NamedTuple

from heed.text.layout import has_words

Translate = Callable[[list[str]], Sequence[str]]
_ADDRESS = r"[!#-;=?-\[\]_a-z~]"  # the characters of an address
_PICTURE = "\U0001f000-\U0001faff\u2600-\u27bf\u2b00-\u2bff\u2300-\u23ff\u3030\u303d\u3297\u3299\u00a9\u00ae"
_SHADE = "\ufe0e\ufe0f\u20e3\U0001f3fb-\U0001f3ff"
KINDS = {
    "code": r"`+",  # and what they close
    "template": r"\{\{[^{}]*\}\}|\{%[^{}]*%\}|[$#]\{[^{}\s]*\}|\{[\w.$\[\]!:,<>^=+#%-]*\}",
    "comment": r"<!--",
    "tag": r"</?[A-Za-z][\w:-]*(?:\s[^<>]*)?/?>",
    "address": rf"(?:(?:https?|ftp|file)://|www\.){_ADDRESS}+(?:(?<=[/=_-])\w+{_ADDRESS}*)*",
    "mail": r"(?<![\w.+-])(?:mailto:)?[A-Za-z0-9_.+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+",
    "format": r"%%|(?<![\w%])%(?:\(\w+\)|\d{1,3}\$)?[-+#0]{0,5}\d{0,4}(?:\.\d{1,4})?(?:hh|h|ll|l|z)?[sdifFeEgGxXoucp@](?![A-Za-z])",
    "emoji": rf"[\U0001f1e6-\U0001f1ff]{{2}}|(?:[{_PICTURE}]|[0-9#*](?=\ufe0f?\u20e3))[{_SHADE}]*"
    rf"(?:\u200d[{_PICTURE}][{_SHADE}]*)*[\U000e0020-\U000e007f]*",
}
_EVERY = re.compile("|".join(f"(?P<{name}>{rule})" for name, rule in KINDS.items()))
_NUMBER = re.compile(r"(?<![A-Za-z0-9_.,])[0-9](?:[0-9]|[.,](?=[0-9]))+(?![A-Za-z0-9_])")
_WORD = re.compile("[A-Za-z0-9_]")
_TICKS = re.compile(r"`+|\n")
_CLOSERS = {")": "(", "]": "["}
TICKS, COMMENT = 8, 2000  # the most signs that begin code, and the longest comment
DEEP = 3  # so often a text is cut around what is lost; then around all


class Piece(NamedTuple):
    """A part of a text that is not to be translated."""

    start: int
    end: int
    text: str


def find(text: str, keep: Iterable[str] = ()) -> list[Piece]:
    """The pieces of a text that must stay, in order; `keep` are names and words that must stay too."""
    found = list(_found(text))
    found += _names(text, tuple(keep))
    apart: list[Piece] = []
    for piece in sorted(found, key=lambda one: (one.start, -one.end)):
        if not apart or piece.start >= apart[-1].end:
            apart.append(piece)
    return apart


def _found(text: str) -> Iterator[Piece]:
    closed, place = code_ends(text), 0
    while match := _EVERY.search(text, place):
        start, place = match.span()
        if match["code"]:
            end = closed.get(start, start)
        elif match["comment"]:
            end = comment_end(text, place)
        else:
            end = _address_end(text, start, place) if match["address"] else place
        if end > start:
            yield Piece(start, end, text[start:end])
            place = max(place, end)


def _names(text: str, keep: tuple[str, ...]) -> Iterator[Piece]:
    """Where names stand, the longest of those that begin in a place."""
    first, lengths, names = _index(keep)
    place = 0
    while first and (match := first.search(text, place)):
        start = match.start()
        each = (text[start : start + length] for length in lengths[match[0]])
        name = next((own for own in each if own in names and not _WORD.match(text, start + len(own))), "")
        place = start + max(1, len(name))
        if name:
            yield Piece(start, place, name)


@lru_cache(maxsize=16)
def _index(keep: tuple[str, ...]) -> tuple[re.Pattern | None, dict[str, list[int]], frozenset[str]]:
    """The letters that names begin with, how long those are, and the names: thousands are looked up, not tried."""
    names = frozenset(name for name in keep if name.strip())
    lengths: dict[str, set[int]] = {}
    for name in names:
        lengths.setdefault(name[0], set()).add(len(name))
    first = re.compile(f"(?<![A-Za-z0-9_])[{re.escape(''.join(lengths))}]") if names else None
    return first, {char: sorted(own, reverse=True) for char, own in lengths.items()}, names


def comment_end(text: str, place: int) -> int:
    """Where a comment ends whose text begins here; 0: nowhere near."""
    found = text.find("-->", place, place + COMMENT + 3)
    return found + 3 if found >= 0 else 0


def code_ends(text: str, lines: bool = True) -> dict[int, int]:
    """For each run of ` that begins code where that ends: after the next run of as many, in the same line if `lines`."""
    found: dict[int, int] = {}
    ends: dict[int, int] = {}  # of the next run, by its length
    for match in reversed(list(_TICKS.finditer(text)) if "`" in text else []):
        size = match.end() - match.start()
        if match[0] == "\n":
            ends = {} if lines else ends
        elif size <= TICKS:
            if size in ends:
                found[match.start()] = ends[size]
            ends[size] = match.end()
    return found


def _address_end(text: str, start: int, end: int) -> int:
    """An address does not end in what ends a sentence, or closes a bracket that was opened before it."""
    more = {last: text.count(last, start, end) - text.count(first, start, end) for last, first in _CLOSERS.items()}
    while end > start + 1:
        last = text[end - 1]
        if last not in ".,;:!?'*_" and more.get(last, 0) <= 0:
            break
        more[last] = more.get(last, 0) - 1
        end -= 1
    return end


def translate(texts: Sequence[str], translate: Translate, keep: Iterable[str] = ()) -> list[str]:
    """Translations in which every piece of a text is as it was, and as often."""
    return _translate(list(texts), translate, tuple(keep), 0)


def _translate(texts: list[str], translate: Translate, keep: tuple[str, ...], depth: int) -> list[str]:
    jobs = [_Job(text, keep) for text in texts]
    for ask in (_Job.as_it_is, _Job.with_names):
        left = [job for job in jobs if job.result is None]
        if left:
            for job, said in zip(left, translate([ask(job) for job in left]), strict=True):
                job.take(said)
        jobs = [
            _Job(text, (*keep, *job.numbers)) if job.numbers else job for text, job in zip(texts, jobs, strict=True)
        ]
    left = [job for job in jobs if job.result is None]
    parts = [job.parts(everything=depth >= DEEP) for job in left]
    flat = [part for own in parts for part in own]
    said = iter(_translate(flat, translate, keep, depth + 1) if flat else [])
    for job, own in zip(left, parts, strict=True):
        job.put_together([next(said) for _ in own])
    return [job.result for job in jobs]


class _Job:
    """A text on its way. What stands at its ends and is protected is never shown to a model."""

    def __init__(self, text: str, keep: tuple[str, ...]):
        self.keep = keep
        start, end, pieces = 0, len(text), find(text, keep)
        low, high = 0, len(pieces)
        while low < high and not has_words(text[start : pieces[low].start]):
            start, low = pieces[low].end, low + 1
        while low < high and not has_words(text[pieces[high - 1].end : end]):
            end, high = pieces[high - 1].start, high - 1
        core = text[start:end]
        self.text = core.strip()
        left = start + len(core) - len(core.lstrip())
        self.before, self.after = text[:left], text[left + len(self.text) :]
        self.pieces = [Piece(one.start - left, one.end - left, one.text) for one in pieces[low:high]]
        self.lost = self.pieces
        self.names: list[str] = []
        self.numbers: list[str] = []  # that were lost
        self.result: str | None = None if has_words(self.text) else text

    def as_it_is(self) -> str:
        return self.text

    def with_names(self) -> str:
        """With a short name in the place of each piece, as streets and aeroplanes have them: models copy such names."""
        letters = next(sign * times for times in count(1) for sign in "XQZ" if f"{sign * times}1" not in self.text)
        self.names = [f"{letters}{number}" for number in range(1, len(self.pieces) + 1)]
        return _spliced(self.text, self.pieces, self.names)

    def take(self, said: str) -> None:
        """Look at what a model made of it: if each piece is there, that is the result."""
        if self.names:
            own = dict(zip(self.names, (one.text for one in self.pieces), strict=True))
            rule = re.compile(rf"(?<![A-Za-z0-9]){self.names[0].rstrip('0123456789')}[0-9]+")
            times = Counter(rule.findall(said))
            self.lost = [one for one, name in zip(self.pieces, self.names, strict=True) if times[name] != 1]
            said = rule.sub(lambda match: own.get(match[0], match[0]), said)
        kept = Counter(one.text for one in find(said, self.keep)) == Counter(one.text for one in self.pieces)
        if kept or not self.pieces:
            self.result = self.before + said + self.after
            self.numbers = [] if self.names else self._lost_numbers(said)

    def _lost_numbers(self, said: str) -> list[str]:
        """Numbers of three digits or more, or with stops in them, whose digits were not said."""
        rest = _spliced(self.text, self.pieces, [" "] * len(self.pieces))
        long = [own for own in _NUMBER.findall(rest) if len(own) > 2]
        there = _digits(said) if long else ""
        return [own for own in dict.fromkeys(long) if _digits(own) not in there]

    def parts(self, everything: bool) -> list[str]:
        """The text, cut around what was lost; around all, where that cannot be told."""
        self.lost = self.pieces if everything or not self.lost else self.lost
        ends = [0, *(place for one in self.lost for place in one[:2]), len(self.text)]
        return [self.text[start:end] for start, end in zip(ends[::2], ends[1::2], strict=True)]

    def put_together(self, said: list[str]) -> None:
        first, *others = said
        whole = first + "".join(one.text + part for one, part in zip(self.lost, others, strict=True))
        self.result = self.before + whole + self.after


def _digits(text: str) -> str:
    return "".join(str(unicodedata.decimal(char)) for char in text if char.isdecimal())


def _spliced(text: str, pieces: Sequence[Piece], others: Sequence[str]) -> str:
    """A text with something else in the place of its pieces."""
    found, place = [], 0
    for piece, other in zip(pieces, others, strict=True):
        found += [text[place : piece.start], other]
        place = piece.end
    return "".join([*found, text[place:]])

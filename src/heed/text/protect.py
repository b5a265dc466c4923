"""What must come through a translation as it is: addresses, placeholders, tags, code, emoji.

No model is trusted to keep them. A text is first translated as it stands; if a piece was changed, with short names in the
pieces' places; and in parts, cut around those that are lost even so. What comes out has each piece as often as what went in.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import NamedTuple

from heed.text.layout import has_words

Translate = Callable[[list[str]], Sequence[str]]
_ADDRESS = r"[!#-;=?-\[\]_a-z~]"  # the characters of an address
_PICTURE = "\U0001f000-\U0001faff\u2600-\u27bf\u2b00-\u2bff\u2300-\u23ff\u3030\u303d\u3297\u3299\u00a9\u00ae"
_SHADE = "\ufe0e\ufe0f\u20e3\U0001f3fb-\U0001f3ff"
KINDS = {
    "code": r"(?<!`)(?P<ticks>`{1,8})(?!`).+?(?<!`)(?P=ticks)(?!`)",
    "template": r"\{\{[^{}]*\}\}|\{%[^{}]*%\}|[$#]\{[^{}\s]*\}|\{[\w.$\[\]!:,<>^=+#%-]*\}",
    "tag": r"<!--.{0,2000}?-->|</?[A-Za-z][\w:-]*(?:\s[^<>]*)?/?>",
    "address": rf"(?:(?:https?|ftp|file)://|www\.){_ADDRESS}+(?:(?<=[/=_-])\w+{_ADDRESS}*)*",
    "mail": r"(?<![\w.+-])(?:mailto:)?[A-Za-z0-9_.+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+",
    "format": r"%%|(?<![\w%])%(?:\(\w+\)|\d+\$)?[-+#0]*\d*(?:\.\d+)?(?:hh|h|ll|l|z)?[sdifFeEgGxXoucp@](?![A-Za-z])",
    "emoji": rf"[\U0001f1e6-\U0001f1ff]{{2}}|(?:[{_PICTURE}]|[0-9#*](?=\ufe0f?\u20e3))[{_SHADE}]*"
    rf"(?:\u200d[{_PICTURE}][{_SHADE}]*)*[\U000e0020-\U000e007f]*",
}
_EVERY = re.compile("|".join(f"(?P<{name}>{rule})" for name, rule in KINDS.items()))
_CLOSERS = {")": "(", "]": "["}
DEEP = 3  # so often a text is cut around what is lost; then around all


class Piece(NamedTuple):
    """A part of a text that is not to be translated."""

    start: int
    end: int
    text: str


def find(text: str, keep: Iterable[str] = ()) -> list[Piece]:
    """The pieces of a text that must stay, in order; `keep` are names and words that must stay too."""
    found = [_piece(text, match) for match in _EVERY.finditer(text)]
    if names := sorted({name for name in keep if name.strip()}, key=len, reverse=True):
        rule = rf"(?<![A-Za-z0-9_])(?:{'|'.join(map(re.escape, names))})(?![A-Za-z0-9_])"
        found += [Piece(match.start(), match.end(), match[0]) for match in re.finditer(rule, text)]
    apart: list[Piece] = []
    for piece in sorted(found, key=lambda one: (one.start, -one.end)):
        if not apart or piece.start >= apart[-1].end:
            apart.append(piece)
    return apart


def _piece(text: str, match: re.Match) -> Piece:
    """An address does not end in what ends a sentence, or closes a bracket that was opened before it."""
    end = match.end()
    while match["address"] and end > match.start() + 1:
        last, own = text[end - 1], text[match.start() : end]
        if last not in ".,;:!?'*_" and not (last in _CLOSERS and own.count(last) > own.count(_CLOSERS[last])):
            break
        end -= 1
    return Piece(match.start(), end, text[match.start() : end])


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
        while pieces and not has_words(text[start : pieces[0].start]):
            start = pieces.pop(0).end
        while pieces and not has_words(text[pieces[-1].end : end]):
            end = pieces.pop().start
        core = text[start:end]
        self.text = core.strip()
        left = start + len(core) - len(core.lstrip())
        self.before, self.after = text[:left], text[left + len(self.text) :]
        self.pieces = [Piece(one.start - left, one.end - left, one.text) for one in pieces]
        self.lost = self.pieces
        self.names: list[str] = []
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
            rules = [re.compile(rf"(?<![A-Za-z0-9]){name}(?![0-9])") for name in self.names]
            self.lost = [one for one, rule in zip(self.pieces, rules, strict=True) if len(rule.findall(said)) != 1]
            for one, rule in zip(self.pieces, rules, strict=True):
                said = rule.sub(lambda _, own=one.text: own, said)
        kept = Counter(one.text for one in find(said, self.keep)) == Counter(one.text for one in self.pieces)
        if kept or not self.pieces:
            self.result = self.before + said + self.after

    def parts(self, everything: bool) -> list[str]:
        """The text, cut around what was lost; around all, where that cannot be told."""
        self.lost = self.pieces if everything or not self.lost else self.lost
        ends = [0, *(place for one in self.lost for place in one[:2]), len(self.text)]
        return [self.text[start:end] for start, end in zip(ends[::2], ends[1::2], strict=True)]

    def put_together(self, said: list[str]) -> None:
        first, *others = said
        whole = first + "".join(one.text + part for one, part in zip(self.lost, others, strict=True))
        self.result = self.before + whole + self.after


def _spliced(text: str, pieces: Sequence[Piece], others: Sequence[str]) -> str:
    """A text with something else in the place of its pieces."""
    found, place = [], 0
    for piece, other in zip(pieces, others, strict=True):
        found += [text[place : piece.start], other]
        place = piece.end
    return "".join([*found, text[place:]])

"""Text with marks in it (tags, emphasis, runs of a document) through a translation: the marks are put back by word alignment.

A mark goes around the words that are aligned to those it was around. Each comes back once: where its words are not together any
more, around most of them; where none is left, where they would be. So marks stay nested as they were, and none is lost.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

from heed.text import kept, sentences
from heed.text.layout import has_words

DEEPEST = 100  # marks within each other
SPACES = " \t\n\r\f"  # what counts as one space where spaces are put together
_WORDS = re.compile(r"\S+")


class Translated(NamedTuple):
    """A translation and which words go with which, as (source word, target word); words are what spaces part."""

    text: str
    alignment: Sequence[tuple[int, int]] = ()


Translate = Callable[[list[str]], Sequence[Translated | str]]


class Piece(NamedTuple):
    """A part of what is read. An "opaque" one is shown to the translator as `text` and comes back as it was."""

    kind: Literal["text", "open", "close", "point", "opaque"]
    raw: str
    text: str = ""
    name: str = ""


@dataclass(eq=False)
class Node:
    """A mark with what is in it, from `start` to `end` of the text. A point has no room in it."""

    open: str = ""
    close: str = ""
    kind: str = "element"
    name: str = ""
    start: int = 0
    end: int = 0
    parent: "Node | None" = None
    items: list["Node"] = field(default_factory=list)
    before: bool = False  # whether white space stood before it
    after: bool = False

    @cached_property
    def path(self) -> list["Node"]:
        """The marks around it, from the outermost to itself."""
        return [*(self.parent.path if self.parent else ()), self]


@dataclass
class Marked:
    """A text without its marks, and the marks. `spaces` are the white spaces as they were, by their places in the text."""

    text: str
    root: Node
    spaces: dict[int, str]
    owners: list[Node]  # of each character
    opaque: list[Node]


@dataclass(frozen=True)
class Style:
    """How text is written: `escape` is for every text, `loose` for text outside the marks named `holds`, if it needs one.

    `joins`: white space is one space, however much there is.
    """

    escape: Callable[[str], str] = str
    loose: Callable[[str], str] | None = None
    holds: str = ""
    joins: bool = True


def read(pieces: Sequence[Piece], style: Style) -> Marked:
    """The tree of marks over their text. A mark without its other half is a point."""
    reader = _Reader(style)
    halves = _halves(pieces)
    for number, piece in enumerate(pieces):
        reader.take(piece, half=number in halves)
    reader.root.end = len(reader.chars)
    return Marked("".join(reader.chars), reader.root, reader.spaces, reader.owners, reader.opaque)


def _halves(pieces: Sequence[Piece]) -> set[int]:
    """The numbers of marks that open and never close, or close what was not open."""
    opened: list[int] = []
    names: Counter[str] = Counter()  # of what is open
    found: set[int] = set()
    for number, piece in enumerate(pieces):
        if piece.kind == "open":
            opened.append(number)
            names[piece.name] += 1
        elif piece.kind == "close" and not names[piece.name]:
            found.add(number)
        elif piece.kind == "close":
            while (own := pieces[opened[-1]].name) != piece.name:
                found.add(opened.pop())
                names[own] -= 1
            opened.pop()
            names[piece.name] -= 1
    return found | set(opened)


class _Reader:
    def __init__(self, style: Style):
        self.style = style
        self.root = self.node = Node()
        self.chars: list[str] = []
        self.owners: list[Node] = []
        self.spaces: dict[int, str] = {}
        self.waiting: list[Node] = []  # after which nothing has come yet
        self.opaque: list[Node] = []

    def take(self, piece: Piece, half: bool) -> None:
        if piece.kind == "text":
            self._text(piece.text)
        elif piece.kind == "open" and not half:
            self.node = self._add(Node(piece.raw, name=piece.name))
        elif piece.kind == "close" and not half:
            self.node.close, self.node.end = piece.raw, len(self.chars)
            self.waiting.append(self.node)
            self.node = self.node.parent
        else:
            own = self._add(Node(piece.raw, kind="opaque" if piece.kind == "opaque" else "point"))
            self.node = own
            self._text(piece.text)
            self.node, own.end = own.parent, len(self.chars)
            self.waiting.append(own)
            self.opaque += [own] if own.kind == "opaque" else []

    def _add(self, node: Node) -> Node:
        node.start, node.parent = len(self.chars), self.node
        if len(node.path) > DEEPEST + 1:
            raise ValueError(
                f"the text has more than {DEEPEST} marks within each other: it cannot be translated with them"
            )
        node.before = bool(self.chars) and self.chars[-1].isspace()
        self.node.items.append(node)
        return node

    def _text(self, text: str) -> None:
        behind = bool(self.waiting)  # spaces behind a mark are not counted to those before it
        if text:
            for node in self.waiting:
                node.after = text[0] in SPACES
            self.waiting = []
        for char in text:
            if char in SPACES and self.style.joins:
                if self.chars and self.chars[-1] == " " and len(self.chars) - 1 in self.spaces:
                    self.spaces[len(self.chars) - 1] += "" if behind else char
                    continue
                self.spaces[len(self.chars)] = char
                char = " "
            behind = False
            self.chars.append(char)
            self.owners.append(self.node)


@dataclass
class Words:
    """The words of a translation of a marked text: the space before each, the space at the end, and what each goes with.

    `kept` are the opaque marks that are in it, by the signs that stand for them.
    """

    source: list[tuple[int, int]]
    target: list[str]
    gaps: list[str]
    tail: str
    links: list[tuple[int, int]]
    changed: bool
    kept: dict[str, Node]


Span = tuple[
    int, int, int | None
]  # from where to where a sentence stands, and which of all it is; None: it has no words


class Sentences:
    """Marked texts, to be translated sentence by sentence, all of them in one call."""

    def __init__(self, language: str | None):
        self.language = language
        self.texts: list[str] = []

    def ask(self, marked: Marked) -> list[Span]:
        """The sentences of a text, and which translation of all each will have; None: it has no words."""
        found = []
        for start, end in sentences.spans(marked.text, self.language):
            own = has_words(marked.text[start:end])
            found.append((start, end, len(self.texts) if own else None))
            self.texts += [marked.text[start:end]] * own
        return found


def put_together(marked: Marked, spans: Sequence[tuple[int, int]], said: Sequence[Translated | str]) -> Words:
    """The words of all sentences, as one."""
    words, place, gap = Words([], [], [], "", [], False, {}), 0, ""
    each = [own if isinstance(own, Translated) else Translated(own) for own in said]
    free = kept.signs([own.text for own in each])
    for (start, end), own in zip(spans, each, strict=True):
        gap += _space(marked, place, start)
        place = end
        source = marked.text[start:end]
        words.changed |= own.text != source
        own, signs = _with_signs(marked, start, end, _aligned(own, source), free)
        words.kept |= signs
        found = list(_WORDS.finditer(own.text))
        links = _sure(own.alignment, source.split(), own.text.split())
        words.links += [(s + len(words.source), t + len(words.target)) for s, t in links]
        words.source += [(start + m.start(), start + m.end()) for m in _WORDS.finditer(source)]
        for number, match in enumerate(found):
            words.gaps.append(gap if not number else own.text[found[number - 1].end() : match.start()])
            words.target.append(match[0])
            gap = ""
    words.tail = gap + _space(marked, place, len(marked.text))
    return words


def _with_signs(
    marked: Marked, start: int, end: int, own: Translated, free: Iterator[str]
) -> tuple[Translated, dict[str, Node]]:
    """A translation with a sign for each opaque mark of its sentence, and whose sign each is."""
    inner, pieces = opaque(marked, start, end)
    signed = kept.found(marked.text[start:end], pieces, *own, free)
    return Translated(signed.text, signed.alignment), {sign: inner[number] for sign, number in signed.signs.items()}


def opaque(marked: Marked, start: int, end: int) -> tuple[list[Node], list[kept.Piece]]:
    """The opaque marks of a sentence, and what they are in it."""
    low, high = (bisect_left(marked.opaque, place, key=lambda node: node.start) for place in (start, end))
    inner = [node for node in marked.opaque[low:high] if node.end <= end]
    return inner, [
        kept.Piece(marked.text[node.start : node.end], node.start - start, node.end - start) for node in inner
    ]


def _aligned(said: Translated, source: str) -> Translated:
    """With an alignment: where there is none, of words that are as far along. What was not changed goes with itself."""
    sources, targets = len(source.split()), len(said.text.split())
    if said.text == source:
        return said._replace(alignment=[(i, i) for i in range(sources)])
    known = [(s, t) for s, t in said.alignment if 0 <= s < sources and 0 <= t < targets]
    return said._replace(alignment=known or [(t * sources // targets, t) for t in range(targets) if sources])


def _sure(links: Sequence[tuple[int, int]], sources: list[str], targets: list[str]) -> list[tuple[int, int]]:
    """What was copied goes with itself, and with nothing else."""
    once = _once(sources) & _once(targets)
    where = [{word: number for number, word in enumerate(own)} for own in (sources, targets)]
    sure = {where[1][word]: where[0][word] for word in once}
    taken = set(sure.values())
    return [(s, t) for s, t in links if t not in sure and s not in taken] + [(s, t) for t, s in sure.items()]


def _once(words: list[str]) -> set[str]:
    """Words that are there once and say enough to be known again."""
    return {word for word, times in Counter(words).items() if times == 1 and len(word) > 2}


def _space(marked: Marked, start: int, end: int) -> str:
    return "".join(marked.spaces.get(i, marked.text[i]) for i in range(start, end))

"""Text with inline marks (tags, emphasis, runs of a document) as plain sentences, and the translated words aligned to
it. A mark is placed around the words aligned to those it enclosed in the source. Each is restored once: around most
of its words if they are no longer adjacent; where they would be if none is left. So marks stay nested, and none is
lost.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

from heed.text import placeholders, sentences
from heed.text.layout import has_words
from heed.text.placeholders import Alignment, OpaqueSpan

MAX_DEPTH = 100  # of nested marks
WHITE_SPACE = " \t\n\r\f"  # collapses into one space where the style says so
_WORDS = re.compile(r"\S+")


class Translated(NamedTuple):
    """A translation and its word alignment, as (source word, target word); words are separated by spaces."""

    text: str
    alignment: Alignment = ()


Answer = Translated | str
Translate = Callable[[list[str]], Sequence[Answer]]


def text_of(answer: Answer) -> str:
    """The text of a translation that may have an alignment."""
    return answer.text if isinstance(answer, Translated) else answer


class InlineToken(NamedTuple):
    """A piece of text or a mark, `raw` in the file. An "opaque" token is shown to the translator as `text` but stays `raw`."""

    kind: Literal["text", "open", "close", "point", "opaque"]
    raw: str
    text: str = ""
    name: str = ""


@dataclass(eq=False)
class Node:
    """A mark and the marks within it, from `start` to `end`. A "point" or "unpaired" mark has no content."""

    open: str = ""
    close: str = ""
    kind: str = "element"
    name: str = ""
    start: int = 0
    end: int = 0
    parent: "Node | None" = None
    children: list["Node"] = field(default_factory=list)
    space_before: bool = False
    space_after: bool = False

    @cached_property
    def path(self) -> list["Node"]:
        """The marks around it, from the outermost to itself."""
        return [*(self.parent.path if self.parent else ()), self]


@dataclass
class MarkedText:
    """A text without its marks, and the tree of marks. `spaces` is the original white space by position in the text."""

    text: str
    root: Node
    spaces: dict[int, str]
    owners: list[Node]  # the innermost mark of each character
    opaque: list[Node]


@dataclass(frozen=True)
class Style:
    """How text is written: `escape` for every text; `wrap` for text outside the marks named `container`, if needed.
    `collapse_spaces`: any amount of whitespace counts as one space.
    """

    escape: Callable[[str], str] = str
    wrap: Callable[[str], str] | None = None
    container: str = ""
    collapse_spaces: bool = True


def build_tree(tokens: Sequence[InlineToken], style: Style) -> MarkedText:
    """The tree of marks over their text. A mark without its counterpart has no content."""
    builder = _TreeBuilder(style)
    unpaired = _unpaired(tokens)
    for number, token in enumerate(tokens):
        builder.add(token, unpaired=number in unpaired)
    builder.root.end = len(builder.chars)
    return MarkedText("".join(builder.chars), builder.root, builder.spaces, builder.owners, builder.opaque)


def _unpaired(tokens: Sequence[InlineToken]) -> set[int]:
    """The numbers of opening marks that are never closed, and of closing marks that were never opened."""
    opened: list[int] = []
    names: Counter[str] = Counter()  # of the open marks
    found: set[int] = set()
    for number, token in enumerate(tokens):
        if token.kind == "open":
            opened.append(number)
            names[token.name] += 1
        elif token.kind == "close" and not names[token.name]:
            found.add(number)
        elif token.kind == "close":
            while (name := tokens[opened[-1]].name) != token.name:
                found.add(opened.pop())
                names[name] -= 1
            opened.pop()
            names[token.name] -= 1
    return found | set(opened)


class _TreeBuilder:
    def __init__(self, style: Style):
        self.style = style
        self.root = self.node = Node()
        self.chars: list[str] = []
        self.owners: list[Node] = []
        self.spaces: dict[int, str] = {}
        self.closed: list[Node] = []  # marks after which no text has come yet
        self.opaque: list[Node] = []

    def add(self, token: InlineToken, unpaired: bool) -> None:
        if token.kind == "text":
            self._add_text(token.text)
        elif token.kind == "open" and not unpaired:
            self.node = self._add_node(Node(token.raw, name=token.name))
        elif token.kind == "close" and not unpaired:
            self.node.close, self.node.end = token.raw, len(self.chars)
            self.closed.append(self.node)
            self.node = self.node.parent
        else:
            node = self._add_node(Node(token.raw, kind="unpaired" if unpaired else token.kind))
            self.node = node
            self._add_text(token.text.strip())  # with a space at an edge, an opaque mark would join words
            self.node, node.end = node.parent, len(self.chars)
            self.closed.append(node)
            self.opaque += [node] if node.kind == "opaque" else []

    def _add_node(self, node: Node) -> Node:
        node.start, node.parent = len(self.chars), self.node
        if len(node.path) > MAX_DEPTH + 1:
            raise ValueError(f"the text has more than {MAX_DEPTH} nested tags: it cannot be translated with them")
        node.space_before = bool(self.chars) and self.chars[-1].isspace()
        self.node.children.append(node)
        return node

    def _add_text(self, text: str) -> None:
        after_mark = bool(self.closed)  # spaces after a mark do not belong to those before it
        if text:
            for node in self.closed:
                node.space_after = text[0] in WHITE_SPACE
            self.closed = []
        for char in text:
            if char in WHITE_SPACE and self.style.collapse_spaces:
                if self.chars and self.chars[-1] == " " and len(self.chars) - 1 in self.spaces:
                    self.spaces[len(self.chars) - 1] += "" if after_mark else char
                    continue
                self.spaces[len(self.chars)] = char
                char = " "
            after_mark = False
            self.chars.append(char)
            self.owners.append(self.node)


@dataclass
class AlignedWords:
    """The translation of a marked text as words: the space before each, the space at the end, and the alignment.

    `source` are the spans of the source words; `placeholders` are the opaque marks in the translation.
    """

    source: list[tuple[int, int]]
    target: list[str]
    gaps: list[str]
    tail: str
    links: list[tuple[int, int]]
    changed: bool
    placeholders: dict[str, Node]


SentenceSpan = tuple[int, int, int | None]  # start, end, and number among all sentences; None: it has no words


class SentenceBatch:
    """The sentences of many marked texts, to be translated in one call."""

    def __init__(self, language: str | None):
        self.language = language
        self.texts: list[str] = []

    def add(self, marked: MarkedText) -> list[SentenceSpan]:
        """The sentences of a text, each with the index of its translation in the batch."""
        found = []
        for start, end in sentences.spans(marked.text, self.language):
            translatable = has_words(marked.text[start:end])
            found.append((start, end, len(self.texts) if translatable else None))
            self.texts += [marked.text[start:end]] * translatable
        return found


def join_sentences(marked: MarkedText, spans: list[tuple[int, int]], translations: list[Answer]) -> AlignedWords:
    """The words of all translated sentences of a text, as one."""
    words, position, gap = AlignedWords([], [], [], "", [], False, {}), 0, ""
    aligned = [one if isinstance(one, Translated) else Translated(one) for one in translations]
    unused = placeholders.unused([one.text for one in aligned])
    for (start, end), translated in zip(spans, aligned, strict=True):
        gap += _original_space(marked, position, start)
        position = end
        source = marked.text[start:end]
        words.changed |= translated.text != source
        target, nodes = _with_placeholders(marked, start, end, _with_alignment(translated, source), unused)
        words.placeholders |= nodes
        found = list(_WORDS.finditer(target.text))
        links = _link_copies(target.alignment, source.split(), target.text.split())
        words.links += [(s + len(words.source), t + len(words.target)) for s, t in links]
        words.source += [(start + m.start(), start + m.end()) for m in _WORDS.finditer(source)]
        for number, match in enumerate(found):
            words.gaps.append(gap if not number else target.text[found[number - 1].end() : match.start()])
            words.target.append(match[0])
            gap = ""
    words.tail = gap + _original_space(marked, position, len(marked.text))
    return words


def _with_placeholders(
    marked: MarkedText, start: int, end: int, translated: Translated, unused: Iterator[str]
) -> tuple[Translated, dict[str, Node]]:
    """A translation with a placeholder for each opaque mark of its sentence, and the mark of each placeholder."""
    nodes, spans = opaque_spans(marked, start, end)
    located = placeholders.locate(marked.text[start:end], spans, *translated, unused)
    return Translated(located.text, located.alignment), {char: nodes[i] for char, i in located.spans.items()}


def opaque_spans(marked: MarkedText, start: int, end: int) -> tuple[list[Node], list[OpaqueSpan]]:
    """The opaque marks of a sentence, and their spans in it."""
    low, high = (bisect_left(marked.opaque, position, key=lambda node: node.start) for position in (start, end))
    nodes = [node for node in marked.opaque[low:high] if node.end <= end]
    spans = [OpaqueSpan(marked.text[node.start : node.end], node.start - start, node.end - start) for node in nodes]
    return nodes, spans


def _with_alignment(translated: Translated, source: str) -> Translated:
    """A translation without an alignment is aligned proportionally; an unchanged one word by word."""
    sources, targets = len(source.split()), len(translated.text.split())
    if translated.text == source:
        return translated._replace(alignment=[(i, i) for i in range(sources)])
    valid = [(s, t) for s, t in translated.alignment if 0 <= s < sources and 0 <= t < targets]
    return translated._replace(alignment=valid or [(t * sources // targets, t) for t in range(targets) if sources])


def _link_copies(links: Alignment, sources: list[str], targets: list[str]) -> list[tuple[int, int]]:
    """The alignment with copied words linked to their originals, and to nothing else."""
    copied = _unique(sources) & _unique(targets)
    in_source, in_target = ({word: number for number, word in enumerate(words)} for words in (sources, targets))
    copies = {in_target[word]: in_source[word] for word in copied}
    originals = set(copies.values())
    return [(s, t) for s, t in links if t not in copies and s not in originals] + [(s, t) for t, s in copies.items()]


def _unique(words: list[str]) -> set[str]:
    """Words that occur once and are long enough to be recognized."""
    return {word for word, times in Counter(words).items() if times == 1 and len(word) > 2}


def _original_space(marked: MarkedText, start: int, end: int) -> str:
    return "".join(marked.spaces.get(i, marked.text[i]) for i in range(start, end))

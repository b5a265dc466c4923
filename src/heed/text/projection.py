"""Where marks go in a translation, and the text with them in it."""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from functools import reduce
from itertools import groupby

from heed.text import inline, kept
from heed.text.inline import Marked, Node, Piece, Sentences, Span, Style, Translate, Translated, Words

Token = tuple[bool, str]  # whether it is text, and what it is
PLAIN = Style()


def translate(
    runs: Sequence[Sequence[Piece]],
    translate: Translate,
    style: Style | Sequence[Style] = PLAIN,
    language: str | None = None,
) -> list[str]:
    """Runs of text with marks, each with its sentences translated. What is not changed stays as it was, to the byte."""
    asked = Sentences(language)
    styles = [style] * len(runs) if isinstance(style, Style) else style
    marked = [inline.read(run, own) for run, own in zip(runs, styles, strict=True)]
    spans = [asked.ask(own) for own in marked]
    said = list(translate(asked.texts)) if asked.texts else []
    if len(said) != len(asked.texts):
        raise ValueError(f"{len(said)} translations for {len(asked.texts)} sentences: each needs one")
    _ask_again(marked, spans, said, translate)
    found = []
    for run, own, places, style in zip(runs, marked, spans, styles, strict=True):
        texts = [own.text[start:end] if number is None else said[number] for start, end, number in places]
        words = inline.put_together(own, [(start, end) for start, end, _ in places], texts)
        found.append(write(own, words, style) if words.changed else "".join(piece.raw for piece in run))
    return found


def _ask_again(
    marked: Sequence[Marked], spans: Sequence[Sequence[Span]], said: list[Translated | str], translate: Translate
) -> None:
    """Sentences that lost what must stay, with that as code: put into `said`, if it then is all there."""
    again: list[tuple[int, str, list[kept.Piece]]] = []
    for own, places in zip(marked, spans, strict=True):
        for start, end, number in places if own.opaque else ():
            pieces = inline.opaque(own, start, end)[1]
            if number is not None and pieces and kept.lost(pieces, text_of(said[number])):
                again.append((number, kept.ticked(own.text[start:end], pieces), pieces))
    answers = translate([text for _, text, _ in again]) if again else []
    for (number, _, pieces), answer in zip(again, answers, strict=True):
        text = kept.unticked(text_of(answer), pieces)
        if not kept.lost(pieces, text):
            said[number] = answer._replace(text=text) if isinstance(answer, Translated) else text


def text_of(said: Translated | str) -> str:
    return said.text if isinstance(said, Translated) else said


def write(marked: Marked, words: Words, style: Style) -> str:
    """The translation with all marks of the text."""
    writer = _Writer(marked, words, style)
    first = words.gaps[0] if words.gaps else ""
    return writer.inside(marked.root, 0, len(words.target), first, words.tail)


class _Writer:
    def __init__(self, marked: Marked, words: Words, style: Style):
        self.marked, self.words, self.style = marked, words, style
        self.target = list(words.target)
        self.kept = set(words.kept.values())
        self.sign = re.compile(f"([{''.join(words.kept)}])") if words.kept else None
        self.of_source = [self._owner(start, end) for start, end in words.source]
        self.linked: dict[int, list[int]] = {}
        for source, target in words.links:
            self.linked.setdefault(source, []).append(target)
        self.of_target = self._owners()

    # which mark each word is in

    def _owner(self, start: int, end: int) -> Node:
        """The innermost mark around most letters of a source word."""
        owners = [own.parent if own in self.kept else own for own in self.marked.owners[start:end]]
        spoken = [own for own, char in zip(owners, self.marked.text[start:end], strict=True) if char.isalnum()]
        return _most(spoken or owners)

    def _owners(self) -> list[Node]:
        """The mark of each target word; one that goes with no source word is where both its neighbours are."""
        found: list[list[Node]] = [[] for _ in self.target]
        for source, target in sorted(self.words.links):
            found[target].append(self.of_source[source])
        for target, word in enumerate(self.target if self.sign else ()):
            if parents := [self.words.kept[sign].parent for sign in self.sign.findall(word)]:
                found[target] = [reduce(_common, parents)]
        edge = self._around_all()
        before, left = [], edge
        for own in found:
            before.append(left)
            left = _most(own) if own else left
        known, right = [], edge
        for own, left in zip(reversed(found), reversed(before), strict=True):
            known.append(_most(own) if own else _common(left, right))
            right = known[-1] if own else right
        return known[::-1]

    def _around_all(self) -> Node:
        """The innermost mark around all words."""
        around = self.of_source[0] if self.of_source else self.marked.root
        for own in set(self.of_source):
            around = _common(around, own)
        return around

    # where the marks within a mark go

    def _ranges(self, node: Node, low: int, high: int) -> dict[Node, tuple[int, int]]:
        """For each mark within a mark the words it goes around; those without any are not among them."""
        sources = {_child(node, self.of_source[i]) for i in self._own(node) if _within(node, self.of_source[i])}
        if len(sources) == 1 and None not in sources and low < high:
            return {sources.pop(): (low, high)}
        found: dict[Node, tuple[int, int]] = {}
        place = low
        for item, group in groupby(_child(node, own) for own in self.of_target[low:high]):
            size = len(list(group))
            if item is not None and size > found.get(item, (0, 0))[1] - found.get(item, (0, 0))[0]:
                found[item] = place, place + size
            place += size
        return {item: self._itself(item, *words) for item, words in found.items()}

    def _itself(self, item: Node, low: int, high: int) -> tuple[int, int]:
        """Of the words that go with what is opaque, that in which it stands as it is, if there is one."""
        text = self.marked.text[item.start : item.end]
        own = [i for i in range(low, high) if item.kind == "opaque" and text and text in self.target[i]]
        return (own[0], own[0] + 1) if own else (low, high)

    def _own(self, node: Node) -> range:
        """The numbers of the source words that are in a mark, or partly."""
        first = bisect_right(self.words.source, node.start, key=lambda word: word[1])
        return range(first, bisect_left(self.words.source, node.end, key=lambda word: word[0]))

    def _spot(self, node: Node, item: Node, low: int, high: int, around: list[tuple[int, int, Node]]) -> int:
        """Before which word a mark without words goes: where the source word after it went, or the one before."""
        own = self._own(node)
        first = bisect_left(self.words.source, item.start, own.start, own.stop, key=lambda word: word[0])
        before, after = range(own.start, first), range(first, own.stop)
        if not after or not before:
            return high if before else low
        following = [t for t in self.linked.get(after[0], ()) if low <= t < high][:1]
        leading = [t + 1 for t in self.linked.get(before[-1], ()) if low <= t < high][-1:]
        spots = following + leading if item.before else leading + following
        spot = spots[0] if spots else low + (high - low) * len(before) // len(own)
        start, end, other = (
            around[max(0, bisect_left(around, spot, key=lambda one: one[0]) - 1)] if around else (0, 0, node)
        )
        if start < spot < end:
            return start if item.start < other.start else end
        return spot

    # the text

    def inside(self, node: Node, low: int, high: int, first: str = "", last: str = "") -> str:
        """What is in a mark: the words from one to another, with the marks within it."""
        ranges = self._ranges(node, low, high)
        around = sorted(((*words, item) for item, words in ranges.items()), key=lambda one: one[0])
        spots: dict[int, list[Node]] = {}
        for item in node.items:
            if item not in ranges and item not in self.kept:
                spots.setdefault(self._spot(node, item, low, high, around), []).append(item)
        starts = {start: (item, end) for item, (start, end) in ranges.items()}
        tokens: list[Token] = []
        place, gap = low, first
        while place < high:
            left, right = _sides(spots.get(place, ()))
            item, end = starts.get(place, (None, place + 1))
            follows = self.words.gaps[end] if end < high else last
            runs = item is not None and self._holds(item) and not self._holds(node)  # spaces belong into a run
            lead = gap if runs and not right else ""
            tokens += [*self._empty(left), (True, gap[len(lead) :]), *self._empty(right, after=True)]
            tail = follows if runs and not spots.get(end) else ""
            tokens += self._word(place) if item is None else self._around(item, place, end, lead, tail)
            place, gap = end, follows[len(tail) :]
        last = gap if low < high else first + last
        left, right = _sides(spots.get(high, ()))
        space = " " if right and not last and low < high else last
        return self._joined(node, [*tokens, *self._empty(left), (True, space), *self._empty(right)])

    def _word(self, place: int) -> list[Token]:
        """A word, with what must stay in it."""
        parts = self.sign.split(self.target[place]) if self.sign else [self.target[place]]
        return [(i % 2 == 0, self.words.kept[part].open if i % 2 else part) for i, part in enumerate(parts)]

    def _around(self, item: Node, low: int, high: int, lead: str, tail: str) -> list[Token]:
        """A mark around words, and the spaces that go into it; stops and commas that stood outside stay there."""
        if item.kind == "opaque":
            text, said = self.marked.text[item.start : item.end], self.target[low]
            before, found, after = said.partition(text) if text else (said, "", "")
            before, after = (before, after) if found else self._outside(item, low, high)
            return [(True, lead + before), (False, item.open), (True, after + tail)]
        before, after = self._outside(item, low, high)
        inside = self.inside(item, low, high, "" if before else lead, "" if after else tail)
        own = (False, item.open + inside + item.close)
        return [(True, lead + before if before else ""), own, (True, after + tail if after else "")]

    def _outside(self, item: Node, low: int, high: int) -> tuple[str, str]:
        """Take off the first and the last word what is no letter, where the text had such things outside the mark."""
        own = [self.words.source[i] for i in self._own(item)]
        text, before, after = self.marked.text, "", ""
        if own and own[0][0] < item.start and not _spoken(text[own[0][0] : item.start]):
            before = self._marks(self.target[low], item.start - own[0][0])
            self.target[low] = self.target[low][len(before) :]
        if own and own[-1][1] > item.end and not _spoken(text[item.end : own[-1][1]]):
            after = self._marks(self.target[high - 1][::-1], own[-1][1] - item.end)[::-1]
            self.target[high - 1] = self.target[high - 1][: len(self.target[high - 1]) - len(after)]
        return before, after

    def _marks(self, word: str, most: int) -> str:
        """What a word begins with that is no letter, of so many signs at most; nothing if there is nothing else."""
        found = next((i for i, char in enumerate(word) if char.isalnum() or char in self.words.kept), 0)
        return word[: min(found, most)]

    def _empty(self, items: Sequence[Node], after: bool = False) -> list[Token]:
        """Marks without words, with the spaces they stood between."""
        tokens: list[Token] = []
        for item in items:
            inner = self.inside(item, 0, 0) if item.kind == "element" else ""
            tokens.append((False, item.open + inner + item.close))
            tokens.append((True, " " if after and item.after else ""))
        return tokens

    def _joined(self, node: Node, tokens: list[Token]) -> str:
        parts = []
        for is_text, group in groupby((token for token in tokens if token[1]), key=lambda token: token[0]):
            whole = "".join(part for _, part in group)
            whole = self.style.escape(whole) if is_text else whole
            parts.append(self.style.loose(whole) if is_text and not self._holds(node) else whole)
        return "".join(parts)

    def _holds(self, node: Node) -> bool:
        """Whether text may stand in a mark as it is."""
        return self.style.loose is None or node.name == self.style.holds


def _sides(items: Sequence[Node]) -> tuple[list[Node], list[Node]]:
    """Marks without words that stood right after a word, and the others."""
    left = []
    rest = list(items)
    while rest and not rest[0].before:
        left.append(rest.pop(0))
    return left, rest


def _child(node: Node, own: Node) -> Node | None:
    """The mark right within a mark in which another is, or that itself; None where it is not in any."""
    path, depth = own.path, len(node.path)
    return path[depth] if len(path) > depth and path[depth - 1] is node else None


def _common(one: Node, other: Node) -> Node:
    """The innermost mark around both."""
    return [node for node, own in zip(one.path, other.path, strict=False) if node is own][-1]


def _within(node: Node, own: Node) -> bool:
    """Whether a mark is another, or in it."""
    return len(own.path) >= len(node.path) and own.path[len(node.path) - 1] is node


def _most(nodes: Sequence[Node]) -> Node:
    """The one that is there most often; of equals the first."""
    return Counter(nodes).most_common(1)[0][0]


def _spoken(text: str) -> bool:
    return any(char.isalnum() for char in text)

"""Markup projection: place the marks of a source in its translation by word alignment."""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from functools import reduce
from itertools import groupby

from heed.text.inline import (  # isort: skip
    AlignedWords, Answer, InlineToken, MarkedText, Node, SentenceSpan, Style, Translate, Translated, text_of,
)  # fmt: skip
from heed.text import inline, placeholders

Fragment = tuple[bool, str]  # whether it is text, to be escaped, and the string
Run = Sequence[InlineToken]
PLAIN = Style()


def translate(
    runs: Sequence[Run], translate: Translate, style: Style | Sequence[Style] = PLAIN, language: str | None = None
) -> list[str]:
    """Translate runs of text with marks sentence by sentence. Unchanged runs are kept byte for byte."""
    batch = inline.SentenceBatch(language)
    styles = [style] * len(runs) if isinstance(style, Style) else style
    marked_texts = [inline.build_tree(run, style) for run, style in zip(runs, styles, strict=True)]
    spans = [batch.add(marked) for marked in marked_texts]
    translations = list(translate(batch.texts)) if batch.texts else []
    if len(translations) != len(batch.texts):
        raise ValueError(f"{len(translations)} translations for {len(batch.texts)} sentences: the numbers must match")
    _retry_lost(marked_texts, spans, translations, translate)
    results = []
    for run, marked, sentences, style in zip(runs, marked_texts, spans, styles, strict=True):
        texts = [marked.text[start:end] if i is None else translations[i] for start, end, i in sentences]
        words = inline.join_sentences(marked, [(start, end) for start, end, _ in sentences], texts)
        results.append(_project(marked, words, style) if words.changed else "".join(token.raw for token in run))
    return results


def _retry_lost(
    marked_texts: list[MarkedText], spans: list[list[SentenceSpan]], translations: list[Answer], translate: Translate
) -> None:
    """Retranslate sentences that lost opaque spans, with these as code; replace translations that are now complete."""
    retries: list[tuple[int, str, list[placeholders.OpaqueSpan]]] = []
    for marked, sentences in zip(marked_texts, spans, strict=True):
        for start, end, number in sentences if marked.opaque else ():
            opaque = inline.opaque_spans(marked, start, end)[1]
            if number is not None and opaque and placeholders.any_lost(opaque, text_of(translations[number])):
                retries.append((number, placeholders.quote_as_code(marked.text[start:end], opaque), opaque))
    answers = translate([text for _, text, _ in retries]) if retries else []
    for (number, _, opaque), answer in zip(retries, answers, strict=True):
        text = placeholders.unquote_code(text_of(answer), opaque)
        if not placeholders.any_lost(opaque, text):
            translations[number] = answer._replace(text=text) if isinstance(answer, Translated) else text


def _project(marked: MarkedText, words: AlignedWords, style: Style) -> str:
    """The translation with all marks of the source."""
    projector = _Projector(marked, words, style)
    first = words.gaps[0] if words.gaps else ""
    return projector.content(marked.root, 0, len(words.target), first, words.tail)


class _Projector:
    def __init__(self, marked: MarkedText, words: AlignedWords, style: Style):
        self.marked, self.words, self.style = marked, words, style
        self.target = list(words.target)
        self.replaced = set(words.placeholders.values())
        self.placeholder = re.compile(f"([{''.join(words.placeholders)}])") if words.placeholders else None
        self.source_owners = [self._source_owner(start, end) for start, end in words.source]
        self.linked: dict[int, list[int]] = {}
        for source, target in words.links:
            self.linked.setdefault(source, []).append(target)
        self.target_owners = self._find_target_owners()

    # Which mark each word is in.

    def _source_owner(self, start: int, end: int) -> Node:
        """The innermost mark around most letters of a source word."""
        owners = [node.parent if node in self.replaced else node for node in self.marked.owners[start:end]]
        of_letters = [node for node, char in zip(owners, self.marked.text[start:end], strict=True) if char.isalnum()]
        return _most_common(of_letters or owners)

    def _find_target_owners(self) -> list[Node]:
        """The mark of each target word; an unaligned word is in the marks shared by both its neighbours."""
        candidates: list[list[Node]] = [[] for _ in self.target]
        for source, target in sorted(self.words.links):
            candidates[target].append(self.source_owners[source])
        for target, word in enumerate(self.target if self.placeholder else ()):
            if parents := [self.words.placeholders[char].parent for char in self.placeholder.findall(word)]:
                candidates[target] = [reduce(_common_ancestor, parents)]
        edge = reduce(
            _common_ancestor, dict.fromkeys(self.source_owners) or [self.marked.root]
        )  # around all source words
        before, left = [], edge
        for nodes in candidates:
            before.append(left)
            left = _most_common(nodes) if nodes else left
        owners, right = [], edge
        for nodes, left in zip(reversed(candidates), reversed(before), strict=True):
            owners.append(_most_common(nodes) if nodes else _common_ancestor(left, right))
            right = owners[-1] if nodes else right
        return owners[::-1]

    # Where the children of a mark go.

    def _child_ranges(self, node: Node, low: int, high: int) -> dict[Node, tuple[int, int]]:
        """The target words that each child encloses; children without words are not included."""
        owners, depth = [self.source_owners[i] for i in self._source_words(node)], len(node.path)
        children = {_child_towards(node, owner) for owner in owners if owner.path[depth - 1 : depth] == [node]}
        if len(children) == 1 and None not in children and low < high:
            return {children.pop(): (low, high)}
        found: dict[Node, tuple[int, int]] = {}
        position = low
        for child, group in groupby(_child_towards(node, owner) for owner in self.target_owners[low:high]):
            size = len(list(group))
            if child is not None and size > found.get(child, (0, 0))[1] - found.get(child, (0, 0))[0]:
                found[child] = position, position + size
            position += size
        return {child: self._opaque_word(child, *words) for child, words in found.items()}

    def _opaque_word(self, node: Node, low: int, high: int) -> tuple[int, int]:
        """For an opaque mark, the one word that has its text, if there is one; otherwise all words."""
        text = self.marked.text[node.start : node.end]
        words = [i for i in range(low, high) if node.kind == "opaque" and text and text in self.target[i]]
        return (words[0], words[0] + 1) if words else (low, high)

    def _source_words(self, node: Node) -> range:
        """The numbers of the source words that are in a mark, or partly."""
        first = bisect_right(self.words.source, node.start, key=lambda word: word[1])
        return range(first, bisect_left(self.words.source, node.end, key=lambda word: word[0]))

    def _wordless_position(self, child: Node, low: int, high: int, ranges: list[tuple[int, int, Node]]) -> int:
        """The word before which a child without words goes: where the next source word went, or after the previous
        one.
        """
        words = self._source_words(child.parent)
        first = bisect_left(self.words.source, child.start, words.start, words.stop, key=lambda word: word[0])
        before, after = range(words.start, first), range(first, words.stop)
        if not after or not before:
            return high if before else low
        following = [t for t in self.linked.get(after[0], ()) if low <= t < high][:1]
        preceding = [t + 1 for t in self.linked.get(before[-1], ()) if low <= t < high][-1:]
        options = following + preceding if child.space_before else preceding + following
        position = options[0] if options else low + (high - low) * len(before) // len(words)
        nearest = max(0, bisect_left(ranges, position, key=lambda one: one[0]) - 1)
        start, end, other = ranges[nearest] if ranges else (0, 0, child)
        if start < position < end:
            return start if child.start < other.start else end
        return position

    # The text.

    def content(self, node: Node, low: int, high: int, first: str = "", last: str = "") -> str:
        """The content of a mark: target words `low` to `high`, with its children; `first` and `last` are spaces around."""
        ranges = self._child_ranges(node, low, high)
        ordered = sorted(((*words, child) for child, words in ranges.items()), key=lambda one: one[0])
        wordless: dict[int, list[Node]] = {}
        latest = low  # unpaired marks keep their order: their counterparts are in other runs, in this order
        for child in node.children:
            if child not in ranges and child not in self.replaced:
                position = self._wordless_position(child, low, high, ordered)
                if child.kind == "unpaired":
                    position = latest = max(latest, position)
                wordless.setdefault(position, []).append(child)
        starts = {start: (child, end) for child, (start, end) in ranges.items()}
        fragments: list[Fragment] = []
        position, gap = low, first
        while position < high:
            left, right = _split_attached(wordless.get(position, ()))
            child, end = starts.get(position, (None, position + 1))
            next_gap = self.words.gaps[end] if end < high else last
            is_run = child is not None and self._may_hold(child) and not self._may_hold(node)  # holds its own spaces
            lead = gap if is_run and not right else ""
            fragments += [*self._wordless(left), (True, gap[len(lead) :]), *self._wordless(right, spaced=True)]
            tail = next_gap if is_run and not wordless.get(end) else ""
            fragments += self._word(position) if child is None else self._around(child, position, end, lead, tail)
            position, gap = end, next_gap[len(tail) :]
        last = gap if low < high else first + last
        left, right = _split_attached(wordless.get(high, ()))
        space = " " if right and not last and low < high else last
        return self._joined(node, [*fragments, *self._wordless(left), (True, space), *self._wordless(right)])

    def _word(self, position: int) -> list[Fragment]:
        """A target word, with opaque marks in place of their placeholders."""
        parts = self.placeholder.split(self.target[position]) if self.placeholder else [self.target[position]]
        return [(i % 2 == 0, self.words.placeholders[part].open if i % 2 else part) for i, part in enumerate(parts)]

    def _around(self, node: Node, low: int, high: int, lead: str, tail: str) -> list[Fragment]:
        """A mark around words, with its inner spaces; punctuation outside of it stays there."""
        if node.kind == "opaque":
            text, word = self.marked.text[node.start : node.end], self.target[low]
            before, found, after = word.partition(text) if text else (word, "", "")
            before, after = (before, after) if found else self._strip_punctuation(node, low, high)
            return [(True, lead + before), (False, node.open), (True, after + tail)]
        before, after = self._strip_punctuation(node, low, high)
        content = self.content(node, low, high, "" if before else lead, "" if after else tail)
        element = (False, node.open + content + node.close)
        return [(True, lead + before if before else ""), element, (True, after + tail if after else "")]

    def _strip_punctuation(self, node: Node, low: int, high: int) -> tuple[str, str]:
        """Strip punctuation from the first and last word if the source had it outside the mark."""
        words = [self.words.source[i] for i in self._source_words(node)]
        text, before, after = self.marked.text, "", ""
        if words and words[0][0] < node.start and not _has_letters(text[words[0][0] : node.start]):
            before = self._leading_punctuation(self.target[low], node.start - words[0][0])
            self.target[low] = self.target[low][len(before) :]
        if words and words[-1][1] > node.end and not _has_letters(text[node.end : words[-1][1]]):
            after = self._leading_punctuation(self.target[high - 1][::-1], words[-1][1] - node.end)[::-1]
            self.target[high - 1] = self.target[high - 1][: len(self.target[high - 1]) - len(after)]
        return before, after

    def _leading_punctuation(self, word: str, limit: int) -> str:
        """The first characters of a word that are not letters, up to `limit`; nothing if the word has no letters."""
        is_letter = (char.isalnum() or char in self.words.placeholders for char in word)
        return word[: min(next((i for i, letter in enumerate(is_letter) if letter), 0), limit)]

    def _wordless(self, nodes: Sequence[Node], spaced: bool = False) -> list[Fragment]:
        """Marks without words, with the spaces that followed them if `spaced`."""
        fragments: list[Fragment] = []
        for node in nodes:
            content = self.content(node, 0, 0) if node.kind == "element" else ""
            fragments.append((False, node.open + content + node.close))
            fragments.append((True, " " if spaced and node.space_after else ""))
        return fragments

    def _joined(self, node: Node, fragments: list[Fragment]) -> str:
        parts = []
        for is_text, group in groupby((one for one in fragments if one[1]), key=lambda one: one[0]):
            whole = "".join(part for _, part in group)
            whole = self.style.escape(whole) if is_text else whole
            parts.append(self.style.wrap(whole) if is_text and not self._may_hold(node) else whole)
        return "".join(parts)

    def _may_hold(self, node: Node) -> bool:
        """Whether text may be directly in a mark."""
        return self.style.wrap is None or node.name == self.style.container


def _split_attached(nodes: Sequence[Node]) -> tuple[list[Node], list[Node]]:
    """Marks without words that came right after a word, and the others."""
    left, right = [], list(nodes)
    while right and not right[0].space_before:
        left.append(right.pop(0))
    return left, right


def _child_towards(node: Node, descendant: Node) -> Node | None:
    """The child of a mark that is or contains the descendant; None if it has no such child."""
    path, depth = descendant.path, len(node.path)
    return path[depth] if len(path) > depth and path[depth - 1] is node else None


def _common_ancestor(one: Node, other: Node) -> Node:
    """The innermost mark around both."""
    return [node for node, match in zip(one.path, other.path, strict=False) if node is match][-1]


def _most_common(nodes: Sequence[Node]) -> Node:
    """The most frequent mark; the first of equally frequent ones."""
    return Counter(nodes).most_common(1)[0][0]


def _has_letters(text: str) -> bool:
    return any(char.isalnum() for char in text)

"""Word links of sentences and their translations: which pairs can be aligned, and the positions of their words."""

import re
from collections.abc import Callable, Sequence
from typing import Any

WordLinks = list[tuple[int, int]]  # (source word, target word); words are separated by whitespace
Align = Callable[[list[str], list[str], list[int]], Sequence[WordLinks]]
_WORD = re.compile(r"\S+")


def word_links(
    translator: Any, sources: Sequence[str], targets: Sequence[str], align: Align | None = None
) -> list[WordLinks]:
    """The links of each pair; none if the model has no attention, or if a side is empty or too long for the model.
    `align(sources, targets, sizes)` aligns the other pairs, with their sizes in subwords (default: the translator
    itself).
    """
    links: list[WordLinks] = [[] for _ in sources]
    if getattr(translator.model.config, "attention", None) == "off":
        return links
    ids = translator.source.encode(list(sources)), translator.target.encode(list(targets))
    # the bound of Translator.encode_pairs: a longer pair would raise there, and every shorter one can be aligned
    longest = [translator.bundle.max_length - len(special.before) - 1 for special in translator.special]
    pairs = enumerate(zip(*ids, strict=True))
    sizes = {i: len(s) + len(t) for i, (s, t) in pairs if 0 < len(s) <= longest[0] and 0 < len(t) <= longest[1]}
    alignable = [sources[i] for i in sizes], [targets[i] for i in sizes]
    found = align(*alignable, list(sizes.values())) if align else translator.align_pairs(*alignable)
    for i, pair_links in zip(sizes, found, strict=True):
        links[i] = pair_links
    return links


def word_spans(text: str, start: int, end: int, words: int) -> list[tuple[int, int]]:
    """The positions of the words of `text[start:end]` in the text; none if their number differs from what is
    expected.
    """
    spans = [(start + match.start(), start + match.end()) for match in _WORD.finditer(text[start:end])]
    return spans if len(spans) == words else []

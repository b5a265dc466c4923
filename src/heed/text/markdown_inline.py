"""Emphasis, links, code and the like within a Markdown block, each with its span in the text. markdown-it-py does not
report the positions of inline tokens, so its rules are run here one by one, and the span of each is recorded.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

_FOOTNOTE = re.compile(r"\[\^[^\[\]\s]+\]")


class Mark(NamedTuple):
    """A part of a block that is not plain text: the token of markdown-it-py, and its span."""

    token: Token
    start: int
    end: int


class _State(StateInline):
    """The parser state, with the position at which each token was created."""

    def push(self, ttype: str, tag: str, nesting: Any) -> Token:
        token = super().push(ttype, tag, nesting)
        token.meta = {"at": self.pos}
        return token


def marks(text: str, references: dict[str, Any]) -> list[Mark]:
    """The marks of a block, in order and without overlaps. The content of an image is part of its mark."""
    tokens: list[Token] = []
    state = _State(text, _PARSER, {"references": references}, tokens)
    _PARSER.inline.tokenize(state)
    for rule in _PARSER.inline.ruler2.getRules(""):
        rule(state)
    return list(_without_overlaps(_mark(token, text) for token in tokens if "end" in token.meta))


def _mark(token: Token, text: str) -> Mark:
    start, end = token.meta["at"], token.meta["end"]
    if token.type == "strong_open":  # its first star became an empty text
        start -= 1
    elif token.type == "strong_close":
        end += 1
    while token.type == "hardbreak" and text[start - 1 : start] in (" ", "\t"):
        start -= 1
    return Mark(token, start, end)


def _without_overlaps(found: Iterator[Mark]) -> Iterator[Mark]:
    position = 0
    for mark in sorted(found, key=lambda mark: (mark.start, mark.end)):
        if mark.token.type not in ("text", "softbreak") and mark.start >= position:
            yield mark
            position = mark.end


def _noted(rule: Callable[[StateInline, bool], bool]) -> Callable[[StateInline, bool], bool]:
    """A rule that records the span of its tokens."""

    def run(state: StateInline, silent: bool) -> bool:
        before, known = state.pos, len(state.tokens)
        found = rule(state, silent)
        if found and not silent:
            own = [token for token in state.tokens[known:] if token.meta and "end" not in token.meta]
            _note(own, before, state.pos)
        return found

    return run


def _note(own: list[Token], before: int, after: int) -> None:
    if all(token.type == "text" for token in own):  # delimiters: which of them are marks is decided later
        for token in own:
            token.meta = {"at": before, "end": before + len(token.content)}
            before = token.meta["end"]
    elif len(own) == 2:  # a link: its content was noted before
        own[0].meta = {"at": before, "end": before + 1}
        own[1].meta["end"] = after
    else:
        for token in own:
            token.meta = {"at": before, "end": after}


def _footnote(state: StateInline, silent: bool) -> bool:
    found = _FOOTNOTE.match(state.src, state.pos, state.posMax)
    if found and not silent:
        state.push("footnote_ref", "", 0)
    state.pos = found.end() if found else state.pos
    return found is not None


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark").enable("strikethrough")
    parser.inline.ruler2.disable("fragments_join")
    parser.inline.ruler.before("link", "footnote", _footnote)
    ruler = parser.inline.ruler
    for name, rule in zip(ruler.get_active_rules(), ruler.getRules(""), strict=True):
        ruler.at(name, _noted(rule))
    return parser


_PARSER = _parser()

"""Protected spans, which a translation must keep: URLs, template variables, tags, code, emoji and names to keep."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

_URL_CHAR = r"[!#-;=?-\[\]_a-z~]"
_EMOJI = "\U0001f000-\U0001faff\u2600-\u27bf\u2b00-\u2bff\u2300-\u23ff\u3030\u303d\u3297\u3299\u00a9\u00ae"
_EMOJI_MODIFIER = "\ufe0e\ufe0f\u20e3\U0001f3fb-\U0001f3ff"
KINDS = {
    "code": r"`+",  # up to its closing backticks, which code_ends finds
    "template": r"\{\{[^{}]*\}\}|\{%[^{}]*%\}|[$#]\{[^{}\s]*\}|\{[\w.$\[\]!:,<>^=+#%-]*\}",
    "comment": r"<!--",
    "tag": r"</?[A-Za-z][\w:-]*(?:\s[^<>]*)?/?>",
    "url": rf"(?:(?:https?|ftp|file)://|www\.){_URL_CHAR}+(?:(?<=[/=_-])\w+{_URL_CHAR}*)*",
    "mail": r"(?<![\w.+-])(?:mailto:)?[A-Za-z0-9_.+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+",
    "format": r"%%|(?<![\w%])%(?:\(\w+\)|\d{1,3}\$)?[-+#0]{0,5}\d{0,4}(?:\.\d{1,4})?(?:hh|h|ll|l|z)?[sdifFeEgGxXoucp@](?![A-Za-z])",
    "emoji": rf"[\U0001f1e6-\U0001f1ff]{{2}}|(?:[{_EMOJI}]|[0-9#*](?=\ufe0f?\u20e3))[{_EMOJI_MODIFIER}]*"
    rf"(?:\u200d[{_EMOJI}][{_EMOJI_MODIFIER}]*)*[\U000e0020-\U000e007f]*",
}
_PROTECTED = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in KINDS.items()))
_WORD_CHAR = re.compile("[A-Za-z0-9_]")
_BACKTICKS = re.compile(r"`+|\n")
_CLOSERS = {")": "(", "]": "["}
MAX_BACKTICKS, MAX_COMMENT = 8, 2000  # backticks around a code span, and characters of a comment


class ProtectedSpan(NamedTuple):
    """Part of a text that must not be translated."""

    start: int
    end: int
    text: str


def find(text: str, keep: Iterable[str] = ()) -> list[ProtectedSpan]:
    """The protected spans of a text, in order; `keep` are names and words to protect as well."""
    found = [*_patterns(text), *_kept_names(text, tuple(keep))]
    disjoint: list[ProtectedSpan] = []
    for span in sorted(found, key=lambda span: (span.start, -span.end)):
        if not disjoint or span.start >= disjoint[-1].end:
            disjoint.append(span)
    return disjoint


def pieces(text: str) -> list[tuple[str, str]]:
    """The parts of a text in order, each with its kind: "text", or "opaque" for a protected span."""
    parts, position = [], 0
    for span in find(text):
        parts += [("text", text[position : span.start]), ("opaque", span.text)]
        position = span.end
    return [(kind, part) for kind, part in [*parts, ("text", text[position:])] if part]


def _patterns(text: str) -> Iterator[ProtectedSpan]:
    closed, position = code_ends(text), 0
    while match := _PROTECTED.search(text, position):
        start, position = match.span()
        if match["code"]:
            end = closed.get(start, start)
        elif match["comment"]:
            end = comment_end(text, position)
        else:
            end = _url_end(text, start, position) if match["url"] else position
        if end > start:
            yield ProtectedSpan(start, end, text[start:end])
            position = max(position, end)


def _kept_names(text: str, keep: tuple[str, ...]) -> Iterator[ProtectedSpan]:
    """The names of `keep` in a text, the longest of those that begin at one position."""
    first, lengths, names = _index(keep)
    position = 0
    while first and (match := first.search(text, position)):
        start = match.start()
        candidates = (text[start : start + length] for length in lengths[match[0]])
        name = next((one for one in candidates if one in names and not _WORD_CHAR.match(text, start + len(one))), "")
        position = start + max(1, len(name))
        if name:
            yield ProtectedSpan(start, position, name)


@lru_cache(maxsize=16)
def _index(keep: tuple[str, ...]) -> tuple[re.Pattern | None, dict[str, list[int]], frozenset[str]]:
    """The first characters of the names, the lengths of names by first character, and the names: fast for thousands."""
    names = frozenset(name for name in keep if name.strip())
    lengths: dict[str, set[int]] = {}
    for name in names:
        lengths.setdefault(name[0], set()).add(len(name))
    first = re.compile(f"(?<![A-Za-z0-9_])[{re.escape(''.join(lengths))}]") if names else None
    return first, {char: sorted(sizes, reverse=True) for char, sizes in lengths.items()}, names


def comment_end(text: str, start: int) -> int:
    """The end of the comment whose text begins at `start`; 0 if it is not closed within the limit."""
    found = text.find("-->", start, start + MAX_COMMENT + 3)
    return found + 3 if found >= 0 else 0


def code_ends(text: str, lines: bool = True) -> dict[int, int]:
    """The end of each code span by its start: after the next run of as many backticks, in the same line if `lines`."""
    found: dict[int, int] = {}
    ends: dict[int, int] = {}  # end of the next run, by its length
    for match in reversed(list(_BACKTICKS.finditer(text)) if "`" in text else []):
        size = match.end() - match.start()
        if match[0] == "\n":
            ends = {} if lines else ends
        elif size <= MAX_BACKTICKS:
            if size in ends:
                found[match.start()] = ends[size]
            ends[size] = match.end()
    return found


def _url_end(text: str, start: int, end: int) -> int:
    """The end of a URL without sentence punctuation and closing brackets that belong to the sentence."""
    excess = {last: text.count(last, start, end) - text.count(first, start, end) for last, first in _CLOSERS.items()}
    while end > start + 1:
        last = text[end - 1]
        if last not in ".,;:!?'*_" and excess.get(last, 0) <= 0:
            break
        excess[last] = excess.get(last, 0) - 1
        end -= 1
    return end

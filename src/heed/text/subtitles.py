"""Subtitles, SubRip (.srt) and WebVTT (.vtt): the text is translated; numbers, times, notes and tags are kept."""

import html
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from heed.text import layout, markup, projection
from heed.text.inline import InlineToken, Style, Translate

_TIME = r"(?:\d+:)?\d\d:\d\d[,.]\d+"
_CUE_TIMES = re.compile(rf"\s*{_TIME}\s*-->\s*{_TIME}.*")
_CUE_TAG = re.compile(
    r"(?P<point>\{\\[^{}]*\}|<rt[^<>]*>[^<>]*</rt>|<[\d:.]+>)|<(?P<close>/?)(?P<name>[A-Za-z][\w.]*+)[^<>]*>", re.I
)
_TAGS = re.compile(r"(?:<[^<>]*>|\{\\[^{}]*\})*")
_DASHED = re.compile(rf"({_TAGS.pattern})((?:[-–—]\s*)?)(.*)", re.DOTALL)
_LINE_BREAKS = re.compile(r"[\t\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+")


def translate(text: str, translate: Translate, language: str | None, kind: Literal["srt", "vtt"] = "srt") -> str:
    """Subtitles, each cue with its number, times, tags and number of lines. Only WebVTT has entities (&amp;)."""
    lines = text.splitlines(keepends=True)
    speeches = [speech for start, end in _cues(lines) for speech in _speeches(lines, start, end)]
    cues = [
        _DASHED.fullmatch(" ".join(lines[i].strip() for i in range(start, end))).groups() for start, end in speeches
    ]
    runs = [_cue_tokens(tags + speech, kind) for tags, _, speech in cues]
    translations = projection.translate(runs, translate, markup.STYLE if kind == "vtt" else Style(), language)
    position, parts = 0, []
    for (start, end), (tags, dash, speech), translation in zip(speeches, cues, translations, strict=True):
        after = _TAGS.match(translation).end() if tags else 0  # the dash of a speaker stays before what is said
        whole = translation[:after] + dash + translation[after:]
        parts += [*lines[position:start], _wrap_cue(lines[start:end], tags + dash + speech, whole)]
        position = end
    return "".join([*parts, *lines[position:]])


def _cues(lines: Sequence[str]) -> list[tuple[int, int]]:
    """The first line and the end of the text of each cue."""
    found, start = [], None
    for number, line in enumerate([*lines, ""]):
        times = _CUE_TIMES.fullmatch(line.rstrip("\r\n"))
        if start is not None and (times or not line.strip()):
            numbered = times and lines[number - 1].strip().isdigit() and number - 1 >= start
            found.append((start, number - 1 if numbered else number))
            start = None
        if times:
            start = number + 1
    return [(start, end) for start, end in found if end > start]


def _speeches(lines: Sequence[str], start: int, end: int) -> list[tuple[int, int]]:
    """A cue as one text; the lines of a dialogue one by one."""
    dialogue = end - start > 1 and all(re.match(r"\s*(?:<[^<>]*>)*[-–—]", lines[i]) for i in range(start, end))
    return [(i, i + 1) for i in range(start, end)] if dialogue else [(start, end)]


def _cue_tokens(text: str, kind: str) -> list[InlineToken]:
    tokens, position = [], 0
    for match in _CUE_TAG.finditer(text):
        tokens.append(_text_token(text[position : match.start()], kind))
        mark = "point" if match["point"] else "close" if match["close"] else "open"
        tokens.append(InlineToken(mark, match[0], name=(match["name"] or "").lower()))
        position = match.end()
    tokens.append(_text_token(text[position:], kind))
    return [token for token in tokens if token.raw]


def _text_token(raw: str, kind: str) -> InlineToken:
    return InlineToken("text", raw, html.unescape(raw) if kind == "vtt" else raw)


def _wrap_cue(old_lines: Sequence[str], source: str, translation: str) -> str:
    """A translation on as many lines as its cue had, with their line ends."""
    if translation == source:
        return "".join(old_lines)
    breaks, length = [], 0
    for line, after in pairwise(old_lines):
        length += len(_CUE_TAG.sub("", line.strip()))
        space = line[len(line.rstrip()) :] + after[: len(after) - len(after.lstrip())]
        breaks.append(layout.Break(length, " ", space))
        length += 1
    translation = _LINE_BREAKS.sub(" ", translation)
    in_tags = [i for match in _CUE_TAG.finditer(translation) for i in range(match.start(), match.end())]
    visible = sorted(set(range(len(translation))) - set(in_tags))
    segment = layout.Segment(_CUE_TAG.sub("", source), tuple(breaks))
    placed = layout.place_breaks("".join(translation[i] for i in visible), segment)
    wrapped = layout.replaced(translation, ((visible[i], visible[i] + end - i, raw) for i, end, raw in placed))
    first, last = old_lines[0], old_lines[-1]
    return first[: len(first) - len(first.lstrip())] + wrapped + last[len(last.rstrip()) :]

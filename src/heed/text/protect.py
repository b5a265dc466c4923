"""Protected spans, which a translation must keep: URLs, template variables, tags, code, emoji and long numbers.

No model is trusted to copy them. A text is first translated as it is; if a span was changed, again with short aliases in place of
the spans; and then in parts, cut around those that are still lost. The result has every span as often as the source.
A number may be formatted in another way (1,234.5 or 1.234,5); only when its digits are lost is it protected.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import count
from operator import attrgetter
from typing import NamedTuple

from heed.text.layout import has_words, replaced

Translate = Callable[[list[str]], Sequence[str]]
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
_NUMBER = re.compile(r"(?<![A-Za-z0-9_.,])[0-9](?:[0-9]|[.,](?=[0-9]))+(?![A-Za-z0-9_])")
_WORD_CHAR = re.compile("[A-Za-z0-9_]")
_BACKTICKS = re.compile(r"`+|\n")
_CLOSERS = {")": "(", "]": "["}
MAX_BACKTICKS, MAX_COMMENT = 8, 2000  # backticks around a code span, and characters of a comment
MAX_DEPTH = 3  # how often a text is cut around its lost spans only; then around all


class ProtectedSpan(NamedTuple):
    """A part of a text that must not be translated."""

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
    """The end of a URL without the punctuation of its sentence and brackets that were opened before it."""
    excess = {last: text.count(last, start, end) - text.count(first, start, end) for last, first in _CLOSERS.items()}
    while end > start + 1:
        last = text[end - 1]
        if last not in ".,;:!?'*_" and excess.get(last, 0) <= 0:
            break
        excess[last] = excess.get(last, 0) - 1
        end -= 1
    return end


def translate(texts: Sequence[str], translate: Translate, keep: Iterable[str] = ()) -> list[str]:
    """Translations that have every protected span of their source, as often as it."""
    return _translate(list(texts), translate, tuple(keep), 0)


def _translate(texts: list[str], translate: Translate, keep: tuple[str, ...], depth: int) -> list[str]:
    jobs = [_Job(text, keep) for text in texts]
    for source in (attrgetter("text"), _Job.with_aliases):
        pending = [job for job in jobs if job.result is None]
        if pending:
            for job, translation in zip(pending, translate([source(job) for job in pending]), strict=True):
                job.check(translation)
        jobs = [
            _Job(text, (*keep, *job.lost_numbers)) if job.lost_numbers else job
            for text, job in zip(texts, jobs, strict=True)
        ]
    pending = [job for job in jobs if job.result is None]
    parts = [job.cut(everywhere=depth >= MAX_DEPTH) for job in pending]
    flat = [part for job_parts in parts for part in job_parts]
    translated = iter(_translate(flat, translate, keep, depth + 1) if flat else [])
    for job, job_parts in zip(pending, parts, strict=True):
        job.join([next(translated) for _ in job_parts])
    return [job.result for job in jobs]


class _Job:
    """A text until it is translated. Protected spans at its ends are never shown to a model."""

    def __init__(self, text: str, keep: tuple[str, ...]):
        self.keep = keep
        start, end, spans = 0, len(text), find(text, keep)
        low, high = 0, len(spans)
        while low < high and not has_words(text[start : spans[low].start]):
            start, low = spans[low].end, low + 1
        while low < high and not has_words(text[spans[high - 1].end : end]):
            end, high = spans[high - 1].start, high - 1
        core = text[start:end]
        self.text = core.strip()
        left = start + len(core) - len(core.lstrip())
        self.before, self.after = text[:left], text[left + len(self.text) :]
        self.spans = [ProtectedSpan(span.start - left, span.end - left, span.text) for span in spans[low:high]]
        self.lost = self.spans
        self.aliases: list[str] = []
        self.lost_numbers: list[str] = []
        self.result: str | None = None if has_words(self.text) else text

    def with_aliases(self) -> str:
        """The text with X1, X2, … in place of its spans: models copy such names of streets and aeroplanes."""
        letters = next(char * times for times in count(1) for char in "XQZ" if f"{char * times}1" not in self.text)
        self.aliases = [f"{letters}{number}" for number in range(1, len(self.spans) + 1)]
        spans = zip(self.spans, self.aliases, strict=True)
        return replaced(self.text, ((span.start, span.end, alias) for span, alias in spans))

    def check(self, translation: str) -> None:
        """Accept a translation as the result if it has every span."""
        if self.aliases:
            texts = dict(zip(self.aliases, (span.text for span in self.spans), strict=True))
            pattern = re.compile(rf"(?<![A-Za-z0-9]){self.aliases[0].rstrip('0123456789')}[0-9]+")
            times = Counter(pattern.findall(translation))
            self.lost = [span for span, alias in zip(self.spans, self.aliases, strict=True) if times[alias] != 1]
            translation = pattern.sub(lambda match: texts.get(match[0], match[0]), translation)
        kept = Counter(span.text for span in find(translation, self.keep)) == Counter(span.text for span in self.spans)
        if kept or not self.spans:
            self.result = self.before + translation + self.after
            self.lost_numbers = [] if self.aliases else self._missing_numbers(translation)

    def _missing_numbers(self, translation: str) -> list[str]:
        """The numbers of at least three characters whose digits the translation does not have."""
        rest = replaced(self.text, ((span.start, span.end, " ") for span in self.spans))
        numbers = [number for number in _NUMBER.findall(rest) if len(number) > 2]
        digits = _digits(translation) if numbers else ""
        return [number for number in dict.fromkeys(numbers) if _digits(number) not in digits]

    def cut(self, everywhere: bool) -> list[str]:
        """The parts of the text between its lost spans; between all spans where it is not known which were lost."""
        self.lost = self.spans if everywhere or not self.lost else self.lost
        ends = [0, *(position for span in self.lost for position in span[:2]), len(self.text)]
        return [self.text[start:end] for start, end in zip(ends[::2], ends[1::2], strict=True)]

    def join(self, translations: list[str]) -> None:
        first, *others = translations
        whole = first + "".join(span.text + part for span, part in zip(self.lost, others, strict=True))
        self.result = self.before + whole + self.after


def _digits(text: str) -> str:
    return "".join(str(unicodedata.decimal(char)) for char in text if char.isdecimal())

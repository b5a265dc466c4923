"""Translations that are guaranteed to contain every protected span of their source. A text is first translated
unchanged; if a span was lost, again with the spans as search constraints, if the model can spell them; then with
short aliases in their place. Spans that are still missing are inserted by word alignment. A sentence is never split,
and the result has every span as often as the source. Numbers may be formatted differently (1,234.5 or 1.234,5); they
are protected only if their digits are lost.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import count
from typing import NamedTuple

from heed.text import insertion
from heed.text.layout import has_words, replaced
from heed.text.protect import KINDS, ProtectedSpan, find

Translate = Callable[[list[str]], Sequence[str]]
# with its sign: if the number is lost, so is that
_NUMBER = re.compile(r"(?<![A-Za-z0-9_.,])[$€£¥₩]?[0-9](?:[0-9]|[.,](?=[0-9]))+(?![A-Za-z0-9_])[%‰]?")
_OUTSIDE = re.compile(
    f"{KINDS['emoji']}|<|{KINDS['url']}|{KINDS['mail']}"
)  # no part of a sentence that it begins or ends
_CODE_LIKE = re.compile("[`{}<>%$#@]|://|www[.]|\\ufe0f?\\u20e3")  # may become a span beside another one
_SIGNS = "$€£¥₩%‰"
_NO_WORD = re.compile(r"[^\w\s]|[\d_]")


class ModelRequest(NamedTuple):
    """A sentence for a model, the forced beginning of its translation, and required parts of it."""

    text: str
    prefix: str = ""
    required: tuple[str, ...] = ()


class Model:
    """A translation function as a model; one that supports required parts, or word alignment, overrides the rest."""

    can_require = False

    def __init__(self, translate: Translate | None = None):
        self._translate = translate

    def translate(self, requests: list[ModelRequest]) -> Sequence[str]:
        return self._translate([request.text for request in requests])

    def align(self, sources: list[str], targets: list[str]) -> Sequence[Sequence[tuple[int, int]]]:
        """Word links, as (source word, target word); none if unknown."""
        return [() for _ in sources]


class ProtectedText(NamedTuple):
    """A translation with every protected span. `request` is the model input; None if there was nothing to translate.
    `is_answer`: it is the model's output, surrounded only by text the model never saw.
    """

    text: str
    request: ModelRequest | None
    is_answer: bool


def translate(texts: Sequence[str], translate: Translate, keep: Iterable[str] = ()) -> list[str]:
    """Translations that have every protected span of their source, equally often."""
    return [one.text for one in translate_with(Model(translate), [ModelRequest(text) for text in texts], keep)]


def translate_with(model: Model, requests: Sequence[ModelRequest], keep: Iterable[str] = ()) -> list[ProtectedText]:
    """The same with a model. A translation with a prefix keeps it at its beginning."""
    jobs = [_Job(request, tuple(keep)) for request in requests]
    attempts = (_Job.as_it_is, *([_Job.required] if model.can_require else []), _Job.with_aliases)
    for attempt in attempts:
        pending = [job for job in jobs if job.result is None]
        if pending:
            for job, translation in zip(pending, model.translate([attempt(job) for job in pending]), strict=True):
                job.check(translation)
        jobs = [job.with_lost_numbers() for job in jobs]
    pending = [job for job in jobs if job.result is None]
    if pending:
        best = [job.best_attempt() for job in pending]
        links = model.align([job.text for job in pending], [attempt.text for attempt in best])
        for job, attempt, own in zip(pending, best, links, strict=True):
            job.place(attempt, own)
    return [job.result for job in jobs]


class _Attempt(NamedTuple):
    """A model's output, with spans instead of aliases."""

    request: ModelRequest
    answer: str
    text: str
    lost: int


class _Job:
    """A text in progress. Text outside sentences, at its ends, is never shown to a model."""

    def __init__(self, request: ModelRequest, keep: tuple[str, ...], attempts: Sequence[_Attempt] = ()):
        self.request, self.keep, text = request, keep, request.text
        start, end, spans = 0, len(text), find(text, keep)
        low, high = 0, len(spans)
        while not request.prefix and low < high and self._is_outside(text[start : spans[low].start], spans[low]):
            start, low = spans[low].end, low + 1
        while low < high and self._is_outside(text[spans[high - 1].end : end], spans[high - 1]):
            end, high = spans[high - 1].start, high - 1
        core = text[start:end]
        self.text = core.strip()
        left = start + len(core) - len(core.lstrip())
        self.before, self.after = text[:left], text[left + len(self.text) :]
        self.spans = [ProtectedSpan(span.start - left, span.end - left, span.text) for span in spans[low:high]]
        self.aliases: list[str] = []
        self.shown = ModelRequest(self.text, request.prefix)
        self.attempts = list(attempts)
        self.lost_numbers: list[str] = []
        rest = replaced(self.text, ((span.start, span.end, " ") for span in self.spans))
        self.result = None if has_words(rest) else ProtectedText(text, None, is_answer=False)

    @staticmethod
    def _is_outside(between: str, span: ProtectedSpan) -> bool:
        return not has_words(between) and _OUTSIDE.match(span.text) is not None

    def as_it_is(self) -> ModelRequest:
        return self.shown

    def required(self) -> ModelRequest:
        """The text unchanged; the model searches for a translation with its spans."""
        self.shown = self.shown._replace(required=tuple(dict.fromkeys(span.text for span in self.spans)))
        return self.shown

    def with_aliases(self) -> ModelRequest:
        """The text with X1, X2, … instead of its spans: models copy such names."""
        letters = next(char * times for times in count(1) for char in "XQZ" if f"{char * times}1" not in self.text)
        self.aliases = [f"{letters}{number}" for number in range(1, len(self.spans) + 1)]
        spans = zip(self.spans, self.aliases, strict=True)
        text = replaced(self.text, ((span.start, span.end, alias) for span, alias in spans))
        self.shown = ModelRequest(text, self.request.prefix)
        return self.shown

    def check(self, answer: str) -> None:
        """Accept a translation as the result if it has every span."""
        translation = answer
        if self.aliases:
            texts = dict(zip(self.aliases, (span.text for span in self.spans), strict=True))
            pattern = re.compile(rf"(?<![A-Za-z0-9]){self.aliases[0].rstrip('0123456789')}[0-9]+")
            translation = pattern.sub(lambda match: texts.get(match[0], match[0]), answer)
        needed, found = (Counter(span.text for span in own) for own in (self.spans, find(translation, self.keep)))
        self.attempts.append(_Attempt(self.shown, answer, translation, (needed - found).total()))
        if needed == found or not self.spans:
            self._finish(self.attempts[-1], translation)
            self.lost_numbers = [] if self.aliases else self._missing_numbers(translation)

    def _finish(self, attempt: _Attempt, translation: str) -> None:
        whole = self.before + translation + self.after
        self.result = ProtectedText(whole, attempt.request, is_answer=translation == attempt.answer)

    def with_lost_numbers(self) -> "_Job":
        """The same text with the numbers protected that its translation lacks."""
        if not self.lost_numbers:
            return self
        return _Job(self.request, (*self.keep, *self.lost_numbers), [one._replace(lost=1) for one in self.attempts])

    def _missing_numbers(self, translation: str) -> list[str]:
        """The numbers of at least three characters whose digits the translation lacks."""
        rest = replaced(self.text, ((span.start, span.end, " ") for span in self.spans))
        numbers = [number for number in _NUMBER.findall(rest) if len(number.strip(_SIGNS)) > 2]
        digits = _digits(translation) if numbers else ""
        return [number for number in dict.fromkeys(numbers) if _digits(number) not in digits]

    def best_attempt(self) -> _Attempt:
        """The translation with the fewest missing spans; ties prefer a constrained search, then the first."""
        return min(self.attempts, key=lambda attempt: (attempt.lost, not attempt.request.required))

    def place(self, attempt: _Attempt, links: Sequence[tuple[int, int]]) -> None:
        """Insert the missing spans next to the words aligned with their neighbours."""
        prefix = self.request.prefix if attempt.text.startswith(self.request.prefix) else ""
        rest = attempt.text[len(prefix) :]
        for translation in (rest, _CODE_LIKE.sub(" ", rest), _NO_WORD.sub(" ", rest)):
            text = prefix + translation
            placed = insertion.place(self.text, self.spans, text, links, partial(find, keep=self.keep), len(prefix))
            if Counter(span.text for span in find(placed, self.keep)) == Counter(span.text for span in self.spans):
                break
        self._finish(attempt, placed)


def _digits(text: str) -> str:
    return "".join(str(unicodedata.decimal(char)) for char in text if char.isdecimal())

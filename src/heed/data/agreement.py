"""Whether numbers and punctuation match on both sides."""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

from heed.data import numerals
from heed.data.numerals import Mention

_STOP = re.compile(r"\.(?=\s|$)")  # not those in 3.5 or e.g.
MARKS = {"?": "?？؟", "!": "!！", ".": "。．…", ":": ":：;；", "(": "([{（［【", ")": ")]}）］】"}
_KINDS = {mark: kind for kind, marks in MARKS.items() for mark in marks}
MIN_DIGITS = 3  # a number as long as this is rarely written in words


def numbers(text: str) -> Counter[str]:
    """The numbers in a text as digits."""
    return Counter(map(numerals.plain, numerals.NUMBER.findall(unicodedata.normalize("NFKC", text))))


def numbers_disagree(source: str, target: str) -> bool:
    """Whether both sides have numbers and they differ, or one side has a number that is rarely spelled out. Only for
    numbers that differ in their digits are words, units, dates and times read, too.
    """
    first, second = numbers(source), numbers(target)
    least = 1 if first and second else MIN_DIGITS
    if first == second or all(len(number) < least for number in first | second):
        return False
    return not any(_agree(read(source), read(target), least) for read in (numerals.mentions, numerals.parts))


def _agree(first: Sequence[Mention], second: Sequence[Mention], least: int) -> bool:
    """Whether each number of at least so many digits is also on the other side, in digits or in words."""
    both = ((first, second), (second, first))
    return all(numerals.explained([one for one in own if one.digits >= least], other) for own, other in both)


def punctuation_difference(source: str, target: str) -> int:
    """The number of punctuation marks on one side only. Commas and quotation marks do not count: languages differ."""
    first, second = _marks(source), _marks(target)
    return sum(((first - second) + (second - first)).values())


def _marks(text: str) -> Counter[str]:
    found = Counter(_KINDS[char] for char in text if char in _KINDS)
    found["."] += len(_STOP.findall(text))
    return found

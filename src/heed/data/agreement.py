"""Whether numbers and punctuation match on both sides."""

import re
import unicodedata
from collections import Counter

# Separators between digits are dropped, since languages write them differently: 1,000 and 1.000; 2:30 and 2.30.
_NUMBER = re.compile(r"\d+(?:[.,:'’]\d+|[ \u00a0\u202f]\d{3}(?!\d))*")
_SEPARATOR = re.compile(r"\D")
_COUNTED_IN_WORDS = re.compile(r"\d\s*[万萬億亿兆千百만억조천백]")  # 10万 is 100,000
_STOP = re.compile(r"\.(?=\s|$)")  # not those in 3.5 or e.g.
MARKS = {"?": "?？؟", "!": "!！", ".": "。．…", ":": ":：;；", "(": "([{（［【", ")": ")]}）］】"}
_KINDS = {mark: kind for kind, marks in MARKS.items() for mark in marks}
MIN_DIGITS = 3  # a number as long as this is rarely written in words


def numbers(text: str) -> Counter[str]:
    """The numbers in a text as digits."""
    found = _NUMBER.findall(unicodedata.normalize("NFKC", text))
    return Counter(_SEPARATOR.sub("", number).lstrip("0") or "0" for number in found)


def numbers_disagree(source: str, target: str) -> bool:
    """Whether both sides have numbers and they differ, or one side has a number that is rarely spelled out."""
    if _COUNTED_IN_WORDS.search(source) or _COUNTED_IN_WORDS.search(target):
        return False
    first, second = numbers(source), numbers(target)
    if first and second:
        return first != second
    return any(len(number) >= MIN_DIGITS for number in first | second)


def punctuation_difference(source: str, target: str) -> int:
    """The number of punctuation marks on one side only. Commas and quotation marks do not count: languages differ."""
    first, second = _marks(source), _marks(target)
    return sum(((first - second) + (second - first)).values())


def _marks(text: str) -> Counter[str]:
    found = Counter(_KINDS[char] for char in text if char in _KINDS)
    found["."] += len(_STOP.findall(text))
    return found

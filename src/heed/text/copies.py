"""Translations that merely copy a source that should have been translated."""

import re

from heed.text import language_id
from heed.text.languages import base_code

MIN_WORDS = 3  # that should have been translated: fewer may be the same in both languages (radio, normal, in Berlin)
MIN_CHARACTERS = 8  # the same for a script without capitals and spaces
NOT_WORDS = re.compile(r"\S*(?:://|www\.|@|[\\/_<>{}=|#\d])\S*")  # addresses, paths, code, numbers


def is_copy(source: str, translation: str) -> bool:
    """Whether both have the same words, ignoring case and punctuation."""
    return _letters(source) == _letters(translation)


def may_be_copy(source: str, translation: str) -> bool:
    """Whether they begin alike, which is quick to say and excludes most; False only if `is_copy` is."""
    return _first_letter(source) == _first_letter(translation)


def _first_letter(text: str) -> str:
    return next(filter(str.isalnum, text.casefold()), "")


def should_differ(source: str, source_language: str | None, target_language: str | None) -> bool:
    """Whether a copy of this text cannot be its translation: it has more than names, numbers, addresses and a few
    words. False for unknown languages, and for a text already in the target language.
    """
    if not source_language or not target_language or base_code(source_language) == base_code(target_language):
        return False
    words = NOT_WORDS.sub(" ", source).split()
    lower = sum(any(map(str.isalpha, word)) and word == word.lower() != word.upper() for word in words)
    uncased = sum(char.isalpha() and char.lower() == char.upper() for word in words for char in word)
    return (lower >= MIN_WORDS or uncased >= MIN_CHARACTERS) and not _is_in(source, target_language, source_language)


def _letters(text: str) -> list[str]:
    return "".join(char if char.isalnum() else " " for char in text.casefold()).split()


def _is_in(text: str, language: str, other: str) -> bool:
    """Whether a text is more likely in one language than in another; unknown ones are less likely than all."""
    if not language_id.available() or language_id.known(language) is None:
        return False
    found = language_id.probabilities(text, (language, other))
    known = language_id.known(other)
    return found[language_id.known(language)] > (found[known] if known else 0.0)

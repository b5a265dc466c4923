"""Language identification with py3langid, which includes its model. It is imported on first use."""

import logging
from collections.abc import Iterable
from copy import copy
from functools import cache
from typing import Any

from heed.text.language_codes import synonyms
from heed.text.languages import NAMES

NOT_A_LANGUAGE = "zxx"  # py3langid's class for numbers, markup and names of files
MIN_PROBABILITY = 0.02  # of the language that a text should have: less, and it is in another (docs/guides/cleaning.md)
MIN_LETTERS = 4


def available() -> bool:
    """Whether py3langid is installed."""
    try:
        import py3langid  # noqa: F401
    except ImportError:
        return False
    return True


def probabilities(text: str, codes: Iterable[str] = ()) -> dict[str, float]:
    """The probability of each language in `NAMES` and `codes`; codes unknown to py3langid are skipped."""
    found = _identifier(tuple(sorted(set(map(known, codes)) - {None})))
    return dict(found.rank(text))


def known(code: str) -> str | None:
    """py3langid's code for a language (pt for pt-BR, ko for kor_Hang), or None if it is unknown."""
    return next((own for own in synonyms(code) if own in _labels()), None)


def check(codes: Iterable[str | None], setting: str) -> None:
    """Refuse languages that cannot be identified; `setting` requires it."""
    if not available():
        raise ValueError(
            f"{setting} needs py3langid, which is not installed: pip install py3langid, or set it to false"
        )
    for code, side in zip(codes, ("source", "target"), strict=False):
        if code is None:
            raise ValueError(f"{setting} needs to know the language of the {side}: set data.{side}_language")
        if known(code) is None:
            raise ValueError(f"{setting}: py3langid does not know the language {code!r} of the {side}: set it to false")


def in_another_language(text: str, code: str) -> bool:
    """Whether a text is clearly not in this language. False for few letters, or no language at all."""
    if sum(map(str.isalpha, text)) < MIN_LETTERS:
        return False
    own = known(code)
    identifier = _identifier((own,))
    if identifier.classify(text)[0] in (own, NOT_A_LANGUAGE):
        return False
    return dict(identifier.rank(text))[own] < MIN_PROBABILITY


@cache
def _labels() -> frozenset[str]:
    return frozenset(_load().labels)


@cache
def _identifier(more: tuple[str, ...]) -> Any:
    """Only languages that heed names compete, not all 139: texts are short, and rare languages would win."""
    identifier = copy(_load())  # with tables of its own for its languages; the rest is shared
    own = set(map(known, NAMES)) - {None}
    identifier.set_languages([*own, *more, NOT_A_LANGUAGE])
    return identifier


@cache
def _load() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    logging.getLogger("py3langid").setLevel(logging.WARNING)
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)

"""The translation options in the fields of a request body."""

import asyncio
import json
from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Any

from heed.service.http.limits import Refusal
from heed.service.http.models import ServedModel, TranslationOptions
from heed.text import glossary as glossaries

MAX_NBEST, MAX_BEAM, MAX_TERMS = 10, 16, 5_000
MAX_SENTENCE = 2_000  # characters of a sentence that is inspected
Terms, Names = dict[str, str] | str, list[str] | str  # as a request may write them
SHORT_GLOSSARY = 4_000  # characters: a longer one would block the event loop


async def read_glossary(pool: Executor, terms: Terms | None, keep: Names | None) -> glossaries.Glossary:
    """The terms of a request and the names to keep; long ones are parsed in a thread of `pool`."""
    if sum(map(_count_characters, (terms, keep))) <= SHORT_GLOSSARY:
        return _parse(terms, keep)
    return await asyncio.get_running_loop().run_in_executor(pool, _parse, terms, keep)


def _count_characters(given: Terms | Names | None) -> int:
    if isinstance(given, str):
        return len(given)
    return sum(map(len, [*given, *given.values()] if isinstance(given, dict) else given or ()))


def _parse(terms: Terms | None, keep: Names | None) -> glossaries.Glossary:
    """Terms are counted first, since parsing takes far longer."""
    lines = keep.splitlines() if isinstance(keep, str) else keep or []
    names = [name for line in lines if (name := line.strip())]
    size = _count_terms(terms) if isinstance(terms, str) else len(terms or {})
    counts = {"the glossary has": size, "keep has": len(names), "the glossary and keep have": size + len(names)}
    for subject, number in counts.items():
        if number > MAX_TERMS:
            raise Refusal(400, f"{subject} {number:,} terms; the limit per request is {MAX_TERMS:,}")
    try:
        return glossaries.parse(terms, keep=names) if isinstance(terms, str) else glossaries.Glossary(terms, names)
    except ValueError as error:
        raise Refusal(400, str(error)) from None


def _count_terms(text: str) -> int:
    """The number of terms in a glossary written as JSON or as lines."""
    size = 0

    def count(pairs: list[tuple[str, Any]]) -> None:
        nonlocal size
        size += len(pairs)

    try:
        json.loads(text.removeprefix("\ufeff"), object_pairs_hook=count)
    except (ValueError, RecursionError):  # errors are reported when it is parsed
        return max(size, sum(1 for line in text.split("\n") if line.strip()))
    return size


def translation_options(
    route: Sequence[ServedModel], terms: glossaries.Glossary, *, nbest: int = 1, tokens: bool = False, **decoding: Any
) -> TranslationOptions:
    """Options for the last model of a route; decoding settings that are None are the model's defaults."""
    # names that stay are protected in the text instead
    glossary = (glossaries.Glossary(terms.terms) if terms.keep else terms) if terms.terms else None
    if glossary and len(route) > 1:
        through = route[0].target
        raise Refusal(
            400, f"a glossary needs a direct model for the language pair, and this one pivots through {through}"
        )
    decoding = {name: value for name, value in decoding.items() if value is not None}
    if nbest > 1:
        beam = route[-1].translator.decoding.beam if route else 1
        decoding |= {"nbest": nbest, "beam": max(nbest, decoding.get("beam", beam))}
    return TranslationOptions(tuple(sorted(decoding.items())), tokens, glossary)

"""How a request wants its texts translated, from the fields in which it says so."""

import asyncio
import json
from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Any

from heed.service.http.limits import Refusal
from heed.service.http.models import Served, Wish
from heed.text import glossary as glossaries

MOST_BEST, MOST_BEAMS, MOST_TERMS = 10, 16, 5_000
AT_ONCE = 4_000  # characters of terms that are read where they come in


async def glossary_of(
    pool: Executor, terms: dict[str, str] | str | None, keep: list[str] | str | None
) -> glossaries.Glossary:
    """The terms of a request and the names that stay. Many are read in a thread of `pool`, so that nobody waits for them."""
    if sum(map(_weight, (terms, keep))) <= AT_ONCE:
        return _read(terms, keep)
    return await asyncio.get_running_loop().run_in_executor(pool, _read, terms, keep)


def _weight(given: dict[str, str] | list[str] | str | None) -> int:
    """How many characters these are."""
    if isinstance(given, str):
        return len(given)
    return sum(map(len, [*given, *given.values()] if isinstance(given, dict) else given or ()))


def _read(terms: dict[str, str] | str | None, keep: list[str] | str | None) -> glossaries.Glossary:
    """They are counted before they are looked at: that takes far less time."""
    names = [one.strip() for one in (keep.splitlines() if isinstance(keep, str) else keep or [])]
    names = [one for one in names if one]
    size = _lines(terms) if isinstance(terms, str) else len(terms or {})
    for who, many in (
        ("the glossary has", size),
        ("keep has", len(names)),
        ("the glossary and keep have", size + len(names)),
    ):
        if many > MOST_TERMS:
            raise Refusal(400, f"{who} {many:,} terms; one request may have {MOST_TERMS:,}")
    try:
        return glossaries.parse(terms, keep=names) if isinstance(terms, str) else glossaries.Glossary(terms, names)
    except ValueError as error:
        raise Refusal(400, str(error)) from None


def _lines(text: str) -> int:
    """How many terms a glossary has that is JSON, or lines."""
    size = 0

    def count(pairs: list[tuple[str, Any]]) -> None:
        nonlocal size
        size += len(pairs)

    try:
        json.loads(text.removeprefix("\ufeff"), object_pairs_hook=count)
    except (ValueError, RecursionError):  # what is wrong with it is told when it is read
        return max(size, sum(1 for line in text.split("\n") if line.strip()))
    return size


def wish_of(
    route: Sequence[Served], *, nbest: int = 1, glossary: Any = None, tokens: bool = False, **search: Any
) -> Wish:
    """Settings of a search as the model of a route is asked for them; those that are None are the model's own."""
    if glossary and len(route) > 1:
        through = route[0].target
        raise Refusal(400, f"a glossary needs a model for the pair itself, and this one goes through {through}")
    options = {name: value for name, value in search.items() if value is not None}
    if nbest > 1:
        own = route[-1].translator.decoding.beam if route else 1
        options |= {"nbest": nbest, "beam": max(nbest, options.get("beam", own))}
    return Wish(tuple(sorted(options.items())), tokens, glossary)

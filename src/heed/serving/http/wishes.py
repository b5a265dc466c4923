"""How a request wants its texts translated, from the fields in which it says so."""

from collections.abc import Sequence
from typing import Any

from heed.serving.http.limits import Refusal
from heed.serving.http.models import Served, Wish
from heed.text import glossary as glossaries

MOST_BEST, MOST_BEAMS, MOST_TERMS = 10, 16, 5_000


def glossary_of(terms: dict[str, str] | str | None, keep: list[str] | str | None) -> tuple[Any, tuple[str, ...]]:
    """A glossary of terms, or None, and the names that stay."""
    names = [one.strip() for one in (keep.splitlines() if isinstance(keep, str) else keep or [])]
    names = [one for one in names if one]
    try:
        found = glossaries.parse(terms, keep=names) if isinstance(terms, str) else glossaries.Glossary(terms, names)
    except ValueError as error:
        raise Refusal(400, str(error)) from None
    if len(found.terms) + len(found.keep) > MOST_TERMS:
        raise Refusal(400, f"the glossary has {len(found.terms):,} terms; one request may have {MOST_TERMS:,}")
    return (found if found.terms else None), found.keep


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

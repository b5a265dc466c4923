"""Control codes: tokens that specify the kind of text that follows (Keskar et al., 2019)."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from heed.vocabularies.vocabulary import Vocabulary

SHOWN = 8  # codes that an error lists


def codes_of(vocabulary: Vocabulary) -> Mapping[str, int]:
    """The control codes of a vocabulary with their ids; most have none."""
    return getattr(vocabulary, "codes", {})


def code_id(vocabulary: Vocabulary, code: str) -> int:
    """The id of a control code; an unknown one is refused with suggestions."""
    known = codes_of(vocabulary)
    if code in known:
        return known[code]
    if not known:
        raise ValueError(f"the control code is {code!r}, but the model has no control codes: leave it out")
    by_lower = {name.lower(): name for name in known}
    near = [by_lower[name] for name in get_close_matches(code.lower(), by_lower, cutoff=0.6)]
    hint = f"did you mean {' or '.join(near)}?" if near else f"it has {some_codes(known)}"
    raise ValueError(f"the model has no control code {code!r}; {hint}")


def code_ids(vocabulary: Vocabulary, codes: Sequence[str | None]) -> list[int | None]:
    """The ids of control codes; None stays None."""
    return [None if code is None else code_id(vocabulary, code) for code in codes]


def some_codes(codes: Mapping[str, int]) -> str:
    names = sorted(codes)
    rest = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + rest

"""Prompts of language models: ids, and the token before them, which is a line end or a control code."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from heed.vocabularies.vocabulary import Vocabulary

SHOWN = 8  # control codes that an error lists


class Prompt(NamedTuple):
    """The ids of a text, and the token that a model reads before it."""

    text: list[int]
    start: int

    @property
    def ids(self) -> list[int]:
        return [self.start, *self.text]


def control_codes(vocabulary: Vocabulary) -> Mapping[str, int]:
    """The control codes of a CTRL with their ids; other models have none."""
    return getattr(vocabulary, "codes", {})


def make_prompt(vocabulary: Vocabulary, ids: Sequence[int], code: str | None = None) -> Prompt:
    """A prompt with its control code, if the model has any: `code`, or the first token."""
    codes, text = control_codes(vocabulary), list(ids)
    if code is not None:
        return Prompt(text, _code_id(codes, code))
    if not codes:
        return Prompt(text, vocabulary.special.last)
    if text and text[0] in codes.values():
        return Prompt(text[1:], text[0])
    what = "the prompt begins with none" if text else "the prompt is empty"
    raise ValueError(f"a text of this model begins with a control code, and {what}: give a code, {_some(codes)}")


def _code_id(codes: Mapping[str, int], code: str) -> int:
    if code in codes:
        return codes[code]
    if not codes:
        raise ValueError(f"the code is {code!r}, but the model has no control codes: leave it out")
    by_lower = {name.lower(): name for name in codes}
    near = [by_lower[name] for name in get_close_matches(code.lower(), by_lower, cutoff=0.6)]
    hint = f"near are {', '.join(near)}" if near else f"it has {_some(codes)}"
    raise ValueError(f"the model has no control code {code!r}; {hint}")


def _some(codes: Mapping[str, int]) -> str:
    names = sorted(codes)
    rest = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + rest

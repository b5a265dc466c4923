"""Prompts of language models: ids and the token before them, a line end or a control code."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from heed.vocabularies.codes import code_id, codes_of, some_codes
from heed.vocabularies.vocabulary import Vocabulary


class Prompt(NamedTuple):
    """The ids of a text, and the token that the model reads before it."""

    text: list[int]
    start: int

    @property
    def ids(self) -> list[int]:
        return [self.start, *self.text]


def make_prompt(vocabulary: Vocabulary, ids: Sequence[int], code: str | None = None) -> Prompt:
    """A prompt with its control code, if the model has any: `code`, or the first token."""
    codes, text = codes_of(vocabulary), list(ids)
    if code is not None:
        return Prompt(text, code_id(vocabulary, code))
    if not codes:
        return Prompt(text, vocabulary.special.last)
    if text and text[0] in codes.values():
        return Prompt(text[1:], text[0])
    what = "the prompt has none" if text else "the prompt is empty"
    raise ValueError(f"texts of this model begin with a control code, but {what}: give one of {some_codes(codes)}")


def count_overflow(prompts: Iterable[Prompt], length: int, most: int) -> tuple[int, int, int]:
    """How many prompts there are, how many are longer than `most` positions, and how many are with `length` more tokens."""
    count, over, longer = 0, 0, 0
    for own in prompts:
        size = len(own.ids)
        count, over, longer = count + 1, over + (size > most), longer + (size + length - 1 > most)
    return count, over, longer


def describe_overflow(counts: Iterable[int], most: int) -> str | None:
    """What happens to prompts that do not fit into `most` positions, by what `count_overflow` found; None if all fit."""
    count, over, longer = counts
    if not longer:
        return None
    many = f"{longer:,} of the {count:,} texts do" if count > 1 else "the text does"
    read = "the prompt is read" if count == 1 else f"{over:,} of the prompts are read"
    cut = f" (of a longer prompt the last {most:,} tokens; {read} so)" if over else ""
    return f"The model has {most:,} positions, and {many} not fit: a sliding window over the last tokens is used{cut}."

"""Shared by multilingual vocabularies: a token for each language, before a text."""

from collections.abc import Mapping
from typing import Any

from heed.vocabularies.vocabulary import Pair, SpecialTokens, Vocabulary


class Multilingual(Vocabulary):
    """`languages` are the language tokens by the model's own codes; `language` is the chosen one, None if none is
    chosen. `neutral` are the special tokens without a language, `begin` is <s>, which texts do not use. A text is
    `[language, *text, last]`; with `legacy` the texts that a model reads are `[*text, last, language]`, as in the
    first NLLB tokenizers.
    """

    neutral: SpecialTokens
    begin: int
    languages: Mapping[str, int]
    language: str | None = None
    legacy: bool = False

    def in_language(self, code: str, *, source: bool) -> "Multilingual":
        """The vocabulary for texts of one language, as input (`source`) or output."""
        chosen = object.__new__(type(self))
        chosen.__dict__.update(self.__dict__)
        chosen.choose(code, source)
        return chosen

    def choose(self, code: str | None, source: bool) -> None:
        self.language, self.reads = code, source
        self.special = self.neutral
        if code is not None and not self.language_last:
            self.special = self.neutral._replace(before=(self.languages[code],))
        elif code is not None:
            self.special = self.neutral._replace(last=self.languages[code])

    def fixed_special(self) -> SpecialTokens:
        return self.neutral

    @property
    def language_last(self) -> bool:
        """Whether the language comes after the end token, which is then part of the encoded text."""
        return self.legacy and self.reads and self.language is not None

    def with_end(self, ids: list[list[int]]) -> list[list[int]]:
        return [[*row, self.neutral.last] for row in ids] if self.language_last else ids

    def __getstate__(self) -> tuple[Any, str | None, bool]:
        return super().__getstate__(), self.language, self.reads

    def __setstate__(self, state: tuple[Any, str | None, bool]) -> None:
        own, code, source = state
        super().__setstate__(own)
        self.choose(code, source)


def languages_of(vocabulary: Vocabulary) -> tuple[str, ...]:
    """The codes of a vocabulary's languages; none if its texts do not begin with a language."""
    return tuple(vocabulary.languages) if isinstance(vocabulary, Multilingual) else ()


def in_languages(pair: Pair, source: str, target: str) -> Pair:
    """A pair of multilingual vocabularies for one direction, by the model's own codes."""
    return pair[0].in_language(source, source=True), pair[1].in_language(target, source=False)

"""Faults in translations: loops, missing ends, copies of the source. Nothing here needs torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Any

from heed.decoding import loops
from heed.decoding.config import DecodingConfig, has_alternatives
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.loops import TokenKinds
from heed.text import copies
from heed.vocabularies.vocabulary import Pair, SpecialTokens


@dataclass(frozen=True)
class Tables:
    """What fault detection needs to know about two vocabularies, computed once."""

    vocabularies: Pair
    vocab_size: int

    @cached_property
    def token_kinds(self) -> TokenKinds:
        """The loop criteria of the vocabulary."""
        target = self.vocabularies[1]
        return loops.token_kinds(target.pieces(range(len(target))), self.vocab_size)

    @cached_property
    def one_vocabulary(self) -> bool:
        """Whether sources and translations have the same tokens."""
        source, target = self.vocabularies
        return source.key() == target.key()


@dataclass(frozen=True)
class Faults:
    """Finds faults in the output of a model that translates between `languages`; None is unknown."""

    tables: Tables
    languages: tuple[str | None, str | None] = (None, None)

    @property
    def vocabularies(self) -> Pair:
        return self.tables.vocabularies

    def faulty(
        self, sources: Sequence[list[int]], found: Sequence[list[Hypothesis]], config: DecodingConfig
    ) -> dict[int, int]:
        """The rows that must be searched again because of a fault, and for how many hypotheses. Another search avoids
        loops and overlong translations; to avoid a copy, all beams are needed.
        """
        rows = set(self._looping(sources, found)) if config.avoid_loops else set()
        if ends_early(config):
            last = self.vocabularies[1].special.last
            rows |= {row for row, nbest in enumerate(found) for h in nbest if not h.tokens or h.tokens[-1] != last}
        faulty = dict.fromkeys(sorted(rows), config.nbest)
        if config.avoid_copies and has_alternatives(config):
            faulty |= dict.fromkeys(self._copying(sources, found), max(config.nbest, config.beam))
        return faulty

    @property
    def differ(self) -> bool:
        """Whether the two languages are known to differ, so that a copy can be a fault."""
        return None not in self.languages and len(set(self.languages)) > 1

    def check(self, changes: Mapping[str, Any]) -> None:
        """Refuse settings that ask for a guard against copies that cannot know one."""
        if changes.get("avoid_copies") and not self.differ:
            same = "from a language into itself" if None not in self.languages else "between unknown languages"
            raise ValueError(
                f"avoid_copies is true, but the model translates {same}, where a copy may be right: leave it out"
            )

    def copies(self, source: list[int], nbest: Sequence[Hypothesis]) -> list[bool]:
        """Which hypotheses copy a source that should be translated. Most can be excluded by their number of tokens."""
        if not self.differ:
            return [False for _ in nbest]
        if self.tables.one_vocabulary and not any(_alike(source, h.tokens) for h in nbest):
            return [False for _ in nbest]
        text = self.vocabularies[0].decode(source)
        copied = [copies.is_copy(text, self.vocabularies[1].decode(h.tokens)) for h in nbest]
        return copied if any(copied) and copies.should_differ(text, *self.languages) else [False for _ in nbest]

    def _copying(self, sources: Sequence[list[int]], found: Sequence[list[Hypothesis]]) -> list[int]:
        """The rows with a copy."""
        if not self.differ:
            return []
        rows = range(len(found))
        if self.tables.one_vocabulary:
            rows = [row for row in rows if any(_alike(sources[row], h.tokens) for h in found[row])]
        # then by their texts, all at once, since a vocabulary decodes many faster
        texts = self.vocabularies[0].decode_all([sources[row] for row in rows])
        said = iter(self.vocabularies[1].decode_all([h.tokens for row in rows for h in found[row]]))
        likely = [
            any([copies.may_be_copy(text, next(said)) for _ in found[row]])
            for row, text in zip(rows, texts, strict=True)
        ]
        rows = compress(rows, likely)
        return [row for row in rows if any(self.copies(sources[row], found[row]))]

    def repeats(self, source: list[int]) -> loops.Repeats:
        return loops.source_repeats(self.vocabularies[0].decode(source))

    def _looping(self, sources: Sequence[list[int]], found: Sequence[list[Hypothesis]]) -> list[int]:
        """The rows with a loop. Sources are checked only if the loop would be one for a source without repeats."""
        kinds, owners = self.tables.token_kinds, [row for row, nbest in enumerate(found) for _ in nbest]
        special = self.vocabularies[1].special
        every = [strip(h.tokens, special)[0] if special.before else h.tokens for own in found for h in own]
        suspects = loops.find_loops(every, kinds).nonzero()[0].tolist()
        repeats = [self.repeats(sources[owners[number]]) for number in suspects]
        looping = loops.find_loops([every[number] for number in suspects], kinds, repeats)
        return [owners[number] for number, loop in zip(suspects, looping, strict=True) if loop]


def strip(ids: list[int], special: SpecialTokens) -> tuple[list[int], SpecialTokens]:
    """A translation without its special tokens, and these tokens: it may lack the usual beginning."""
    if tuple(ids[: len(special.before)]) != special.before:
        special = special._replace(before=())
    return [i for i in ids[len(special.before) :] if i != special.last], special


def ends_early(config: DecodingConfig) -> bool:
    """Whether translations must end before the limit derived from the source; an explicit limit truncates."""
    return config.avoid_overlong and config.max_length is None and has_alternatives(config)


def _alike(source: list[int], tokens: list[int]) -> bool:
    """Whether two sequences of one vocabulary may be the same text except for case and punctuation."""
    shared = len({*source}.intersection(tokens))
    return 2 * shared >= min(len(source), len(tokens))

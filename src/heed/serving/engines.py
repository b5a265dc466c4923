"""Who searches: a translator asks its engines in their order, and the first that takes a search does it."""

import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import torch

from heed.data.batches import by_length
from heed.decoding.beam import beam_search
from heed.decoding.config import DecodingConfig, longest
from heed.decoding.ranking import STOPPING
from heed.decoding.sample import drawn, likeliest, one_by_one
from heed.decoding.steps import Hypothesis
from heed.serving.searching import begins_with, searching

if TYPE_CHECKING:
    from heed.serving.translator import Translator

Ids = list[list[int]]
ENGINES = "auto", "torch", "ctranslate2"


class Engine(Protocol):
    """One who can search. `forced[i]` is what the translation of `ids[i]` must begin with."""

    name: str

    def takes(self, config: DecodingConfig, forced: Ids) -> bool:
        """Whether it does this search by all its rules."""

    def search(self, ids: Ids, config: DecodingConfig, forced: Ids, batch_tokens: int) -> list[list[Hypothesis]]:
        """The best for each source, best first."""


class Own:
    """Heed's own search, on any device and by any rules."""

    name = "torch"

    def __init__(self, translator: "Translator"):
        self.translator = translator

    def takes(self, config: DecodingConfig, forced: Ids) -> bool:
        return True

    def search(self, ids: Ids, config: DecodingConfig, forced: Ids, batch_tokens: int) -> list[list[Hypothesis]]:
        found: list[list[Hypothesis]] = [[] for _ in ids]
        for rows in by_length([len(source) + 1 for source in ids], max(1, batch_tokens)):
            own = [forced[row] for row in rows]
            for row, hypotheses in zip(rows, self._batch([ids[row] for row in rows], rows, config, own), strict=True):
                found[row] = hypotheses
        return found

    @torch.inference_mode()
    def _batch(
        self, sources: Ids, numbers: Sequence[int], config: DecodingConfig, forced: Ids
    ) -> list[list[Hypothesis]]:
        """One batch; `numbers` are the places of its sources among all, on which chance depends."""
        t, marks = self.translator, self.translator.marks[1]
        state, most = t.start(sources), self._most(sources, config, forced)
        if config.sample:
            again = config.nbest
            state.reorder(torch.arange(len(sources), device=t.device).repeat_interleave(again))
            choose = drawn(
                _seeds(sources, numbers, config), temperature=config.temperature, top_k=config.top_k, top_p=config.top_p
            )
            most, forced = most.repeat_interleave(again), [ids for ids in forced for _ in range(again)]
            each = one_by_one(t.search, state, most, choose, **searching(config, marks, forced, most))
            return [[h for own in each[i : i + again] for h in own] for i in range(0, len(each), again)]
        parts = searching(config, marks, forced, most)
        if config.beam == 1:
            return one_by_one(t.search, state, most, likeliest, **parts)
        stop = STOPPING[config.stopping]
        return beam_search(t.search, state, most, beams=config.beam, nbest=config.nbest, stop=stop, **parts)

    def _most(self, sources: Ids, config: DecodingConfig, forced: Ids) -> torch.Tensor:
        """How many tokens each translation may have; what is forced has its place."""
        begin = len(begins_with(config, self.translator.marks[1]))
        both = zip(sources, forced, strict=True)
        most = [max(longest(config, len(ids) + 1, self.translator.longest), begin + len(own) + 1) for ids, own in both]
        return torch.tensor(most, device=self.translator.device)


def _seeds(sources: Ids, numbers: Sequence[int], config: DecodingConfig) -> list[int]:
    """One for each draw, which depends on the source and its place alone, not on what shares its batch."""
    both = zip(numbers, sources, strict=True)
    own = [(config.seed, number, ids, k) for number, ids in both for k in range(config.nbest)]
    return [zlib.crc32(repr(draw).encode()) for draw in own]

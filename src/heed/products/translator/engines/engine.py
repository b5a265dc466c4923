"""Who searches: a translator asks its engines in their order, and the first that takes a search does it."""

import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import torch

from heed.data.batching import by_length
from heed.decoding.beam import beam_search
from heed.decoding.config import DecodingConfig, max_output_length
from heed.decoding.constraints import Constraints, Replaced
from heed.decoding.ranking import STOPPING
from heed.decoding.sample import greedy, random_sampling, stepwise_search
from heed.decoding.steps import Hypothesis
from heed.decoding.terms import Term
from heed.products.translator import alternatives
from heed.products.translator.search_options import begins_with, searching
from heed.products.translator.term_tokens import Wanted

if TYPE_CHECKING:
    from heed.products.translator.translator import Translator

Ids = list[list[int]]
Wish = tuple[list[Term], Replaced]  # what a translation must say, and in which places
ENGINES = "auto", "torch", "ctranslate2"
WIDE = 10  # beams where terms must be said, since these share them (Post and Vilar, 2018)


class Engine(Protocol):
    """One who can search. `forced[i]` is what the translation of `ids[i]` must begin with."""

    name: str

    def takes(self, config: DecodingConfig, forced: Ids) -> bool:
        """Whether it does this search by all its rules."""

    def search(self, ids: Ids, config: DecodingConfig, forced: Ids, batch_tokens: int) -> list[list[Hypothesis]]:
        """The best for each source, best first."""


class TorchEngine:
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
            choose = random_sampling(
                _seeds(sources, numbers, config), temperature=config.temperature, top_k=config.top_k, top_p=config.top_p
            )
            most, forced = most.repeat_interleave(again), [ids for ids in forced for _ in range(again)]
            each = stepwise_search(t.search, state, most, choose, **searching(config, marks, forced, most))
            return [[h for own in each[i : i + again] for h in own] for i in range(0, len(each), again)]
        parts = searching(config, marks, forced, most)
        if config.beam == 1:
            return stepwise_search(t.search, state, most, greedy, **parts)
        stop = STOPPING[config.stopping]
        return beam_search(t.search, state, most, beams=config.beam, nbest=config.nbest, stop=stop, **parts)

    def saying(
        self, ids: Ids, config: DecodingConfig, forced: Ids, batch_tokens: int, wishes: Sequence[Wish]
    ) -> list[list[Hypothesis]]:
        """The best for each source that say its terms; what there is no room for is left out."""
        found: list[list[Hypothesis]] = [[] for _ in ids]
        for rows in by_length([len(source) + 1 for source in ids], max(1, batch_tokens)):
            own = self._saying(*([each[row] for row in rows] for each in (ids, forced, wishes)), config)
            for row, hypotheses in zip(rows, own, strict=True):
                found[row] = hypotheses
        return found

    @torch.inference_mode()
    def _saying(
        self, sources: Ids, forced: Ids, wishes: Sequence[Wish], config: DecodingConfig
    ) -> list[list[Hypothesis]]:
        t, marks = self.translator, self.translator.marks[1]
        most, begin = self._most(sources, config, forced), begins_with(config, marks)
        constraints = Constraints(
            [terms for terms, _ in wishes], t.spelling.letters, most.tolist(), marks.last, silent=marks.before,
            forced=[[*begin, *own] for own in forced], force_end=config.force_end, replaced=[own for _, own in wishes],
        )  # fmt: skip
        parts = searching(config, marks, forced, most, [constraints.rule])
        beams, stop = max(config.beam, WIDE), STOPPING[config.stopping]
        return beam_search(
            t.search, t.start(sources), most, beams=beams, nbest=config.nbest, stop=stop, pick=constraints.pick, **parts
        )

    def _most(self, sources: Ids, config: DecodingConfig, forced: Ids) -> torch.Tensor:
        """How many tokens each translation may have; what is forced has its place."""
        begin = len(begins_with(config, self.translator.marks[1]))
        both = zip(sources, forced, strict=True)
        most = [
            max(max_output_length(config, len(ids) + 1, self.translator.longest), begin + len(own) + 1)
            for ids, own in both
        ]
        return torch.tensor(most, device=self.translator.device)


def _seeds(sources: Ids, numbers: Sequence[int], config: DecodingConfig) -> list[int]:
    """One for each draw, which depends on the source and its place alone, not on what shares its batch."""
    both = zip(numbers, sources, strict=True)
    own = [(config.seed, number, ids, k) for number, ids in both for k in range(config.nbest)]
    return [zlib.crc32(repr(draw).encode()) for draw in own]


def searched(
    translator: "Translator", ids: Ids, config: DecodingConfig, forced: Ids, batch_tokens: int, wanted: Sequence[Wanted]
) -> list[list[Hypothesis]]:
    """The best for each source, by the first engine that takes the search. Where that does not say the terms by itself, Heed's
    own search says them in the places of the words that it had said.
    """
    engine = next(engine for engine in translator.engines if engine.takes(config, forced))
    found = engine.search(ids, config, forced, batch_tokens)
    missing = translator.spelling.missing
    again = [row for row, own in enumerate(wanted) if any(missing(own.terms, h.tokens) for h in found[row])]
    own = [[each[row] for row in again] for each in (ids, forced, found, wanted)]
    places = alternatives.places(
        translator, own[0], [hypotheses[0].tokens for hypotheses in own[2]], own[3], batch_tokens
    )
    wishes = [(one.terms, place) for one, place in zip(own[3], places, strict=True)]
    said = TorchEngine(translator).saying(own[0], config, own[1], batch_tokens, wishes)
    for row, hypotheses in zip(again, said, strict=True):
        found[row] = hypotheses
    return found

"""Guards against loops, translations that do not end, and copies of the source.

A search runs as if there were none; only what it finds is checked, so that results without such a fault stay as they are, whatever
engine found them. Where there is one, Heed's own search runs once more under rules that rule it out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from torch import Tensor

from heed.decoding import limits, loops
from heed.decoding.beam import SearchStep
from heed.decoding.config import DecodingConfig
from heed.decoding.limits import Rule
from heed.decoding.steps import Hypothesis
from heed.products.translator.model_bundle import Hypotheses, ModelBundle, Sentences
from heed.text import copies


@dataclass(frozen=True)
class Guards:
    """The guards of the models of `bundle`, which translate from one of `languages` to the other; None is unknown."""

    bundle: ModelBundle
    languages: tuple[str | None, str | None] = (None, None)

    def faulty(self, sources: Sentences, found: Hypotheses, config: DecodingConfig) -> dict[int, int]:
        """The rows that must be searched again, and for how many hypotheses: one of theirs has a fault.

        Another search avoids loops and overlong translations; to avoid a copy, all beams are needed to choose from.
        """
        rows = set(self._looping(sources, found)) if config.avoid_loops else set()
        if _ends_early(config):
            last = self.bundle.special[1].last
            rows |= {row for row, nbest in enumerate(found) if any(h.tokens[-1:] != [last] for h in nbest)}
        faulty = dict.fromkeys(sorted(rows), config.nbest)
        if config.avoid_copies and _has_alternatives(config):
            copied = [row for row, nbest in enumerate(found) if any(self._copies(sources[row], nbest))]
            faulty |= dict.fromkeys(copied, max(config.nbest, config.beam))
        return faulty

    def guarded(self, config: DecodingConfig) -> ModelBundle:
        """The same models, whose searches rule faults out."""
        return self.bundle.with_rules(partial(self._rules, config))

    def best(self, source: list[int], nbest: list[Hypothesis], config: DecodingConfig) -> list[Hypothesis]:
        """The best hypotheses that a guarded search has found, those that are no copies first."""
        if config.avoid_copies and _has_alternatives(config):
            copied = self._copies(source, nbest)
            nbest = [h for which in (False, True) for h, copy in zip(nbest, copied, strict=True) if copy == which]
        return nbest[: config.nbest]

    def search_one(
        self, source: list[int], config: DecodingConfig, on_step: Callable[[list[SearchStep]], None]
    ) -> Hypothesis:
        """The best hypothesis for one source, found in torch; `on_step` gets the steps of the search that found it."""
        steps: list[SearchStep] = []
        found = self.bundle.search([source], config, on_step=steps.append)
        for nbest in self.faulty([source], found, config).values():
            steps.clear()
            found = self.guarded(config).search([source], replace(config, nbest=nbest), on_step=steps.append)
            found = [self.best(source, found[0], config)]
        on_step(steps)
        return found[0][0]

    def _looping(self, sources: Sentences, found: Hypotheses) -> list[int]:
        """The rows with a loop. The sources are looked at only where one that repeats nothing would not explain it."""
        kinds, owners = self.bundle.token_kinds, [row for row, nbest in enumerate(found) for _ in nbest]
        every = [
            self.bundle.strip(h.tokens)[0] if self.bundle.special[1].before else h.tokens for own in found for h in own
        ]
        suspects = loops.find_loops(every, kinds).nonzero()[0].tolist()
        repeats = [self._repeats(sources[owners[number]]) for number in suspects]
        looping = loops.find_loops([every[number] for number in suspects], kinds, repeats)
        return [owners[number] for number, loop in zip(suspects, looping, strict=True) if loop]

    def _repeats(self, source: list[int]) -> loops.Repeats:
        return loops.source_repeats(self.bundle.source.decode(source))

    def _copies(self, source: list[int], nbest: Sequence[Hypothesis]) -> list[bool]:
        """Which hypotheses copy a source that should be translated. Most are told apart by their number of tokens alone."""
        if None in self.languages or len(set(self.languages)) == 1:
            return [False for _ in nbest]
        if self.bundle.one_vocabulary and not any(_alike(source, h.tokens) for h in nbest):
            return [False for _ in nbest]
        text = self.bundle.source.decode(source)
        copied = [copies.is_copy(text, self.bundle.target.decode(h.tokens)) for h in nbest]
        return copied if any(copied) and copies.should_differ(text, *self.languages) else [False for _ in nbest]

    def _rules(self, config: DecodingConfig, sources: Sentences, max_lengths: Tensor, terms: bool) -> list[Rule]:
        """What rules the faults out. A search for terms may need its last position for one."""
        rules = []
        if config.avoid_loops:
            repeats = {tuple(source): self._repeats(source) for source in sources}
            own = [repeats[tuple(source)] for source in sources]
            rules.append(loops.no_loops(self.bundle.token_kinds, own))
        if _ends_early(config) and not terms:
            rules.append(limits.end_at_limit(max_lengths, self.bundle.special[1].last))
        return rules


def _has_alternatives(config: DecodingConfig) -> bool:
    """Whether a search compares hypotheses: a greedy one, and a sample, take what they get."""
    return config.beam > 1 and not config.sample


def _ends_early(config: DecodingConfig) -> bool:
    """Whether translations must end before the limit that depends on the source; one that was asked for truncates."""
    return config.avoid_overlong and config.max_length is None and _has_alternatives(config)


def _alike(source: list[int], tokens: list[int]) -> bool:
    """Whether two sequences of one vocabulary may be the same text but for case and punctuation."""
    shared = len({*source} & {*tokens})
    return 2 * shared >= min(len(source), len(tokens))

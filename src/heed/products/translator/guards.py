"""Guards against loops, translations that do not end, and copies of the source. A search runs without them; only its
results are checked, so that results without faults are unchanged, whatever the engine. If there is a fault, Heed's
own search runs again under rules that exclude it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from torch import Tensor

from heed.decoding import limits
from heed.decoding.beam import SearchStep
from heed.decoding.config import DecodingConfig, has_alternatives
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.limits import Rule
from heed.decoding.loop_rule import no_loops
from heed.products.translator.faults import Faults, ends_early
from heed.products.translator.model_bundle import Hypotheses, ModelBundle, Sentences


@dataclass(frozen=True)
class Guards:
    """The guards of the models of `bundle`, which translate between `languages`; None is unknown."""

    bundle: ModelBundle
    languages: tuple[str | None, str | None] = (None, None)

    @property
    def faults(self) -> Faults:
        return Faults(self.bundle.tables, self.languages)

    def faulty(self, sources: Sentences, found: Hypotheses, config: DecodingConfig) -> dict[int, int]:
        """The rows that must be searched again, and for how many hypotheses."""
        return self.faults.faulty(sources, found, config)

    def guarded(self, config: DecodingConfig) -> ModelBundle:
        """The same models with searches that exclude faults."""
        return self.bundle.with_rules(partial(self._rules, config))

    def best(self, source: list[int], nbest: list[Hypothesis], config: DecodingConfig) -> list[Hypothesis]:
        """The best hypotheses of a guarded search, those that are not copies first."""
        if config.avoid_copies and has_alternatives(config):
            copied = self.faults.copies(source, nbest)
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

    def _rules(self, config: DecodingConfig, sources: Sentences, max_lengths: Tensor, terms: bool) -> list[Rule]:
        """The rules that exclude faults. A search with terms may need its last position for one."""
        rules = []
        if config.avoid_loops:
            repeats = {tuple(source): self.faults.repeats(source) for source in sources}
            own = [repeats[tuple(source)] for source in sources]
            rules.append(no_loops(self.bundle.tables.token_kinds, own))
        if ends_early(config) and not terms:
            rules.append(limits.end_at_limit(max_lengths, self.bundle.special[1].last))
        return rules

"""The complete search of a translator: engine, glossary terms, guards, and reranking."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from heed.decoding.config import DecodingConfig
from heed.decoding.hypothesis import Hypothesis
from heed.products.product import in_batches
from heed.products.translator.attention_trace import AlignmentRows
from heed.products.translator.engines.engine import Engine
from heed.products.translator.guards import Guards
from heed.products.translator.model_bundle import Hypotheses, ModelBundle, Sentences
from heed.products.translator.term_search import TermSearch
from heed.products.translator.term_tokens import RequiredTerms, TermEncoder


@dataclass(frozen=True)
class Job:
    """Sources with the prefixes and terms that their translations must have; `numbers` are their random seeds."""

    sources: Sentences
    prefixes: Sentences
    required: Sequence[RequiredTerms]
    batch_tokens: int
    numbers: Sequence[int]

    def select(self, rows: Sequence[int]) -> "Job":
        """Some of the sources."""
        own = [self.required[row] for row in rows] if self.required else []
        sources, prefixes = [self.sources[row] for row in rows], [self.prefixes[row] for row in rows]
        return Job(sources, prefixes, own, self.batch_tokens, [self.numbers[row] for row in rows])


@dataclass(frozen=True)
class SearchPipeline:
    """Engines are asked in order."""

    engines: Sequence[Engine]
    guards: Guards
    encoder: TermEncoder
    alignment_rows: AlignmentRows

    def search(self, job: Job, config: DecodingConfig) -> Hypotheses:
        """The best hypotheses for each source, best first."""
        return self._reranked(job, config) if config.rerank == "mbr" else self._searched(job, config)

    def begin(self, job: Job, config: DecodingConfig, meanwhile: Callable[[], None]) -> Callable[[], Hypotheses]:
        """The same; an engine that works while the host does something else calls `meanwhile`, and is called after it if it does not, so
        that nobody waits for its search. What is returned waits for it, and does the rest.
        """
        engine = self._engine(job, config)
        if config.rerank == "mbr" or not getattr(engine, "overlaps", False):
            meanwhile()
            found = self.search(job, config)
            return lambda: found
        wait = engine.begin(job.sources, config, job.prefixes, job.batch_tokens, meanwhile)
        return lambda: self._checked(job, config, wait())

    def _engine(self, job: Job, config: DecodingConfig) -> Engine:
        return next(engine for engine in self.engines if engine.takes(config, job.prefixes))

    def _searched(self, job: Job, config: DecodingConfig) -> Hypotheses:
        found = self._engine(job, config).search(job.sources, config, job.prefixes, job.batch_tokens)
        return self._checked(job, config, found)

    def _checked(self, job: Job, config: DecodingConfig, found: Hypotheses) -> Hypotheses:
        """With terms, and without faults."""
        found = self._with_terms(self.guards.bundle, job, found, config)
        again = self.guards.faulty(job.sources, found, config)
        for count in set(again.values()):
            rows = [row for row, own in again.items() if own == count]
            for row, nbest in zip(rows, self._guarded(job.select(rows), config, count), strict=True):
                found[row] = nbest
        return found

    def _guarded(self, job: Job, config: DecodingConfig, count: int) -> Hypotheses:
        """The same in torch under rules that exclude faults, chosen from `count` hypotheses each."""
        bundle, wide = self.guards.guarded(config), replace(config, nbest=count)

        def search(rows: list[int]) -> Hypotheses:
            own = job.select(rows)
            keys = list(zip(own.numbers, own.sources, strict=True))  # those of the first search
            return bundle.search(own.sources, wide, prefixes=own.prefixes, keys=keys)

        sizes = [len(source) + 1 for source in job.sources]
        found = in_batches(search, range(len(sizes)), sizes, job.batch_tokens)
        best = [self.guards.best(*both, config) for both in zip(job.sources, found, strict=True)]
        return self._with_terms(bundle, job, best, config)

    def _reranked(self, job: Job, config: DecodingConfig) -> Hypotheses:
        """The candidates most similar to all the others (minimum Bayes risk), with their own scores."""
        found: Hypotheses = [[] for _ in job.sources]
        for search in _candidate_searches(config):
            if search.sample and any(own.terms for own in job.required):
                raise ValueError(
                    f'candidates_from is "{config.candidates_from}", but glossary terms need beam search:  '
                    'set candidates_from to "beam", or leave the glossary out'
                )
            for own, more in zip(found, self._searched(job, search), strict=True):
                own += more
        return [self._most_alike(own, config) for own in found]

    def _most_alike(self, found: list[Hypothesis], config: DecodingConfig) -> list[Hypothesis]:
        from heed.evaluation.mbr import mbr_order

        texts = [self.guards.bundle.target.decode(h.tokens) for h in found]
        order = mbr_order(texts, [h.score for h in found], config.utility)
        return [found[number] for number in order[: config.nbest]]

    def _with_terms(self, bundle: ModelBundle, job: Job, found: Hypotheses, config: DecodingConfig) -> Hypotheses:
        terms = TermSearch(bundle, self.encoder, self.alignment_rows)
        return terms.complete(found, job.sources, config, job.prefixes, job.required, job.batch_tokens)


def _candidate_searches(config: DecodingConfig) -> list[DecodingConfig]:
    """The searches that produce the candidates for reranking."""
    count, plain = config.candidates, replace(config, rerank="none")
    beam = replace(plain, beam=max(config.beam, count), nbest=count)
    samples = replace(plain, sample=True, nbest=count)
    return {"beam": [beam], "samples": [samples], "both": [beam, samples]}[config.candidates_from]

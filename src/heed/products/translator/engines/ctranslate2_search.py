"""A beam search by CTranslate2, in batches that its workers share. Nothing here needs torch."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from heed.convert.ctranslate2_names import given_ids, names
from heed.decoding.config import DecodingConfig, forced_start
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.ranking import PENALTIES
from heed.vocabularies.vocabulary import Pair

MAX_HYPOTHESES, MAX_SENTENCES = 64, 32  # in a batch: larger ones are no faster
SENTENCES_PER_WORKER = 4  # with fewer, several threads share one batch
MAX_THREADS_PER_BATCH = 4  # more would wait for each other
LOW_PENALTY = 0.6  # up to this length penalty the likeliest that ends is soon the best
HIGH_PENALTY = 1.0  # up to this one the best is among twice as many hypotheses as there are beams
NO_PENALTY = 1e-9  # changes no score; 0 would change when a search stops
Sentences = list[list[int]]  # token ids without special tokens
Found = dict[int, list[Hypothesis]]  # by row, best first
Job = tuple[list[int], int]  # the rows of one batch, and the most tokens that each translation may have


class BeamOptions(NamedTuple):
    """CTranslate2 searches with its own penalty length^`alpha` until `beam` times `patience` hypotheses are found.
    With alpha 0, until the most likely candidate has ended too, and as soon as `hypotheses` are found.
    """

    alpha: float
    hypotheses: int
    patience: float = 1.0


def beam_options(config: DecodingConfig) -> BeamOptions | None:
    """The options closest to a search; None if none are close."""
    beam, alpha = config.beam, config.length_penalty
    if beam == 1:
        return BeamOptions(0.0, 1)
    if config.stopping == "first":
        return BeamOptions(alpha or NO_PENALTY, beam)
    if alpha <= LOW_PENALTY:
        return BeamOptions(0.0, beam if alpha else config.nbest)
    return BeamOptions(0.0, 2 * beam, 2.0) if alpha <= HIGH_PENALTY else None


def workers_and_threads(sentences: int, threads: int) -> tuple[int, int]:
    """How many batches are translated at once, and with how many threads each: one, if all threads get enough
    sentences.
    """
    for each in (1, MAX_THREADS_PER_BATCH):
        if threads >= each and sentences >= SENTENCES_PER_WORKER * (threads // each):
            return threads // each, each
    return 1, min(threads, MAX_THREADS_PER_BATCH)


class TokenNames(NamedTuple):
    """The names of source and target tokens, which CTranslate2 takes instead of ids, and the target ids by name."""

    source: list[str]
    target: list[str]
    ids: dict[str, int]

    @classmethod
    def of(cls, vocabularies: Pair, vocab_size: int) -> "TokenNames":
        source, target = names(vocabularies[0]), names(vocabularies[1], vocab_size)
        return cls(source, target, {name: i for i, name in enumerate(target)})


class PoolSearch(NamedTuple):
    """A search by the workers of an open ctranslate2.Translator."""

    pool: Any
    vocabularies: Pair
    names: TokenNames
    shortlist: bool

    def run(
        self,
        rows: list[int],
        sources: Sentences,
        limits: Sequence[int],
        config: DecodingConfig,
        workers: int,
        budget: int,
    ) -> Found:
        """The hypotheses of these rows; none for unsupported ones."""
        jobs = _jobs(rows, sources, limits, config.beam, workers, budget)
        found = self._translate(jobs, sources, config)
        full = [row for rows, cap in jobs for row in rows if _full(found[row], limits[row], cap, config.force_end)]
        again = _jobs_by_limit(full, sources, limits, config.beam, budget)
        return found | ({row: [] for row in full} if config.force_end else self._translate(again, sources, config))

    def _translate(self, jobs: Iterable[Job], sources: Sentences, config: DecodingConfig) -> Found:
        """All jobs are submitted at once, so that no worker waits for another's batch."""
        (source, target, ids_by_name), options = self.names, beam_options(config)
        special, own, penalty = self.vocabularies[1].special, self.vocabularies[0], PENALTIES[config.penalty]
        start = [target[i] for i in forced_start(config, special)]
        min_length = len(special.before) + config.min_length if config.min_length else 0
        submitted = []
        for rows, limit in jobs:
            futures = self.pool.translate_batch(
                [[source[i] for i in given_ids(own, sources[row])] for row in rows], [start] * len(rows) if start else None,
                beam_size=config.beam, length_penalty=options.alpha, num_hypotheses=options.hypotheses,
                patience=options.patience, min_decoding_length=min(min_length, limit), max_decoding_length=limit,
                max_input_length=0, no_repeat_ngram_size=config.no_repeat,
                suppress_sequences=[[target[i]] for i in special.never], return_scores=True, return_end_token=True,
                asynchronous=True, use_vmap=self.shortlist,
            )  # fmt: skip
            submitted += zip(rows, futures, strict=True)
        found = {}
        for row, future in submitted:
            result, hypotheses = future.result(), []
            for tokens, score in zip(result.hypotheses, result.scores, strict=True):
                logp = score * len(tokens) ** options.alpha
                score = logp / penalty(len(tokens), config.length_penalty)
                hypotheses.append(Hypothesis([ids_by_name[name] for name in tokens], score, None))
            found[row] = sorted(hypotheses, key=lambda h: -h.score)
        return found


def _jobs(
    rows: list[int], sources: Sentences, limits: Sequence[int], beam: int, workers: int, budget: int
) -> list[Job]:
    """Batches of similar lengths, longest first; their number is a multiple of `workers`, so that all finish together."""
    rows = sorted(rows, key=lambda row: -len(sources[row]))
    size = max(1, min(MAX_SENTENCES, MAX_HYPOTHESES // beam, budget // (len(sources[rows[0]]) + 1)))
    count = -(-len(rows) // size)
    count = -(-count // workers) * workers
    edges = [len(rows) * i // count for i in range(count + 1)]
    batches = [rows[a:b] for a, b in pairwise(edges) if a < b]
    return [(batch, max(limits[row] for row in batch)) for batch in batches]


def _jobs_by_limit(rows: list[int], sources: Sentences, limits: Sequence[int], beam: int, budget: int) -> list[Job]:
    """Batches of sentences with the same maximum length."""
    groups: dict[int, list[int]] = {}
    for row in rows:
        groups.setdefault(limits[row], []).append(row)
    return [job for group in groups.values() for job in _jobs(group, sources, limits, beam, 1, budget)]


def _full(found: list[Hypothesis], limit: int, batch_limit: int, force_end: bool) -> bool:
    """Whether a sentence must be searched again: it reached its own limit, but its batch allowed more, or its end is
    forced.
    """
    return (batch_limit > limit or force_end) and max(len(h.tokens) for h in found) >= limit

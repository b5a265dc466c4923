"""An engine for CPUs: CTranslate2, with 8-bit weights. It takes only the searches that it can run as asked.

Its beam search is that of `heed.decoding.beam`. It stops as soon as `beam` hypotheses are found ("first") or, when it is given no
length penalty, once `beam` are found and the likeliest candidate of all has ended. The latter finds what "exact" finds in all but
few sentences. The length penalty is always Heed's own: it ranks what was found.
"""

import ctypes
import os
import threading
import warnings
import weakref
from collections.abc import Iterable, Sequence
from copy import copy
from functools import cached_property
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, NamedTuple

import torch

from heed.convert import ctranslate2_import
from heed.convert.ctranslate2 import able, given_ids, names
from heed.decoding.config import DecodingConfig
from heed.decoding.ranking import PENALTIES
from heed.decoding.steps import Hypothesis
from heed.models.package import Package
from heed.products.search import forced_start
from heed.products.translator.engines import cache
from heed.products.translator.engines.engine import TorchEngine
from heed.products.translator.model_bundle import Hypotheses, ModelBundle, Sentences

MAX_HYPOTHESES, MAX_SENTENCES = 64, 32  # in a batch: larger ones are no faster
SENTENCES_PER_WORKER = 4  # with fewer, several threads share one batch
MAX_THREADS_PER_BATCH = 4  # more would wait for each other
LOW_PENALTY = 0.6  # up to this length penalty the likeliest that ends is soon the best
HIGH_PENALTY = 1.0  # up to this one the best is among twice as many hypotheses as there are beams
NO_PENALTY = 1e-9  # changes no score; 0 would change when a search stops
Found = dict[int, list[Hypothesis]]  # by row, best first
Job = tuple[list[int], int]  # the rows of one batch, and the most tokens that each translation may have


class BeamOptions(NamedTuple):
    """CTranslate2 searches with its own penalty length^`alpha` until `beam` times `patience` hypotheses are found.

    Where alpha is 0, until the likeliest candidate of all has ended too, and as soon as `hypotheses` are found.
    """

    alpha: float
    hypotheses: int
    patience: float = 1.0


def beam_options(config: DecodingConfig) -> BeamOptions | None:
    """The options that come nearest to a search; None where none come near."""
    beam, alpha = config.beam, config.length_penalty
    if beam == 1:
        return BeamOptions(0.0, 1)
    if config.stopping == "first":
        return BeamOptions(alpha or NO_PENALTY, beam)
    if alpha <= LOW_PENALTY:
        return BeamOptions(0.0, beam if alpha else config.nbest)
    return BeamOptions(0.0, 2 * beam, 2.0) if alpha <= HIGH_PENALTY else None


def workers_and_threads(sentences: int, threads: int) -> tuple[int, int]:
    """How many batches are translated at once, and with how many threads each: one, if all threads get enough sentences."""
    for each in (1, MAX_THREADS_PER_BATCH):
        if threads >= each and sentences >= SENTENCES_PER_WORKER * (threads // each):
            return threads // each, each
    return 1, min(threads, MAX_THREADS_PER_BATCH)


def unsupported(bundle: ModelBundle) -> str | None:
    """Why CTranslate2 cannot run these models, or None if it can."""
    if find_spec("ctranslate2") is None:
        return "its package is not installed (pip install ctranslate2)"
    if len(bundle.models) > 1:
        return "it does not support ensembles"
    if bundle.device.type != "cpu":
        return f"it only runs on the CPU here, and the model is on {bundle.device}"
    return None if able(bundle.model) else f"it does not support this {type(bundle.model).__name__}"


class Pools:
    """CTranslate2's translators by (workers, threads), which all directions of one model share."""

    def __init__(self):
        self.pools: dict[tuple[int, int], Any] = {}
        self.snapshot: object = None  # the weights that the pools were made from
        self.names: tuple[list[str], list[str], dict[str, int]] | None = None
        self.broken = False
        self.lock = threading.Lock()
        ALIVE.add(self)


ALIVE: "weakref.WeakSet[Pools]" = weakref.WeakSet()


def _drop_pools_after_fork() -> None:
    """A child process lacks the threads of its parent's pools: waiting for them, or freeing them, would hang for ever."""
    for shared in list(ALIVE):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(shared.pools))  # so that they are never freed here
        shared.pools, shared.lock = {}, threading.Lock()


if hasattr(os, "register_at_fork"):  # Windows has no forks
    os.register_at_fork(after_in_child=_drop_pools_after_fork)


class CTranslate2:
    """One model on the CPU, converted by the first search, and again after its weights have changed.

    `kind` is the number format of the weights. A `required` engine raises where another would leave the search to torch.
    """

    def __init__(self, bundle: ModelBundle, kind: str | None = None, required: bool = False):
        self.bundle, self.asked_kind, self.required, self.shared = bundle, kind, required, Pools()

    def for_bundle(self, bundle: ModelBundle) -> "CTranslate2":
        other = copy(self)
        other.bundle = bundle
        return other

    @cached_property
    def kind(self) -> str:
        return self.asked_kind or (
            "int8" if "int8" in ctranslate2_import.ctranslate2().get_supported_compute_types("cpu") else "float32"
        )

    @property
    def name(self) -> str:
        return f"ctranslate2-{self.kind}"

    def takes(self, config: DecodingConfig, prefixes: Sentences) -> bool:
        if self.shared.broken or self.bundle.model.training:
            return False
        if config.sample or config.repetition_penalty != 1 or any(prefixes) or beam_options(config) is None:
            return False
        if forced_start(config, self.bundle.special[1]) != self.bundle.special[1].before:
            return False
        return all(p.dtype == torch.float32 and p.device.type == "cpu" for p in self._weights())

    def search(self, sources: Sentences, config: DecodingConfig, prefixes: Sentences, batch_tokens: int) -> Hypotheses:
        limits = self.bundle.max_lengths(sources, config, prefixes)
        rows = [
            row for row, ids in enumerate(sources) if ids
        ]  # it translates an empty source to nothing, Heed does not
        found: Found = {}
        threads = torch.get_num_threads()
        pool, workers = self._pool(len(rows))
        if (
            torch.get_num_threads() != threads
        ):  # where both share an OpenMP, opening a translator sets it for torch, too
            torch.set_num_threads(threads)
        if pool is not None and rows:
            jobs = _jobs(rows, sources, limits, config.beam, workers, batch_tokens)
            found = self._translate(pool, jobs, sources, config)
            full = [row for rows, cap in jobs for row in rows if _full(found[row], limits[row], cap, config.force_end)]
            again = _jobs_by_limit(full, sources, limits, config.beam, batch_tokens)
            found |= {row: [] for row in full} if config.force_end else self._translate(pool, again, sources, config)
        rest = [row for row in range(len(sources)) if not found.get(row)]
        results = TorchEngine(self.bundle).search(
            [sources[row] for row in rest], config, [[] for _ in rest], batch_tokens
        )
        found |= dict(zip(rest, results, strict=True))
        return [found[row][: config.nbest] for row in range(len(sources))]

    def _pool(self, sentences: int) -> tuple[Any, int]:
        """A CTranslate2 translator for this many sentences, or None if it cannot be used; and its number of workers."""
        size = workers_and_threads(sentences, torch.get_num_threads())
        with self.shared.lock:
            snapshot = tuple((p.data_ptr(), 0 if p.is_inference() else p._version) for p in self._weights())
            if snapshot != self.shared.snapshot:
                self.shared.pools, self.shared.snapshot = {}, snapshot
            try:
                if size not in self.shared.pools:
                    self.shared.pools[size] = self._open(*size)
            except Exception as error:
                if self.required:
                    raise ValueError(f"CTranslate2 cannot run this model: {error}; use engine torch") from error
                self.shared.broken = True
                reason = str(error).strip().split("\n")[0]
                warnings.warn(f"CTranslate2 cannot run this model, using torch instead: {reason}", stacklevel=4)
            return self.shared.pools.get(size), size[0]

    @cached_property
    def _modules(self) -> list[torch.nn.Module]:
        return list(self.bundle.model.modules())

    def _weights(self) -> list[torch.Tensor]:
        """The present weights; `model.parameters()` would take longer than translating a few words."""
        return [weight for module in self._modules for weight in module._parameters.values() if weight is not None]

    def _open(self, workers: int, threads: int) -> Any:
        translator, own = ctranslate2_import.ctranslate2().Translator, self.bundle
        processors = dict(zip(("source", "target"), own.vocabularies, strict=True))
        package = Package(own.model, "translation", processors, {}, own.shortlist)
        options = {"device": "cpu", "compute_type": self.kind, "inter_threads": workers, "intra_threads": threads}
        return cache.with_folder(package, self.kind, lambda folder: translator(str(folder), **options))

    @property
    def names(self) -> tuple[list[str], list[str], dict[str, int]]:
        """The names of source and target tokens, which CTranslate2 takes instead of ids, and the target ids by name."""
        if self.shared.names is None:
            source, target = names(self.bundle.source), names(self.bundle.target, self.bundle.model.config.vocab_size)
            self.shared.names = source, target, {name: i for i, name in enumerate(target)}
        return self.shared.names

    def _translate(self, pool: Any, jobs: Iterable[Job], sources: Sentences, config: DecodingConfig) -> Found:
        """All jobs are submitted at once, so that no worker waits for another's batch."""
        source, target, ids_by_name = self.names
        special, own, options, penalty = (
            self.bundle.special[1],
            self.bundle.source,
            beam_options(config),
            PENALTIES[config.penalty],
        )
        start = [target[i] for i in forced_start(config, special)]
        min_length = len(special.before) + config.min_length if config.min_length else 0
        submitted = []
        for rows, limit in jobs:
            futures = pool.translate_batch(
                [[source[i] for i in given_ids(own, sources[row])] for row in rows], [start] * len(rows) if start else None,
                beam_size=config.beam, length_penalty=options.alpha, num_hypotheses=options.hypotheses,
                patience=options.patience, min_decoding_length=min(min_length, limit), max_decoding_length=limit,
                max_input_length=0, no_repeat_ngram_size=config.no_repeat,
                suppress_sequences=[[target[i]] for i in special.never], return_scores=True, return_end_token=True,
                asynchronous=True, use_vmap=bool(self.bundle.shortlist),
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
    """Batches of sentences with the same longest length."""
    groups: dict[int, list[int]] = {}
    for row in rows:
        groups.setdefault(limits[row], []).append(row)
    return [job for group in groups.values() for job in _jobs(group, sources, limits, beam, 1, budget)]


def _full(found: list[Hypothesis], limit: int, batch_limit: int, force_end: bool) -> bool:
    """Whether a sentence must be searched again: it reached its own limit, but its batch allowed more, or its end is forced."""
    return (batch_limit > limit or force_end) and max(len(h.tokens) for h in found) >= limit

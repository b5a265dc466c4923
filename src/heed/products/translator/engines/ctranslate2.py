"""An engine for CPUs: CTranslate2, with weights of eight bits. What it cannot do as it is asked it does not take.

It keeps beams as `heed.decoding.beam` does. It stops as soon as `beam` are found ("first"), or, where it is told no length
penalty, when so many are found and the likeliest candidate of all has ended. That second way finds what "exact" finds in all
but few sentences. The penalty is Heed's own in any case: it ranks what was found.
"""

import ctypes
import os
import threading
import warnings
import weakref
from collections.abc import Iterable, Sequence
from functools import cached_property
from importlib.util import find_spec
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from heed.convert import ctranslate2_import
from heed.convert.ctranslate2 import able, names
from heed.decoding.config import DecodingConfig, longest
from heed.decoding.ranking import PENALTIES
from heed.decoding.steps import Hypothesis
from heed.models.package import Package
from heed.products.translator.engines import cache
from heed.products.translator.engines.engine import Ids, TorchEngine
from heed.products.translator.search_options import begins_with

if TYPE_CHECKING:
    from heed.products.translator.translator import Translator

ROWS, SENTENCES = 64, 32  # hypotheses and sentences in a batch: with more no row becomes cheaper
EACH = 4  # sentences for each batch at work: with fewer several threads work at one
TOGETHER = 4  # threads at one batch, at most: more would wait for each other
MILD = 0.6  # the power of the length penalty up to which the likeliest that ends is soon the best
STRONG = 1.0  # and up to which the best is among twice as many as there are beams
NEARLY_NONE = 1e-9  # a penalty that changes no score: 0 would change when a search stops
Found = dict[int, list[Hypothesis]]  # of each row all that was found, best first
Job = tuple[list[int], int]  # rows that are translated together, and the most tokens that each may become


class Way(NamedTuple):
    """How CTranslate2 searches: with its own penalty length^`alpha` until `beam` times `patience` are found.

    Where alpha is 0, until the likeliest candidate of all has ended too, and as soon as `wanted` are found.
    """

    alpha: float
    wanted: int
    patience: float = 1.0


def way(config: DecodingConfig) -> Way | None:
    """How a search is put to CTranslate2; None where it knows no way that comes near."""
    beam, alpha = config.beam, config.length_penalty
    if beam == 1:
        return Way(0.0, 1)
    if config.stopping == "first":
        return Way(alpha or NEARLY_NONE, beam)
    if alpha <= MILD:
        return Way(0.0, beam if alpha else config.nbest)
    return Way(0.0, 2 * beam, 2.0) if alpha <= STRONG else None


def shared(sentences: int, threads: int) -> tuple[int, int]:
    """How many batches are translated at once, and by how many threads each: by one, if there is enough for all."""
    for each in (1, TOGETHER):
        if threads >= each and sentences >= EACH * (threads // each):
            return threads // each, each
    return 1, min(threads, TOGETHER)


def unfit(translator: "Translator") -> str | None:
    """Why CTranslate2 cannot search for a translator, if it cannot."""
    if find_spec("ctranslate2") is None:
        return "its package is not installed (pip install ctranslate2)"
    if len(translator.models) > 1:
        return "it has no ensembles"
    if translator.device.type != "cpu":
        return f"it is for the CPU here, and the model is on {translator.device}"
    return (
        None if able(translator.model) else f"it cannot compute what a {type(translator.model).__name__} like this does"
    )


ALL: "weakref.WeakSet[CTranslate2]" = weakref.WeakSet()


def _in_a_child() -> None:
    """After a fork: the threads of the pools are the parent's, and whoever waits for them or ends them waits for ever."""
    for engine in list(ALL):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(engine.pools))  # so that they are never taken down here
        engine.pools, engine.lock = {}, threading.Lock()


if hasattr(os, "register_at_fork"):  # Windows has no forks
    os.register_at_fork(after_in_child=_in_a_child)


class CTranslate2:
    """One model on the CPU. It is converted when the first search comes, and anew when its weights have changed since."""

    def __init__(self, translator: "Translator", kind: str | None = None, required: bool = False):
        self.translator, self.asked, self.required = translator, kind, required
        self.pools: dict[tuple[int, int], Any] = {}  # by how many work at once, and with how many threads each
        self.seen: object = None  # the weights that they were made of
        self.broken = False
        self.lock = threading.Lock()
        ALL.add(self)

    @cached_property
    def kind(self) -> str:
        """Of the weights: as many bits as are fastest here."""
        return self.asked or (
            "int8" if "int8" in ctranslate2_import.ctranslate2().get_supported_compute_types("cpu") else "float32"
        )

    @property
    def name(self) -> str:
        return f"ctranslate2-{self.kind}"

    def takes(self, config: DecodingConfig, forced: Ids) -> bool:
        model, marks = self.translator.model, self.translator.marks[1]
        if self.broken or config.sample or any(forced) or way(config) is None or model.training:
            return False
        if begins_with(config, marks) != marks.before:
            return False
        return all(p.dtype == torch.float32 and p.device.type == "cpu" for p in self._weights())

    def search(self, ids: Ids, config: DecodingConfig, forced: Ids, batch_tokens: int) -> list[list[Hypothesis]]:
        limits = [longest(config, len(own) + 1, self.translator.longest) for own in ids]
        rows = [row for row, own in enumerate(ids) if own]  # it says nothing to nothing, Heed's models do
        found: Found = {}
        pool, workers = self._pool(len(rows))
        if pool is not None and rows:
            jobs = _jobs(rows, ids, limits, config.beam, workers, batch_tokens)
            found = self._translated(pool, jobs, ids, config)
            full = [
                row for rows, most in jobs for row in rows if _full(found[row], limits[row], most, config.force_end)
            ]
            again = _alike(full, ids, limits, config.beam, batch_tokens)
            found |= {row: [] for row in full} if config.force_end else self._translated(pool, again, ids, config)
        rest = [row for row in range(len(ids)) if not found.get(row)]
        own = TorchEngine(self.translator).search([ids[row] for row in rest], config, [[] for _ in rest], batch_tokens)
        found |= dict(zip(rest, own, strict=True))
        return [found[row][: config.nbest] for row in range(len(ids))]

    def _pool(self, sentences: int) -> tuple[Any, int]:
        """Who translates so many sentences, and how many batches at once; None where CTranslate2 cannot be used after all."""
        size = shared(sentences, torch.get_num_threads())
        with self.lock:
            seen = tuple((p.data_ptr(), 0 if p.is_inference() else p._version) for p in self._weights())
            if seen != self.seen:
                self.pools, self.seen = {}, seen
            try:
                if size not in self.pools:
                    self.pools[size] = self._opened(*size)
            except Exception as error:
                if self.required:
                    raise ValueError(f"CTranslate2 cannot be used for this model: {error}; use engine torch") from error
                self.broken = True
                reason = str(error).strip().split("\n")[0]
                warnings.warn(f"CTranslate2 cannot be used for this model, torch is: {reason}", stacklevel=4)
            return self.pools.get(size), size[0]

    @cached_property
    def _parts(self) -> list[torch.nn.Module]:
        return list(self.translator.model.modules())

    def _weights(self) -> list[torch.Tensor]:
        """As they are now. To look for them in the whole model each time would take longer than a few words."""
        return [weight for part in self._parts for weight in part._parameters.values() if weight is not None]

    def _opened(self, workers: int, threads: int) -> Any:
        opened, t = ctranslate2_import.ctranslate2().Translator, self.translator
        package = Package(t.model, "translation", {"source": t.source, "target": t.target}, {}, t.shortlist)
        how = {"device": "cpu", "compute_type": self.kind, "inter_threads": workers, "intra_threads": threads}
        return cache.with_folder(package, self.kind, lambda folder: opened(str(folder), **how))

    @cached_property
    def names(self) -> tuple[list[str], list[str], dict[str, int]]:
        """Of the source's ids, of the target's, and back: CTranslate2 is given names."""
        t = self.translator
        source, target = names(t.source), names(t.target, t.model.config.vocab_size)
        return source, target, {name: i for i, name in enumerate(target)}

    def _translated(self, pool: Any, jobs: Iterable[Job], ids: Ids, config: DecodingConfig) -> Found:
        """All batches are handed over at once, and those at work take the next when they have done one."""
        source, target, back = self.names
        marks, how, penalty = self.translator.marks[1], way(config), PENALTIES[config.penalty]
        begin = [target[i] for i in begins_with(config, marks)]
        least = len(marks.before) + config.min_length if config.min_length else 0
        asked = []
        for rows, most in jobs:
            futures = pool.translate_batch(
                [[source[i] for i in ids[row]] for row in rows], [begin] * len(rows) if begin else None,
                beam_size=config.beam, length_penalty=how.alpha, num_hypotheses=how.wanted, patience=how.patience,
                min_decoding_length=min(least, most), max_decoding_length=most, max_input_length=0,
                no_repeat_ngram_size=config.no_repeat, suppress_sequences=[[target[i]] for i in marks.never],
                return_scores=True, return_end_token=True, asynchronous=True, use_vmap=bool(self.translator.shortlist),
            )  # fmt: skip
            asked += zip(rows, futures, strict=True)
        found = {}
        for row, future in asked:
            result, each = future.result(), []
            for said, score in zip(result.hypotheses, result.scores, strict=True):
                logp, size = score * len(said) ** how.alpha, len(said)
                each.append(
                    Hypothesis([back[name] for name in said], logp / penalty(size, config.length_penalty), None)
                )
            found[row] = sorted(each, key=lambda h: -h.score)
        return found


def _jobs(rows: list[int], ids: Ids, limits: Sequence[int], beam: int, workers: int, budget: int) -> list[Job]:
    """Near-equal lengths together, the longest first; as many batches as all workers have work with until the end."""
    rows = sorted(rows, key=lambda row: -len(ids[row]))
    size = max(1, min(SENTENCES, ROWS // beam, budget // (len(ids[rows[0]]) + 1)))
    count = -(-len(rows) // size)
    count = -(-count // workers) * workers
    edges = [len(rows) * i // count for i in range(count + 1)]
    parts = [rows[a:b] for a, b in pairwise(edges) if a < b]
    return [(part, max(limits[row] for row in part)) for part in parts]


def _alike(rows: list[int], ids: Ids, limits: Sequence[int], beam: int, budget: int) -> list[Job]:
    """Batches of sentences that may all become equally long."""
    groups: dict[int, list[int]] = {}
    for row in rows:
        groups.setdefault(limits[row], []).append(row)
    return [job for own in groups.values() for job in _jobs(own, ids, limits, beam, 1, budget)]


def _full(found: list[Hypothesis], limit: int, most: int, force_end: bool) -> bool:
    """Whether a sentence came to its own longest length, but its batch was allowed more, or it must end there at no cost."""
    return (most > limit or force_end) and max(len(h.tokens) for h in found) >= limit

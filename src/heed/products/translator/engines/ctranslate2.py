"""An engine for CPUs: CTranslate2, with 8-bit weights. It takes only searches that it supports exactly. Its beam
search is that of `heed.decoding.beam`. It stops as soon as `beam` hypotheses are found ("first") or, without a length
penalty, once `beam` are found and the most likely candidate has ended. The latter matches "exact" in all but a few
sentences. The length penalty is always Heed's own: it ranks the results.
"""

import ctypes
import os
import threading
import warnings
import weakref
from copy import copy
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from heed.convert import ctranslate2_import
from heed.convert.ctranslate2 import able
from heed.decoding.config import DecodingConfig, forced_start
from heed.models.package import Package
from heed.products.translator.engines import cache
from heed.products.translator.engines.ctranslate2_search import (
    Found,
    PoolSearch,
    TokenNames,
    beam_options,
    workers_and_threads,
)
from heed.products.translator.engines.engine import TorchEngine
from heed.products.translator.model_bundle import Hypotheses, ModelBundle, Sentences


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
        self.names: TokenNames | None = None
        self.folder: Path | None = None  # the conversion in the cache
        self.broken = False
        self.lock = threading.Lock()
        ALIVE.add(self)


ALIVE: "weakref.WeakSet[Pools]" = weakref.WeakSet()


def _drop_pools_after_fork() -> None:
    """A child process lacks the threads of its parent's pools: waiting for them, or freeing them, would hang
    forever.
    """
    for shared in list(ALIVE):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(shared.pools))  # so that they are never freed here
        shared.pools, shared.lock = {}, threading.Lock()


if hasattr(os, "register_at_fork"):  # Windows has no forks
    os.register_at_fork(after_in_child=_drop_pools_after_fork)


class CTranslate2:
    """One model on the CPU, converted by the first search, and again after its weights have changed. `kind` is the
    number format of the weights. A `required` engine raises errors where another would fall back to torch.
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
            found = self._search(pool).run(rows, sources, limits, config, workers, batch_tokens)
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
                self.shared.pools, self.shared.snapshot, self.shared.folder = {}, snapshot, None
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
        """The current weights; `model.parameters()` would take longer than translating a few words."""
        return [weight for module in self._modules for weight in module._parameters.values() if weight is not None]

    def _open(self, workers: int, threads: int) -> Any:
        translator, own = ctranslate2_import.ctranslate2().Translator, self.bundle
        options = {"device": "cpu", "compute_type": self.kind, "inter_threads": workers, "intra_threads": threads}
        if self.shared.folder is not None and cache.is_intact(self.shared.folder):  # the same weights, opened before
            return translator(str(self.shared.folder), **options)
        processors = dict(zip(("source", "target"), own.vocabularies, strict=True))
        package = Package(own.model, "translation", processors, {}, own.shortlist)
        self.shared.folder, opened = cache.with_folder(
            package, self.kind, lambda folder: translator(str(folder), **options)
        )
        return opened

    def _search(self, pool: Any) -> PoolSearch:
        own = self.bundle
        if self.shared.names is None:
            self.shared.names = TokenNames.of(own.vocabularies, own.model.config.vocab_size)
        return PoolSearch(pool, own.vocabularies, self.shared.names, bool(own.shortlist))

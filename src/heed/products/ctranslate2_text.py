"""CTranslate2 as an engine for language models on the CPU. It takes only what it can run as asked: greedy search, and scores."""

from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import torch
from torch import nn

from heed.convert import ctranslate2_import
from heed.convert.ctranslate2 import able, names
from heed.decoding.config import DecodingConfig
from heed.decoding.steps import Hypothesis
from heed.models.package import Package
from heed.products.prompts import Prompt
from heed.products.translator.engines import cache
from heed.products.translator.engines.ctranslate2 import Pools, workers_and_threads
from heed.vocabularies.vocabulary import Vocabulary

KIND = "float32"  # so that tokens are those of torch; with 8 bits some are others
MAX_ROWS = 32  # texts in a batch


class TextEngine:
    """One language model on the CPU, converted when it is first used, and again after its weights have changed.

    `kind` is the number format of the weights.
    """

    def __init__(self, model: nn.Module, vocabulary: Vocabulary, kind: str | None = None):
        if find_spec("ctranslate2") is None:
            raise ValueError("engine is 'ctranslate2', but its package is not installed; pip install ctranslate2")
        if not able(model):
            raise ValueError(
                f"engine is 'ctranslate2', but it cannot compute what a {type(model).__name__} like this does; use torch"
            )
        self.model, self.vocabulary, self.kind, self.shared = model, vocabulary, kind or KIND, Pools()

    def takes(self, config: DecodingConfig, longest: int) -> bool:
        """Whether it can run a search that begins with at most `longest` tokens."""
        plain = (config.beam, config.min_length, config.no_repeat, config.repetition_penalty) == (1, 0, 0, 1.0)
        fits = longest + config.max_length - 1 <= self.model.config.max_length
        return plain and fits and not config.sample and not self.model.training and self._on_cpu()

    def scores(self) -> bool:
        return not self.model.training and self._on_cpu()

    budget = 0  # tokens that a batch should have at least

    def search(self, prompts: Sequence[Prompt], config: DecodingConfig, last: int) -> list[list[Hypothesis]]:
        """The greedy continuation of each prompt, which ends with the token `last`."""
        pool, groups, submitted = self._pool(len(prompts)), {}, []
        for row, own in enumerate(prompts):
            groups.setdefault(len(own.ids), []).append(row)
        for rows in groups.values():  # of texts of different lengths it would return a part of the prompts too
            futures = pool.generate_batch(
                [[self.names[i] for i in prompts[row].ids] for row in rows], max_batch_size=MAX_ROWS, beam_size=1,
                max_length=config.max_length, min_length=0, end_token=[last if last >= 0 else len(self.names)], return_end_token=True,
                include_prompt_in_result=False, asynchronous=True,
                suppress_sequences=[[self.names[i]] for i in self.vocabulary.special.never],
            )  # fmt: skip
            submitted += zip(rows, futures, strict=True)
        results = {row: future.result().sequences_ids[0] for row, future in submitted}
        scores = self.score([own.ids + results[row] for row, own in enumerate(prompts)])
        return [[_hypothesis(results[row], own)] for row, own in enumerate(scores)]

    def score(self, texts: Sequence[Sequence[int]]) -> list[list[float]]:
        """The log-probability of each token of a text but the first."""
        named = [[self.names[i] for i in text] for text in texts]
        found = self._pool(len(named)).score_batch(named, max_batch_size=MAX_ROWS, max_input_length=0)
        return [list(result.log_probs) for result in found]

    @cached_property
    def names(self) -> list[str]:
        return names(self.vocabulary, self.model.config.vocab_size)

    def _on_cpu(self) -> bool:
        return all(own.dtype == torch.float32 and own.device.type == "cpu" for own in self.model.parameters())

    def _pool(self, texts: int) -> Any:
        """CTranslate2's generator for this many texts."""
        size = workers_and_threads(texts, torch.get_num_threads())
        with self.shared.lock:
            weights = self.model.parameters()
            snapshot = tuple((own.data_ptr(), 0 if own.is_inference() else own._version) for own in weights)
            if snapshot != self.shared.snapshot:
                self.shared.pools, self.shared.snapshot = {}, snapshot
            if size not in self.shared.pools:
                self.shared.pools[size] = self.open(*size)
            return self.shared.pools[size]

    def open(self, workers: int, threads: int) -> Any:
        """CTranslate2's generator with these weights."""
        generator = ctranslate2_import.ctranslate2().Generator
        package = Package(self.model, "language", {"text": self.vocabulary}, {})
        options = {"device": "cpu", "compute_type": self.kind, "inter_threads": workers, "intra_threads": threads}
        return cache.with_folder(package, self.kind, lambda folder: generator(str(folder), **options))


def _hypothesis(ids: list[int], scores: list[float]) -> Hypothesis:
    own = scores[len(scores) - len(ids) :]
    return Hypothesis(ids, sum(own), own)

"""CUDA graphs as an engine for language models on an NVIDIA GPU: greedy search and sampling, in bfloat16."""

import threading
import warnings
from collections.abc import Sequence

import torch
from torch import nn

from heed.decoding.config import DecodingConfig
from heed.decoding.cuda import weights
from heed.decoding.cuda.text import Sampling, TextRules, TextRunner, generate
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.ranking import PENALTIES
from heed.products.prompts import Prompt
from heed.products.search import sampling_seeds
from heed.products.translator.engines.cuda import WeightSnapshot, current_device, supports_device
from heed.vocabularies.vocabulary import Vocabulary

FULL_BATCH = 65_536  # tokens that a batch should have at least: smaller ones leave the GPU idle


class CudaTextEngine:
    """One language model on a GPU, with a copy of its weights in `dtype`. The copy is created by the first search,
    and again after the weights have changed. The model itself is unchanged.
    """

    budget = FULL_BATCH

    def __init__(self, model: nn.Module, vocabulary: Vocabulary, dtype: torch.dtype = torch.bfloat16):
        self.model, self.vocabulary, self.dtype = model, vocabulary, dtype
        self.runner: TextRunner | None = None
        self.snapshot: WeightSnapshot | None = None
        self.lock = threading.Lock()

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    def takes(self, config: DecodingConfig, longest: int) -> bool:
        """Whether it supports a search that begins with at most `longest` tokens."""
        if not supports_device(self.device) or self.model.training or (config.beam > 1 and not config.sample):
            return False
        plain = (config.min_length, config.no_repeat, config.repetition_penalty, config.renormalize) == (
            0,
            0,
            1.0,
            False,
        )
        if not plain or longest + config.max_length - 1 > self.model.config.max_length:
            return False
        with self.lock, current_device(self.device):
            return self._updated_runner() is not None

    def scores(self) -> bool:
        return False  # torch's pass over a whole text is as good

    def search(self, prompts: Sequence[Prompt], config: DecodingConfig, last: int) -> list[list[Hypothesis]] | None:
        """The continuations of each prompt, which end with the token `last`; several if several are sampled. None,
        after a warning, if the GPU fails: then it takes no more searches.
        """
        draws, uniform, sampling = config.nbest if config.sample else 1, None, None
        if config.sample:
            seeds = sampling_seeds(config, [(own.text,) for own in prompts])
            uniform = torch.stack([_uniform(seed, config.max_length) for seed in seeds])
            sampling = Sampling(*(getattr(config, name) for name in Sampling._fields))
        rules = TextRules(config.max_length, last, tuple(self.vocabulary.special.never), sampling)
        texts = [own.ids for own in prompts for _ in range(draws)]
        with self.lock, current_device(self.device):
            runner = self.runner or self._updated_runner()
            assert runner is not None, "an unsupported search"
            try:
                found = generate(runner, texts, rules, uniform)
            except RuntimeError as error:
                self.runner = None  # until the weights change
                warnings.warn(
                    f"fast GPU decoding failed, falling back to the standard search: {_first_line(error)}", stacklevel=4
                )
                return None
        penalty = PENALTIES[config.penalty]
        each = [Hypothesis(ids, sum(own) / penalty(len(ids), config.length_penalty), own) for ids, own in found]
        return [each[i : i + draws] for i in range(0, len(each), draws)]

    def _updated_runner(self) -> TextRunner | None:
        """A runner with the current weights; None for an unsupported model or GPU."""
        if self.snapshot is None or not self.snapshot.matches(self.model):
            self.runner, self.snapshot = None, WeightSnapshot(self.model)
            if weights.supports_text(self.model):
                self.runner = self._build()
        return self.runner

    def _build(self) -> TextRunner | None:
        """None if it fails, for instance without a compiler for kernels: then torch is used."""
        try:
            from heed.decoding.cuda.graphs import GraphTextRunner

            with torch.inference_mode():
                runner = GraphTextRunner(weights.read_text(self.model, self.dtype))
                runner.get_buffers(1, 1, None)
                return runner
        except Exception as error:
            reason = _first_line(error)
            warnings.warn(f"fast GPU decoding is unavailable, using the standard search: {reason}", stacklevel=4)
            return None


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0]


def cuda_engine(model: nn.Module, vocabulary: Vocabulary) -> CudaTextEngine | None:
    """The engine for the model's GPU; None if it is not on a supported one."""
    return CudaTextEngine(model, vocabulary) if supports_device(next(model.parameters()).device) else None


def _uniform(seed: int, count: int) -> torch.Tensor:
    """The random numbers of one text, independent of its batch."""
    return torch.rand(count, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)

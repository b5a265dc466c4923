"""An engine for NVIDIA cards: the whole search on the card, as CUDA graphs, in bfloat16. It takes what it knows."""

import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

import torch
from torch import nn

from heed.decoding.config import DecodingConfig, longest
from heed.decoding.cuda import weights
from heed.decoding.cuda.buffers import SearchRules
from heed.decoding.cuda.search import SearchRunner, rounded, search
from heed.decoding.ranking import PENALTIES
from heed.decoding.steps import Hypothesis
from heed.products.translator.search_options import begins_with
from heed.vocabularies.vocabulary import SpecialTokens

if TYPE_CHECKING:
    from heed.products.translator.translator import Translator

Ids = list[list[int]]
FULL = 32_768  # tokens of sources: with fewer at once a card has idle hours
MOST_BEAMS = 16
SHARE = 0.5  # of the free memory, for the keys of one batch


class CudaEngine:
    """The search of `heed.decoding.cuda`, for one model made of known parts.

    The weights are copied in `dtype` when the first search comes, and anew when they have changed since; the model itself
    stays as it is.
    """

    name = "card"

    def __init__(self, translator: "Translator", dtype: torch.dtype = torch.bfloat16):
        self.translator, self.dtype = translator, dtype
        self.machine: SearchRunner | None = None
        self.seen: _Seen | None = None  # what the machine was made of
        self.lock = threading.Lock()

    def takes(self, config: DecodingConfig, forced: Ids) -> bool:
        most = min(MOST_BEAMS, self.translator.model.config.vocab_size // 2)
        if not _able(self.translator.device) or self.translator.model.training or config.beam > most:
            return False
        if config.sample or config.no_repeat or any(forced):
            return False
        with self.lock, _on(self.translator.device):
            return self._ready() is not None

    def search(self, ids: Ids, config: DecodingConfig, forced: Ids, batch_tokens: int) -> list[list[Hypothesis]]:
        found: list[list[Hypothesis]] = [[] for _ in ids]
        marks = self.translator.marks[0]
        sources = [[*marks.before, *own, marks.last] for own in ids]
        rules = followed(config, self.translator.marks[1])
        least = len(rules.prefix) + 1
        limits = [max(least, longest(config, len(own) + 1, self.translator.longest)) for own in ids]
        with self.lock, _on(self.translator.device):
            machine = self.machine or self._ready()
            assert machine is not None, "a search that was not taken"
            for rows in self._batches(sources, limits, rules.beams, max(FULL, batch_tokens)):
                own = _searched(machine, [sources[row] for row in rows], [limits[row] for row in rows], rules)
                for row, hypotheses in zip(rows, own, strict=True):
                    found[row] = hypotheses
        return found

    def _ready(self) -> SearchRunner | None:
        """A machine with the weights as they are now; None for a model or a card that it is not made for."""
        model = self.translator.model
        if self.seen is None or not self.seen.holds(model):
            self.machine, self.seen = None, _Seen(model)
            if len(self.translator.models) == 1 and weights.supports(model):
                self.machine = self._built()
        return self.machine

    def _built(self) -> SearchRunner | None:
        """Tried once: a machine without a compiler for kernels translates all the same, by the other engine."""
        try:
            from heed.decoding.cuda.graphs import GraphRunner

            with torch.inference_mode():
                machine = GraphRunner(weights.read(self.translator.model, self.dtype))
                machine.get_buffers(1, 1, 1, 1)
                return machine
        except Exception as error:
            reason = str(error).strip().split("\n")[0]
            warnings.warn(f"the fast search for GPUs cannot be used here, the plain one is: {reason}", stacklevel=4)
            return None

    def _batches(self, sources: Ids, limits: Sequence[int], beams: int, budget: int) -> Iterator[list[int]]:
        """Sources of near-equal lengths, the longest first, in numbers for which there are rooms of just that size."""
        order = sorted(range(len(sources)), key=lambda row: -len(sources[row]))
        while order:
            asked = min(len(order), floored(max(1, budget // len(sources[order[0]]))))
            fitting = self._fitting(beams, max(limits[row] for row in order[:asked]), asked)
            number = asked if fitting >= asked else floored(max(1, fitting))
            yield order[:number]
            order = order[number:]

    def _fitting(self, beams: int, length: int, asked: int) -> int:
        """How many sentences the card's memory can hold, of so many that are asked for."""
        w, ground = self.machine.weights, self.machine.pool
        places = beams * max(32, 1 << (length - 1).bit_length())
        if ground and rounded(asked) * places <= ground.slots:
            return asked
        device, each = self.translator.device, 2 * w.dim * len(w.target.layers) * w.output.element_size()
        free = torch.cuda.mem_get_info(device)[0] + (ground.keys.nbytes if ground else 0)
        free += torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return min(asked, int(SHARE * free / (each * places + 8 * beams * w.vocab)))


def _searched(machine: SearchRunner, sources: Ids, limits: Sequence[int], rules: SearchRules) -> list[list[Hypothesis]]:
    """All at once; where the card has too little memory, one half after the other."""
    try:
        return search(machine, sources, limits, rules)
    except torch.OutOfMemoryError:
        if len(sources) == 1:
            raise
    machine.release()
    torch.cuda.empty_cache()
    half = len(sources) // 2
    parts = ((sources[:half], limits[:half]), (sources[half:], limits[half:]))
    return [found for own, most in parts for found in _searched(machine, own, most, rules)]


class _Seen:
    """A model as it was: its parts, its weights, and whether they are still the same."""

    def __init__(self, model: nn.Module):
        self.model = model
        owners = [own for module in model.modules() for own in (module._modules, module._parameters, module._buffers)]
        self.parts = [(own, name, part) for own in owners for name, part in own.items()]
        held = [part for _, _, part in self.parts if isinstance(part, torch.Tensor)]
        self.weights = [(weight, weight.data_ptr(), _version(weight)) for weight in held]

    def holds(self, model: nn.Module) -> bool:
        return (
            model is self.model
            and all(own.get(name) is part for own, name, part in self.parts)
            and all(weight.data_ptr() == at and _version(weight) == number for weight, at, number in self.weights)
        )


def _version(weight: torch.Tensor) -> int:
    """How often it was written to; of what was made for inference that is not counted."""
    return 0 if weight.is_inference() else weight._version


def followed(config: DecodingConfig, marks: SpecialTokens) -> SearchRules:
    """The rules of a search, as the card takes them."""
    least = len(marks.before) + config.min_length if config.min_length else 0
    return SearchRules(
        first=marks.first, last=marks.last, never=tuple(marks.never), prefix=begins_with(config, marks), min_length=least,
        force_end=config.force_end, renormalize=config.renormalize, beams=config.beam, nbest=config.nbest,
        alpha=config.length_penalty, penalty=PENALTIES[config.penalty],
        stop=config.stopping if config.beam > 1 else "first",
    )  # fmt: skip


def _on(device: torch.device) -> AbstractContextManager:
    """Around kernels: they are started on the current card, wherever their tensors are."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def floored(number: int) -> int:
    """The largest size of a room that is no larger."""
    unit = 1 << max(0, number.bit_length() - 3)
    return rounded(number // unit * unit)


def _able(device: torch.device) -> bool:
    """An NVIDIA card with matrix units for bfloat16."""
    return device.type == "cuda" and torch.version.hip is None and torch.cuda.get_device_capability(device) >= (8, 0)

"""An engine for NVIDIA GPUs: the whole search on the device, as CUDA graphs, in bfloat16."""

import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from copy import copy
from itertools import islice

import numpy as np
import torch
from torch import nn

from heed.decoding.config import DecodingConfig, forced_start
from heed.decoding.cuda import weights
from heed.decoding.cuda.buffers import SearchRules
from heed.decoding.cuda.search import Batch, Found, SearchRunner, rounded, run
from heed.decoding.ranking import PENALTIES
from heed.products.translator.engines import compiled
from heed.products.translator.model_bundle import Hypotheses, ModelBundle, Sentences
from heed.vocabularies.vocabulary import SpecialTokens

Packed = tuple[list[int], Batch]  # which sources, and their tokens
FULL_BATCH = 32_768  # source tokens: smaller batches leave the GPU idle
MAX_BEAMS = 16
MEMORY_SHARE = 0.5  # of the free memory, for the keys of one batch


def supports_device(device: torch.device) -> bool:
    """An NVIDIA GPU with bfloat16 matrix units."""
    return device.type == "cuda" and torch.version.hip is None and torch.cuda.get_device_capability(device) >= (8, 0)


def supports_models(bundle: ModelBundle) -> bool:
    """Whether there is a single model, made of supported parts."""
    return len(bundle.models) == 1 and weights.supports(bundle.model)


class CudaEngine:
    """The search of `heed.decoding.cuda`, with a copy of the weights in `dtype`.

    The copy is created by the first search, and updated after the weights have changed. The model itself is unchanged.
    """

    name = "cuda"
    chunk = 4096  # texts that are translated together: three full batches of usual lines, and a small one at most
    overlaps = True  # with other work of the host: it has `begin`
    total_share = 1.0  # of the device's memory, at most, for the keys of one batch

    def __init__(self, bundle: ModelBundle, dtype: torch.dtype = torch.bfloat16, shared: "Shared | None" = None):
        self.bundle, self.dtype, self.shared = bundle, dtype, shared or Shared()

    def for_bundle(self, bundle: ModelBundle) -> "CudaEngine":
        other = copy(self)
        other.bundle = bundle
        return other

    def takes(self, config: DecodingConfig, prefixes: Sentences) -> bool:
        beams = min(MAX_BEAMS, self.bundle.model.config.vocab_size // 2)
        if not supports_device(self.bundle.device) or self.bundle.model.training or config.beam > beams:
            return False
        if config.sample or config.no_repeat or config.repetition_penalty != 1 or any(prefixes):
            return False
        with self.shared.lock, current_device(self.bundle.device):
            return self._updated_machine() is not None

    def search(self, sources: Sentences, config: DecodingConfig, prefixes: Sentences, batch_tokens: int) -> Hypotheses:
        return self.begin(sources, config, prefixes, batch_tokens, lambda: None)()

    def begin(
        self,
        sources: Sentences,
        config: DecodingConfig,
        prefixes: Sentences,
        batch_tokens: int,
        meanwhile: Callable[[], None],
    ) -> Callable[[], Hypotheses]:
        """The same, with `meanwhile` called once while the device works; what is returned waits for the last batch."""
        limits = np.array(self.bundle.max_lengths(sources, config, prefixes), dtype=np.int64)
        special, rules = self.bundle.special[0], device_rules(config, self.bundle.special[1])
        sources = [[*special.before, *source, special.last] for source in sources]
        with self.shared.lock, current_device(self.bundle.device):
            machine = self.shared.machine or self._updated_machine()
            assert machine is not None, "an unsupported search"
            batches = self._batches(sources, limits, rules.beams, max(FULL_BATCH, batch_tokens))
            found = _search_batches(machine, sources, limits, rules, batches, meanwhile)
            if rules.beams not in self.shared.compiled:
                self.shared.compiled.add(rules.beams)
                compiled.remember(self.bundle.model.config, self.dtype, rules.beams, self.bundle.device)
            return found

    def _updated_machine(self) -> SearchRunner | None:
        """A machine with the current weights; None for an unsupported model or GPU."""
        if self.shared.snapshot is None or not self.shared.snapshot.matches(self.bundle.model):
            self.shared.snapshot, supported = WeightSnapshot(self.bundle.model), supports_models(self.bundle)
            machine, self.shared.machine = self.shared.machine, None
            if supported and machine and machine.weights.dtype == self.dtype:
                self.shared.machine = machine if weights.refresh(machine.weights, self.bundle.model) else None
            del machine  # before another one needs memory
            if supported and not self.shared.machine:
                self.shared.machine = self._build()
        return self.shared.machine

    def _build(self) -> SearchRunner | None:
        """None if it fails, for instance without a compiler for kernels: then the torch engine is used."""
        try:
            from heed.decoding.cuda.graphs import GraphRunner

            with torch.inference_mode():
                machine = GraphRunner(weights.read(self.bundle.model, self.dtype))
                machine.get_buffers(1, 1, 1, 1)
                return machine
        except Exception as error:
            reason = str(error).strip().split("\n")[0]
            warnings.warn(f"fast GPU decoding is unavailable, using the standard search: {reason}", stacklevel=4)
            return None

    def _batches(self, sources: Sentences, limits: Sequence[int], beams: int, budget: int) -> Iterator[list[int]]:
        """Sources of similar lengths, longest first, in batch sizes that buffers have without padding."""
        lengths, limits = np.fromiter(map(len, sources), np.int64, len(sources)), np.asarray(limits)
        order = np.argsort(-lengths, kind="stable")
        while len(order):
            asked = min(len(order), round_down(max(1, budget // int(lengths[order[0]]))))
            fitting = self._fitting(beams, int(limits[order[:asked]].max()), asked)
            size = asked if fitting >= asked else round_down(max(1, fitting))
            yield order[:size].tolist()
            order = order[size:]

    def _fitting(self, beams: int, length: int, asked: int) -> int:
        """How many of `asked` sentences fit into the device's memory."""
        w, ground = self.shared.machine.weights, self.shared.machine.pool
        positions = beams * max(32, 1 << (length - 1).bit_length())
        if ground and rounded(asked) * positions <= ground.slots:
            return asked
        device, each = self.bundle.device, 2 * w.dim * len(w.target.layers) * w.output.element_size()
        free, total = torch.cuda.mem_get_info(device)
        free += torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        free += ground.keys.nbytes if ground else 0
        space = min(MEMORY_SHARE * free, self.total_share * total)
        return min(asked, int(space / (each * positions + 8 * beams * w.vocab)))


def _search_batches(
    machine: SearchRunner,
    sources: Sentences,
    limits: np.ndarray,
    rules: SearchRules,
    batches: Iterator[list[int]],
    more: Callable[[], None],
) -> Callable[[], Hypotheses]:
    """All batches; what is returned makes lists of the last. While the device works on one, the host makes lists of what it found
    before, packs the next, and does `more` with the first.
    """
    found: Hypotheses = [[] for _ in sources]
    waiting: list[tuple[list[int], Found]] = []
    ahead: list[Packed] = []
    others = [more]

    def pack(rows: list[int]) -> Packed:
        return rows, Batch.of([sources[row] for row in rows], limits[rows].tolist())

    def listed() -> Hypotheses:
        while waiting:
            rows, own = waiting.pop()
            for row, hypotheses in zip(rows, own.hypotheses(), strict=True):
                found[row] = hypotheses
        return found

    def meanwhile() -> None:
        if not ahead:
            ahead.extend(map(pack, islice(batches, 1)))
        listed()
        while others:
            others.pop()()

    ahead.extend(map(pack, islice(batches, 1)))
    while ahead:
        waiting += _search(machine, *ahead.pop(), rules, pack, meanwhile)
    return listed


def _search(
    machine: SearchRunner,
    rows: list[int],
    batch: Batch,
    rules: SearchRules,
    pack: Callable[[list[int]], Packed],
    meanwhile: Callable[[], None],
) -> list[tuple[list[int], Found]]:
    """One batch; if the device runs out of memory, one half after the other."""
    try:
        return [(rows, run(machine, batch, rules, meanwhile))]
    except torch.OutOfMemoryError:
        if len(rows) == 1:
            raise
    machine.release()
    torch.cuda.empty_cache()
    half = len(rows) // 2
    halves = (rows[:half], rows[half:])
    return [own for part in halves for own in _search(machine, *pack(part), rules, pack, meanwhile)]


class Shared:
    """Shared by all directions of one model: the machine, and the model it was built from."""

    def __init__(self):
        self.machine: SearchRunner | None = None
        self.snapshot: WeightSnapshot | None = None
        self.compiled: set[int] = set()  # numbers of beams that were searched with
        self.lock = threading.Lock()


class WeightSnapshot:
    """A snapshot of the modules and weights of a model, to detect changes."""

    def __init__(self, model: nn.Module):
        self.model = model
        owners = [own for module in model.modules() for own in (module._modules, module._parameters, module._buffers)]
        self.parts = [(owner, name, part) for owner in owners for name, part in owner.items()]
        tensors = [part for _, _, part in self.parts if isinstance(part, torch.Tensor)]
        self.weights = [(weight, weight.data_ptr(), _version(weight)) for weight in tensors]

    def matches(self, model: nn.Module) -> bool:
        return (
            model is self.model
            and all(owner.get(name) is part for owner, name, part in self.parts)
            and all(weight.data_ptr() == at and _version(weight) == number for weight, at, number in self.weights)
        )


def _version(weight: torch.Tensor) -> int:
    """How often it was written to, which torch does not count for inference tensors."""
    return 0 if weight.is_inference() else weight._version


def device_rules(config: DecodingConfig, special: SpecialTokens) -> SearchRules:
    """The search settings in the device's form."""
    least = len(special.before) + config.min_length if config.min_length else 0
    return SearchRules(
        first=special.first, last=special.last, never=tuple(special.never), prefix=forced_start(config, special), min_length=least,
        force_end=config.force_end, renormalize=config.renormalize, beams=config.beam, nbest=config.nbest,
        alpha=config.length_penalty, penalty=PENALTIES[config.penalty],
        stop=config.stopping if config.beam > 1 else "first",
    )  # fmt: skip


@contextmanager
def current_device(device: torch.device) -> Iterator[None]:
    """Kernels start on the current device, wherever their tensors are; and the engine chooses dtypes, not autocast."""
    with (
        torch.cuda.device(device) if device.type == "cuda" else nullcontext(),
        torch.autocast(device.type, enabled=False),
    ):
        yield


def round_down(number: int) -> int:
    """The largest batch size of a search buffer that is not larger."""
    unit = 1 << max(0, number.bit_length() - 3)
    return rounded(number // unit * unit)

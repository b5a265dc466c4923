"""What the host does around the search of a GPU: `python -m bench.host_work`. No GPU is needed.

The whole of `translate` runs, and the host's part of the search on the GPU; only the device is simulated: a clock says how long its
steps take, and the translations are given. First one stage after another, with the processor time of each; then as it really runs.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial, wraps
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from bench import machine
from heed.bulk import command
from heed.cli import translate as verb
from heed.data import staged
from heed.data.synthetic import phrasebook
from heed.decoding.config import UNGUARDED
from heed.decoding.cuda import buffers as fields
from heed.decoding.cuda import weights
from heed.decoding.cuda.buffers import SearchBuffers
from heed.decoding.cuda.search import SearchRunner
from heed.models.transformer import Transformer, TransformerConfig
from heed.products.translator import stages
from heed.products.translator.engines.cuda import CudaEngine
from heed.products.translator.guards import Guards
from heed.products.translator.translator import Translator
from heed.text.glossary import Glossary
from heed.vocabularies.sentencepiece import LAST, Subwords, SubwordsConfig, learn

# seconds of a step of base with 5 beams, alone and for each sentence, and of reading: the search alone then takes 45 µs a line
STEP, STEP_EACH, READ, READ_EACH = 0.22e-3, 1.4e-6, 0.2e-3, 3e-6
LENGTH, BEAM, VOCABULARY = 25, 5, 8192
MOST = 8192  # sentences of a batch
RELEASES = 3  # of Python's lock by a step: the graph, the copy of a count, and its event


class Device:
    """The clock of a GPU that does what it is told, one thing after another."""

    def __init__(self):
        self.free, self.idle = 0.0, 0.0

    def run(self, seconds: float) -> float:
        """When something that takes `seconds` will be done."""
        now = time.perf_counter()
        self.idle += max(0.0, now - self.free) if self.free else 0.0
        self.free = max(now, self.free) + seconds
        return self.free

    def wait(self, until: float) -> None:
        """As the host waits: it does not hold Python's lock."""
        while (left := until - time.perf_counter()) > 0:
            time.sleep(left)


class Given:
    """What would be found: the tokens and log-probabilities of so many translations."""

    def __init__(self, sentences: Sequence[list[int]], device: Device):
        words = [token for sentence in sentences for token in sentence]
        rows = np.resize(np.array(words, dtype=np.float32), (MOST, LENGTH))
        rows[:, -1] = LAST
        self.found, self.device = torch.from_numpy(np.stack([rows, np.full_like(rows, -0.5)])), device

    def trace(self, buffers: SearchBuffers, steps: int) -> torch.Tensor:
        if not hasattr(SearchRunner, "fetch"):  # in checkouts of before the copy waits at once
            self.device.wait(self.device.free)
        return self.found[:, : buffers.size.sentences * buffers.rules.nbest, :steps]


class Runner(SearchRunner):
    """The host's part of a search, as in GraphRunner."""

    shrink_above = sys.maxsize

    def __init__(self, own: weights.Weights, given: Given):
        super().__init__(own)
        self.given, self.device, self.ends = given, given.device, [0.0]

    def ops(self, rows: int) -> Any:
        return self.given

    def encode(self, tokens: np.ndarray, positions: np.ndarray, longest: int, buffers: SearchBuffers) -> None:
        torch.from_numpy(np.stack([tokens, positions]).astype(np.int32))
        buffers.finished.zero_()
        buffers.finished[:, fields.SCORE], buffers.finished[:, fields.LENGTH] = -0.75, LENGTH
        self.ends = [self.device.run(READ + READ_EACH * buffers.size.sentences)]

    def step(self, buffers: SearchBuffers) -> None:
        for _ in range(RELEASES):
            time.sleep(0)
        self.ends.append(self.device.run(STEP + STEP_EACH * buffers.size.sentences))

    def unfinished(self, buffers: SearchBuffers) -> int:
        if len(self.ends) > 2:
            self.device.wait(self.ends[-2])
        return buffers.size.sentences

    def fetch(self, *arrays: torch.Tensor) -> Callable[[], list[np.ndarray]]:
        end = self.device.run(0.0)

        def wait() -> list[np.ndarray]:
            self.device.wait(end)
            return [array.numpy() for array in arrays]

        return wait


class Engine(CudaEngine):
    """The engine of the GPU with this runner."""

    def __init__(self, bundle: Any, given: Given):
        super().__init__(bundle, torch.float32)
        self.given = given

    def takes(self, *of: Any) -> bool:
        return self._updated_machine() is not None

    def _build(self) -> SearchRunner:
        return Runner(weights.read(self.bundle.model, self.dtype), self.given)

    def _fitting(self, beams: int, length: int, asked: int) -> int:
        return asked


class Times:
    """Processor seconds by stage; what another stage does within one counts for that one alone."""

    def __init__(self):
        self.found: dict[str, float] = defaultdict(float)
        self.names, self.since = ["all else"], time.process_time()

    def switch(self) -> None:
        now = time.process_time()
        self.found[self.names[-1]] += now - self.since
        self.since = now

    def timed(self, name: str, call: Callable) -> Callable:
        @wraps(call)
        def run(*of: Any, **more: Any) -> Any:
            self.switch()
            self.names.append(name)
            try:
                return call(*of, **more)
            finally:
                self.switch()
                self.names.pop()

        return run


class Measured(NamedTuple):
    """Seconds of the clock, of the processor, and in which the device had nothing to do."""

    wall: float
    busy: float
    idle: float


def watched() -> list[tuple[Any, str, str]]:
    """What belongs to which stage; checkouts of before lack some of it."""
    found = [(stages, "split_texts", "clean and split"), (stages, "as_texts", "clean and split")]
    found += [(Subwords, name, "subwords of the sources") for name in ("encode", "encode_clean")]
    found += [(stages, "search", "search, the host's part"), (Guards, "faulty", "guards")]
    found += [(stages, "finish", "results"), (stages, "token_scores", "results")]
    found += [(Subwords, "decode_all", "texts of the translations"), (command, "as_bytes", "lines")]
    found += [(command.RecordedFile, "append", "writing"), (verb, "_plain_lines", "lines")]
    return [(owner, name, stage) for owner, name, stage in found if hasattr(owner, name)]


@contextmanager
def by_stage():
    """One stage after another, and the processor seconds of each."""
    times = Times()
    with ExitStack() as stack:
        stack.enter_context(staged.without_collections())
        for owner, name, stage in watched():
            stack.enter_context(mock.patch.object(owner, name, times.timed(stage, getattr(owner, name))))
        for module in (staged, command):
            stack.enter_context(mock.patch.object(module, "run", partial(staged.run, ahead=0)))
        yield times
        times.switch()


def translator(lines: Sequence[str], guards: bool) -> Translator:
    vocabulary = learn(lines[:2000], SubwordsConfig(), VOCABULARY)
    sizes = {"dim": 16, "heads": 1, "hidden": 16, "encoder_layers": 1, "decoder_layers": 1, "max_length": 256}
    model = Transformer(TransformerConfig(len(vocabulary), **sizes)).eval().requires_grad_(False)
    found = Translator([model], (vocabulary, vocabulary), facts={"languages": {"source": "en", "target": "de"}})
    options = {"beam": BEAM, "min_length": LENGTH, "max_length": LENGTH, **({} if guards else UNGUARDED)}
    found.decoding = found.search_config(options)
    given = Given(vocabulary.encode(lines[:2000]), Device())
    found.engines = [Engine(found.bundle, given)]
    return found


def search_alone(model: Translator, ids: list[list[int]]) -> None:
    model.search_ids(ids, model.decoding, [[] for _ in ids])


def files(model: Translator, lines: list[str]) -> None:
    """`heed translate --input FILE --out FILE`."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "in.txt")
        source.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
        options = argparse.ArgumentParser()
        verb.add(options)
        words = ["model", "--input", str(source), "--out", str(Path(folder, "out.txt"))]
        verb._translate(model, {}, options.parse_args(words), Glossary())


WAYS = {"translate in Python": Translator.translate, "heed translate, file to file": files}


def measure(model: Translator, way: Callable, lines: list) -> Measured:
    device = model.engines[0].given.device
    device.free = device.idle = 0.0
    wall, busy = time.perf_counter(), time.process_time()
    way(model, lines)
    return Measured(time.perf_counter() - wall, time.process_time() - busy, device.idle)


def main(words: Sequence[str] | None = None) -> int:
    top = argparse.ArgumentParser(prog="python -m bench.host_work", description=__doc__)
    top.add_argument("--lines", type=int, default=20_000)
    top.add_argument("--text", type=Path, metavar="FILE", help="source lines (default: the phrasebook's English)")
    top.add_argument("--rounds", type=int, default=3)
    top.add_argument("--guards", action="store_true", help="with the guards, which the bench on the GPU leaves out")
    top.add_argument("--json", type=Path, metavar="FILE")
    args = top.parse_args(words)
    texts = args.text.read_text("utf-8").splitlines() if args.text else []
    texts = texts or [pair.target for pair in phrasebook.pairs("train", args.lines)]
    lines = [texts[row % len(texts)] for row in range(args.lines)]
    model = translator(lines, args.guards)
    model.translate(lines)  # all buffers are made
    result: dict[str, Any] = {"cpu": machine.cpu(), "cores": os.cpu_count(), "load": os.getloadavg()}
    for name, way in WAYS.items():
        result[name] = _measured(model, way, lines, args.rounds)
    result["the search alone"] = _whole(model, search_alone, model.source.encode(lines), args.rounds)
    _print(result)
    if args.json:
        args.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8", newline="\n")
    return 0


def _measured(model: Translator, way: Callable, lines: list[str], rounds: int) -> dict[str, Any]:
    """Medians of microseconds for a line."""
    found: dict[str, list[float]] = defaultdict(list)
    for _ in range(rounds):
        with by_stage() as times:
            measure(model, way, lines)
        for stage, seconds in times.found.items():
            found[stage].append(1e6 * seconds / len(lines))
    each = {stage: statistics.median(own) for stage, own in found.items()}
    return {"stages": each, **_whole(model, way, lines, rounds)}


def _whole(model: Translator, way: Callable, lines: list, rounds: int) -> dict[str, float]:
    runs = [measure(model, way, lines) for _ in range(rounds)]
    each = zip(Measured._fields, zip(*runs, strict=True), strict=True)
    return {name: 1e6 * statistics.median(own) / len(lines) for name, own in each}


def _print(result: dict[str, Any]) -> None:
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(f"{result['cpu']}, {result['cores']} cores, load {result['load'][0]:.1f}", highlight=False)
    names = [*WAYS, "the search alone"]
    table = Table("microseconds for a line", *names)
    for stage in dict.fromkeys(stage for name in WAYS for stage in result[name]["stages"]):
        table.add_row(stage, *(f"{result[name].get('stages', {}).get(stage, 0):.1f}" for name in names))
    table.add_section()
    said = {
        "busy": "processor, with overlap",
        "wall": "clock, with overlap",
        "idle": "of it, the device had nothing to do",
    }
    for key, title in said.items():
        table.add_row(title, *(f"{result[name][key]:.1f}" for name in names))
    table.add_row("lines per second", *(f"{1e6 / result[name]['wall']:,.0f}" for name in names))
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())

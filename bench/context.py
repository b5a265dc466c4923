"""What a language model gains from the text before: `python -m bench.context RUN... --text FILE`.

Each model reads windows that begin without memory, and is scored on the same tokens, with at least 1, 2, 4, ... tokens before
each. Then a model with a memory (Transformer-XL) reads the same tokens once with its memory, and once for each length of windows
without one that slide by one token: the perplexity and the time of each.
"""

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from matplotlib.ticker import LogLocator, NullLocator
from torch import nn

import heed
from bench.worker import CLOCKS
from heed.data.readers import lines
from heed.data.streams import IGNORED, Window, Windows, join_lines
from heed.device import choose_device
from heed.evaluation.perplexity import evaluation_memory, has_memory, has_positions, independent_nll, window_nll
from heed.files import write_json
from heed.lab import charts

BATCH = {"cuda": 65536, "cpu": 8192}  # tokens of windows that are read at once; on a CPU, what its caches take


def windows(
    ids: np.ndarray, last: int, context: int, stride: int, tokens: int, longest: int, batch: int
) -> Iterator[Window]:
    """Windows whose last `stride` tokens are expected, `tokens` in all, each with at least `context` tokens before it.

    `batch` tokens are read at once. Those that are expected are the same for each context up to `longest`.
    """
    inputs = np.concatenate([[last], ids[:-1]])
    starts = np.arange(longest - context, min(longest + tokens, len(ids)) - context - stride + 1, stride)
    length = context + stride
    for some in np.array_split(starts, max(1, -(-len(starts) * length // batch))):
        places = some[:, None] + np.arange(length)
        expected = np.where(np.arange(length) >= context, ids[places], IGNORED)
        made = (torch.from_numpy(part.astype(np.int64)) for part in (inputs[places], expected))
        yield Window(*made, True, stride * len(some))


def perplexity(
    model: nn.Module, ids: np.ndarray, last: int, context: int, stride: int, tokens: int, longest: int
) -> float:
    """That of the expected tokens of `windows`."""
    batches = windows(ids, last, context, stride, tokens, longest, BATCH[next(model.parameters()).device.type])
    nll = torch.cat([part.double().cpu() for part in independent_nll(model, batches)])
    return math.exp(float(nll.mean()))


def by_context(model: nn.Module, ids: np.ndarray, last: int, contexts: Sequence[int], tokens: int) -> dict[int, float]:
    """The perplexity with at least so many tokens before each that is scored, and less than twice as many."""
    most, found = model.config.max_length if has_positions(model) else sys.maxsize, {}
    for context in contexts:
        stride = max(1, context // 4)
        if context + stride <= most:
            found[context] = perplexity(model, ids, last, context, stride, tokens, contexts[-1])
    return found


def against_sliding(
    model: nn.Module,
    ids: np.ndarray,
    last: int,
    memory: int,
    window: int,
    contexts: Sequence[int],
    tokens: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict:
    """The same tokens with a memory, `window` tokens at a time, and from windows without one that slide by one token.

    Each of these windows has so many tokens before the one that it scores. Reading with the memory begins with the text; only the
    windows that have tokens to score are timed.
    """
    longest, found = max(contexts), {"memory": memory, "window": window, "tokens": tokens, "sliding": {}}
    with evaluation_memory(model, memory):
        reading = window_nll(model, Windows(ids[: longest + tokens], last, rows=1, length=window))
        before = [part.cpu() for part in islice(reading, longest // window)]
        began = clock()
        nll = torch.cat([*before, *(part.cpu() for part in reading)], dim=1)[0, longest:].double()
        found["seconds"], found["perplexity"] = clock() - began, math.exp(float(nll.mean()))
        for context in contexts:
            perplexity(model, ids, last, context, 1, min(tokens, 32), longest)  # to warm up
            began = clock()
            own = perplexity(model, ids, last, context, 1, tokens, longest)
            seconds = clock() - began
            found["sliding"][context] = {
                "seconds": seconds,
                "perplexity": own,
                "difference": own - found["perplexity"],
                "speed-up": seconds / found["seconds"],
            }
    return found


def draw(rows: dict[str, dict[str, float]], path: Path) -> None:
    caption = "Perplexity of the same tokens, by how many tokens of the text before them the model has read (at least so many, and less than a quarter more)."
    figure = charts.new_figure("What a language model gains from the text before", caption, height=6.4)
    panel = figure.subplots()
    charts.style_axes(panel, "", "tokens before", "perplexity", log=True)
    panel.set_xscale("log", base=2)
    every = sorted({int(context) for own in rows.values() for context in own})
    panel.set_xticks(every, [f"{context:,}" for context in every])
    panel.yaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
    panel.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    panel.yaxis.set_minor_locator(NullLocator())
    for number, own in enumerate(rows.values()):
        x = list(map(int, own))
        charts.line(panel, x, list(own.values()), charts.SERIES[number % len(charts.SERIES)], marker="o")
    charts.label_line_ends(panel, list(rows))
    charts.save(figure, path)


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.context", description=__doc__)
    parser.add_argument("runs", nargs="+", metavar="NAME=RUN", help="language models with one vocabulary")
    parser.add_argument("--text", required=True, type=Path)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--longest", type=int, default=2048, help="the most tokens before")
    parser.add_argument("--tokens", type=int, default=65536, help="tokens that are scored")
    parser.add_argument("--sliding", type=int, default=4096, help="tokens that sliding windows score; 0: none")
    parser.add_argument(
        "--contexts", type=int, nargs="+", default=[64, 128, 256, 512], help="tokens before each of them"
    )
    parser.add_argument("--memory", type=int, nargs="+", default=[640])
    parser.add_argument("--window", type=int, default=64, help="tokens that are read at once with a memory")
    parser.add_argument("--clock", choices=[*CLOCKS], default="wall", help="process: CPU seconds, for a busy machine")
    parser.add_argument("--json", type=Path, default=Path("context.json"))
    parser.add_argument("--out", type=Path, help="a picture, .png or .svg")
    args = parser.parse_args(words)
    contexts = [2**i for i in range(int(math.log2(args.longest)) + 1)]
    device, result = choose_device(args.device), {"by context": {}, "memory": {}}
    for name, run in (own.split("=", 1) for own in args.runs):
        generator = heed.load(run, device=str(device))
        model, vocabulary = generator.model.eval(), generator.vocabulary
        ids = join_lines(vocabulary.encode(list(lines(args.text))), vocabulary.special.last)
        last, tokens = vocabulary.special.last, min(args.tokens, len(ids) - contexts[-1] - contexts[-1] // 4)
        result["by context"][name] = own = by_context(model, ids, last, contexts, tokens)
        print(name, {k: round(v, 2) for k, v in own.items()}, flush=True)
        if has_memory(model) and args.sliding:
            sizes = (args.window, args.contexts, args.sliding, CLOCKS[args.clock])
            rows = [against_sliding(model, ids, last, memory, *sizes) for memory in args.memory]
            result["memory"][name] = rows
            print(*rows, sep="\n", flush=True)
        write_json(args.json, result)
    if args.out:
        draw(result["by context"], args.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The output of a run: a progress bar and lines for people, log.jsonl for programs, TensorBoard files if it is
installed.
"""

import importlib.util
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn

from heed.config import parse_json
from heed.files import write_bytes
from heed.training.duration import in_words

WIDE = 120  # columns: in a narrower terminal the bar shows less
EVERY = 1.0  # seconds between two looks at the loss, which waits for the device


class Log:
    """`log.jsonl`, one line per event, and TensorBoard's files next to it."""

    def __init__(self, folder: Path, after: int):
        self.path = folder / "log.jsonl"
        self._forget(after)
        self.file = open(self.path, "a", encoding="utf-8", newline="\n")  # noqa: SIM115 (closed in close)
        self.board = None
        if importlib.util.find_spec("tensorboard") is not None:
            from torch.utils.tensorboard import SummaryWriter

            self.board = SummaryWriter(folder / "tensorboard", purge_step=after + 1)

    def write(self, kind: str, **facts: Any) -> None:
        self.file.write(json.dumps({"kind": kind, **facts}, ensure_ascii=False) + "\n")
        self.file.flush()
        if self.board is not None and kind in ("step", "valid"):
            for name, value in facts.items():
                if isinstance(value, float):
                    self.board.add_scalar(f"{kind}/{name}", value, facts["step"])

    def close(self) -> None:
        self.file.close()
        if self.board is not None:
            self.board.close()

    def _forget(self, after: int) -> None:
        """Drop what was logged after the step from which the run is resumed: it will be repeated."""
        if not self.path.is_file():
            return
        kept = []
        for line in self.path.read_bytes().splitlines():  # in bytes: a text may contain other line ends
            try:
                found = parse_json(line)
            except ValueError:
                continue  # the incomplete line of a killed run
            step = found.get("step", 0) if isinstance(found, dict) else None
            if isinstance(step, int) and step <= after:  # no run has written anything else
                kept.append(line + b"\n")
        write_bytes(self.path, b"".join(kept))


class Report:
    """The terminal: a bar if there is one, else occasional lines. `steps` is the last step, None while unknown."""

    def __init__(self, console: Console, steps: int | None, start: int = 0, quiet: bool = False):
        self.console, self.steps, self.quiet = console, steps, quiet
        self.spoken = self.shown = time.monotonic()
        self.bar = None
        if console.is_terminal and not quiet:
            self.bar = Progress(
                TextColumn("[bold]step {task.completed:,.0f}[/]{task.fields[of]}"),
                BarColumn(bar_width=None),
                TextColumn("{task.fields[facts]}"),
                console=console,
            )
            self.task = self.bar.add_task("train", total=steps, completed=start, facts="first step", of=self._of())
            self.bar.start()
            self.shown -= EVERY  # the first step is shown at once

    def say(self, sentence: str) -> None:
        if not self.quiet:
            self.console.print(sentence, highlight=False, soft_wrap=True)

    def warn(self, sentence: str) -> None:
        """Warnings about damage are printed even with --quiet."""
        self.console.print(sentence, highlight=False, markup=False, soft_wrap=True)

    def summary(self, rows: Mapping[str, str]) -> None:
        """What will be trained: one label and value per line."""
        width = max(map(len, rows), default=0)
        for label, value in rows.items():
            self.say(f"[bold]{label:<{width}}[/]  {escape(value)}")

    def expect(self, words: str) -> None:
        """How long the run will take, as soon as it is known, and again if that was wrong."""
        if words:
            self.say(f"[bold]Expected time[/]  {words}")

    def moves(self, step: int) -> bool:
        """Advance the bar after each step; returns whether it needs the loss and the speed as well."""
        if self.bar is None:
            return False
        self.bar.update(self.task, completed=step)
        return time.monotonic() - self.shown >= EVERY

    def busy(self, what: str) -> None:
        """What happens between two steps."""
        if self.bar is not None:
            self.bar.update(self.task, facts=what)

    def step(self, facts: dict[str, Any]) -> None:
        self.shown = time.monotonic()
        left = (
            f" · {in_words(own)} left" if (own := facts["seconds_left"]) is not None and self.steps is not None else ""
        )
        speed = f"{facts['steps_per_second']:.3g} steps/s · {_short(facts['tokens_per_second'])} tokens/s{left}"
        words = f" · perplexity {facts['perplexity']:,.1f}" if "perplexity" in facts else ""
        text = f"loss {facts['loss']:.3f}{words} · rate {facts['rate']:.2e} · {speed}"
        if self.bar is not None:
            shown = text if self.console.width >= WIDE else f"loss {facts['loss']:.3f} · {speed}"
            self.bar.update(self.task, total=self.steps, completed=facts["step"], facts=shown, of=self._of())
        elif self.shown - self.spoken > 10:
            self.spoken = self.shown
            self.say(f"step {facts['step']:,}{self._of()} · {text}")

    def _of(self) -> str:
        return "" if self.steps is None else f" of {self.steps:,}"

    def valid(self, step: int, scores: str, seconds: float, best: bool) -> None:
        """A validation on one line; the best so far is marked."""
        width = len(f"{self.steps or step:,}")
        mark = "  [bold green]← best so far[/]" if best else ""
        self.say(f"[dim]valid[/]  step {step:>{width},} · {escape(scores)} · {in_words(seconds)}{mark}")

    def close(self) -> None:
        if self.bar is not None:
            self.busy("")
            self.bar.stop()


def _short(number: float) -> str:
    """At most four digits: 987, 1,234, 12k, 1.2M."""
    if number < 10_000:
        return f"{number:,.0f}"
    return f"{number / 1000:.0f}k" if number < 1e6 else f"{number / 1e6:.1f}M"

"""The output of a run: a bar and tables for people, log.jsonl for programs, TensorBoard files if it is installed."""

import importlib.util
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from heed.config import parse_json
from heed.files import write_bytes

WIDE = 110  # columns: in a narrower terminal the bar shows less


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
        """Drop what was logged after the step from which the run is resumed: it is done again."""
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
    """The terminal: a bar if there is one, else a line now and then. `steps` is the last step, None while it is not known."""

    def __init__(self, console: Console, steps: int | None, start: int = 0, quiet: bool = False):
        self.console, self.steps, self.quiet = console, steps, quiet
        self.table: list[dict[str, Any]] = []
        self.spoken = time.monotonic()
        self.bar = None
        if console.is_terminal and not quiet:
            self.bar = Progress(
                TextColumn("[bold]step {task.completed:,.0f}[/]{task.fields[of]}"),
                BarColumn(bar_width=None),
                TextColumn("{task.fields[facts]}"),
                TimeRemainingColumn(compact=True),
                TextColumn("left"),
                console=console,
            )
            self.task = self.bar.add_task("train", total=steps, completed=start, facts="", of=self._of())
            self.bar.start()

    def say(self, sentence: str) -> None:
        if not self.quiet:
            self.console.print(sentence, highlight=False, soft_wrap=True)

    def warn(self, sentence: str) -> None:
        """Of damage: it is said also where nothing else is."""
        self.console.print(sentence, highlight=False, markup=False, soft_wrap=True)

    def step(self, facts: dict[str, Any]) -> None:
        words = f" · perplexity {facts['perplexity']:,.1f}" if "perplexity" in facts else ""
        text = (
            f"loss {facts['loss']:.3f}{words} · rate {facts['rate']:.2e} · {facts['tokens_per_second']:,.0f} tokens/s"
        )
        if self.bar is not None:
            brief = f"loss {facts['loss']:.3f} · {facts['tokens_per_second']:,.0f} tokens/s"
            shown = text if self.console.width >= WIDE else brief
            self.bar.update(self.task, total=self.steps, completed=facts["step"], facts=shown, of=self._of())
        elif time.monotonic() - self.spoken > 10:
            self.spoken = time.monotonic()
            left = "" if self.steps is None else f" · {facts['seconds_left'] / 60:.1f} min left"
            self.say(f"step {facts['step']:,}{self._of()} · {text}{left}")

    def _of(self) -> str:
        return "" if self.steps is None else f" of {self.steps:,}"

    def valid(
        self, facts: dict[str, Any], samples: Sequence[tuple[str, str, str]], best: bool, labels: Mapping[str, str]
    ) -> None:
        """A validation: a table of the last ones, and samples. `labels` are the names of the scores."""
        if self.quiet:
            return
        self.table.append({**facts, "best": best})
        table = Table(title=None, header_style="dim", box=None, padding=(0, 1))  # all of it within 80 columns
        scores = [name for name in labels if name in facts and name != "loss"]
        words = ["perplexity"] if "perplexity" in facts else []  # where the loss is of words
        for name in ("step", "epoch", "valid loss", *words, *(labels[name] for name in scores), ""):
            table.add_column(name, justify="right")
        for row in self.table[-5:]:
            table.add_row(
                f"{row['step']:,}", f"{row['epoch']}", f"{row['loss']:.3f}", *(f"{row[name]:.2f}" for name in words),
                *(f"{row[name]:.1f}" for name in scores), "[green]best so far[/]" if row["best"] else "",
            )  # fmt: skip
        self.console.print(table)
        for source, reference, translation in samples:
            mark = "[green]=[/]" if reference == translation else "[dim]≠[/]"
            self.console.print(
                f"  [dim]{_plain(source)}[/]\n  {mark} {_plain(translation)}", highlight=False, soft_wrap=True
            )
            if reference != translation:
                self.console.print(f"  [dim]  {_plain(reference)}[/]", highlight=False, soft_wrap=True)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.stop()


def _plain(text: str) -> str:
    """Text in which a bracket is not markup."""
    from rich.markup import escape

    return escape(text)

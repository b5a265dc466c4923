"""Progress of a long translation."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(console, unit: str = "sentences") -> Iterator[Callable[[str, int, int], None]]:
    """A bar on a terminal, otherwise a line every ten seconds; with the rate and the time left."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(bar_width=None), TimeRemainingColumn(compact=True))
    with Progress(*columns, TextColumn("left"), console=console, disable=not console.is_terminal) as bar:
        task, known, begun, printed = bar.add_task("reading", total=None), 0, (0, 0.0), time.monotonic()

        def tell(what: str, done: int, total: int) -> None:
            nonlocal known, begun, printed
            line = f"{what} · {done:,} of {total:,} {unit}" if total else what
            now = time.monotonic()
            if total != known:  # rate and time left count from here on: what an earlier run did took no time now
                known, begun = total, (done, now)
                bar.reset(task, total=total, completed=done, description=line)
            if total and done > begun[0]:
                line += f" · {(done - begun[0]) / max(now - begun[1], 1e-9):,.0f}/s"
            bar.update(task, completed=done, description=line)
            if not console.is_terminal and total and (done == total or now - printed > 10):
                printed = now
                console.print(line + _left(done, total, begun, now), highlight=False)

        yield tell


def _left(done: int, total: int, begun: tuple[int, float], now: float) -> str:
    if done in (begun[0], total):
        return ""
    return f" · {(total - done) * (now - begun[1]) / (done - begun[0]) / 60:.1f} min left"

"""The progress of a long translation where there is no terminal: a line now and then."""

import io

from rich.console import Console

from heed.cli import progress


def test_a_line_every_ten_seconds_and_one_at_the_end(monkeypatch):
    now, out = [100.0], io.StringIO()
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with progress.progress(Console(file=out, width=100, force_terminal=False), "texts") as tell:
        for seconds, done, total in [(0, 0, 0), (1, 1000, 3000), (5, 1500, 3000), (21, 2000, 3000), (22, 2500, 3000), (41, 3000, 3000)]:  # fmt: skip
            now[0] = 100.0 + seconds
            tell("translating", done, total)
    # the first thousand were done before: a thousand in twenty seconds, and another in twenty more
    assert out.getvalue().splitlines() == [
        "translating · 2,000 of 3,000 texts · 50/s · 0.3 min left",
        "translating · 3,000 of 3,000 texts · 50/s",
    ]

"""heed evaluate: whether the test texts were trained on."""

from pathlib import Path
from typing import Any


def show_seen(system: str, sources: list[str], references: list[list[str]]) -> dict[str, Any] | None:
    """Say on standard error how many test texts a model was trained on, or that this is not known; the same as facts."""
    from heed.cli.common import errors, split_names
    from heed.data import contamination

    console = errors()
    for name in split_names(system):
        path = contamination.find(Path(name))
        if path is None:
            console.print(
                f"[dim]Whether {name} was trained on these texts is not known: there is no {contamination.FILE} with it.[/]",
                highlight=False, soft_wrap=True,
            )  # fmt: skip
            continue
        found = contamination.count_seen(contamination.read(path), sources, references)
        if found.pairs:
            console.print(f"[yellow]Warning:[/] {found.describe(name)}", highlight=False, soft_wrap=True)
    return _facts(system)



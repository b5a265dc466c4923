"""heed evaluate: whether the test texts were trained on."""

from collections.abc import Iterable
from pathlib import Path


def show_seen(systems: Iterable[str], sources: list[str] | None, references: list[list[str]]) -> dict[str, dict | None]:
    """Say on standard error which models were trained on the test texts; the same by the names of the models, as facts.

    Of a file of translations, nothing is said.
    """
    from heed.cli.common import errors, split_names
    from heed.data import contamination

    facts, sentences = {}, []
    models = [system for system in systems if sources is not None and not Path(system).is_file()]
    for name in (name for system in models for name in split_names(system)):
        path = contamination.find(Path(name))
        found = contamination.count_seen(contamination.read(path), sources, references) if path else None
        facts[name] = found and found._asdict()
        if found is None:
            sentences.append(f"Not known: whether {name} was trained on these texts (it has no {contamination.FILE}).")
        elif found.either:
            sentences.append(f"Warning: {name} {found.describe()}.")
    console = errors()
    for sentence in sentences:
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)
    return facts

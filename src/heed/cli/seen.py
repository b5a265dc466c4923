"""heed evaluate: whether the test texts were trained on."""

from pathlib import Path


def show_seen(system: str, sources: list[str], references: list[list[str]]) -> dict[str, dict | None]:
    """Say on standard error which models were trained on the test texts; the same by the names of the models, as facts."""
    from heed.cli.common import errors, split_names
    from heed.data import contamination

    facts, sentences = {}, []
    for name in split_names(system):
        path = contamination.find(Path(name))
        found = contamination.count_seen(contamination.read(path), sources, references) if path else None
        facts[name] = found and found._asdict()
        if found is None:
            sentences.append(f"Not known: whether {name} was trained on these texts (it has no {contamination.FILE}).")
        elif found.either:
            sentences.append(f"[bold]Warning:[/] {name} {found.describe()}.")
    for sentence in sentences:
        errors().print(sentence, highlight=False, soft_wrap=True)
    return facts

"""heed evaluate: whether the test texts were in the training data."""

from collections.abc import Callable, Iterable
from pathlib import Path


def show_seen(systems: Iterable[str], sources: list[str] | None, references: list[list[str]]) -> dict[str, dict | None]:
    """Warn on standard error about models that were trained on the test texts; returns the same by model name. Files
    of translations are not checked.
    """
    from heed.cli.common import split_names
    from heed.data import contamination

    models = [system for system in systems if sources is not None and not Path(system).is_file()]
    names = [name for system in models for name in split_names(system)]
    return _show(names, "source", lambda trained: contamination.count_seen(trained, sources, references))


def show_seen_lines(systems: Iterable[str], lines: list[str]) -> dict[str, dict | None]:
    """The same for language models, masked ones too, and the lines of a text."""
    from heed.cli.common import errors
    from heed.data import contamination

    facts = _show(systems, "text", lambda trained: contamination.count_seen_lines(trained, lines))
    if any(facts.values()) and not any(map(contamination.is_long, lines)):
        least = f"no line has {contamination.MIN_LINE} letters and digits, and shorter ones repeat by chance"
        errors().print(f"Not known: whether this text was trained on ({least}).", highlight=False, soft_wrap=True)
    return facts


def show_seen_texts(systems: Iterable[str], texts: list[str]) -> dict[str, dict | None]:
    """The same for classifiers, taggers and question answering, and their input texts."""
    from heed.data import contamination

    return _show(systems, "source", lambda trained: contamination.count_seen_texts(trained, texts))


def _show(names: Iterable[str], side: str, count: Callable) -> dict[str, dict | None]:
    """Count overlaps using the hashes of each model's run; hashes of another task are ignored."""
    facts, sentences = {}, []
    if not (names := list(names)):
        return facts  # without importing torch, which only models need
    from heed.cli.common import errors
    from heed.data import contamination
    from heed.runs import trained_texts

    for name in names:
        trained = trained_texts.of_model(Path(name))
        found = count(trained) if trained and side in trained.sides else None
        facts[name] = found and found._asdict()
        if found is not None and not trained.known:
            facts[name]["before"] = found.before or None
            sentences.append(f"Not known: whether the model that {name} started from was trained on these texts.")
        if found is None:
            sentences.append(f"Not known: whether {name} was trained on these texts (it has no {contamination.FILE}).")
        elif found.any:
            sentences.append(f"Warning: {name} {found.describe()}.")
    console = errors()
    for sentence in sentences:
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)
    return facts

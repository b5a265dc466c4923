"""Questions of a report about the settings of a run."""

from dataclasses import MISSING, fields
from typing import Any

from heed.runs.recipe import SECTIONS, Recipe
from heed.runs.report.findings import Findings

SETTLED = ("valid_engine", "torch")  # what "auto" becomes where there is no choice


def can_sample_subwords(f: Findings) -> bool:
    """Whether BPE-dropout is off but possible."""
    task, subwords = f.recipe.task, f.recipe.subwords
    able = getattr(task, "samples_subwords", False) and not f.recipe.model.vocabulary and not f.recipe.model.folder
    return able and subwords.kind != "words" and not subwords.sampling


def either(ways: list[str]) -> str:
    """One of the options, as text."""
    return ways[0] if len(ways) == 1 else f"{', '.join(ways[:-1])} or {ways[-1]}"


def chosen(recipe: Recipe) -> dict[str, Any]:
    """The non-default settings by section.name."""
    sections, found = recipe.sections(), {}
    for section in SECTIONS:
        own = recipe.task.settings if section == "task" else getattr(recipe, section)
        if own is None:
            continue
        defaults = {one.name: _default(one) for one in fields(own)}
        for name, value in sections[section].items():
            if (name, value) != SETTLED and (name not in defaults or value != defaults[name]):
                found[f"{section}.{name}"] = value
    return found


def _default(field: Any) -> Any:
    return field.default_factory() if field.default_factory is not MISSING else field.default

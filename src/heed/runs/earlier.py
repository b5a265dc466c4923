"""Recipes of earlier versions: where settings have moved to."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from heed.models import MODELS
from heed.tasks import TASKS

NEW_FILTERS = ("overlap", "swapped")  # on by default now; a run without them was trained without them

MOVED = {
    "training.label_smoothing": "task.label_smoothing",
    "training.r_drop": "task.r_drop",
    "training.teacher": "task.teacher",
    "training.taught": "task.distillation",
    "task.bptt": "task.window",
}


def upgraded(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a recipe.toml in a run folder, in the current form. An earlier version wrote the settings of
    every task into each recipe; those of other tasks had no effect.
    """
    if not all(isinstance(own, Mapping) for own in values.values()):
        return dict(values)  # which is reported when it is parsed
    sections = {name: dict(own) for name, own in values.items()}
    if any(old.split(".")[1] in sections.get(old.split(".")[0], {}) for old in MOVED):
        _move(sections)
    if "training" in sections:  # its validations were by the plain search
        sections["training"].setdefault("valid_engine", "torch")
    task = _known(TASKS, sections.get("task", {}).get("name", "translation"))
    if "filters" in sections and task is not None and task.filtered:
        sections["filters"] = dict.fromkeys(NEW_FILTERS, False) | sections["filters"]
    return sections


def _known(choices: Mapping[str, Any], name: Any) -> Any:
    return choices.get(name) if isinstance(name, str) else None


def _move(sections: dict[str, Any]) -> None:
    """Move settings to their current place, and drop those of other tasks."""
    sections.setdefault("task", {})
    for old, new in MOVED.items():
        (section, name), (_, renamed) = old.split("."), new.split(".")
        if name in sections.get(section, {}):
            sections["task"][renamed] = sections[section].pop(name)
    system = _known(MODELS, sections.get("model", {}).get("name"))
    task = _known(TASKS, sections["task"].setdefault("name", system.task if system else "translation"))
    if task is None:
        return
    known = {"name", *(field.name for field in fields(task.Settings))}
    sections["task"] = {name: value for name, value in sections["task"].items() if name in known}

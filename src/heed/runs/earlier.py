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
    """The values of a recipe.toml in a run folder, as this version reads them.

    An earlier version wrote the settings of every task into each recipe; those of other tasks had no effect.
    """
    sections = {name: dict(own) if isinstance(own, Mapping) else own for name, own in values.items()}
    if any(old.split(".")[1] in sections.get(old.split(".")[0], {}) for old in MOVED):
        _move(sections)
    name = sections.get("task", {}).get("name", "translation")
    if "filters" in sections and TASKS[name].filtered:
        sections["filters"] = dict.fromkeys(NEW_FILTERS, False) | sections["filters"]
    return sections


def _move(sections: dict[str, Any]) -> None:
    """Put the settings where they are now, and leave out those of other tasks."""
    sections.setdefault("task", {})
    for old, new in MOVED.items():
        (section, name), (_, renamed) = old.split("."), new.split(".")
        if name in sections.get(section, {}):
            sections["task"][renamed] = sections[section].pop(name)
    system = MODELS.get(sections.get("model", {}).get("name"))
    task = sections["task"].setdefault("name", system.task if system else "translation")
    known = {"name", *(field.name for field in fields(TASKS[task].Settings))}
    sections["task"] = {name: value for name, value in sections["task"].items() if name in known}

"""Complete a recipe by the rules of defaults.py or, when a run is resumed, by the earlier choices."""

import dataclasses
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch

from heed.data.prepare import TextFiles, counted
from heed.runs import defaults, shortest, text_amount, text_length
from heed.runs.recipe import Recipe, parse, read
from heed.runs.speed import tokens_per_second
from heed.tasks.base import Tell
from heed.training.duration import seconds_of


def complete(
    recipe: Recipe,
    folder: Path,
    resume: bool,
    device: torch.device,
    tell: Tell,
    say: Callable[[str], None],
    spent: Callable[[], float] = lambda: 0.0,
) -> Recipe:
    """The recipe with every setting that the user left open; without training.auto unchanged, except that a time
    budget adds a cool-down. `spent` returns the seconds since the command began.
    """
    recipe = text_length.settled(recipe, None, folder, resume)
    if not recipe.training.auto:
        return _annealed(recipe)
    if resume and (folder / "recipe.toml").is_file():
        before = read(folder / "recipe.toml", [], saved=True)
        return _with(recipe, {name: value for name, value in before.settings().items() if name not in recipe.explicit})
    if not _applies(recipe):
        return _with(recipe, {})
    gpu = device.type == "cuda"
    time = defaults.budget(recipe.training.time, gpu, recipe.explicit)
    facts = measure(recipe, device, None if time is None else seconds_of(time), tell)
    choices = defaults.choose(facts, recipe.explicit)
    for line in defaults.summary(facts, choices):
        say(line)
    if too_short := shortest.sentence(facts, spent()):
        say(too_short)
    chosen = {name: value for choice in choices for name, value in choice.settings.items()}
    return _with(recipe, chosen | {"training.time": time})


def _annealed(recipe: Recipe) -> Recipe:
    """With a time budget, a run ends with a finished model: the learning rate decays to zero, whatever the schedule."""
    if recipe.training.time is None or "training.cooldown" in recipe.explicit:
        return recipe
    return dataclasses.replace(recipe, training=dataclasses.replace(recipe.training, cooldown=defaults.COOLDOWN))


def _applies(recipe: Recipe) -> bool:
    """Whether there are rules: for a new model of a measured architecture, or a trained one, and for the task."""
    model = recipe.model
    able = model.system.has_rules if model.folder is None else not model.fresh
    return able and recipe.task.has_rules


def measure(recipe: Recipe, device: torch.device, seconds: float | None, tell: Tell) -> defaults.Facts:
    """The input of the rules: the text of a recipe, and the speed here."""
    files = TextFiles(recipe.data, recipe.task.one_sided, tell=tell)
    text = text_amount.measure(counted(files.train(), "measuring", tell), [one.weight for one in files.data.corpora])

    @cache
    def speed(size: tuple[int, ...]) -> float:
        tell("measuring training speed", 0)
        settings = dict(zip(defaults.MODEL_SIZES, size, strict=True)) | recipe.model.system.defaults
        return tokens_per_second(
            recipe.model.system, settings, defaults.vocabulary_size(text.characters, device), device
        )

    steps = recipe.training.steps if "training.steps" in recipe.explicit else None
    tuning = recipe.model.folder is not None
    return defaults.Facts(text, device.type == "cuda", seconds, speed, tuning, steps)


def _with(recipe: Recipe, changes: dict[str, Any]) -> Recipe:
    """The recipe with changes, and nothing left to choose."""
    values: dict[str, dict[str, Any]] = {}
    for name, value in (recipe.settings() | changes | {"training.auto": False}).items():
        section, own = name.split(".", 1)
        values.setdefault(section, {})[own] = value
    return dataclasses.replace(parse(values), explicit=recipe.explicit)

"""The search of validations where training.valid_engine is "auto". It is chosen once, when a run begins, and then part of its
recipe: validations decide which checkpoint is best and when to stop, so a resumed run must search as before.
"""

import dataclasses
from pathlib import Path
from typing import NamedTuple

import torch
from torch import nn

from heed.decoding.cuda import weights
from heed.products.translator.engines import compiled, cuda
from heed.runs.recipe import Recipe, read
from heed.training.config import TrainingConfig
from heed.training.duration import seconds_of

ENOUGH = 20  # validations that save as much time as compiling the kernels takes (docs/internals/speed-gpu.md)
SECONDS = 200  # of a time budget in which one validation is expected, as heed.runs.defaults plans them


class Facts(NamedTuple):
    """What the choice depends on. `searches`: validations translate, by a search that the GPU's can replace. `compiled`: such a
    search has run on this machine before. `validations`: how many are expected.
    """

    searches: bool
    compiled: bool
    validations: int


class Choice(NamedTuple):
    """An engine, and why, as a sentence for the user; empty where there is no choice."""

    engine: str
    why: str = ""


def choose(facts: Facts) -> Choice:
    """The GPU's search if it saves time in this run: its first use compiles kernels, which takes as long as many validations."""
    if not facts.searches:
        return Choice("torch")
    if facts.compiled:
        return Choice(
            "cuda",
            "Validations use the GPU's search, whose kernels have been compiled here before (training.valid_engine).",
        )
    count = f"{facts.validations:,} {'validation' if facts.validations == 1 else 'validations'}"
    if facts.validations >= ENOUGH:
        return Choice(
            "cuda",
            f"Validations use the GPU's search: {count} at most are worth compiling its kernels (training.valid_engine).",
        )
    return Choice(
        "torch",
        f"Validations use the plain search: for {count} at most, compiling the kernels of the GPU's takes longer (training.valid_engine).",
    )


def expected_validations(t: TrainingConfig) -> int:
    """How many validations a run will have at most, by its steps and its time budget."""
    planned = t.steps // t.valid_every
    return planned if t.time is None else min(planned, int(seconds_of(t.time.removeprefix("+")) / SECONDS))


def chosen(recipe: Recipe, model: nn.Module, device: torch.device, dtype: torch.dtype) -> Choice:
    """The choice for a run that is about to begin."""
    t = recipe.training
    able = recipe.task.fast_validation and cuda.supports_device(device) and weights.supports(model)
    before = able and compiled.known(model.config, dtype, t.valid_beam, device)
    return choose(Facts(able, before, expected_validations(t)))


def with_engine(recipe: Recipe, engine: str) -> Recipe:
    return dataclasses.replace(recipe, training=dataclasses.replace(recipe.training, valid_engine=engine))


def as_before(recipe: Recipe, folder: Path, resume: bool) -> Recipe:
    """The recipe of a resumed run with the engine that was chosen when it began."""
    path = folder / "recipe.toml"
    if recipe.training.valid_engine != "auto" or not resume or not path.is_file():
        return recipe
    return with_engine(recipe, read(path, [], saved=True).training.valid_engine)

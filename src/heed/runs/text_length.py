"""filters.max_length where a recipe leaves it open: if a task reads whole texts, all that the model has positions for."""

import dataclasses
from pathlib import Path

from heed.models.package import Package
from heed.runs.recipe import Recipe, read


def settled(recipe: Recipe, base: Package | None, folder: Path, resume: bool) -> Recipe:
    """The recipe with the limit by the positions of the model, or, for a resumed run, with that it began with."""
    if not getattr(recipe.task, "whole_texts", False) or "filters.max_length" in recipe.explicit:
        return recipe
    path = folder / "recipe.toml"
    if resume and path.is_file():
        return _limited(recipe, read(path, [], saved=True).filters.max_length)
    positions = recipe.model.positions if base is None else getattr(base.model.config, "max_length", None)
    return recipe if positions is None else _limited(recipe, max(2, positions - 1))  # one is the token before a text


def _limited(recipe: Recipe, longest: int) -> Recipe:
    return dataclasses.replace(recipe, filters=dataclasses.replace(recipe.filters, max_length=longest))

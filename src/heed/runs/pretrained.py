"""The model that training starts from, if it starts from one."""

import dataclasses
from pathlib import Path

from heed.config import read
from heed.decoding.config import DecodingConfig
from heed.loading import open_package
from heed.models import LANGUAGE_MODELS
from heed.models import folder as model_folder
from heed.models.bart import Bart, BartClassifier
from heed.models.package import Package
from heed.runs.recipe import Recipe


def open_base(recipe: Recipe, folder: Path, resume: bool) -> Package | None:
    """The model that the recipe names; of a run that goes on, its own: the other may have gone."""
    if recipe.model.folder is None:
        return None
    if resume and (folder / "model" / model_folder.CONFIG).is_file():
        return open_package(folder / "model")
    base = open_package(recipe.model.folder)
    _check(recipe, base)
    return base


def with_search(recipe: Recipe, base: Package | None) -> Recipe:
    """The recipe, with the settings of search that the model brings along wherever the recipe's are the usual ones."""
    if base is None:
        return recipe
    usual, said = DecodingConfig(), dataclasses.asdict(recipe.decoding)
    brought = dataclasses.asdict(read(DecodingConfig, base.facts.get("decoding", {})))
    merged = {name: brought[name] if value == getattr(usual, name) else value for name, value in said.items()}
    return dataclasses.replace(recipe, decoding=DecodingConfig(**merged))


def _check(recipe: Recipe, base: Package) -> None:
    """See early that the model can learn what it should."""
    task, folder = recipe.task.name, recipe.model.folder
    source, target = base.subwords
    if recipe.subwords.sampling and not hasattr(source, "sample"):
        raise ValueError(
            f"subwords.sampling is {recipe.subwords.sampling}, but words are cut anew for heed's own vocabulary alone, and "
            f"{folder} has another: set it to 0"
        )
    speaks = isinstance(base.model, LANGUAGE_MODELS)
    if speaks != (task == "language"):
        kind = "a language model" if speaks else f"a {type(base.model).__name__}"
        advice = "set task.name to 'language'" if speaks else "start from a language model"
        raise ValueError(f"{folder} is {kind}: it cannot learn {task}; {advice}")
    if task == "classification" and not isinstance(base.model, Bart | BartClassifier):
        raise ValueError(f"{folder} is a {type(base.model).__name__}; heed makes classifiers of a Bart")
    if task != "classification" and isinstance(base.model, BartClassifier):
        raise ValueError(f"{folder} is a classifier: it cannot learn {task}")
    if recipe.task.one_sided and source.key() != target.key():
        raise ValueError(
            f"{folder} has a vocabulary for each side, and {task} is learned from one: start from another model"
        )
    if task == "denoising" and source.marks.mask is None and (recipe.task.infill or recipe.task.mask):
        raise ValueError(
            f"{folder} has a vocabulary without a mask, which {task} needs: start from a BART or a Pegasus"
        )
    if task == "gap-sentences" and source.marks.gap is None:
        raise ValueError(f"{folder} has no mark for a sentence left out, which {task} needs: start from a Pegasus")

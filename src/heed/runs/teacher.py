"""The model that a student listens to while it is trained, if it listens to one."""

import torch
from torch import nn

from heed.data.vocabulary import Pair
from heed.models.package import Package
from heed.runs.recipe import Recipe
from heed.serving.load import open_package


def open_teacher(recipe: Recipe) -> Package | None:
    """The model that the recipe names; what is wrong with it is said before anything is prepared."""
    name = recipe.training.teacher
    if name is None:
        return None
    if recipe.task.name != "translation":
        raise ValueError(f"training.teacher is {name!r}; it is for translation alone, not for {recipe.task.name}")
    try:
        package = open_package(name)
    except ValueError as error:
        raise ValueError(f"training.teacher: {error}") from error
    config = package.model.config
    if not hasattr(package.model, "last_layer") or hasattr(config, "labels"):
        raise ValueError(f"training.teacher is {name}, which does not translate: name a translator")
    if recipe.filters.max_length > config.max_length:
        raise ValueError(
            f"filters.max_length is {recipe.filters.max_length}, but the teacher has places for {config.max_length}: "
            "set it no higher"
        )
    return package


def heard(teacher: Package, recipe: Recipe, subwords: Pair, device: torch.device) -> nn.Module:
    """The teacher's model, to be listened to by one of these subwords."""
    name, room = recipe.training.teacher, teacher.model.config.vocab_size
    if [part.key() for part in teacher.subwords] != [part.key() for part in subwords]:
        raise ValueError(
            f"training.teacher is {name}, which has other subwords than this run: take its own "
            "(subwords.source_model and target_model), as heed distill does"
        )
    if room != len(subwords[-1]):
        raise ValueError(
            f"training.teacher is {name}, which has room for {room} subwords, but there are {len(subwords[-1])}: "
            "only a teacher without spare room can be listened to"
        )
    return teacher.model.to(device).eval().requires_grad_(False)

"""The models that a student listens to while it is trained, if it listens to any."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import nn

from heed.files import write_text
from heed.loading import open_package
from heed.models import LANGUAGE_MODELS
from heed.models.package import Package
from heed.runs.recipe import Recipe
from heed.vocabularies.vocabulary import Pair


def open_teachers(recipe: Recipe) -> dict[str, Package]:
    """The models that the recipe names; what is wrong with one is said before anything is prepared."""
    names = recipe.training.teachers
    if names and recipe.task.name != "translation":
        raise ValueError(f"training.teacher is {names!r}; it is for translation alone, not for {recipe.task.name}")
    return {name: _opened(name, recipe.filters.max_length) for name in recipe.training.teacher if name}


def _opened(name: str, longest: int) -> Package:
    try:
        package = open_package(name)
    except ValueError as error:
        raise ValueError(f"training.teacher: {error}") from error
    check(package.model, package.subwords, name, longest)
    return package


def check(model: nn.Module, subwords: Pair, name: str, longest: int) -> None:
    """See that a model can be listened to, about texts of so many subwords."""
    room = model.config.vocab_size
    if isinstance(model, LANGUAGE_MODELS) or hasattr(model.config, "labels"):
        raise ValueError(f"training.teacher is {name}, which does not translate: name a translator")
    if room != len(subwords[-1]):
        raise ValueError(
            f"training.teacher is {name}, which has room for {room} subwords, but there are {len(subwords[-1])}: "
            "only a teacher without spare room can be listened to"
        )
    places = model.config.max_length - max(len(part.marks.before) for part in subwords)
    if longest > places:
        raise ValueError(
            f"filters.max_length is {longest}, but the teacher {name} has places for {places}: set it no higher"
        )


WEIGHTS = "teacher.sha256"


def check_weights(models: Sequence[nn.Module], path: Path, begun: bool) -> None:
    """See that what was `begun` goes on with the same weights, whose hashes are kept in a file."""
    found = "".join(f"{_hash(model)}\n" for model in models)
    if begun and path.is_file() and path.read_text("utf-8") != found:
        raise ValueError(
            f"the teacher's weights are others than when this was begun ({path}): put them back, or start anew with "
            "another --out"
        )
    write_text(path, found)


def _hash(model: nn.Module) -> str:
    digest = hashlib.sha256()
    for name, weight in model.state_dict().items():
        digest.update(name.encode())
        digest.update(weight.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return digest.hexdigest()


def check_room(teacher: nn.Module, name: str, student: nn.Module) -> None:
    """See that both say what they think of the same subwords."""
    own, room = student.config.vocab_size, teacher.config.vocab_size
    if own != room:
        raise ValueError(
            f"training.teacher is {name}, which has room for {room} subwords, and the model for {own}: start from one with as many"
        )


def heard(teacher: Package, name: str, subwords: Pair) -> nn.Module:
    """The teacher's model, to be listened to by one of these subwords."""
    if [part.key() for part in teacher.subwords] != [part.key() for part in subwords]:
        raise ValueError(
            f"training.teacher is {name}, which has other subwords than this run: take its own "
            "(subwords.source_model and target_model), as heed distill does"
        )
    return teacher.model.eval().requires_grad_(False)

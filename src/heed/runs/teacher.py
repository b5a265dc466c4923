"""The teachers that a student learns from, if any."""

from collections.abc import Sequence
from pathlib import Path

from torch import nn

from heed.files import write_text
from heed.loading import open_package
from heed.models.abilities import EncodesAndDecodes
from heed.models.package import Package
from heed.models.weight_hash import hash_weights
from heed.runs.recipe import Recipe
from heed.vocabularies.vocabulary import Pair


def open_teachers(recipe: Recipe) -> dict[str, Package]:
    """The teachers of the recipe. Errors are reported before anything is prepared."""
    return {name: _opened(name, recipe.filters.max_length) for name in recipe.task.teachers}


def _opened(name: str, longest: int) -> Package:
    try:
        package = open_package(name)
    except ValueError as error:
        raise ValueError(f"task.teacher: {error}") from error
    check(package.model, package.vocabularies, name, longest)
    return package


def check(model: nn.Module, vocabularies: Pair, name: str, longest: int) -> None:
    """Refuse a teacher that does not support targets of up to `longest` subwords."""
    room = model.config.vocab_size
    if not isinstance(model, EncodesAndDecodes) or getattr(model.config, "labels", 0):
        raise ValueError(f"task.teacher is {name}, which is not a translation model: choose one")
    if room != len(vocabularies[-1]):
        raise ValueError(
            f"task.teacher is {name}, which has {room} embeddings, but there are {len(vocabularies[-1])} subwords: a "
            "teacher must have no unused rows"
        )
    positions = model.config.max_length - max(len(part.special.before) for part in vocabularies)
    if longest > positions:
        raise ValueError(
            f"filters.max_length is {longest}, but the teacher {name} has only {positions} positions: lower it"
        )


WEIGHTS = "teacher.sha256"


def check_weights(models: Sequence[nn.Module], path: Path, begun: bool) -> None:
    """Refuse to continue with other weights than at the start; their hashes are kept in a file."""
    found = "".join(f"{hash_weights(model)}\n" for model in models)
    if begun and path.is_file() and path.read_text("utf-8") != found:
        raise ValueError(
            f"the teacher's weights have changed since this was started ({path}): restore them, or start over with "
            "another --out"
        )
    write_text(path, found)


def check_vocab_size(teacher: nn.Module, name: str, student: nn.Module) -> None:
    """Refuse a teacher with another number of logits than the student."""
    own, room = student.config.vocab_size, teacher.config.vocab_size
    if own != room:
        raise ValueError(
            f"task.teacher is {name}, which has {room} subword embeddings, and the model {own}: start from a model "
            "with as many"
        )


def teacher_model(teacher: Package, name: str, vocabularies: Pair) -> nn.Module:
    """The teacher's model, frozen, for a student with these vocabularies."""
    if [part.key() for part in teacher.vocabularies] != [part.key() for part in vocabularies]:
        raise ValueError(
            f"task.teacher is {name}, which has different subwords from this run: use the teacher's "
            "(subwords.source_model and target_model), as heed distill does"
        )
    return teacher.model.eval().requires_grad_(False)

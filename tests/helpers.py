"""What the tests of several folders make: packages, and configs of new models."""

from typing import Any

from torch import nn

from heed.models.package import Package
from heed.runs.models import new_config
from heed.runs.recipe import ModelChoice
from heed.tasks.base import Prepared


def translation_package(
    model: nn.Module, vocabularies: tuple[Any, Any], facts: dict[str, Any] | None = None
) -> Package:
    """A translator as its folder holds it."""
    return Package(model, "translation", dict(zip(("source", "target"), vocabularies, strict=True)), facts or {})


def config_for(chosen: ModelChoice, examples: int, source: int = 500, target: int = 500) -> Any:
    """The config of a new model; vocabularies of different sizes are two, of the same size one joint one."""
    joint = source == target
    sizes = {"vocab_size": target, "items": target, "source_vocab_size": None if joint else source}
    return new_config(chosen, Prepared("", None, None, {}, sizes, {} if joint else {"tied": "target"}), examples)

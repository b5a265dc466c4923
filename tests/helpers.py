"""What the tests of several folders make: packages, and configs of new models."""

from typing import Any

import torch
from torch import nn

from heed.models import MODELS
from heed.models.package import Package
from heed.runs.models import new_config
from heed.runs.recipe import ModelChoice
from heed.tasks.base import Prepared
from heed.vocabularies import ctrl, gpt2
from tests.data.mixed import training


def translation_package(
    model: nn.Module, vocabularies: tuple[Any, Any], facts: dict[str, Any] | None = None
) -> Package:
    """A translator as its folder holds it."""
    return Package(model, "translation", dict(zip(("source", "target"), vocabularies, strict=True)), facts or {})


def language_package(name: str) -> Package:
    """A small "gpt2", or a "ctrl" with two codes; its weights are drawn."""
    vocabulary = gpt2.learn(training(), 500)[0] if name == "gpt2" else _coded()
    torch.manual_seed(2)
    sizes = {"dim": 16, "heads": 2, "hidden": 32, "layers": 1, "max_length": 20}
    model = MODELS[name].model(MODELS[name].config(vocab_size=len(vocabulary), **sizes))
    for own, weight in model.named_parameters():
        nn.init.normal_(weight, mean=1.0 if "norm.weight" in own else 0.0, std=0.3)
    return Package(model, "language", {"text": vocabulary}, {})


def _coded() -> Any:
    return ctrl.with_codes(ctrl.learn(training(), 500)[0], ["Reviews", "News"])


def config_for(chosen: ModelChoice, examples: int, source: int = 500, target: int = 500) -> Any:
    """The config of a new model; vocabularies of different sizes are two, of the same size one joint one."""
    joint = source == target
    sizes = {"vocab_size": target, "items": target, "source_vocab_size": None if joint else source}
    return new_config(chosen, Prepared("", None, None, {}, sizes, {} if joint else {"tied": "target"}), examples)

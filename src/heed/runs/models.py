"""The model of a run: new, or adapted from a pre-trained one."""

import dataclasses
from typing import Any

import torch
from torch import nn

from heed.config import data_fields, dropout_fields
from heed.models import adapt, name_of
from heed.models.package import Package
from heed.runs.recipe import ModelChoice, Recipe, model_settings
from heed.tasks.base import Prepared


def build(recipe: Recipe, base: Package | None, prepared: Prepared) -> nn.Module:
    """The model that the recipe specifies; `base` is the one in the folder it starts from."""
    if base is None:
        return recipe.model.system.model(new_config(recipe.model, prepared, len(prepared.train)))
    known, prompt = {field.name for field in dataclasses.fields(base.model.config)}, recipe.model.prompt
    sizes = {name: value for name, value in prepared.sizes.items() if name in known} | (
        {"prompt_length": prompt} if prompt else {}
    )
    config = dataclasses.replace(base.model.config, **_rates(base, recipe.model), **sizes)
    model = type(base.model)(config) if recipe.model.fresh else adapt(base.model, config, prepared.renewed)
    if prompt:
        _freeze(model, new=prompt != base.model.config.prompt_length)
    return model


def _freeze(model: nn.Module, new: bool) -> None:
    """Train only the prompt and the head; a new prompt is initialized with random tokens of the vocabulary (Lester et
    al., 2021).
    """
    if new:
        drawn = torch.randint(len(model.tokens.weight), (len(model.prompt),))
        model.prompt.data.copy_(model.tokens.weight[drawn] * model.scale)
    for name, weight in model.named_parameters():
        weight.requires_grad_(name.startswith(("prompt", "head.")))


def new_config(chosen: ModelChoice, prepared: Prepared, examples: int) -> Any:
    """The preset, what the data suggest, what the recipe sets, and what the data determine; later ones override
    earlier ones.
    """
    system = chosen.system
    preset = system.preset_for(examples) if chosen.preset == "auto" else chosen.preset
    known = {field.name for field in dataclasses.fields(system.config)}
    suggested = {**system.defaults, **prepared.defaults}
    return system.config(
        **{
            **system.presets[preset],
            **{name: value for name, value in suggested.items() if name in known},
            **chosen.settings,
            **{name: value for name, value in prepared.sizes.items() if name in known},
        }
    )


def stated(recipe: Recipe, model: nn.Module, prepared: Prepared) -> Recipe:
    """The recipe with every setting that decides the model. Those that it left open have the values of the model that
    was built: from the preset, the system or the data.
    """
    config, decided = model.config, data_fields(model.config)
    own = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    settings = {name: value for name, value in own.items() if name not in decided}
    recipe = dataclasses.replace(recipe, model=dataclasses.replace(recipe.model, settings=settings))
    return recipe.with_settings(prepared.chosen)


def decided_by_data(model: nn.Module) -> dict[str, Any]:
    """The rest of the model's config, which no recipe can set."""
    return {name: getattr(model.config, name) for name in sorted(data_fields(model.config))}


def check_positions(model: nn.Module, recipe: Recipe, prepared: Prepared) -> None:
    """Refuse filters that allow texts longer than the model's positions."""
    if recipe.filters is None or not recipe.task.filtered:
        return
    vocabulary = next(iter(prepared.processors.values()))
    most = model.config.max_length - len(vocabulary.special.before)
    if (
        getattr(recipe.task, "label_target", False)
        and recipe.task.longest(recipe, prepared, most) <= model.config.max_length
    ):
        return  # the limit is above, but no text is
    if recipe.filters.max_length > most:
        raise ValueError(
            f"filters.max_length is {recipe.filters.max_length}, but the model has only {most} positions: lower it"
        )


def _rates(base: Package, chosen: ModelChoice) -> dict[str, Any]:
    """The dropout rates set by the recipe; any other setting would change the architecture of a trained model."""
    config = base.model.config
    settings = model_settings(name_of(base.model), chosen.settings)
    rates = dropout_fields(config)
    for name, value in settings.items():
        if name not in rates and value != getattr(config, name):
            raise ValueError(
                f"model.{name} is {value!r}, but {chosen.folder} has {getattr(config, name)!r}: "
                "the architecture of a trained model cannot change"
            )
    return {name: value for name, value in settings.items() if name in rates}

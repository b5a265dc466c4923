"""The model of a run: new, of a size by name, or one that is there already."""

import dataclasses
from typing import Any

from torch import nn

from heed.models import MODELS
from heed.models.bart import BartClassifier, BartClassifierConfig
from heed.models.package import Package
from heed.models.rnn_lm import SIZES as RECURRENT
from heed.models.seq2seq import SIZES as RECURRENT_PAIRS
from heed.models.transformer import SIZES
from heed.runs.prepare import Prepared
from heed.runs.recipe import ModelConfig, Recipe

RATES = ("dropout", "attention_dropout", "hidden_dropout", "classifier_dropout",
         "input_dropout", "layer_dropout", "word_dropout", "weight_dropout")  # fmt: skip
OTHER = ("name", "folder", "fresh", "preset")  # settings that are none of a model's own


def build(recipe: Recipe, base: Package | None, prepared: Prepared) -> nn.Module:
    """What the recipe asks for; `base` is the model in the folder that it names."""
    if recipe.task.name == "classification":
        return _classifier(recipe.model, base, prepared)
    if base is None:
        sizes = len(prepared.subwords[0]), len(prepared.subwords[1])
        return MODELS[recipe.model.name][0](model_config(recipe.model, len(prepared.corpus), sizes, prepared.joint))
    return _started(base, recipe.model)


def check_places(model: nn.Module, recipe: Recipe, prepared: Prepared) -> None:
    """See that no text may be longer than the model has places for."""
    most = model.config.max_length - len(prepared.subwords[0].marks.before)
    if recipe.filters.max_length > most:
        raise ValueError(
            f"filters.max_length is {recipe.filters.max_length}, but the model has places for {most}: set it no higher"
        )


def choose_preset(pairs: int) -> str:
    """A size that a corpus can feed."""
    return "tiny" if pairs < 100_000 else "small" if pairs < 1_000_000 else "base"


def model_config(chosen: ModelConfig, pairs: int, vocabulary: tuple[int, int], joint: bool) -> Any:
    """The preset, what differs from it, and the vocabularies."""
    config = MODELS[chosen.name][1]
    if chosen.name == "rnn-lm":
        return config(**{"vocab_size": vocabulary[1], **_recurrent(chosen, pairs), **_said(chosen, config)})
    values: dict[str, Any] = {"vocab_size": vocabulary[1], **_size(chosen, pairs)}
    if chosen.name in ("transformer", "seq2seq"):
        values |= {"tied": "all"} if joint else {"source_vocab_size": vocabulary[0], "tied": "target"}
    if chosen.name == "transformer":
        # norms before the sublayers unless the recipe says otherwise: so it learns whatever the schedule
        values |= {"norm": "pre"}
    return config(**values | _said(chosen, config))


def _started(base: Package, chosen: ModelConfig) -> nn.Module:
    """The model that training starts from, with the rates of dropout that the recipe names."""
    model = type(base.model)(dataclasses.replace(base.model.config, **_rates(base, chosen)))
    if not chosen.fresh:
        model.load_state_dict(base.model.state_dict())
    return model


def _classifier(chosen: ModelConfig, base: Package | None, prepared: Prepared) -> nn.Module:
    """A new one, one that is there, or a new head on a BART."""
    subwords, labels = prepared.subwords
    ends = {"labels": len(labels), "first": subwords.marks.first, "last": subwords.marks.last}
    if base is None:
        values = {
            "vocab_size": len(subwords),
            **_size(chosen, len(prepared.corpus)),
            **_said(chosen, BartClassifierConfig),
        }
        return BartClassifier(BartClassifierConfig(**values, **ends))
    if isinstance(base.model, BartClassifier):
        return _started(base, chosen)
    rates = {name: value for name, value in _said(chosen, BartClassifierConfig).items() if name in RATES}
    values = {**dataclasses.asdict(base.model.config), **rates}
    model = BartClassifier(BartClassifierConfig(**values, **ends))
    if not chosen.fresh:
        own = model.state_dict()
        model.load_state_dict(own | {name: w for name, w in base.model.state_dict().items() if name in own})
    return model


def _size(chosen: ModelConfig, pairs: int) -> dict[str, Any]:
    name = choose_preset(pairs) if chosen.preset == "auto" else chosen.preset
    sizes = RECURRENT_PAIRS if chosen.name == "seq2seq" else SIZES
    if name not in sizes:
        raise ValueError(f"model.preset is {name!r}; {chosen.name} has {', '.join(sizes)}")
    return sizes[name]


def _recurrent(chosen: ModelConfig, tokens: int) -> dict[str, Any]:
    """A size that a text can feed."""
    auto = "tiny" if tokens < 1_000_000 else "small" if tokens < 50_000_000 else "base"
    name = auto if chosen.preset == "auto" else chosen.preset
    if name not in RECURRENT:
        raise ValueError(f"model.preset is {name!r}; rnn-lm has {', '.join(RECURRENT)}")
    return RECURRENT[name]


def _rates(base: Package, chosen: ModelConfig) -> dict[str, Any]:
    """The rates of dropout that the recipe names; anything else would change the shape of a model that is there."""
    config = base.model.config
    said = _said(chosen, type(config))
    for name, value in said.items():
        if name not in RATES and value != getattr(config, name):
            raise ValueError(
                f"model.{name} is {value!r}, but {chosen.folder} has {getattr(config, name)!r}: "
                "a model that is there already keeps its shape"
            )
    return {name: value for name, value in said.items() if name in RATES}


def _said(chosen: ModelConfig, config: type) -> dict[str, Any]:
    """What the recipe says of the model, as far as this kind of model has such settings."""
    known = {field.name for field in dataclasses.fields(config)}
    said = {name: value for name, value in dataclasses.asdict(chosen).items() if value is not None}
    said = {name: value for name, value in said.items() if name not in OTHER}
    for name in said:
        if name not in known:
            raise ValueError(f"model.{name}: a {config.__name__.removesuffix('Config')} has no such setting")
    return said

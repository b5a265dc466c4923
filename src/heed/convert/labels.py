"""The labels of a classifier, or that it is a regression model, from config.json of transformers."""

from typing import Any

from heed.convert.config_table import Rule, Settings, read_setting
from heed.models.package import Package
from heed.vocabularies.labels import Labels, Numbers
from heed.vocabularies.vocabulary import Pair

SINGLE_LABEL, REGRESSION = "single_label_classification", "regression"


def _count(settings: Settings, default: int = 3, numbers: bool = True) -> dict[str, Any]:
    """A single label without another problem type means regression, as in transformers, if the head supports
    `numbers`.
    """
    names, problem = settings.get("id2label"), settings.get("problem_type")
    if problem not in (None, SINGLE_LABEL, REGRESSION):
        raise ValueError(f"problem_type is {problem!r}; heed supports {SINGLE_LABEL!r} and {REGRESSION!r}")
    count = read_setting(settings, ("num_labels", "_num_labels"), default) if names is None else len(names)
    given = f"num_labels is {count}" if names is None else f"id2label is {names}"
    if count < 1 or (count == 1 and (problem == SINGLE_LABEL or not numbers)):
        raise ValueError(f"{given}; a classifier needs at least two labels")
    if count > 1 and problem == REGRESSION:
        raise ValueError(f"{given} and problem_type is {REGRESSION!r}; heed's regression predicts one number")
    return {"labels": count}


def task(settings: Settings, default: int = 3) -> str:
    """Heed's task for a model with this head."""
    return "regression" if _count(settings, default)["labels"] == 1 else "classification"


def rule(default: int, numbers: bool = True) -> Rule:
    """For a config with `labels`; `default` is their number if config.json does not say."""
    return Rule(
        lambda settings: _count(settings, default, numbers), lambda config: _settings(_default_names(config.labels))
    )


RULE = rule(3)


def names(settings: Settings, default: int = 3) -> list[str]:
    """The labels in the order of their ids; unnamed ones get transformers' names."""
    given = settings.get("id2label") or dict(enumerate(_default_names(_count(settings, default)["labels"])))
    return [str(given[key]) for key in sorted(given, key=int)]


def text_and_labels(vocabularies: Pair, settings: Settings, default: int = 3) -> dict[str, Any]:
    """The processors of a classifier or a regression model."""
    found = names(settings, default)
    return {"text": vocabularies[0], "labels": Labels(found) if len(found) > 1 else Numbers()}


def settings_of(package: Package) -> dict[str, Any]:
    """The label settings in config.json, or that the model predicts a number."""
    labels, count = package.processors["labels"], package.model.config.labels
    if isinstance(labels, Numbers):
        return {**_settings(_default_names(1)), "problem_type": REGRESSION}
    if len(labels.names) != count:
        raise ValueError(
            f"the model has {count} labels, but the folder names {len(labels.names)}: {', '.join(labels.names)}"
        )
    return _settings(labels.names)


def _default_names(count: int) -> list[str]:
    return [f"LABEL_{i}" for i in range(count)]


def _settings(given: list[str]) -> dict[str, Any]:
    numbered = list(enumerate(given))
    return {"id2label": {str(i): name for i, name in numbered}, "label2id": {name: i for i, name in numbered}}

"""The labels of a classifier, or that it predicts a number, which Hugging Face's transformers keeps in config.json."""

from typing import Any

from heed.convert.config_table import Rule, Settings, read_setting
from heed.models.package import Package
from heed.vocabularies.labels import Labels, Numbers
from heed.vocabularies.vocabulary import Pair

SINGLE_LABEL, REGRESSION = "single_label_classification", "regression"


def _count(settings: Settings, default: int = 3, numbers: bool = True) -> dict[str, Any]:
    """One label without another problem type is a number, as transformers has it, if the head can predict `numbers`."""
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
    """Heed's task of a model with this head."""
    return "regression" if _count(settings, default)["labels"] == 1 else "classification"


def rule(default: int, numbers: bool = True) -> Rule:
    """For a config with `labels`; `default` is how many there are where config.json says nothing."""
    return Rule(
        lambda settings: _count(settings, default, numbers), lambda config: _settings(_default_names(config.labels))
    )


RULE = rule(3)


def names(settings: Settings, default: int = 3) -> list[str]:
    """The labels in the order of their ids; transformers has names for those without."""
    given = settings.get("id2label") or dict(enumerate(_default_names(_count(settings, default)["labels"])))
    return [str(given[key]) for key in sorted(given, key=int)]


def text_and_labels(vocabularies: Pair, settings: Settings, default: int = 3) -> dict[str, Any]:
    """The processors of a classifier, or of a regression model."""
    found = names(settings, default)
    return {"text": vocabularies[0], "labels": Labels(found) if len(found) > 1 else Numbers()}


def settings_of(package: Package) -> dict[str, Any]:
    """What config.json says of the labels of a package, or that it predicts a number."""
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

"""The labels of a classifier, which Hugging Face's transformers keeps in config.json."""

from typing import Any

from heed.convert.config_table import Rule, Settings, read_setting
from heed.models.package import Package
from heed.vocabularies.labels import Labels
from heed.vocabularies.vocabulary import Pair

SINGLE_LABEL = "single_label_classification"


def _count(settings: Settings, default: int = 3) -> dict[str, Any]:
    names, problem = settings.get("id2label"), settings.get("problem_type")
    if problem not in (None, SINGLE_LABEL):
        raise ValueError(f"problem_type is {problem!r}; heed's classifiers are made for {SINGLE_LABEL!r} alone")
    count = read_setting(settings, ("num_labels", "_num_labels"), default) if names is None else len(names)
    if count < 2:
        given = f"num_labels is {count}" if names is None else f"id2label is {names}"
        raise ValueError(f"{given}; heed's classifiers tell labels apart, so there must be at least two")
    return {"labels": count}


def rule(default: int) -> Rule:
    """For a config with `labels`; `default` is how many there are where config.json says nothing."""
    return Rule(lambda settings: _count(settings, default), lambda config: _settings(_default_names(config.labels)))


RULE = rule(3)


def names(settings: Settings, default: int = 3) -> list[str]:
    """The labels in the order of their ids; transformers has names for those without."""
    given = settings.get("id2label") or dict(enumerate(_default_names(_count(settings, default)["labels"])))
    return [str(given[key]) for key in sorted(given, key=int)]


def text_and_labels(vocabularies: Pair, settings: Settings, default: int = 3) -> dict[str, Any]:
    """The processors of a classifier."""
    return {"text": vocabularies[0], "labels": Labels(names(settings, default))}


def settings_of(package: Package) -> dict[str, Any]:
    """What config.json says of the labels of a package."""
    given, count = package.processors["labels"].names, package.model.config.labels
    if len(given) != count:
        raise ValueError(f"the model has {count} labels, but the folder names {len(given)}: {', '.join(given)}")
    return _settings(given)


def _default_names(count: int) -> list[str]:
    return [f"LABEL_{i}" for i in range(count)]


def _settings(given: list[str]) -> dict[str, Any]:
    numbered = list(enumerate(given))
    return {"id2label": {str(i): name for i, name in numbered}, "label2id": {name: i for i, name in numbered}}

"""A recipe: all settings of a run, in sections, from a TOML file and --set. It is read in two passes: the names of
the model and the task determine the dataclasses of the sections.
"""

import copy
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, get_args, get_type_hints

from heed import config
from heed.models import MODELS, System
from heed.runs import saved_recipe
from heed.runs.earlier import MOVED, upgraded
from heed.tasks import TASKS
from heed.tasks.base import Task
from heed.training.config import TrainingConfig
from heed.vocabularies.folder import special_tokens

SECTIONS = ("data", "task", "filters", "subwords", "vectors", "model", "training", "decoding")  # as they are written


@dataclass(frozen=True)
class ModelChoice:
    """An architecture by name, or a model folder to start from; `settings` are differences from its preset."""

    name: str = "transformer"
    folder: str | None = None  # an existing model to start from (--from): a run, a folder, a name on the hub
    fresh: bool = False  # use only that model's architecture and vocabulary, with new weights
    preset: str = "auto"  # a named size; "auto" chooses by the amount of data
    prompt: int = 0  # prompt tuning: learn only this many vectors before each text
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self):
        if self.fresh and not self.folder:
            raise ValueError("model.fresh needs model.folder: it reinitializes that model's weights")
        if self.prompt < 0 or (self.prompt and (self.fresh or not self.folder)):
            raise ValueError(
                f"model.prompt is {self.prompt}; it needs model.folder (--from), whose weights it keeps frozen, and "
                "must be at least 1"
            )
        for name in ("name", "preset"):
            if self.folder and getattr(self, name) != getattr(ModelChoice, name):
                raise ValueError(
                    f"model.{name} is {getattr(self, name)!r}, but the model comes from {self.folder}: leave it out"
                )

    @property
    def system(self) -> System:
        return MODELS[self.name]

    @property
    def vocabulary(self) -> str | None:
        """The kind of vocabulary learned with a new model; None is Heed's own."""
        return None if self.folder else self.system.vocabulary

    def setting(self, name: str) -> Any:
        """The value of a setting in a new model's config; None if it is unknown or there is no such setting."""
        default = None if self.folder else getattr(self.system.config, name, None)
        return self.settings.get(name, None if isinstance(default, property) else default)

    @property
    def positions(self) -> int | None:
        """The positions of a new model, those of its smallest preset where the preset depends on the amount of data;
        None if there is no such setting.
        """
        default = None if self.folder else self.setting("max_length")
        if default is None or "max_length" in self.settings:
            return default
        presets = self.system.presets
        sizes = presets.values() if self.preset == "auto" else [presets[self.preset]]
        return min(size.get("max_length", default) for size in sizes)

    def values(self) -> dict[str, Any]:
        """The [model] section."""
        return {name: getattr(self, name) for name in OWN} | dict(self.settings)


OWN = ("name", "folder", "fresh", "preset", "prompt")  # settings of [model] that are none of a model's config


@dataclass(frozen=True)
class Recipe:
    """`explicit` are the names of the settings given in a file or on the command line; the others have their
    defaults.
    """

    task: Task
    model: ModelChoice
    training: TrainingConfig
    data: Any
    filters: Any = None
    subwords: Any = None
    vectors: Any = None
    decoding: Any = None
    explicit: frozenset[str] = field(default=frozenset(), compare=False)

    def sections(self) -> dict[str, dict[str, Any]]:
        """All settings as plain values, by section."""
        found: dict[str, dict[str, Any]] = {}
        for name in SECTIONS:
            own = getattr(self, name)
            if name == "model":
                found[name] = own.values()
            elif name == "task":
                found[name] = {"name": own.name, **config.plain(own.settings)}
            elif own is not None:
                found[name] = config.plain(own)
        return found

    def settings(self) -> dict[str, Any]:
        """All settings as plain values, by section.name."""
        return {f"{section}.{name}": value for section, own in self.sections().items() for name, value in own.items()}

    def with_settings(self, settings: Mapping[str, Any]) -> "Recipe":
        """The recipe with other values of settings outside of [model], by section.name."""
        changes: dict[str, dict[str, Any]] = {}
        for name, value in settings.items():
            section, own = name.split(".")
            changes.setdefault(section, {})[own] = value
        return replace(self, **{name: replace(getattr(self, name), **own) for name, own in changes.items()})

    def to_toml(self) -> str:
        return config.to_toml(self.sections())


def read(path: Path | None, changes: Sequence[tuple[str, Any]], *, saved: bool = False) -> Recipe:
    """A recipe from a file, or from changes alone. One that heed `saved` in a run folder may be of an earlier
    version.
    """
    values = config.load_toml(path) if path is not None else {}
    if saved:
        saved_recipe.check(path)
        values = upgraded(values)
    if path is not None and saved_recipe.is_saved(path):
        _leave_to_another_model(values, {name for name, _ in changes})
    own = copy.deepcopy(values)
    for name, value in changes:
        config.override(values, name, value)
    if "distill" in values:
        where = f"{path}: " if path is not None and "distill" in own else ""
        raise ValueError(f"{where}[distill] is about a student: heed distill TEACHER {path or ''}".rstrip())
    try:
        return parse(values)
    except ValueError as error:
        blamed = path is not None and _is_of_file(str(error), own, {name for name, _ in changes})
        raise ValueError(f"{path}: {error}" if blamed else str(error)) from error


def _leave_to_another_model(values: dict[str, Any], changed: Set[str]) -> None:
    """Remove from a recipe that heed wrote, which states all settings of a model, those of the model that the command
    line replaces: of another architecture or folder all, of another preset its sizes.
    """
    model = values.get("model")
    if not isinstance(model, dict):
        return
    if changed & {"model.name", "model.folder"}:
        values["model"] = {name: value for name, value in model.items() if name in OWN}
    elif "model.preset" in changed and model.get("name") in list(MODELS):
        sizes = set().union(*MODELS[model["name"]].presets.values())
        values["model"] = {name: value for name, value in model.items() if name not in sizes}


def _is_of_file(message: str, own: Mapping[str, Any], changed: Set[str]) -> bool:
    """Whether an error is about the file and not the command line: it names a setting of the file, or also occurs
    with the file alone.
    """
    settings = {f"{section}.{name}" for section, part in own.items() if isinstance(part, Mapping) for name in part}
    names = (set(own) | settings) - set(changed)
    if message.startswith(tuple(f"{name}{mark}" for name in names for mark in (":", " ", "["))):
        return True
    try:
        parse(own)
    except ValueError as error:
        return str(error) == message
    return False


def parse(values: Mapping[str, Any]) -> Recipe:
    """A recipe from the plain values of its sections."""
    for name, value in values.items():
        if name not in SECTIONS:
            raise ValueError(f"{name}: no such setting; {_section_of(name) or config.suggestion(name, SECTIONS)}")
        if not isinstance(value, Mapping):
            raise ValueError(f"{name}: {value!r} is a value; this is a section, [{name}]")
        for setting in value:
            if f"{name}.{setting}" in MOVED:
                raise ValueError(f"{name}.{setting} has moved: set {MOVED[f'{name}.{setting}']} instead")
    model = _model(values.get("model", {}))
    task = _task(dict(values.get("task", {})), model)
    found = {}
    for name in SECTIONS:
        if name in task.sections:
            found[name] = config.read(task.sections[name], values.get(name, {}), f"{name}.")
        elif name in values and name not in ("task", "model", "training"):
            raise ValueError(f"{name}: {task.name} has no such section; {config.suggestion(name, task.sections)}")
    training = config.read(TrainingConfig, values.get("training", {}), "training.")
    names = [metric.name for metric in task.metrics]
    if training.metric not in ("auto", *names):
        raise ValueError(f"training.metric is {training.metric!r}; {task.name} has {', '.join(names)}")
    explicit = frozenset(f"{section}.{name}" for section, own in values.items() for name in own)
    recipe = Recipe(task, model, training, **found, explicit=explicit)
    _check_fit(task, model)
    task.check(recipe)
    return recipe


def _section_of(setting: str) -> str:
    """Where a setting belongs that was given without its section; empty if there is no such setting."""
    known = [("training", TrainingConfig), ("model", ModelChoice)]
    known += [pair for task in TASKS.values() for pair in [*task.sections.items(), ("task", task.Settings)]]
    known += [("model", MODELS[name].config) for name in MODELS]
    found = (
        section for section, kind in known if setting in {one.name for one in fields(kind)} - config.data_fields(kind)
    )
    section = next(found, None)
    return f"did you mean {section}.{setting}?" if section else ""


def _model(values: Mapping[str, Any]) -> ModelChoice:
    own = {name: value for name, value in values.items() if name in OWN}
    rest = {name: value for name, value in values.items() if name not in OWN}
    systems = [MODELS[name] for name in MODELS if own.get("folder") or name == own.get("name", ModelChoice.name)]
    known = [(name, hint) for system in systems for name, hint in get_type_hints(system.config).items()]
    for name in [name for name, value in rest.items() if value is None and name in dict(known)]:
        if any("none" in get_args(hint) for other, hint in known if other == name):
            rest[name] = "none"  # a choice of model.tied or model.positions; any other setting is left out
        else:
            del rest[name]
    hints = {"name": str, "folder": str | None, "fresh": bool, "preset": str, "prompt": int}
    own = {name: config.typed_value(hints[name], value, f"model.{name}") for name, value in own.items()}
    if own.get("folder"):
        return ModelChoice(**own, settings=rest)  # checked against its config once it is open
    system = choose("model.name", own.get("name", ModelChoice.name), MODELS)
    preset = own.get("preset", ModelChoice.preset)
    if preset != "auto" and preset not in system.presets:
        raise ValueError(f"model.preset: {config.none_of(preset, ('auto', *system.presets))}")
    return ModelChoice(**own, settings=model_settings(own.get("name", ModelChoice.name), rest))


def model_settings(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of [model], typed by the model's config; those determined by the data cannot be set."""
    kind = MODELS[name].config
    decided = config.data_fields(kind)
    known = [field.name for field in fields(kind) if field.name not in decided]
    for setting in values:
        if setting in decided:
            raise ValueError(f"model.{setting}: it is determined by the data; leave it out")
        if setting not in known:
            raise ValueError(f"model.{setting}: {name} has no such setting; {config.suggestion(setting, known)}")
    return config.typed(kind, values, "model.")


def _task(values: dict[str, Any], model: ModelChoice) -> Task:
    name = values.pop("name", None) or ("translation" if model.folder else model.system.task)
    kind = choose("task.name", name, TASKS)
    others = {field.name: other for other, task in TASKS.items() for field in fields(task.Settings)}
    for setting in values:
        if setting not in {field.name for field in fields(kind.Settings)} and setting in others:
            raise ValueError(f"task.{setting}: {name} has no such setting; {others[setting]} has")
    return kind(config.read(kind.Settings, values, "task."))


def choose(where: str, name: Any, choices: Mapping[str, Any]) -> Any:
    if not isinstance(name, str) or name not in choices:
        raise ValueError(f"{where}: {config.none_of(name, choices)}")
    return choices[name]


def _check_fit(task: Task, model: ModelChoice) -> None:
    """Refuse a model that cannot learn the task."""
    if model.folder or fits(task, model.name):
        return
    if model.system.task == "language" and task.name != "language":
        raise ValueError(
            f"task.name is {task.name!r}, but a language model ({model.name}) learns from plain text: "
            f"set it to {model.system.task!r}"
        )
    able = [name for name in MODELS if fits(task, name)]
    raise ValueError(
        f"task.name is {task.name!r}, which {model.name} cannot learn: set model.name to {' or '.join(able)}"
    )


def fits(task: Task | type[Task], name: str) -> bool:
    """Whether a new model of this name supports the task, and its vocabulary has the special tokens."""
    system = MODELS[name]
    return issubclass(system.model, task.needs) and set(task.special_tokens) <= special_tokens(system.vocabulary)


def differences(before: Recipe, after: Recipe) -> list[tuple[str, Any, Any]]:
    """(section.name, before, after) of every setting that differs."""
    one, other = before.sections(), after.sections()
    found = []
    for section in SECTIONS:
        old, new = _flat(one.get(section, {})), _flat(other.get(section, {}))
        for name in dict.fromkeys([*old, *new]):
            if old.get(name) != new.get(name):
                found.append((f"{section}.{name}", old.get(name), new.get(name)))
    return found


def _flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by name; those of tables in a list as corpora[0].weight."""
    found = {}
    for name, value in values.items():
        if not isinstance(value, list) or not any(isinstance(item, Mapping) for item in value):
            found[name] = value
            continue
        for number, table in enumerate(value):
            found |= {f"{name}[{number}].{own}": setting for own, setting in table.items()}
    return found

"""Mapping tables between Heed's config dataclasses and config.json of transformers, used in both directions.

A row is (Heed's name, their name, their default if config.json lacks it). If theirs has several names it is a tuple:
all that are present must agree, and the first is written. Two rows for the same Heed setting must agree too, and both
are written. A fourth item maps their values to Heed's.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

Settings = Mapping[str, Any]
WORDS = {bool: "true or false", int: "an integer", float: "a number", str: "text"}


class Rule(NamedTuple):
    """Conversions that no row can express: Heed's settings computed from theirs, and the reverse."""

    ours: Callable[[Settings], dict[str, Any]]
    theirs: Callable[[Any], dict[str, Any]]


class ConfigTable:
    """`constants` are settings with a single supported value: others are refused, and they are written. `legacy` is
    checked in the same way but not written, since only older versions have it. `name` is the model's name in errors.
    """

    def __init__(
        self,
        config: type,
        *rows: tuple,
        constants: Settings,
        legacy: Settings | None = None,
        rules: tuple[Rule, ...] = (),
        name: str | None = None,
    ):
        self.config, self.rules, self.name = config, rules, name or config.__name__.removesuffix("Config")
        self.rows = [(ours, as_names(theirs), default, *(words or [None])) for ours, theirs, default, *words in rows]
        self.constants, self.required = dict(constants), {**constants, **(legacy or {})}

    def to_ours(self, settings: Settings) -> Any:
        """Heed's config from config.json of transformers. Unsupported settings are refused by name."""
        for name, value in self.required.items():
            if settings.get(name, value) != value:
                raise ValueError(f"{name} is {settings[name]!r}; heed's {self.name} supports only {value!r}")
        values, origin, model = {}, {}, f"heed's {self.name}"
        for ours, names, default, words in self.rows:
            value = read_setting(settings, names, default)
            if words is not None and value not in words:
                raise ValueError(f"{names[0]} is {value!r}; {model} knows {', '.join(map(repr, words))}")
            value = value if words is None else words[value]
            known, first = values.setdefault(ours, value), origin.setdefault(ours, names[0])
            if known != value:
                raise ValueError(f"{names[0]} is {value!r} and {first} is {known!r}; {model} has one {ours} for both")
        for rule in self.rules:
            values |= rule.ours(settings)
        return self.config(**values)

    def to_theirs(self, config: Any) -> dict[str, Any]:
        """config.json of transformers from Heed's config, without what the config does not know, such as token ids."""
        settings = dict(self.constants)
        for ours, theirs, _, words in self.rows:
            value = getattr(config, ours)
            settings[theirs[0]] = value if words is None else next(word for word, own in words.items() if own == value)
        for rule in self.rules:
            settings |= rule.theirs(config)
        return settings


def read_setting(settings: Settings, names: tuple[str, ...], default: Any) -> Any:
    """The value under these names, which must agree and have the type of the default; the default if none is
    present.
    """
    present = {name: settings[name] for name in names if name in settings}
    if not present:
        return default
    first, value = next(iter(present.items()))
    for name, other in present.items():
        if other != value:
            raise ValueError(f"{name} is {other!r}, but {first} is {value!r}: they are two names for the same setting")
    if type(default) is float and type(value) is int:
        return float(value)
    if type(value) is not type(default):
        raise ValueError(f"{first} is {value!r}; it must be {WORDS[type(default)]}")
    return value


def as_names(theirs: str | tuple[str, ...]) -> tuple[str, ...]:
    """The names in a row, which has one or a tuple of several."""
    return (theirs,) if isinstance(theirs, str) else theirs

"""Tables of settings between our config dataclasses and their config.json, used in both directions.

A row is (our setting, their setting, their default if config.json does not name it). If theirs has several names it is a
tuple: all that are present must agree, and the first is written. Two rows for one setting of ours must agree too, and both
are written. A fourth item maps their words to ours.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

Settings = Mapping[str, Any]
WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


class Rule(NamedTuple):
    """What no row can express: settings of ours computed from theirs, and theirs from our config."""

    ours: Callable[[Settings], dict[str, Any]]
    theirs: Callable[[Any], dict[str, Any]]


class ConfigTable:
    """`constants` are settings that our model has only one value for: another one is refused, and they are written.

    `legacy` is checked in the same way but not written: only older versions of their library have it. `name` is what
    errors call our model.
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
        """Our config from their config.json. What our model cannot compute is refused by name."""
        for name, value in self.required.items():
            if settings.get(name, value) != value:
                raise ValueError(f"{name} is {settings[name]!r}; heed's {self.name} is made for {value!r} alone")
        values, origin = {}, {}
        for ours, theirs, default, words in self.rows:
            value = self._translated(theirs[0], read_setting(settings, theirs, default), words)
            if values.setdefault(ours, value) != value:
                raise ValueError(
                    f"{theirs[0]} is {value!r} and {origin[ours]} is {values[ours]!r}; "
                    f"heed's {self.name} has one {ours} for both"
                )
            origin.setdefault(ours, theirs[0])
        for rule in self.rules:
            values |= rule.ours(settings)
        return self.config(**values)

    def to_theirs(self, config: Any) -> dict[str, Any]:
        """Their config.json from our config, without what the config does not know, such as token ids."""
        settings = dict(self.constants)
        for ours, theirs, _, words in self.rows:
            value = getattr(config, ours)
            settings[theirs[0]] = value if words is None else next(word for word, own in words.items() if own == value)
        for rule in self.rules:
            settings |= rule.theirs(config)
        return settings

    def _translated(self, name: str, value: Any, words: Mapping[str, str] | None) -> Any:
        if words is None:
            return value
        if value not in words:
            raise ValueError(f"{name} is {value!r}; heed's {self.name} knows {', '.join(map(repr, words))}")
        return words[value]


def read_setting(settings: Settings, names: tuple[str, ...], default: Any) -> Any:
    """The value under these names, which must agree and have the type of the default; without any, the default."""
    present = [name for name in names if name in settings]
    for name in present:
        if settings[name] != settings[present[0]]:
            raise ValueError(
                f"{name} is {settings[name]!r}, but {present[0]} is {settings[present[0]]!r}: "
                "they are two names of one setting"
            )
    if not present:
        return default
    value = settings[present[0]]
    if type(default) is float and type(value) is int:
        return float(value)
    if type(value) is not type(default):
        raise ValueError(f"{present[0]} is {value!r}; it should be {WORDS[type(default)]}")
    return value


def as_names(theirs: str | tuple[str, ...]) -> tuple[str, ...]:
    """The names in a row, which has one or a tuple of several."""
    return (theirs,) if isinstance(theirs, str) else theirs

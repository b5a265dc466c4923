"""Tables of settings: our config dataclasses from their config.json, and back.

A row has a setting of ours, one of theirs, and the value that theirs has where config.json does not name it. Where
theirs goes by several names it is a tuple: all that are there must agree, and the first is written. Two rows for one of
ours must agree too, and both are written. A fourth item tells their words from ours.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

Settings = Mapping[str, Any]
WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


class Rule(NamedTuple):
    """What no row can say: settings of ours out of theirs, and theirs out of our config."""

    ours: Callable[[Settings], dict[str, Any]]
    theirs: Callable[[Any], dict[str, Any]]


class ConfigTable:
    """`always` is what their config must say, because our model is made no other way, and what is written back.

    `formerly` must be so too where it stands, but only older versions of their library wrote it.
    """

    def __init__(
        self,
        config: type,
        *rows: tuple,
        always: Settings,
        formerly: Settings | None = None,
        rules: tuple[Rule, ...] = (),
    ):
        self.config, self.rules = config, rules
        self.rows = [(ours, every_name(theirs), default, *(words or [None])) for ours, theirs, default, *words in rows]
        self.always, self.fixed = dict(always), {**always, **(formerly or {})}
        self.name = config.__name__.removesuffix("Config")

    def to_ours(self, settings: Settings) -> Any:
        """Our config of their config.json; what our model could not compute is refused by name."""
        for name, value in self.fixed.items():
            if settings.get(name, value) != value:
                raise ValueError(f"{name} is {settings[name]!r}; heed's {self.name} is made for {value!r} alone")
        found, origin = {}, {}
        for ours, theirs, default, words in self.rows:
            value = self._worded(theirs[0], agreed(settings, theirs, default), words)
            if found.setdefault(ours, value) != value:
                raise ValueError(
                    f"{theirs[0]} is {value!r} and {origin[ours]} is {found[ours]!r}; "
                    f"heed's {self.name} has one {ours} for both"
                )
            origin.setdefault(ours, theirs[0])
        for rule in self.rules:
            found |= rule.ours(settings)
        return self.config(**found)

    def to_theirs(self, config: Any) -> dict[str, Any]:
        """What their config.json says of our config; token ids and the like are others' matter."""
        result = dict(self.always)
        for ours, theirs, _, words in self.rows:
            value = getattr(config, ours)
            result[theirs[0]] = value if words is None else next(word for word, own in words.items() if own == value)
        for rule in self.rules:
            result |= rule.theirs(config)
        return result

    def _worded(self, name: str, value: Any, words: Mapping[str, str] | None) -> Any:
        if words is None:
            return value
        if value not in words:
            raise ValueError(f"{name} is {value!r}; heed's {self.name} knows {', '.join(map(repr, words))}")
        return words[value]


def agreed(settings: Settings, names: tuple[str, ...], default: Any) -> Any:
    """The one value that is there under these names, of the kind of the default; or the default."""
    there = [name for name in names if name in settings]
    for name in there:
        if settings[name] != settings[there[0]]:
            raise ValueError(
                f"{name} is {settings[name]!r}, but {there[0]} is {settings[there[0]]!r}: "
                "they are two names of one setting"
            )
    if not there:
        return default
    value = settings[there[0]]
    if type(default) is float and type(value) is int:
        return float(value)
    if type(value) is not type(default):
        raise ValueError(f"{there[0]} is {value!r}; it should be {WORDS[type(default)]}")
    return value


def every_name(theirs: str | tuple[str, ...]) -> tuple[str, ...]:
    """The names of a row in which theirs may be one or several."""
    return (theirs,) if isinstance(theirs, str) else theirs

"""Build config dataclasses from plain values: a TOML file, config.json or the command line. Nothing is guessed. An
unknown name, a value of the wrong type or a missing setting is an error that says where it is and what is valid
there.
"""

import difflib
import json
import math
import tomllib
import types
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, asdict, field, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")

WORDS = {int: "an integer", float: "a number", str: "text in quotes", bool: "true or false", list: "a list"}


def from_data(default: Any = 0) -> Any:
    """A field determined by the data (vocabulary size, number of labels): no recipe can set it."""
    return field(default=default, metadata={"from_data": True})


def data_fields(config: Any) -> set[str]:
    """The fields of a config, or of its class, that the data determine."""
    return {one.name for one in fields(config) if one.metadata.get("from_data")}


def dropout_fields(config: Any) -> list[str]:
    """The dropout rates of a config, or of its class: they affect training, not the architecture."""
    return [one.name for one in fields(config) if one.name.endswith("dropout")]


def read(config: type[T], values: Mapping[str, Any], where: str = "") -> T:
    found = typed(config, values, where)
    for one in fields(config):
        if one.name not in values and one.default is MISSING and one.default_factory is MISSING:
            raise ValueError(f"{where}{one.name}: must be set")
    return config(**found)


def typed(config: type, values: Mapping[str, Any], where: str = "") -> dict[str, Any]:
    """Check values against the fields of a dataclass, without creating one."""
    hints, known = get_type_hints(config), [one.name for one in fields(config)]
    for name in values:
        if name not in known:
            raise ValueError(f"{where}{name}: no such setting; {suggestion(name, known)}")
    return {name: typed_value(hints[name], value, where + name) for name, value in values.items()}


def suggestion(name: str, known: Iterable[str]) -> str:
    near = meant(name, known := list(known))
    return f"did you mean {near}?" if near else f"there are {', '.join(known)}"


def meant(name: str, known: Iterable[str]) -> str | None:
    """The known name that a misspelled one is closest to; None if it is close to none."""
    return next(iter(difflib.get_close_matches(name, list(known), n=1)), None)


def none_of(value: Any, allowed: Iterable[Any]) -> str:
    """That a value is not one of the allowed ones, and which of them was probably meant."""
    near = meant(value, [one for one in allowed if isinstance(one, str)]) if isinstance(value, str) else None
    return f"{value!r} is none of {', '.join(map(repr, allowed))}" + (f" (did you mean {near!r}?)" if near else "")


def check_fraction(name: str, value: float) -> None:
    if not 0 <= value < 1:
        raise ValueError(f"{name} is {value}; it must be at least 0 and below 1")


def check_not_negative(name: str, value: float | int) -> None:
    if not 0 <= value < math.inf:
        raise ValueError(f"{name} is {value}; it must be 0 (off) or a number above 0")


def plain(config: Any) -> dict[str, Any]:
    """The settings of a dataclass as plain values, for TOML."""
    values = ((one.name, getattr(config, one.name)) for one in fields(config))
    return {name: [asdict(item) if is_dataclass(item) else item for item in value] if isinstance(value, list) else value
            for name, value in values}  # fmt: skip


def override(values: dict[str, Any], name: str, value: Any) -> None:
    """Set `training.steps` and the like, in place."""
    *path, last = name.split(".")
    for part in path:
        values = values.setdefault(part, {})
        if not isinstance(values, dict):
            raise ValueError(f"{name}: {part} is a setting, not a section")
    values[last] = value


def assignment(text: str) -> tuple[str, Any]:
    """Parse `training.steps=4000` into a name and a TOML value; a bare word is a string."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise ValueError(f"--set {text}: write it as section.name=value, for example training.steps=4000")
    value = value.strip()
    if value in ("none", "null"):
        return name.strip(), None
    try:
        return name.strip(), tomllib.loads(f"x = {value}")["x"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return name.strip(), value


def parse_json(text: str | bytes) -> Any:
    """Parse JSON. Excessive nesting raises ValueError, like any other error."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def load_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8-sig"))
    except FileNotFoundError:
        raise ValueError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise ValueError(f"{path} is a folder: give a TOML file") from None
    except ValueError as error:  # tomllib's, and Python's of numbers with thousands of digits
        raise ValueError(f"{path} is not valid TOML: {error}") from error
    except RecursionError:
        raise ValueError(f"{path} is not valid TOML: it is nested too deeply") from None


def to_toml(sections: Mapping[str, Mapping[str, Any]]) -> str:
    """Sections of settings as TOML; a setting that is None becomes a comment."""
    lines = []
    for section, values in sections.items():
        tables = {name: value for name, value in values.items() if _are_tables(value)}
        lines += [f"[{section}]", *_settings({name: value for name, value in values.items() if name not in tables}), ""]
        for name, value in tables.items():  # after the other settings: what follows a table's header belongs to it
            for table in value:
                lines += [f"[[{section}.{name}]]", *_settings(table), ""]
    return "\n".join(lines)


def _are_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, Mapping) for item in value)


def _settings(values: Mapping[str, Any]) -> list[str]:
    return [f"# {name} =" if value is None else f"{name} = {_toml(value)}" for name, value in values.items()]


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, float):
        return repr(value)  # JSON writes Infinity and NaN, TOML inf and nan
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # JSON allows it unescaped, TOML does not


def typed_value(kind: Any, value: Any, where: str) -> Any:
    if is_dataclass(kind):
        if not isinstance(value, Mapping):
            raise ValueError(f"{where}: {value!r} is a value; this is a section, [{where}]")
        return read(kind, value, where + ".")
    if get_origin(kind) is Literal:
        allowed = get_args(kind)
        value = "none" if value is None and "none" in allowed else value  # --set reads none as no value
        if value not in allowed:
            raise ValueError(f"{where}: {none_of(value, allowed)}")
        return value
    if get_origin(kind) in (Union, types.UnionType):
        return _typed_union(kind, value, where)
    if get_origin(kind) is list:
        return _typed_list(get_args(kind)[0], value, where)
    if kind is float and type(value) is int:
        if abs(value) >= 1 << 1023:  # what Python cannot make a float of
            raise ValueError(f"{where}: the number is too large")
        return float(value)
    if type(value) is not kind or value != value:  # NaN is no setting, and passes comparisons with bounds
        raise ValueError(f"{where}: {value!r} is not {WORDS[kind]}")
    return value


def _typed_union(kind: Any, value: Any, where: str) -> Any:
    """A union of types, or an optional type."""
    inner, *others = [one for one in get_args(kind) if one is not types.NoneType]
    if value is None:
        return "none" if "none" in get_args(inner) else None  # if that is a choice, none means it
    if others and type(value) in others:
        return value
    if others and type(value) is not inner:
        raise ValueError(f"{where}: {value!r} is not {' or '.join(WORDS[one] for one in (inner, *others))}")
    return typed_value(inner, value, where)


def _typed_list(kind: Any, value: Any, where: str) -> list[Any]:
    if is_dataclass(kind) and isinstance(value, Mapping):
        raise ValueError(f"{where}: this section may be repeated, so it must be an array of tables: write [[{where}]]")
    items = [value] if type(value) is kind else value  # a single file needs no brackets
    if type(items) is not list:
        raise ValueError(f"{where}: {value!r} is not {WORDS[list]}")
    return [typed_value(kind, item, f"{where}[{i}]") for i, item in enumerate(items)]

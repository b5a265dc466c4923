"""A mapping whose values are imported on first access."""

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import Any, TypeVar

Value = TypeVar("Value")


class LazyMapping(MutableMapping[str, Value]):
    """`places` are "module:attribute" by name. Names are known immediately; a value is imported when it is first
    read.
    """

    def __init__(self, places: Mapping[str, str]):
        self._places: dict[str, Any] = dict(places)
        self._values: dict[str, Value] = {}

    def __getitem__(self, name: str) -> Value:
        if name not in self._values:
            module, _, attribute = self._places[name].partition(":")
            self._values[name] = getattr(import_module(module), attribute)
        return self._values[name]

    def __setitem__(self, name: str, value: Value) -> None:
        self._places.setdefault(name, "")
        self._values[name] = value

    def __delitem__(self, name: str) -> None:
        del self._places[name]
        self._values.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, name: object) -> bool:
        return name in self._places

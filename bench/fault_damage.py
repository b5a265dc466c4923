"""What can happen to a file: a bit is flipped, it is cut, emptied, zeroed, removed, or replaced by another run's."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

FLIPS = 1  # of each file, besides its last bit
TEXT_FLIPS = 3  # of each file of settings
SILENT_FLIPS = 40  # of a file whose size and time are all that the next command looks at
TEXTS = (".json", ".toml")


class Damage(NamedTuple):
    """`apply` gets the file and its content."""

    name: str
    apply: Callable[[Path, bytes], None]


def damages(path: Path, content: bytes, other: bytes | None, seed: str, silent: bool = False) -> Iterator[Damage]:
    """All damages of a file. `other` is the file of another run, which differs."""
    if content:
        chance = random.Random(seed)
        for _ in range(SILENT_FLIPS if silent else TEXT_FLIPS if path.suffix in TEXTS else FLIPS):
            place, bit = chance.randrange(len(content)), 1 << chance.randrange(8)
            yield Damage(f"flip at {place}", flipped(place, bit))
        yield Damage("flip of the last", flipped(len(content) - 1, 1))
        yield Damage("cut to half", lambda path, content: _replace(path, content[: len(content) // 2]))
        yield Damage("cut by one", lambda path, content: _replace(path, content[:-1]))
        yield Damage("emptied", lambda path, content: _replace(path, b""))
        yield Damage("zeroed", lambda path, content: _replace(path, bytes(len(content))))
        tail = min(len(content), max(1, len(content) // 3))
        yield Damage("end zeroed", lambda path, content: _replace(path, content[:-tail] + bytes(tail)))
    yield Damage("removed", lambda path, content: path.unlink())
    if other is not None:
        yield Damage("another run's", lambda path, content: _replace(path, other))


def flipped(place: int, bit: int) -> Callable[[Path, bytes], None]:
    def apply(path: Path, content: bytes) -> None:
        _replace(path, content[:place] + bytes([content[place] ^ bit]) + content[place + 1 :])

    return apply


def _replace(path: Path, content: bytes) -> None:
    path.write_bytes(content)

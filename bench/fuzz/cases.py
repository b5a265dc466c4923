"""A case is the files of a folder by their names; a reader makes valid ones and reads what became of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

Case = Mapping[str, bytes]


class Reader(NamedTuple):
    """`seeds` makes valid cases; `read` reads the folder of a case."""

    seeds: Callable[[], Iterable[Case]]
    read: Callable[[Path], Any]
    words: Sequence[str] = ()  # of the format, beside those in Heed's code
    refuses: bool = False  # some valid cases too, since it reads each in one of several ways


def save(case: Case, folder: Path) -> None:
    for name, data in case.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def load(folder: Path) -> Case:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def load_all(folder: Path) -> list[Case]:
    return [load(path) for path in sorted(folder.iterdir())] if folder.is_dir() else []


class Place:
    """A folder that holds the files of one case after another; what stays the same is not written again."""

    def __init__(self, folder: Path):
        self.folder, self.files = folder, {}
        folder.mkdir(parents=True, exist_ok=True)

    def put(self, case: Case) -> None:
        for name in self.files.keys() - case.keys():
            (self.folder / name).unlink(missing_ok=True)
        for name, data in case.items():
            if self.files.get(name) is not data:
                path = self.folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
        self.files = dict(case)

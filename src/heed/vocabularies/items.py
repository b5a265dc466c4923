"""The items of a recommender, by name."""

import difflib
import hashlib
import unicodedata
from collections.abc import Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from heed.files import sha256, write_text

FILE = "items.txt"
COMPARED = 300  # names that an unknown one is compared with


class Items:
    """Names of items; an item's id is its index. The id after the last is the mask item."""

    def __init__(self, names: Sequence[str]):
        self.names = list(names)

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def ids(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    def encode(self, names: Sequence[str], hints: bool = True) -> list[int]:
        """The ids of items. Unknown items are refused; with `hints`, which takes a while, a similar one is named."""
        for name in names:
            if name not in self.ids:
                near = difflib.get_close_matches(name, self._alike(name), n=1) if hints else []
                hint = f"; did you mean {near[0]}?" if near else ""
                raise ValueError(f"{name!r} is not one of the {len(self):,} items the model was trained on{hint}")
        return [self.ids[name] for name in names]

    def _alike(self, name: str) -> list[str]:
        """The first names of about this length with the same beginning or end: to compare all takes seconds."""
        found = (
            own
            for own in self.names
            if abs(len(own) - len(name)) <= 2 and (own[:1] == name[:1] or own[-1:] == name[-1:])
        )
        return [*islice(found, COMPARED)]

    def known(self, names: Sequence[str]) -> list[int]:
        """The ids of the known items; the others are skipped."""
        return [self.ids[name] for name in names if name in self.ids]

    def search(self, text: str) -> Int[np.ndarray, " n"]:
        """The ids of items whose names contain a text, ignoring case: names that begin with it come first."""
        wanted = plain(text).strip()
        found = [i for i, name in enumerate(self._plain) if wanted in name]
        first = [i for i in found if self._plain[i].startswith(wanted)]
        first.sort(key=lambda i: self._plain[i] != wanted)
        chosen = set(first)
        return np.array([*first, *(i for i in found if i not in chosen)], dtype=np.int32)

    @cached_property
    def _plain(self) -> list[str]:
        return [plain(name) for name in self.names]

    def key(self) -> str:
        return hashlib.sha256("\n".join(self.names).encode()).hexdigest()

    def write(self, folder: Path) -> dict[str, Any]:
        """Write the names into a model folder; returns their entry in config.json."""
        path = folder / FILE
        if not path.is_file() or sha256(path) != hashlib.sha256(self._text().encode()).hexdigest():
            write_text(path, self._text())
        return {"kind": "items", "file": FILE, "sha256": sha256(path)}

    def _text(self) -> str:
        return "".join(f"{name}\n" for name in self.names)

    @staticmethod
    def read(folder: Path, facts: dict[str, Any], where: str) -> "Items":
        path = checked(folder, facts, where)
        try:
            return Items(path.read_text("utf-8").split("\n")[:-1])
        except UnicodeDecodeError:
            raise ValueError(f"{path} is not UTF-8: it is damaged, or not a list of items") from None


def plain(name: str) -> str:
    """A name normalized for search: case-folded and in Unicode normal form."""
    return unicodedata.normalize("NFKC", name).casefold()


def checked(folder: Path, facts: dict[str, Any], where: str) -> Path:
    """The file of a processor, verified against config.json."""
    name = facts.get("file")
    if not isinstance(name, str) or Path(name).name != name:
        raise ValueError(f"{where}.file is {name!r}; it must be the name of a file")
    if not (folder / name).is_file():
        raise ValueError(f"{folder / name}: no such file; the model folder is incomplete: copy it again")
    if sha256(folder / name) != facts.get("sha256"):
        raise ValueError(f"{folder / name} is damaged or belongs to another model: its hash does not match config.json")
    return folder / name

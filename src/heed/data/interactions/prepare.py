"""Prepare interaction files as histories in memory-mapped arrays, which are built once and reused."""

import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from heed.data.interactions.config import InteractionsConfig
from heed.data.interactions.log import open_log, temporary_folder
from heed.data.interactions.split import SplitLog, split
from heed.data.prepare import cached, digest
from heed.files import atomic_folder, check_file, sha256, write_sums
from heed.vocabularies.histories import ARRAYS, Histories
from heed.vocabularies.items import Items

EDITION = 2  # of the folders in the cache
WORDS = {  # what the counts of a log say
    "rated lower": "rated below data.min_rating and dropped",
    "out of order": "out of order, sorted by time",
    "duplicates": "repeats dropped (data.duplicates)",
    "not in the core": "of rare users or items dropped (data.core)",
    "held out": "held out, after the validation time",
}


class PreparedLog:
    """A prepared log, opened from its folder; `facts` are the counts of interactions read, dropped and held out."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.facts: dict[str, Any] = json.loads((folder / "log.json").read_text("utf-8"))
        self.items = Items(_names(folder / "items.txt"))
        arrays = {name: np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in ARRAYS}
        self.histories = Histories(_names(folder / "users.txt"), len(self.items), arrays)

    def __len__(self) -> int:
        """The number of users to train on."""
        return int(self.facts["users"])

    def summary(self) -> str:
        """What was read, dropped and kept."""
        f, counts = self.facts, self.facts["counts"]
        parts = [f"{counts[name]:,} {line}" for name, line in WORDS.items() if counts.get(name)]
        left = f"{f['interactions']:,} interactions of {f['users']:,} users with {f['items']:,} items to train on"
        return f"{left}; of {counts['read']:,} that were read{''.join(f', {part}' for part in parts)}."

    def split_summary(self) -> str:
        """What is held out, as stated with every score."""
        if limits := self.facts["limits"]:
            return f"split by time (validation from {limits[0]:.0f}, test from {limits[1]:.0f})"
        return "leave-one-out (each user's last item is for testing, the one before it for validation)"


def prepare(config: InteractionsConfig, tell: Callable[[str, int | None], None]) -> tuple[str, PreparedLog]:
    """The key of a log and the log, read or cached."""
    for path in config.interactions:
        check_file(Path(path), "data.interactions: ")
    settings = {name: value for name, value in asdict(config).items() if name not in ("interactions", "licence")}
    key = digest("interactions", EDITION, [sha256(Path(path)) for path in config.interactions], settings)

    def make(folder: Path) -> None:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as temporary:
            log = temporary.enter_context(open_log(config, tell, folder.parent))
            work = temporary.enter_context(temporary_folder(folder.parent))
            tell("splitting interactions", 0)
            found = split(log, config, Path(work))
            with atomic_folder(folder, "keep") as part:
                _write(part, found, dict(log.counts))
                temporary.close()  # before the folder counts: nobody would remove what a process killed in between left

    return key, cached(f"interactions-{key}", PreparedLog, make, tell)


def _write(folder: Path, found: SplitLog, counts: dict[str, int]) -> None:
    learned = found.arrays["train_end"]
    facts = {
        "interactions": int(learned.sum()),
        "users": int((learned > 0).sum()),
        "items": len(found.items),
        "counts": counts,
        "limits": found.limits,
    }
    for name in ARRAYS:
        np.save(folder / f"{name}.npy", found.arrays[name], allow_pickle=False)
    for name, names in (("items.txt", found.items), ("users.txt", found.users)):
        (folder / name).write_text("".join(f"{one}\n" for one in names), "utf-8", newline="\n")
    (folder / "log.json").write_text(json.dumps(facts, indent=2), "utf-8", newline="\n")
    write_sums(folder)


def _names(path: Path) -> list[str]:
    return path.read_text("utf-8").split("\n")[:-1]

"""A log in arrays on disk: users and items as numbers, sorted by user and time. Dropped interactions are counted.
Interactions need not fit in memory: they are read, sorted and counted in blocks. Names are kept in memory.
"""

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from heed.data.interactions.config import Duplicates, InteractionsConfig
from heed.data.interactions.files import read_rows
from heed.data.interactions.times import parse_time
from heed.files import work_folder

CHUNK = 1 << 16  # lines that are read at one time
ROWS = 1 << 22  # interactions of a block, unless one user has more: they take about a hundred bytes each
COLUMNS = {"users": np.int32, "items": np.int32, "times": np.float64}
Tell = Callable[[str, int], None]


class Block(NamedTuple):
    """All interactions of the users from `first` to before `last`. `users` are the numbers of their users, counted
    from `first`.
    """

    first: int
    last: int
    users: np.ndarray
    items: np.ndarray
    times: np.ndarray | None

    def before(self, chosen: np.ndarray) -> np.ndarray:
        """For each interaction, how many of the chosen ones its user had before."""
        sums = np.concatenate([[0], chosen.cumsum()])
        starts = np.searchsorted(self.users, np.arange(self.last - self.first))
        return sums[:-1] - sums[starts][self.users]

    def per_user(self, chosen: np.ndarray) -> np.ndarray:
        """How many of the chosen interactions each user has."""
        return np.bincount(self.users[chosen], minlength=self.last - self.first)


@dataclass(frozen=True)
class Log:
    """Interactions by user and time, in memory-mapped arrays: those of user u are from starts[u] to starts[u + 1].
    `times` is None if the log has none; then they are in file order.
    """

    items: np.ndarray
    times: np.ndarray | None
    starts: np.ndarray
    user_names: list[str]
    item_names: list[str]
    counts: Counter

    def __len__(self) -> int:
        return int(self.starts[-1])

    def blocks(self) -> Iterator[Block]:
        """All users, in blocks of at most ROWS interactions."""
        for first, last in _cuts(self.starts):
            rows = slice(int(self.starts[first]), int(self.starts[last]))
            users = np.repeat(np.arange(last - first), np.diff(self.starts[first : last + 1]))
            times = None if self.times is None else np.array(self.times[rows])
            yield Block(first, last, users, np.array(self.items[rows]), times)


def _cuts(starts: np.ndarray) -> Iterator[tuple[int, int]]:
    """Ranges of users with at most ROWS interactions, or a single user."""
    first = 0
    while first < len(starts) - 1:
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + ROWS, side="right")) - 1)
        yield first, last
        first = last


def temporary_folder(inside: Path | None = None) -> AbstractContextManager[Path | str]:
    """A folder for arrays. Those inside a folder have one name for all logs: the next preparation of any log removes
    what a killed one has left. On Windows, files that are still mapped cannot be removed.
    """
    if inside is not None:
        return work_folder(inside / "interactions")
    return tempfile.TemporaryDirectory(prefix="interactions-", ignore_cleanup_errors=True)


@contextmanager
def open_log(
    config: InteractionsConfig, tell: Tell = lambda what, done: None, folder: Path | None = None
) -> Iterator[Log]:
    """The interactions of all files, sorted and without duplicates, in a temporary folder inside `folder`."""
    with temporary_folder(folder) as made:
        found = _Columns(Path(made))
        users, items, counts, timed = _read(config, found, tell)
        tell("sorting interactions", 0)
        log = _sorted(found, len(users), bool(timed), config.duplicates, counts)
        yield replace(log, user_names=list(users), item_names=list(items))


class _Columns:
    """Users, items and times in files, to which rows are appended."""

    def __init__(self, folder: Path):
        self.paths = {name: folder / name for name in COLUMNS}
        self.rows = 0
        self.sizes = np.zeros(0, np.int64)  # how many interactions each user has

    def add(self, *parts: np.ndarray) -> None:
        for (name, kind), part in zip(COLUMNS.items(), parts, strict=True):
            with self.paths[name].open("ab") as file:
                file.write(part.astype(kind, copy=False).tobytes())
        self.rows += len(parts[0])
        own = np.bincount(parts[0], minlength=len(self.sizes))
        own[: len(self.sizes)] += self.sizes
        self.sizes = own

    def open(self, name: str) -> np.ndarray:
        return np.memmap(self.paths[name], COLUMNS[name], "r+", shape=(self.rows,))


def _read(
    config: InteractionsConfig, found: _Columns, tell: Tell
) -> tuple[dict[str, int], dict[str, int], Counter, bool]:
    """Append all interactions of the files; returns the ids of users and items, counts, and whether there are times."""
    users, items, counts = {}, {}, Counter()
    timed: dict[bool, str] = {}
    for path in map(Path, config.interactions):
        for chunk in _chunks(_codes(path, config, users, items, counts, timed)):
            found.add(*chunk)
            tell("reading interactions", counts["read"])
    if len(timed) > 1:
        raise ValueError(f"{timed[True]} has times and {timed[False]} has none: they cannot be sorted together")
    if not found.rows:
        none = "no interactions" if not counts["read"] else f"no interaction is rated {config.min_rating:g} or higher"
        raise ValueError(f"{', '.join(config.interactions)}: {none}")
    return users, items, counts, True in timed


def _sorted(found: _Columns, users: int, timed: bool, rule: Duplicates, counts: Counter) -> Log:
    """The log by user and time, without duplicates: rows are moved to the block of their user, and each block is
    sorted.
    """
    starts = np.concatenate([[0], found.sizes.cumsum()])
    columns = [found.open(name) for name in COLUMNS]
    cuts = list(_cuts(starts))
    if len(cuts) > 1:
        columns = _by_block(columns, starts, np.array([first for first, _ in cuts]), found)
    done, left = 0, np.zeros(users, np.int64)
    for first, last in cuts:
        rows = slice(int(starts[first]), int(starts[last]))
        own = _one_block([np.array(column[rows]) for column in columns], timed, rule, counts)
        size = len(own[0])
        for column, part in zip(columns, own, strict=True):  # what is written over has been read: no block grows
            column[done : done + size] = part
        left += np.bincount(own[0], minlength=users)
        done += size
    after = np.concatenate([[0], left.cumsum()])
    return Log(columns[1][:done], columns[2][:done] if timed else None, after, [], [], counts)


def _by_block(columns: list[np.ndarray], starts: np.ndarray, firsts: np.ndarray, found: _Columns) -> list[np.ndarray]:
    """New columns in which the rows of each block of users are adjacent, in file order."""
    folder = found.paths["users"].parent
    out = [np.memmap(folder / f"{n}-in-blocks", k, "w+", shape=(found.rows,)) for n, k in COLUMNS.items()]
    ends = starts[firsts].copy()  # of what each block has by now
    for start in range(0, found.rows, ROWS):
        parts = [np.array(column[start : start + ROWS]) for column in columns]
        blocks = np.searchsorted(firsts, parts[0], side="right") - 1
        order = np.argsort(blocks, kind="stable")
        sizes = np.bincount(blocks, minlength=len(firsts))
        places = np.split(order, sizes.cumsum()[:-1])
        for block, own in enumerate(places):
            for column, part in zip(out, parts, strict=True):
                column[ends[block] : ends[block] + len(own)] = part[own]
        ends += sizes
    return out


def _one_block(columns: list[np.ndarray], timed: bool, rule: Duplicates, counts: Counter) -> list[np.ndarray]:
    """The rows of some users by user and time; ties are in file order."""
    users, _, times = columns
    order = np.argsort(users, kind="stable")
    if timed:
        one, other = users[order], times[order]
        counts["out of order"] += int(((one[1:] == one[:-1]) & (other[1:] < other[:-1])).sum())
        order = np.lexsort((times, users))  # which is stable
    columns = [column[order] for column in columns]
    kept = _without_duplicates(*columns, timed, rule)
    counts["duplicates"] += int((~kept).sum())
    return [column[kept] for column in columns]


def _without_duplicates(
    users: np.ndarray, items: np.ndarray, times: np.ndarray, timed: bool, rule: Duplicates
) -> np.ndarray:
    """The rows to keep; without times, a duplicate cannot be told from a second interaction."""
    kept = np.ones(len(users), dtype=bool)
    if rule == "keep" or (rule == "exact" and not timed):
        return kept
    if rule == "consecutive":
        kept[1:] = (users[1:] != users[:-1]) | (items[1:] != items[:-1])
        return kept
    keys = [items, users] if rule == "first" else [items, times, users]
    order = np.lexsort(keys)  # stable: of equal ones the first stays
    same = np.all([own[order][1:] == own[order][:-1] for own in keys], axis=0)
    kept[order[1:][same]] = False
    return kept


class Core(NamedTuple):
    """The remaining users and items, and how many interactions each then has."""

    users: np.ndarray
    items: np.ndarray
    user_counts: np.ndarray
    item_counts: np.ndarray

    def inside(self, block: Block, end: float = np.inf) -> np.ndarray:
        """The remaining interactions of a block: of remaining users and items, and before `end`."""
        own = self.users[block.first : block.last][block.users] & self.items[block.items]
        return own if np.isinf(end) else own & (block.times < end)


def core(log: Log, least: int, end: float = np.inf) -> Core:
    """Repeatedly drop users and items with fewer than `least` interactions before `end`."""
    left = Core(*(np.ones(len(names), dtype=bool) for names in (log.user_names, log.item_names)), *[np.zeros(0)] * 2)
    total = -1
    while True:
        users, items = (np.zeros(len(names), np.int64) for names in (log.user_names, log.item_names))
        for block in log.blocks():
            inside = left.inside(block, end)
            users[block.first : block.last] += block.per_user(inside)
            items += np.bincount(block.items[inside], minlength=len(items))
        if int(users.sum()) == total:
            return left._replace(user_counts=users, item_counts=items)
        total = int(users.sum())
        left = Core(left.users & (users >= least), left.items & (items >= least), users, items)


def _codes(
    path: Path,
    config: InteractionsConfig,
    users: dict[str, int],
    items: dict[str, int],
    counts: Counter,
    timed: dict[bool, str],
) -> Iterable[tuple[int, int, float]]:
    has_times: bool | None = None
    for number, (user, item, time, rating) in read_rows(path, config):
        if not (user and item) or not (user + item).isprintable():
            _check_names(user, item, f"{path}, line {number}")
        counts["read"] += 1
        if config.min_rating is not None and _number(rating, path, number) < config.min_rating:
            counts["rated lower"] += 1
            continue
        try:
            when = 0.0 if time is None else parse_time(time)
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error} (data.time sets its column)") from None
        if has_times is None:
            has_times = time is not None
            timed.setdefault(has_times, str(path))
        yield users.setdefault(user, len(users)), items.setdefault(item, len(items)), when


def _check_names(user: str, item: str, where: str) -> None:
    for name, what in ((user, "user"), (item, "item")):
        if not name or len(name.splitlines()) > 1:
            raise ValueError(f"{where}: the {what} is {name!r}; it must be a name without line breaks")


def _number(text: str | None, path: Path, number: int) -> float:
    try:
        return float(text or "")
    except ValueError:
        raise ValueError(f"{path}, line {number}: the rating is {text!r}; it must be a number") from None


def _chunks(rows: Iterable[tuple[int, int, float]]) -> Iterable[tuple[np.ndarray, ...]]:
    """Rows as arrays: a list of them would take ten times the memory."""
    part: list[tuple[int, int, float]] = []
    for row in rows:
        part.append(row)
        if len(part) == CHUNK:
            yield _arrays(part)
            part = []
    if part:
        yield _arrays(part)


def _arrays(part: list[tuple[int, int, float]]) -> tuple[np.ndarray, ...]:
    users, items, times = zip(*part, strict=True)
    return np.array(users, np.int32), np.array(items, np.int32), np.array(times, np.float64)

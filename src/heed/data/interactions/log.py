"""A log in arrays: users and items as numbers, sorted by user and time. What is left out is counted."""

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from heed.data.interactions.config import Duplicates, InteractionsConfig
from heed.data.interactions.files import read_rows
from heed.data.interactions.times import parse_time

CHUNK = 1 << 16


class Log(NamedTuple):
    """Interactions, one a place of the arrays. `times` is None where a log has none: then they are in the order of the files."""

    users: np.ndarray
    items: np.ndarray
    times: np.ndarray | None
    user_names: list[str]
    item_names: list[str]
    counts: Counter

    def take(self, kept: np.ndarray) -> "Log":
        """Some of the interactions, by number or by a mask."""
        times = None if self.times is None else self.times[kept]
        return self._replace(users=self.users[kept], items=self.items[kept], times=times)


def read(config: InteractionsConfig, tell: Callable[[str, int], None] = lambda what, done: None) -> Log:
    """The interactions of all files, in their order."""
    users, items, counts, parts = {}, {}, Counter(), []
    timed: dict[bool, str] = {}
    for path in map(Path, config.interactions):
        for chunk in _chunks(_codes(path, config, users, items, counts, timed)):
            parts.append(chunk)
            tell("reading interactions", counts["read"])
    if len(timed) > 1:
        raise ValueError(f"{timed[True]} has times and {timed[False]} has none: they cannot be brought into one order")
    if not parts:
        raise ValueError(f"{', '.join(config.interactions)}: no interaction is rated {config.min_rating:g} or higher")
    columns = [np.concatenate(own) for own in zip(*parts, strict=True)]
    return Log(columns[0], columns[1], columns[2] if True in timed else None, list(users), list(items), counts)


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
            raise ValueError(f"{path}, line {number}: {error} (data.time names its column)") from None
        if has_times is None:
            has_times = time is not None
            timed.setdefault(has_times, str(path))
        yield users.setdefault(user, len(users)), items.setdefault(item, len(items)), when


def _check_names(user: str, item: str, where: str) -> None:
    for name, what in ((user, "user"), (item, "item")):
        if not name or len(name.splitlines()) > 1:
            raise ValueError(f"{where}: the {what} is {name!r}; it must be a name, without line breaks")


def _number(text: str | None, path: Path, number: int) -> float:
    try:
        return float(text or "")
    except ValueError:
        raise ValueError(f"{path}, line {number}: the rating is {text!r}; it must be a number") from None


def _chunks(rows: Iterable[tuple[int, int, float]]) -> Iterable[tuple[np.ndarray, ...]]:
    """Rows as arrays: a list of all of them would take ten times the memory."""
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


def in_order(log: Log) -> Log:
    """Each user's interactions one after another, by time; of equal times, in the order of the file."""
    order = np.argsort(log.users, kind="stable")
    if log.times is not None:
        users, times = log.users[order], log.times[order]
        log.counts["out of order"] = int(((users[1:] == users[:-1]) & (times[1:] < times[:-1])).sum())
        order = np.lexsort((np.arange(len(log.users)), log.times, log.users))
    return log.take(order)


def without_duplicates(log: Log, rule: Duplicates) -> Log:
    """A sorted log without repeats; without times, an exact repeat cannot be told from a second interaction."""
    if rule == "keep" or (rule == "exact" and log.times is None) or not len(log.users):
        return log
    if rule == "consecutive":
        repeated = (log.users[1:] == log.users[:-1]) & (log.items[1:] == log.items[:-1])
        kept = np.concatenate([[True], ~repeated])
    else:
        keys = [np.arange(len(log.users)), log.items, log.users]
        keys = keys if rule == "first" else [keys[0], log.items, log.times, log.users]
        order = np.lexsort(keys)
        same = np.all([own[order][1:] == own[order][:-1] for own in keys[1:]], axis=0)
        kept = np.ones(len(log.users), dtype=bool)
        kept[order[1:][same]] = False
    log.counts["duplicates"] = int((~kept).sum())
    return log.take(kept)


def core(users: np.ndarray, items: np.ndarray, least: int) -> np.ndarray:
    """Which interactions are left when users and items with fewer than `least` are left out, again and again."""
    kept = np.ones(len(users), dtype=bool)
    while True:
        enough = [np.bincount(own[kept], minlength=int(own.max(initial=-1)) + 1) >= least for own in (users, items)]
        left = kept & enough[0][users] & enough[1][items]
        if left.sum() == kept.sum():
            return kept
        kept = left

"""Training, validation and test split: the last two interactions of each user, or those after a time."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from heed.data.interactions.config import InteractionsConfig
from heed.data.interactions.log import Block, Core, Log, core
from heed.data.interactions.times import parse_time

LEAST = 3  # interactions of a user: one to begin with, one to validate on, one to test on
HELD = ("valid_at", "test_at")


class SplitLog(NamedTuple):
    """Arrays of Histories, with the names of users and items; `limits` are the times of a split by time."""

    users: list[str]
    items: list[str]
    arrays: dict[str, np.ndarray]
    limits: tuple[float, float] | None = None


class Parts(NamedTuple):
    """For a block: interactions that are kept, those to train on, and the held-out ones by user, -1 for none."""

    kept: np.ndarray
    trained: np.ndarray
    held: dict[str, np.ndarray]


Rule = Callable[[Block], Parts]


def split(log: Log, config: InteractionsConfig, folder: Path) -> SplitLog:
    """Split a log without rare users and items; the items of all histories are written to `folder`."""
    if config.split == "time":
        return _by_time(log, config, folder)
    return _leave_one_out(log, config, folder)


def _leave_one_out(log: Log, config: InteractionsConfig, folder: Path) -> SplitLog:
    left = core(log, config.core)
    lengths = left.user_counts
    _count_left_out(log, left, config)
    if not (lengths >= LEAST).any():
        raise ValueError(
            f"no user has {LEAST} interactions, and leave-one-out needs one for validation and one for testing: split "
            "by time instead (data.split), or add interactions"
        )
    log.counts["one interaction"] = int((lengths == 1).sum())
    log.counts["too short to hold out"] = int((lengths == 2).sum())

    def rule(block: Block) -> Parts:
        kept = left.inside(block)
        own = block.per_user(kept)
        rows, ends = np.flatnonzero(kept), own.cumsum()
        held = {}
        for name, back in zip(HELD, (2, 1), strict=True):
            held[name] = np.full(len(own), -1)
            held[name][own >= LEAST] = rows[ends[own >= LEAST] - back]
        return Parts(kept, _without(kept, held), held)

    return _finished(log, left.item_counts > 0, rule, folder)


def _by_time(log: Log, config: InteractionsConfig, folder: Path) -> SplitLog:
    if log.times is None:
        raise ValueError(
            "data.split is 'time', but the log has no times: set data.time to their column, or use 'leave-one-out'"
        )
    begins, ends = _limits(log, config)
    left = core(log, config.core, begins)
    past = sum(int((block.times < begins).sum()) for block in log.blocks())
    inside = int(left.item_counts.sum())
    if not inside:
        raise _nothing_left(log, config, f" of the {past:,} before the time of validation")
    known = left.item_counts > 0

    def rule(block: Block) -> Parts:
        had, held = block.before(known[block.items]), {}
        for name, begin, end in zip(HELD, (begins, ends), (ends, np.inf), strict=True):
            places = np.flatnonzero((block.times >= begin) & (block.times < end) & (had > 0))
            users, first = np.unique(block.users[places], return_index=True)
            held[name] = np.full(block.last - block.first, -1)
            held[name][users] = places[first]
        kept = known[block.items]
        for at in held.values():
            kept[at[at >= 0]] = True
        return Parts(kept, left.inside(block, begins), held)

    _count_held(log, rule, known)
    log.counts["not in the core"] = past - inside
    log.counts["held out"] = len(log) - past
    return _finished(log, known, rule, folder)._replace(limits=(begins, ends))


def _without(kept: np.ndarray, held: dict[str, np.ndarray]) -> np.ndarray:
    trained = kept.copy()
    for at in held.values():
        trained[at[at >= 0]] = False
    return trained


def _count_held(log: Log, rule: Rule, known: np.ndarray) -> None:
    """How many users have items to predict after the split, and how many of those are new."""
    users, new = dict.fromkeys(HELD, 0), dict.fromkeys(HELD, 0)
    for block in log.blocks():
        for name, at in rule(block).held.items():
            users[name] += int((at >= 0).sum())
            new[name] += int((~known[block.items[at[at >= 0]]]).sum())
    for name in HELD:
        if not users[name]:
            raise ValueError(
                "no user has interactions both before and after the time of "
                f"{'validation' if name == 'valid_at' else 'the test'}: "
                "choose other times (data.valid_from and data.test_from, or data.valid_share and data.test_share)"
            )
        log.counts[f"new items {name}"] = new[name]


def _limits(log: Log, config: InteractionsConfig) -> tuple[float, float]:
    """The times at which validation and testing start."""
    extremes = [(block.times.min(), block.times.max()) for block in log.blocks()]
    least, most = float(min(low for low, _ in extremes)), float(max(high for _, high in extremes))
    if config.valid_from is not None and config.test_from is not None:
        begins, ends = parse_time(config.valid_from), parse_time(config.test_from)
    else:
        shares = (1 - config.valid_share - config.test_share, 1 - config.test_share)
        begins, ends = (ranked_time(log, int(np.ceil(share * (len(log) - 1)))) for share in shares)
    if begins <= least or ends <= begins or ends > most:
        raise ValueError(
            f"the times of the log, from {least:.0f} to {most:.0f}, cannot be split at {begins:.0f} and {ends:.0f}: "
            "choose data.valid_from and data.test_from between them, or use 'leave-one-out'"
        )
    return begins, ends


def ranked_time(log: Log, rank: int) -> float:
    """The time of this rank, from 0: found by counting leading digits, so that only one block is in memory."""
    prefix = 0
    for shift in (48, 32, 16, 0):
        counts = np.zeros(1 << 16, np.int64)
        for keys in _time_keys(log):
            own = keys if shift == 48 else keys[keys >> np.uint64(shift + 16) == prefix]
            digits = (own >> np.uint64(shift)) & np.uint64(0xFFFF)
            counts += np.bincount(digits.astype(np.int64), minlength=len(counts))
        digit = int(np.searchsorted(counts.cumsum(), rank, side="right"))
        rank -= int(counts[:digit].sum())
        prefix = prefix << 16 | digit
    bits = prefix ^ (1 << 63) if prefix >> 63 else prefix ^ (1 << 64) - 1
    return float(np.array(bits, np.uint64).view(np.float64))


def _time_keys(log: Log) -> Iterator[np.ndarray]:
    """Integers in the order of the times."""
    for block in log.blocks():
        bits = (block.times + 0.0).view(np.uint64)  # there is one zero
        top = np.uint64(1 << 63)
        yield np.where(bits & top, ~bits, bits | top)


def _count_left_out(log: Log, left: Core, config: InteractionsConfig) -> None:
    inside = int(left.item_counts.sum())
    if not inside:
        raise _nothing_left(log, config)
    log.counts["not in the core"] = len(log) - inside
    log.counts["users left out"] = int((np.diff(log.starts) > 0).sum() - (left.user_counts > 0).sum())
    log.counts["items left out"] = len(log.item_names) - int((left.item_counts > 0).sum())


def _nothing_left(log: Log, config: InteractionsConfig, which: str = "") -> ValueError:
    return ValueError(
        f"no interaction is left to train on{which}: of {len(log):,}, none has a user and an item with {config.core} "
        "each "
        "(data.core): set it lower"
    )


def _finished(log: Log, known: np.ndarray, rule: Rule, folder: Path) -> SplitLog:
    """Renumber users and items, frequent items first. Items that are not `known` are kept only as targets."""
    counts, size = np.zeros(len(known), np.int64), 0
    for block in log.blocks():
        parts = rule(block)
        counts += np.bincount(block.items[parts.trained], minlength=len(known))
        size += int(parts.kept.sum())
    order = np.argsort(np.where(known, -counts - 1, 0), kind="stable")[: known.sum()]
    numbers = np.full(len(known), len(order), dtype=np.uint32)  # beyond the last: not known
    numbers[order] = np.arange(len(order))
    items, done = np.memmap(folder / "items-of-histories", np.uint32, "w+", shape=(size,)), 0
    users, rows = [], {name: [] for name in ("lengths", "train_end", *HELD)}
    for block in log.blocks():
        parts = rule(block)
        own = numbers[block.items[parts.kept]]
        items[done : done + len(own)] = own
        done += len(own)
        lengths, before = block.per_user(parts.kept), block.before(parts.kept)
        there = lengths > 0
        users += [log.user_names[block.first + i] for i in np.flatnonzero(there)]
        found = {"lengths": lengths, "train_end": block.per_user(parts.trained)}
        found |= {name: np.where(at < 0, -1, before[at]) for name, at in parts.held.items()}
        for name, part in found.items():
            rows[name].append(part[there])
    joined = {name: np.concatenate(own) for name, own in rows.items()}
    arrays = {"items": items, "offsets": np.concatenate([[0], joined.pop("lengths").cumsum()]).astype(np.int64)}
    arrays |= {name: own.astype(np.int32) for name, own in joined.items()}
    return SplitLog(users, [log.item_names[i] for i in order], arrays)

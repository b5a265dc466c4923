"""What is trained on, validated on and tested on: the last two of each user, or what comes after a time."""

from typing import NamedTuple

import numpy as np

from heed.data.interactions.config import InteractionsConfig
from heed.data.interactions.log import Log, core
from heed.data.interactions.times import parse_time

LEAST = 3  # interactions of a user: one to begin with, one to validate on, one to test on


class SplitLog(NamedTuple):
    """Arrays of Histories, with the names of their users and items; `limits` are the times of a split by time."""

    users: list[str]
    items: list[str]
    arrays: dict[str, np.ndarray]
    limits: tuple[float, float] | None = None


def split(log: Log, config: InteractionsConfig) -> SplitLog:
    """A sorted log, without rare users and items, with what is held out of it."""
    return _by_time(log, config) if config.split == "time" else _leave_one_out(log, config)


def _leave_one_out(log: Log, config: InteractionsConfig) -> SplitLog:
    log = _counted(log, core(log.users, log.items, config.core), config)
    lengths = np.bincount(log.users, minlength=len(log.user_names))
    enough = lengths >= LEAST
    if not enough.any():
        raise ValueError(
            f"not one user has {LEAST} interactions, of which leave-one-out validates on one and tests on one: split by time instead "
            "(data.split), or add interactions"
        )
    log.counts["one interaction"] = int((lengths == 1).sum())
    log.counts["too short to hold out"] = int((lengths == 2).sum())
    ends = lengths.cumsum()
    held = {name: np.where(enough, ends - back, -1) for name, back in (("valid_at", 2), ("test_at", 1))}
    trained = np.ones(len(log.items), dtype=bool)
    trained[np.concatenate([at[enough] for at in held.values()])] = False
    return _finished(log, np.ones(len(log.item_names), dtype=bool), trained, held)


def _by_time(log: Log, config: InteractionsConfig) -> SplitLog:
    if log.times is None:
        raise ValueError(
            "data.split is 'time', but the log has no times: name their column as data.time, or leave one out"
        )
    begins, ends = _limits(log.times, config)
    past = log.times < begins
    inside = np.zeros(len(past), dtype=bool)
    inside[past] = core(log.users[past], log.items[past], config.core)
    if not inside.any():
        raise _nothing_left(log, config, f" of the {past.sum():,} before the time of validation")
    known = np.zeros(len(log.item_names), dtype=bool)
    known[log.items[inside]] = True
    before, held = _known_before(log, known[log.items]), {}
    for name, chosen in (("valid_at", ~past & (log.times < ends)), ("test_at", log.times >= ends)):
        places = np.flatnonzero(chosen & (before > 0))
        users, first = np.unique(log.users[places], return_index=True)
        held[name] = np.full(len(log.user_names), -1)
        held[name][users] = places[first]
        if not len(users):
            raise ValueError(
                f"not one user has interactions both before and after the time of {'validation' if name == 'valid_at' else 'the test'}: "
                "choose other times (data.valid_from and data.test_from, or data.valid_share and data.test_share)"
            )
        log.counts[f"new items {name}"] = int((~known[log.items[places[first]]]).sum())
    log.counts["not in the core"] = int((past & ~inside).sum())
    log.counts["held out"] = int((~past).sum())
    return _finished(log, known, inside, held)._replace(limits=(begins, ends))


def _limits(times: np.ndarray, config: InteractionsConfig) -> tuple[float, float]:
    """The times from which on interactions are validated on and tested on."""
    if config.valid_from is not None and config.test_from is not None:
        begins, ends = parse_time(config.valid_from), parse_time(config.test_from)
    else:
        shares = (1 - config.valid_share - config.test_share, 1 - config.test_share)
        begins, ends = (float(np.quantile(times, share, method="higher")) for share in shares)
    if begins <= times.min() or ends <= begins or ends > times.max():
        raise ValueError(
            f"the times of the log, from {times.min():.0f} to {times.max():.0f}, cannot be split at {begins:.0f} and {ends:.0f}: choose "
            "data.valid_from and data.test_from between them, or leave one out"
        )
    return begins, ends


def _known_before(log: Log, known: np.ndarray) -> np.ndarray:
    """For each interaction, how many items that are known the user had before."""
    sums = np.concatenate([[0], known.cumsum()])
    first = np.searchsorted(log.users, np.arange(len(log.user_names)))
    return sums[:-1] - sums[first][log.users]


def _counted(log: Log, kept: np.ndarray, config: InteractionsConfig) -> Log:
    if not kept.any():
        raise _nothing_left(log, config)
    before = [len(np.unique(own)) for own in (log.users, log.items)]
    small = log.take(kept)
    log.counts["not in the core"] = int((~kept).sum())
    log.counts["users left out"], log.counts["items left out"] = (
        all_of - len(np.unique(own)) for all_of, own in zip(before, (small.users, small.items), strict=True)
    )
    return small


def _nothing_left(log: Log, config: InteractionsConfig, which: str = "") -> ValueError:
    return ValueError(
        f"no interaction is left to train on{which}: of {len(log.users):,}, none is of a user and an item with {config.core} each "
        "(data.core): set it lower"
    )


def _finished(log: Log, known: np.ndarray, trained: np.ndarray, held: dict[str, np.ndarray]) -> SplitLog:
    """Users and items numbered anew, frequent items first. Of items that are not `known`, only what is to be predicted is kept."""
    counts = np.bincount(log.items[trained], minlength=len(known)) + 1
    order = np.argsort(np.where(known, -counts, 0), kind="stable")[: known.sum()]
    numbers = np.full(len(known), len(order), dtype=np.uint32)  # beyond the last: not known
    numbers[order] = np.arange(len(order))
    kept = known[log.items]
    for at in held.values():
        kept[at[at >= 0]] = True
    before, size = np.concatenate([[0], kept.cumsum()]), len(log.user_names)
    lengths, learned = (np.bincount(log.users[own], minlength=size) for own in (kept, trained))
    starts = np.concatenate([[0], lengths.cumsum()])
    users = np.flatnonzero(lengths)
    arrays = {
        "items": numbers[log.items[kept]],
        "offsets": np.concatenate([[0], lengths[users].cumsum()]).astype(np.int64),
        "train_end": learned[users].astype(np.int32),
        **{name: np.where(at < 0, -1, before[at] - starts[:-1])[users].astype(np.int32) for name, at in held.items()},
    }
    return SplitLog([log.user_names[i] for i in users], [log.item_names[i] for i in order], arrays)

"""A log to evaluate a recommender on: the last item of each user is predicted from those before it."""

from pathlib import Path
from typing import Any

import numpy as np

from heed.data.interactions.config import InteractionsConfig
from heed.data.interactions.log import Log, open_log
from heed.vocabularies.histories import Held
from heed.vocabularies.items import Items
from heed.vocabularies.ragged import RaggedRows


def read_held(path: Path, items: Items, columns: dict[str, Any]) -> Held:
    """The users of a log with at least two interactions; items unknown to the model are removed from histories."""
    config = InteractionsConfig([str(path)], core=0, **columns)
    with open_log(config) as log:
        return _held(log, path, items)


def _held(log: Log, path: Path, items: Items) -> Held:
    numbers = np.array([items.ids.get(name, -1) for name in log.item_names], dtype=np.int64)
    if (numbers < 0).all():
        raise ValueError(
            f"{path} and the model have no items in common: of the log's {len(numbers):,} items, such as "
            f"{log.item_names[0]}, none is one of "
            f"the model's {len(items):,}, such as {items.names[0]}"
        )
    ids, lengths, ends = numbers[log.items], np.diff(log.starts), log.starts[1:]
    users = np.flatnonzero(lengths >= 2)
    if not len(users):
        raise ValueError(f"{path}: no user has two interactions, the last of which would be the target")
    inside = ids >= 0
    inside[ends - 1] = False
    of = np.repeat(np.arange(len(lengths)), lengths)
    inside &= lengths[of] >= 2
    kept = np.bincount(of[inside], minlength=len(lengths))[users]
    return Held(users, RaggedRows(ids[inside], kept), ids[ends[users] - 1])

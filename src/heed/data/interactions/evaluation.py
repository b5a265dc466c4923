"""A log to evaluate a recommender on: the last item of each user is to be found from those before it."""

from pathlib import Path
from typing import Any

import numpy as np

from heed.data.interactions import log as logs
from heed.data.interactions.config import InteractionsConfig
from heed.vocabularies.histories import Held
from heed.vocabularies.items import Items
from heed.vocabularies.ragged import RaggedRows


def read_held(path: Path, items: Items, columns: dict[str, Any]) -> Held:
    """The users of a log with two interactions or more; items that the model does not know are left out of histories."""
    config = InteractionsConfig([str(path)], core=0, **columns)
    log = logs.without_duplicates(logs.in_order(logs.read(config)), config.duplicates)
    numbers = np.array([items.ids.get(name, -1) for name in log.item_names], dtype=np.int64)
    if (numbers < 0).all():
        raise ValueError(
            f"{path} and the model have no items in common: of its {len(numbers):,} items, such as {log.item_names[0]}, none is one of "
            f"the model's {len(items):,}, such as {items.names[0]}"
        )
    ids, lengths = numbers[log.items], np.bincount(log.users)
    ends = lengths.cumsum()
    users = np.flatnonzero(lengths >= 2)
    if not len(users):
        raise ValueError(f"{path}: not one user has two interactions, of which the last is to be found")
    inside = ids >= 0
    inside[ends - 1] = False
    inside &= lengths[log.users] >= 2
    kept = np.bincount(log.users[inside], minlength=len(lengths))[users]
    return Held(users, RaggedRows(ids[inside], kept), ids[ends[users] - 1])

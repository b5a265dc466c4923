"""Recommendation: histories in, next items out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heed.data.interactions.augment import take
from heed.data.packing import offsets_of, to_device
from heed.models.abilities import RanksItems
from heed.models.outputs import check_outputs
from heed.models.package import Package
from heed.products.faiss_search import ItemIndex
from heed.products.history_trace import HistoryTrace, trace_history
from heed.products.item_search import ItemMatrix, best_items
from heed.products.product import Product, single
from heed.vocabularies.histories import Histories
from heed.vocabularies.items import Items
from heed.vocabularies.ragged import RaggedRows, as_ragged, slice_indices

USERS = 1024  # histories that are scored at one time


@dataclass(frozen=True)
class Recommendation:
    """An item and its score, higher if it is more likely to come next; scores of one model are comparable."""

    item: str
    score: float


class Recommender(Product):
    """A sequential recommender, with the names of its items and the histories of its training users."""

    noun, verbs, reads = "a recommender", ("recommend", "evaluate"), ("items",)

    def __init__(
        self, model: Any, items: Items, histories: Histories | None = None, facts: dict[str, Any] | None = None
    ):
        self.model, self.items, self.histories, self.facts = model, items, histories, facts or {}
        self.index: ItemIndex | None = None

    @classmethod
    def open(cls, packages: Sequence[Package], names: Sequence[str], **options: Any) -> "Recommender":
        own = single(packages, names, cls.noun)
        if not isinstance(own.model, RanksItems):
            raise ValueError(f"{names[0]} is not a recommender: it cannot recommend items")
        return cls(own.model, own.processors["items"], own.processors.get("histories"), own.facts)

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    def use(self, search: Literal["exact", "faiss"]) -> None:
        """How the best items are found: exactly, or with a faiss index, which is built now."""
        self.index = ItemIndex(ItemMatrix(*self.model.item_weights())) if search == "faiss" else None

    # what a user asks

    def recommend(
        self,
        histories: Sequence[Sequence[str]],
        count: int = 10,
        *,
        exclude_seen: bool = False,
        unknown: str = "refuse",
    ) -> list[list[Recommendation]]:
        """The `count` best items after each history, best first. `unknown` items are refused or, with "leave out",
        skipped.
        """
        if unknown not in ("refuse", "leave out"):
            raise ValueError(f"unknown is {unknown!r}; it must be 'refuse' or 'leave out'")
        read = self.items.encode if unknown == "refuse" else self.items.known
        return self._named([read(history) for history in histories], count, exclude_seen)

    def recommend_users(
        self, users: Sequence[str], count: int = 10, *, exclude_seen: bool = False
    ) -> list[list[Recommendation]]:
        """The same for users of the training log."""
        return self._named([self.history(user) for user in users], count, exclude_seen)

    def history(self, user: str) -> list[int]:
        if self.histories is None:
            raise ValueError("the model folder has no user histories (task.histories): give items instead")
        return self.histories.history(user)

    @property
    def longest(self) -> int:
        """How many of the last items of a history are read."""
        return self.model.config.max_length - bool(getattr(self.model, "fills_masks", False))

    def trace(self, history: Sequence[int], items: Sequence[int]) -> HistoryTrace:
        """Explain the recommendations of some items after a history, by ids."""
        return trace_history(self.model, self.states, history, items, self.longest)

    def _named(self, rows: list[list[int]], count: int, exclude_seen: bool) -> list[list[Recommendation]]:
        if count < 1:
            raise ValueError(f"{count} items requested; it must be at least 1")
        for number, row in enumerate(rows, 1):
            if not row:
                raise ValueError(f"history {number} has no items that the model knows")
        return [
            [Recommendation(self.items.names[i], float(s)) for i, s in zip(*own, strict=True) if s > -np.inf]
            for ids, scores in self.best(as_ragged(rows), count, exclude_seen)
            for own in zip(ids.tolist(), scores.tolist(), strict=True)
        ]

    # how it is computed

    def best(
        self, rows: RaggedRows, count: int, exclude_seen: bool = False
    ) -> Iterator[tuple[Int[np.ndarray, "n k"], Float[np.ndarray, "n k"]]]:
        """The best items after each history and their scores, exactly; many histories are processed in parts."""
        for start in range(0, len(rows), USERS):
            own = take(rows, np.arange(start, min(start + USERS, len(rows))))
            yield self._best(own, min(count, len(self.items)), exclude_seen)

    @torch.inference_mode()
    def _best(self, rows: RaggedRows, count: int, exclude_seen: bool) -> tuple[np.ndarray, np.ndarray]:
        states, matrix = self.states(rows), ItemMatrix(*self.model.item_weights())
        if self.index is not None:
            scores, ids = self.index.best(states, count, rows if exclude_seen else None)
            return ids.numpy(), scores.numpy()
        with torch.autocast(states.device.type, enabled=False):  # rounded scores would have many ties
            scores, ids = best_items(states, matrix, count, rows if exclude_seen else None)
        return ids.cpu().numpy(), scores.cpu().numpy()

    @torch.inference_mode()
    def scores(self, rows: RaggedRows) -> Float[Tensor, "n items"]:
        """The scores of all items after each history."""
        states = self.states(rows)
        with torch.autocast(states.device.type, enabled=False):
            return torch.nn.functional.linear(states, *self.model.item_weights())

    @torch.inference_mode()
    def states(self, rows: RaggedRows) -> Float[Tensor, "n dim"]:
        """The state after each history, from the last items that fit the model."""
        masked = bool(getattr(self.model, "fills_masks", False))
        lengths = np.minimum(rows.lengths, self.longest)
        ids = rows.ids[slice_indices(rows.ends - lengths, lengths)].astype(np.int64)
        if masked:  # what comes next is a masked item at the end
            ids = np.insert(ids, lengths.cumsum(), self.model.mask)
            lengths = lengths + 1
        offsets = to_device(offsets_of(lengths), self.device)
        states = self.model.item_states(torch.from_numpy(ids)[None].to(self.device), offsets)
        found = states[0, offsets.starts[1:].long() - 1].to(self.model.item_weights()[0].dtype)
        check_outputs(found)
        return found

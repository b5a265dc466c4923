"""Served recommenders. Histories of all requests share batches."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from heed.products.recommender import Recommender
from heed.service.http.asked_model import AskedModel
from heed.service.http.queue import BatchWorker, Ticket, wait_for_results
from heed.vocabularies.ragged import as_ragged

SEARCHES = 16  # whose results are kept, for their next pages


@dataclass(frozen=True)
class ItemsAfter:
    """A history by ids, how many items to recommend after it, and whether an explanation is requested."""

    history: tuple[int, ...]
    count: int
    explain: bool = False


class ServedRecommender(AskedModel):
    """One recommender and the worker that runs it."""

    attends = False  # it has no texts to look at: what a recommendation goes by is said with it

    def __init__(self, name: str, product: Recommender, worker: BatchWorker | None = None):
        super().__init__(name, product, worker)
        self.search = lru_cache(SEARCHES)(product.items.search)

    def warm_up(self) -> None:
        """Build now what the first call would build."""
        product = self.product
        self.run(("recommend", False), [ItemsAfter((0,), 1)])
        product.items.search(product.items.names[0])

    def history(self, user: str | None, items: Sequence[str], leave_out: bool) -> list[int]:
        """The ids of a user's history, or of the given items. No similar items are looked for: others would wait."""
        if user is not None:
            return self.product.history(user)
        return self.product.items.known(items) if leave_out else self.product.items.encode(items, hints=False)

    def recommend(self, ticket: Ticket, asked: Sequence[ItemsAfter], exclude_seen: bool) -> list[dict[str, Any]]:
        """Recommendations after each history. Those with and without `exclude_seen` do not share a batch."""
        futures = []
        for one in asked:
            size = min(len(one.history), self.product.longest)
            key = ("explain" if one.explain else "recommend", exclude_seen)
            futures += self.worker.submit(ticket, key, [one], [size * (1 + size) if one.explain else size])
        return wait_for_results(futures, ticket)

    def run(self, key: tuple, items: list[ItemsAfter]) -> list[dict[str, Any]]:
        """A batch, in the worker's thread: as many items are found for each as the largest request needs."""
        product, rows = self.product, as_ragged([one.history for one in items])
        found = product.best(rows, max(one.count for one in items), exclude_seen=key[1])
        best = [own for ids, scores in found for own in zip(ids.tolist(), scores.tolist(), strict=True)]
        return [self._result(one, *own) for one, own in zip(items, best, strict=True)]

    def _result(self, asked: ItemsAfter, ids: list[int], scores: list[float]) -> dict[str, Any]:
        names = self.product.items.names
        pairs = [(i, score) for i, score in zip(ids, scores, strict=True) if score > float("-inf")][: asked.count]
        items = [{"item": names[i], "score": score} for i, score in pairs]
        result: dict[str, Any] = {"history": [names[i] for i in asked.history], "items": items}
        if asked.explain:
            trace = self.product.trace(asked.history, [i for i, _ in pairs])
            result["attention"] = trace.attention.mean(dim=1).tolist()
            for one, influence in zip(items, trace.influence.tolist(), strict=True):
                one["influence"] = influence
        return result

    def facts(self) -> dict[str, Any]:
        """Its entry in /v1/models."""
        histories = self.product.histories
        return {**super().facts(), "items": len(self.product.items), "users": len(histories) if histories else 0}

"""Ranking metrics of recommenders: the rank of the held-out item among all items, or among sampled ones."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heed.data.interactions.augment import take
from heed.vocabularies.histories import Held
from heed.vocabularies.ragged import RaggedRows

Scorer = Callable[[RaggedRows], Float[Tensor, "n items"]]  # from histories to the scores of all items
MAX_SCORES = {"cuda": 2**29, "cpu": 2**25}  # in memory at one time
K = (5, 10, 20)


class Ranking(NamedTuple):
    """For each user the rank of the target item (infinite if unknown), the best items, and -log p of the target."""

    ranks: Float[np.ndarray, " n"]
    top: Int[np.ndarray, "n k"]
    nll: Float[np.ndarray, " n"]


class Setting(NamedTuple):
    """How ranks are computed, as stated with every score. `negatives`: 0 ranks all items, otherwise that many sampled
    ones.
    """

    exclude_seen: bool = True
    negatives: int = 0
    seed: int = 0

    def describe(self, items: int) -> str:
        which = f"{self.negatives} sampled negatives" if self.negatives else f"full ranking of {items:,} items"
        return f"{which}, items of the history {'excluded' if self.exclude_seen else 'included'}, ties count against the target"


FULL = Setting()


@torch.inference_mode()
def rank(
    scorer: Scorer, held: Held, items: int, setting: Setting = FULL, top: int = 10, device: str = "cpu"
) -> Ranking:
    """The ranks of the target items. Users with histories of similar length are scored together."""
    size = max(1, MAX_SCORES.get(device, MAX_SCORES["cpu"]) // items)
    order = np.argsort(-held.histories.lengths, kind="stable")
    ranks, nll = np.full(len(order), np.inf), np.full(len(order), np.nan)
    best = np.full((len(order), min(top, items)), -1, dtype=np.int64)
    order = order[: np.count_nonzero(held.histories.lengths)]  # without a history there is nothing to go by
    for start in range(0, len(order), size):
        own = order[start : start + size]
        histories, targets = take(held.histories, own), torch.from_numpy(held.targets[own])
        scores = scorer(histories)
        known = targets >= 0
        at = targets.clamp(min=0).to(scores.device)[:, None]
        score = scores.gather(1, at)
        nll[own] = torch.where(known, (scores.logsumexp(1) - score[:, 0]).cpu(), torch.nan).numpy()
        if setting.exclude_seen:
            scores = without_seen(scores, histories)
        best[own] = scores.topk(best.shape[1], dim=1).indices.cpu().numpy()
        others = scores.scatter(1, at, -torch.inf)  # the item itself is always among the candidates
        if setting.negatives:
            drawn = draw_negatives(held.users[own], held.targets[own], histories, items, setting)
            others = others.gather(1, torch.from_numpy(drawn).to(scores.device))
        found = 1 + (others >= score).sum(dim=1).cpu()
        ranks[own] = torch.where(known, found.double(), torch.inf).numpy()
    return Ranking(ranks, best, nll)


def without_seen(scores: Float[Tensor, "n items"], histories: RaggedRows) -> Float[Tensor, "n items"]:
    """Scores with the items of each history set to -infinity."""
    rows = np.repeat(np.arange(len(histories)), histories.lengths)
    places = [torch.from_numpy(part.astype(np.int64)).to(scores.device) for part in (rows, histories.ids)]
    return scores.index_put((places[0], places[1]), scores.new_tensor(-torch.inf))


def draw_negatives(
    users: np.ndarray, targets: np.ndarray, histories: RaggedRows, items: int, setting: Setting
) -> Int[np.ndarray, "n k"]:
    """For each user, items that are neither in the history nor the target; independent of the model and the batch."""
    found = np.zeros((len(users), setting.negatives), dtype=np.int64)
    for row, (user, target) in enumerate(zip(users.tolist(), targets.tolist(), strict=True)):
        random, seen = np.random.default_rng([setting.seed, user]), {*histories[row].tolist(), target}
        if items - len(seen) < setting.negatives:
            raise ValueError(
                f"{setting.negatives} sampled negatives requested, but of {items:,} items only {items - len(seen):,} "
                "are unseen: request fewer, or rank all items"
            )
        drawn: list[int] = []
        while len(drawn) < setting.negatives:
            for item in random.integers(0, items, 2 * setting.negatives).tolist():
                if item not in seen:
                    seen.add(item)
                    drawn.append(item)
        found[row] = drawn[: setting.negatives]
    return found


def contributions(ranks: Float[np.ndarray, " n"], ks: Sequence[int] = K) -> dict[str, Float[np.ndarray, " n"]]:
    """Each user's contribution to each score, which is their mean."""
    found = {f"hr@{k}": (ranks <= k).astype(float) for k in ks}
    found |= {f"ndcg@{k}": np.where(ranks <= k, 1 / np.log2(ranks + 1), 0.0) for k in ks}
    return {**found, "mrr": 1 / ranks}


def scores(ranks: Float[np.ndarray, " n"], ks: Sequence[int] = K) -> dict[str, float]:
    """HR@k: how often the target is among the first k; NDCG@k: 1 / log2(1 + rank) if it is; MRR: 1 / rank. Times
    100.
    """
    return {name: 100 * float(own.mean()) if len(own) else 0.0 for name, own in contributions(ranks, ks).items()}


def coverage(top: Int[np.ndarray, "n k"], items: int) -> float:
    """Coverage: the share of all items recommended to anyone, in per cent."""
    return 100 * len(np.unique(top[top >= 0])) / items


def popularity_bias(top: Int[np.ndarray, "n k"], histories: RaggedRows, counts: Int[np.ndarray, " items"]) -> float:
    """The mean training frequency of recommended items, relative to that of the items in the histories."""
    usual = counts[histories.ids].mean() if len(histories.ids) else 0.0
    return float(counts[top[top >= 0]].mean() / usual) if usual and (top >= 0).any() else 0.0

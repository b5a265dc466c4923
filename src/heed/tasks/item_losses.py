"""The objectives of recommendation as parts: what a state is to say of the item that comes next, and of others."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heed.data.interactions.batches import ItemBatch, ItemViews
from heed.models.abilities import RanksItems
from heed.tasks.contrastive_loss import in_batch_nll
from heed.training.loss import Loss, Part, chunked_cross_entropy

ROUNDS = 4  # of drawing anew what is no negative; what is left after that does not count


class Predictions(NamedTuple):
    """States at which items are predicted, the items, the matrix and the bias of all items, and what each history has seen."""

    states: Float[Tensor, "n dim"]
    expected: Int[Tensor, " n"]  # -1 at padding, which does not count
    weight: Float[Tensor, "items dim"]
    bias: Float[Tensor, " items"] | None
    history: Int[Tensor, " n"]  # the number of the history of each state
    seen: Int[Tensor, "2 m"]  # the number of a history, and an item of it

    def scores(self, items: Int[Tensor, "n k"]) -> Float[Tensor, "n k"]:
        """The scores of some items at each state; at padding, of any."""
        items = items.clamp(min=0)
        found = exact(torch.einsum("nd,nkd->nk", self.states, F.embedding(items, self.weight)))
        return found if self.bias is None else found + self.bias[items]


def exact(x: Tensor) -> Tensor:
    """In single precision at least: sums of many terms are not rounded to 8 bits."""
    return x.float() if x.dtype.itemsize < 4 else x


ItemLoss = Callable[[Predictions], Tensor]  # the sum over all states


def seen_keys(given: Predictions) -> Int[Tensor, " m"]:
    """A number for each item of each history, in order."""
    return (given.seen[0] * len(given.weight) + given.seen[1]).sort().values


def is_seen(given: Predictions, items: Int[Tensor, "n k"], keys: Int[Tensor, " m"]) -> Bool[Tensor, "n k"]:
    """Which items the history of their row has, by the keys of all that is seen."""
    asked = given.history[:, None] * len(given.weight) + items
    return keys[torch.searchsorted(keys, asked).clamp(max=len(keys) - 1)] == asked


def unseen(given: Predictions, count: int) -> tuple[Int[Tensor, "n k"], Bool[Tensor, "n k"]]:
    """Items drawn evenly among those that a history does not have, and which of them are such: in a small log a draw may fail."""
    shape, keys = (len(given.states), count), seen_keys(given)
    drawn = torch.randint(len(given.weight), shape, device=given.states.device)
    wrong = is_seen(given, drawn, keys)
    for _ in range(ROUNDS):
        drawn = torch.where(wrong, torch.randint(len(given.weight), shape, device=drawn.device), drawn)
        wrong = is_seen(given, drawn, keys)
    return drawn, ~wrong


@dataclass(frozen=True)
class BinaryCrossEntropy:
    """The next item against items drawn at random: the paper's. `calibration` above 0 makes it gBCE (Petrov and Macdonald, 2023)."""

    negatives: int = 1
    calibration: float = 0.0

    def power(self, items: int) -> float:
        """The exponent of the probability of the next item: 1, or what corrects for the share of negatives that are drawn."""
        share = min(1.0, self.negatives / max(1, items - 1))
        return share * (self.calibration * (1 - 1 / share) + 1 / share)

    def __call__(self, given: Predictions) -> Tensor:
        drawn, counts = unseen(given, self.negatives)
        found = given.scores(torch.cat([given.expected[:, None], drawn], dim=1))  # at once: one gradient of the matrix
        real = given.expected >= 0
        positive, negative = F.softplus(-found[:, 0]) * real, F.softplus(found[:, 1:]) * (counts & real[:, None])
        return self.power(len(given.weight)) * positive.sum() + negative.sum()


@dataclass
class SampledSoftmax:
    """Cross entropy over items drawn for the whole batch by `draws`, which sums to 1; scores are corrected by log q (Bengio and
    Senécal, 2008), so that with more of them it becomes that over all items.
    """

    negatives: int
    draws: Float[Tensor, " items"]

    def __call__(self, given: Predictions) -> Tensor:
        self.draws = self.draws.to(given.states.device)
        drawn = torch.multinomial(self.draws, self.negatives, replacement=True)
        return self.over(given, drawn, self.negatives * self.draws)

    @staticmethod
    def over(given: Predictions, drawn: Int[Tensor, " k"], times: Float[Tensor, " items"]) -> Tensor:
        """The loss with these negatives; `times` is how often each item is expected among them."""
        positive = given.scores(given.expected[:, None])
        bias = None if given.bias is None else given.bias[drawn]
        negative = exact(F.linear(given.states, given.weight[drawn], bias))
        negative = negative - times[drawn].log().to(negative.dtype)
        negative = negative.masked_fill(drawn == given.expected[:, None], -torch.inf)
        found = torch.cat([positive, negative], dim=1).log_softmax(dim=1)[:, 0]
        return -(found * (given.expected >= 0)).sum()


@dataclass(frozen=True)
class FullCrossEntropy:
    """Cross entropy over all items, in chunks: the logits of a batch never exist at once."""

    smoothing: float = 0.0

    def __call__(self, given: Predictions) -> Tensor:
        return chunked_cross_entropy(given.states, given.weight, given.bias, given.expected, self.smoothing)[0]


@dataclass(frozen=True)
class ContrastiveViews:
    """Of all views of a batch, which is the other one of the same history (CL4SRec; NT-Xent, Chen et al., 2020)?"""

    weight: float
    temperature: float

    def __call__(self, model: RanksItems, views: ItemViews) -> Part:
        states = model.item_states(views.items, views.offsets)[0, views.last]
        with torch.autocast(states.device.type, enabled=False):
            return Part(self.of_vectors(exact(states)), len(views.last))

    def of_vectors(self, vectors: Float[Tensor, "all dim"]) -> Float[Tensor, ""]:
        """The sum over all views; the first half are one view of each history, the second half the other."""
        half = len(vectors) // 2
        others = torch.cat([vectors[half:], vectors[:half]])
        itself = torch.eye(len(vectors), dtype=torch.bool, device=vectors.device).roll(half, dims=1)
        return in_batch_nll(vectors, others, itself, 1 / self.temperature)


class RecommendationLoss:
    """What is predicted at each place of a batch, and with `contrastive`, that two views of a history are alike."""

    def __init__(self, items: ItemLoss, contrastive: ContrastiveViews | None = None):
        self.items, self.contrastive = items, contrastive
        self.parts = () if contrastive is None else ("contrastive",)

    def __call__(self, model: RanksItems, batch: ItemBatch) -> Loss:
        states = model.item_states(batch.items, batch.offsets)[0, batch.places]
        if not len(states):  # a process without a share of a batch
            return Loss(states.sum(), states.sum().detach(), 0)
        weight, bias = model.item_weights()
        history = torch.bucketize(batch.places, batch.offsets.starts[1:].to(batch.places.dtype), right=True)
        given = Predictions(states, batch.expected, weight, bias, history, batch.seen)
        nll = self.items(given)
        if self.contrastive is None:
            return Loss(nll, nll.detach(), batch.count)
        part = self.contrastive(model, batch.views)
        weight = self.contrastive.weight * batch.count / part.count  # both are means per prediction then
        parts = {"contrastive": Part(part.total.detach(), part.count)}
        return Loss(nll + weight * part.total, nll.detach(), batch.count, parts)

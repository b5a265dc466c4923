"""Recommendation: predict which item comes next for a user, from the log of all (SASRec, CL4SRec, BERT4Rec)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import nn

from heed.config import check_fraction, check_not_negative
from heed.data.batching import DataPosition
from heed.data.interactions import augment
from heed.data.interactions.augment import Augmentation
from heed.data.interactions.batches import Form, ItemBatches, MaskItems, next_items
from heed.data.interactions.config import InteractionsConfig
from heed.data.interactions.prepare import PreparedLog, prepare
from heed.evaluation.ranking import FULL, coverage, rank, scores
from heed.models.abilities import RanksItems
from heed.models.package import Package
from heed.products.recommender import Recommender
from heed.tasks.base import Metric, Objective, Prepared, Task, Tell, Validation, ValidationResult
from heed.tasks.item_losses import (
    BinaryCrossEntropy,
    ContrastiveViews,
    FullCrossEntropy,
    ItemLoss,
    RecommendationLoss,
    SampledSoftmax,
)
from heed.tasks.validation import sample_rows
from heed.vocabularies.histories import Held

SHOWN = 5  # items of a history that are shown


@dataclass(frozen=True)
class RecommendationSettings:
    objective: Literal["cross-entropy", "bce", "gbce", "sampled-softmax"] = "cross-entropy"  # "bce" is SASRec's
    negatives: int = (
        0  # items that each prediction is compared with; by default 1 for bce, 256 for gbce, 1,024 for sampled-softmax
    )
    calibration: float = 0.75  # of gbce: 0 is bce, 1 is as if all items were compared
    popularity: float = 0.75  # sampled-softmax draws items by frequency to this power; 0 is uniform
    label_smoothing: float = 0.0  # of cross-entropy
    long: Literal["last", "windows"] = (
        "last"  # for histories beyond model.max_length: the last items only, or all in windows
    )
    mask_share: float = 0.2  # share of masked items, for models like BERT4Rec
    mask_last: float = 0.1  # share of histories in which only the last item is masked
    contrastive: float = (
        0.0  # weight of CL4SRec's contrastive loss between two views of each history; 0 is off, the paper uses 0.1
    )
    temperature: float = 1.0  # temperature of that loss
    augmentations: list[str] = field(
        default_factory=lambda: ["crop", "mask", "reorder"]
    )  # the views are drawn from these
    crop: float = 0.6  # share of a history that stays
    mask: float = 0.3  # share of its items that are masked
    reorder: float = 0.6  # share that is shuffled
    histories: bool = True  # the model folder keeps the histories of users, for heed recommend --user and heed evaluate
    valid_users: int = 0  # number of validation users; 0 is all

    def __post_init__(self):
        for name in ("calibration", "mask_last", "crop", "mask", "reorder", "popularity"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"task.{name} is {getattr(self, name)}; it must be from 0 to 1")
        check_fraction("task.label_smoothing", self.label_smoothing)
        check_not_negative("task.contrastive", self.contrastive)
        for name, least in (("negatives", 0), ("valid_users", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"task.{name} is {getattr(self, name)}; it must be at least {least}")
        if not 0 < self.mask_share <= 1:
            raise ValueError(f"task.mask_share is {self.mask_share}; it must be above 0 and at most 1")
        if not self.temperature > 0:
            raise ValueError(f"task.temperature is {self.temperature}; it must be above 0")
        unknown = [name for name in self.augmentations if name not in ("crop", "mask", "reorder")]
        if unknown or not self.augmentations:
            raise ValueError(f"task.augmentations is {self.augmentations}; choose from crop, mask and reorder")

    @property
    def count(self) -> int:
        """How many negatives there are."""
        return self.negatives or {"bce": 1, "gbce": 256}.get(self.objective, 1024)


class Recommendation(Task):
    name, title, example = "recommendation", "Recommender", "heed recommend {} --user USER"
    Settings, needs, products, unit = RecommendationSettings, RanksItems, (Recommender,), "users"
    sections: ClassVar[Mapping[str, type]] = {"data": InteractionsConfig}
    best = "ndcg@10"
    metrics = (
        Metric("ndcg@10", "NDCG@10", True, lambda: "of the item that came next among all items; times 100"),
        Metric("hr@10", "HR@10", True, lambda: "per cent: how often it is among the first ten"),
        Metric("mrr", "MRR", True, lambda: "mean of 1 / rank of the item that came next, times 100"),
        Metric("coverage", "coverage", True, lambda: "per cent of all items that are among anyone's first ten"),
        Metric("loss", "loss", False, lambda: "-log p of the item that came next, among all", 3),
    )

    # checks

    def check(self, recipe: Any) -> None:
        if recipe.model.folder:
            raise ValueError(
                "model.folder (--from) is not supported, since a recommender learns the items of one log: leave it out"
            )
        masks = getattr(recipe.model.system.model, "fills_masks", False)
        if self.settings.contrastive and masks:
            raise ValueError(
                f"task.contrastive is {self.settings.contrastive:g}, but {recipe.model.name} is trained on masked "
                "items: leave it out, or set model.name to sasrec"
            )
        if self.settings.contrastive and recipe.training.accumulate > 1:
            raise ValueError(
                "training.accumulate does not work with task.contrastive, which compares histories within a batch: set "
                "it to 1"
            )

    # data

    def prepare(self, recipe: Any, base: Package | None, tell: Tell) -> Prepared:
        key, log = prepare(recipe.data, tell)
        held = log.histories.held("valid", self.settings.valid_users)
        processors = {"items": log.items} | ({"histories": log.histories} if self.settings.histories else {})
        return Prepared(key, log, held, processors, {"items": len(log.items)})

    def batches(
        self, recipe: Any, prepared: Prepared, plan: Any, share: tuple[int, int], position: DataPosition
    ) -> Iterator[tuple[DataPosition, Any]]:
        if share[1] > 1 and self.settings.contrastive:
            raise ValueError(
                "task.contrastive needs a single process: it compares histories within a batch, so splitting a batch "
                "would change the loss"
            )
        return self._batches(recipe, prepared, plan.longest, share, plan.captured).start(position)

    @property
    def equal_batches(self) -> bool:
        """Batches can be padded to one shape; views of histories have lengths of their own."""
        return not self.settings.contrastive

    def _batches(
        self, recipe: Any, prepared: Prepared, longest: int, share: tuple[int, int] = (0, 1), equal: bool = False
    ) -> ItemBatches:
        s, t = self.settings, recipe.training
        items = len(prepared.train.items)
        form = self._form(recipe, items)
        return ItemBatches(
            prepared.train.histories,
            form,
            longest=longest + (form is next_items),  # its last item is predicted and not read
            budget=t.batch_tokens,
            seed=t.seed,
            windows=s.long == "windows",
            augmentations=self._augmentations(items) if s.contrastive else (),
            share=share,
            equal=equal,
        )

    def _form(self, recipe: Any, items: int) -> Form:
        if recipe.model.system.model.fills_masks:
            return MaskItems(items, self.settings.mask_share, self.settings.mask_last)
        return next_items

    def _augmentations(self, items: int) -> list[Augmentation]:
        s = self.settings
        known = {
            "crop": augment.crop(s.crop),
            "mask": augment.mask(s.mask, items),
            "reorder": augment.reorder(s.reorder),
        }
        return [known[name] for name in s.augmentations]

    # training

    def objective(self, prepared: Prepared, teachers: Sequence[nn.Module] = ()) -> Objective:
        s = self.settings
        contrastive = ContrastiveViews(s.contrastive, s.temperature) if s.contrastive else None
        return RecommendationLoss(self._item_loss(prepared.train), contrastive)

    def _item_loss(self, log: PreparedLog) -> ItemLoss:
        s = self.settings
        if s.objective == "sampled-softmax":
            draws = torch.from_numpy(np.maximum(1, log.histories.counts()).astype(np.float64) ** s.popularity)
            return SampledSoftmax(s.count, (draws / draws.sum()).float())
        if s.objective == "cross-entropy":
            return FullCrossEntropy(s.label_smoothing)
        return BinaryCrossEntropy(s.count, s.calibration if s.objective == "gbce" else 0.0)

    def validation(self, recipe: Any, prepared: Prepared) -> "RecommendationValidation":
        return RecommendationValidation(prepared.valid, prepared.train, recipe.training.samples)

    # reports and records

    def data_summary(self, prepared: Prepared) -> str:
        return prepared.train.summary()

    def notes(self, recipe: Any, prepared: Prepared, validation: Validation, max_length: int) -> list[str]:
        log, made = prepared.train, self._batches(recipe, prepared, max_length)
        counts, held = (
            log.facts["counts"],
            f"Held out: {log.split_summary()}; validation on {validation.size:,} users.",
        )
        found = [held]
        if alone := int((log.histories.train_end == 1).sum()):
            found.append(
                f"{alone:,} users have only one training interaction, so there is nothing to predict: they are not "
                "used."
            )
        short = counts.get("one interaction", 0) + counts.get("too short to hold out", 0)
        if short:
            found.append(f"{short:,} users have fewer than three interactions: none are held out.")
        if new := counts.get("new items valid_at"):
            found.append(
                f"{new:,} of the items to predict first occur after the split: they cannot be predicted, and count as "
                "missed."
            )
        most = max_length + (self._form(recipe, 0) is next_items)
        if longer := int((log.histories.train_end > most).sum()):
            used = "they are split" if self.settings.long == "windows" else "only the last ones are used (task.long)"
            found.append(f"{longer:,} users have more than {most} items: {used}.")
        return [*found, f"{len(made):,} training histories, {len(made.plan(0)):,} batches per epoch."]

    def facts(self, recipe: Any, prepared: Prepared, base: Mapping[str, Any]) -> dict[str, Any]:
        data = recipe.data
        columns = {name: getattr(data, name) for name in ("format", "user", "item", "time")}
        return {"split": prepared.train.split_summary(), "columns": columns}

    def card_rows(self, recipe: Any, prepared: Prepared, facts: Mapping[str, Any]) -> dict[str, str]:
        log = prepared.train
        return {
            "data": ", ".join(Path(path).name for path in recipe.data.interactions),
            "interactions": log.summary(),
            "held out": log.split_summary(),
            "objective": self.settings.objective + (" and contrastive views" if self.settings.contrastive else ""),
            "licence of the data": recipe.data.licence or "not stated",
        }


class RecommendationValidation:
    """The rank of the item that came next, among all that the user has not seen."""

    def __init__(self, held: Held, log: PreparedLog, samples: int):
        self.held, self.log, self.size = held, log, len(held.users)
        self.shown = sample_rows(self.size, samples)

    def run(self, model: nn.Module) -> ValidationResult:
        model.eval()
        recommender, items = Recommender(model, self.log.items), len(self.log.items)
        found = rank(recommender.scores, self.held, items, FULL, top=10, device=recommender.device.type)
        own = scores(found.ranks, (10,))
        known = found.nll[np.isfinite(found.nll)]
        own |= {"coverage": coverage(found.top, items), "loss": float(known.mean()) if len(known) else 0.0}
        return ValidationResult(own, [self._sample(i, found.top[i]) for i in self.shown])

    def _sample(self, row: int, top: np.ndarray) -> tuple[str, str, str]:
        names, target = self.log.items.names, int(self.held.targets[row])
        history = [names[i] for i in self.held.histories[row][-SHOWN:]]
        right = names[target] if target >= 0 else "(a new item)"
        return ", ".join(history), right, ", ".join(names[i] for i in top[:SHOWN])

    def facts(self, model: nn.Module) -> dict[str, Any]:
        return {}

    def too_long(self, max_length: int) -> int:
        return 0  # the last items are read

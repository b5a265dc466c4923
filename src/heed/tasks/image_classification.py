"""Image classification."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from heed.config import check_fraction, check_not_negative
from heed.data.batching import DataPosition
from heed.data.images import prepare as images
from heed.data.images.augment import CropAndFlip, Erase, Mixing, Pipeline
from heed.data.images.batches import ImageBatch, ImageBatches, ImageStore, in_order
from heed.data.images.config import ImagesConfig
from heed.data.images.prepare import Form, ImageSet
from heed.data.images.randaugment import STRONGEST, RandAugment
from heed.evaluation.classification import accuracy
from heed.models.abilities import ClassifiesImages
from heed.models.package import Package
from heed.nn.pixels import Normalize, from_bytes
from heed.products.image_classifier import ImageClassifier
from heed.tasks.base import Metric, Objective, Prepared, Task, Tell, Validation, ValidationResult
from heed.tasks.validation import sample_rows, trained_rows_too
from heed.training.loss import Loss
from heed.vocabularies.images import Images
from heed.vocabularies.labels import Labels

VALIDATED = 1024  # images in a batch of validation


@dataclass(frozen=True)
class ImageClassificationSettings:
    label_smoothing: float = 0.1  # label smoothing: probability mass spread over the classes
    crop: int = 0  # padding in pixels for random crops; 0 is off
    flip: bool = False  # flip half of the images horizontally
    randaugment: int = 0  # RandAugment operations per image; the paper uses 2
    magnitude: float = 9.0  # magnitude of these operations, from 0 to 30
    erasing: float = 0.0  # random erasing: share of images with a rectangle replaced by noise
    mixup: float = 0.0  # mixup: parameter of the beta distribution; 0 is off
    cutmix: float = 0.0  # cutmix: parameter of the beta distribution; with mixup, one or the other
    mix_share: float = 1.0  # share of images that are mixed, if mixup or cutmix is on

    def __post_init__(self):
        check_fraction("task.label_smoothing", self.label_smoothing)
        for name in ("mixup", "cutmix", "crop", "randaugment"):
            check_not_negative(f"task.{name}", getattr(self, name))
        for name, most in (("erasing", 1), ("mix_share", 1), ("magnitude", STRONGEST)):
            if not 0 <= getattr(self, name) <= most:
                raise ValueError(f"task.{name} is {getattr(self, name)}; it must be from 0 to {most}")

    def augmentation(self) -> Pipeline:
        parts: list[Any] = [CropAndFlip(self.crop, self.flip)] if self.crop or self.flip else []
        parts += [RandAugment(self.randaugment, self.magnitude)] if self.randaugment else []
        parts += [Erase(self.erasing)] if self.erasing else []
        return Pipeline(parts)

    def mixing(self) -> Mixing | None:
        return Mixing(self.mixup, self.cutmix, self.mix_share) if self.mixup or self.cutmix else None


class ImageClassification(Task):
    name, title, example = "image-classification", "Image classifier", "heed classify {} image.png"
    Settings, needs, products, unit = ImageClassificationSettings, ClassifiesImages, (ImageClassifier,), "images"
    sections: ClassVar[Mapping[str, type]] = {"data": ImagesConfig}
    best, equal_batches = "accuracy", True
    metrics = (
        Metric("accuracy", "accuracy", True, lambda: "per cent"),
        Metric("top5", "top 5", True, lambda: "per cent: how often the class is among the first five", optional=True),
        Metric("loss", "loss", False, lambda: "-log p per label", 3),
    )

    # data

    def prepare(self, recipe: Any, base: Package | None, tell: Tell) -> Prepared:
        data: ImagesConfig = recipe.data
        own: Images | None = base.processors.get("images") if base is not None else None
        form, known = prepared_form(data, own), None
        if own is not None and data.size is None:
            data = replace(data, size=own.size)
        key, train = images.prepare(data.images, data, form, None, tell)
        held: Labels | None = base.processors.get("labels") if base is not None else None
        if held is not None and {*held.names} == {*train.classes}:
            known = held.names  # in the order of the head, which is kept; but a resumed run must have the same key
            _, train = images.prepare(data.images, data, form, known, tell)
        if data.valid_images:
            form = replace(form, size=train.facts["size"])
            _, valid = images.prepare(data.valid_images, data, form, train.classes, tell)
        else:
            train, valid = held_out(train, data.holdout)
        processor = images.processor(train)
        if own is not None:
            processor = replace(processor, mean=own.mean, std=own.std)
        numbered = data.classes or (held.numbered if held is not None and known is not None else ())
        processors = {"images": processor, "labels": Labels(train.classes, numbered)}
        sizes = {"labels": len(train.classes), "size": processor.size, "channels": processor.channels}
        renewed = ("head.",) if base is not None and known is None else ()  # also for as many other classes
        return Prepared(key, train, valid, processors, sizes, renewed=renewed)

    def batches(
        self, recipe: Any, prepared: Prepared, plan: Any, share: tuple[int, int], position: DataPosition
    ) -> Iterator[tuple[DataPosition, Any]]:
        return self._batches(recipe, prepared, plan.longest, share).start(position)

    def _batches(self, recipe: Any, prepared: Prepared, patches: int, share: tuple[int, int] = (0, 1)) -> ImageBatches:
        t, mixing = recipe.training, self.settings.mixing()
        return ImageBatches(
            prepared.train,
            max(1, t.batch_tokens // patches),
            seed=t.seed,
            draw=self.settings.augmentation().draw,
            draw_mixing=mixing and mixing.draw,
            share=share,
        )

    # training

    def objective(self, prepared: Prepared, teachers: Sequence[nn.Module] = ()) -> Objective:
        s, own = self.settings, prepared.processors["images"]
        return ImageLoss(s.augmentation(), s.mixing(), Normalize(own.mean, own.std), s.label_smoothing)

    def validation(self, recipe: Any, prepared: Prepared) -> "ImageValidation":
        return ImageValidation(prepared.valid, prepared.processors["images"], recipe.training.samples)

    # reports and records

    def data_summary(self, prepared: Prepared) -> str:
        return prepared.train.summary()

    def notes(self, recipe: Any, prepared: Prepared, validation: Validation, max_length: int) -> list[str]:
        made = self._batches(recipe, prepared, max_length)
        found = broken_notes(prepared)
        counts = np.bincount(prepared.train.labels, minlength=len(prepared.train.classes))
        if few := [name for name, count in zip(prepared.train.classes, counts, strict=True) if not count]:
            found.append(f"{len(few)} classes have no training images: {', '.join(few[:5])}.")
        return [
            *found,
            *trained_rows_too(self.unit, prepared.train, prepared.valid),
            f"{validation.size:,} images to validate on. {made.size:,} images per batch, {max_length} patches each; "
            f"{made.count(0):,} batches per epoch.",
        ]

    def card_rows(self, recipe: Any, prepared: Prepared, facts: Mapping[str, Any]) -> dict[str, str]:
        return {
            "data": ", ".join(Path(path).name for path in recipe.data.images),
            "images": self.data_summary(prepared),
            "classes": ", ".join(prepared.train.classes[:100]) + (", …" if len(prepared.train.classes) > 100 else ""),
            "licence of the data": recipe.data.licence or "not stated",
        }


def prepared_form(data: ImagesConfig, own: Images | None) -> Form:
    """The image shape: as in the recipe, else as the trained model reads, else as they are."""
    kept = own is not None and data.colours == "auto"
    channels = own.channels if kept else images.channels_of(data.images, data)
    if own is None:
        return Form(data.size, channels, data.fit or "crop", data.resample or "bilinear")
    fit, size = data.fit or own.fit, data.size or own.size
    resize = round(own.resize * size / own.size) if own.resize and fit == own.fit else None
    return Form(size, channels, fit, data.resample or own.resample, resize)


def broken_notes(prepared: Prepared) -> list[str]:
    """What is said about unreadable images and other files, of both sets."""
    found = prepared.train.broken_summary()
    if prepared.valid.folder != prepared.train.folder:
        found += [f"To validate on: {line}" for line in prepared.valid.broken_summary()]
    return found


def held_out(every: ImageSet, most: int) -> tuple[ImageSet, ImageSet]:
    """Training images, and some that are set aside: at most a tenth, drawn with a fixed seed."""
    count = min(most, len(every) // 10)
    if not count:
        raise ValueError(
            f"there are {len(every):,} images and data.holdout is {most}: nothing is left to validate on; set data.valid_images"
        )
    order = np.random.default_rng(0).permutation(len(every))
    return every.take(np.sort(order[count:])), every.take(np.sort(order[:count]))


class ImageLoss:
    """Cross entropy of augmented images; for mixed ones, against both classes by their weights."""

    windows = True  # all images have the same number of patches

    def __init__(self, augment: Pipeline, mixing: Mixing | None, normalize: Normalize, smoothing: float):
        self.augment, self.mixing, self.normalize, self.smoothing = augment, mixing, normalize, smoothing

    def inputs(self, batch: ImageBatch) -> tuple[Tensor, Tensor, Tensor | float]:
        """The model input, the labels of the partners, and the weight of each image itself."""
        x, count = self.augment(from_bytes(batch.images), batch.draws), batch.count
        if self.mixing is None:
            return self.normalize(x[:count]), batch.labels[:count], 1.0
        mixed, share = self.mixing(x[:count], x.index_select(0, batch.partners), batch.mixing)
        return self.normalize(mixed), batch.labels.index_select(0, batch.partners), share

    def __call__(self, model: nn.Module, batch: ImageBatch) -> Loss:
        with torch.no_grad(), torch.autocast(batch.images.device.type, enabled=False):
            x, others, share = self.inputs(batch)
        x = x.to(next(model.parameters()).dtype)
        logits = model.classify_images(x)
        logp = (logits.float() if logits.dtype.itemsize < 4 else logits).log_softmax(dim=1)
        own = -logp.gather(1, batch.labels[: batch.count, None])[:, 0]
        nll = own if self.mixing is None else share * own - (1 - share) * logp.gather(1, others[:, None])[:, 0]
        total = ((1 - self.smoothing) * nll - self.smoothing * logp.mean(dim=1)).sum()
        return Loss(total, nll.sum().detach(), batch.count)


class ImageValidation:
    """Accuracy and loss on images without augmentation."""

    def __init__(self, valid: ImageSet, processor: Images, samples: int):
        self.valid, self.size, self.store = valid, len(valid), ImageStore(valid)
        self.normalize, self.shown = Normalize(processor.mean, processor.std), sample_rows(len(valid), samples)

    @torch.inference_mode()
    def run(self, model: nn.Module) -> ValidationResult:
        model.eval()
        device = next(model.parameters()).device
        parts = []
        for pixels, _ in in_order(self.valid, VALIDATED, device, self.store):
            logits = model.classify_images(self.normalize(from_bytes(pixels)).to(next(model.parameters()).dtype))
            parts.append(logits.float().log_softmax(dim=1))
        logp, labels = torch.cat(parts).cpu().numpy(), self.valid.labels
        found = logp.argmax(axis=1)
        scores = {"accuracy": accuracy(found, labels), "loss": float(-logp[np.arange(len(labels)), labels].mean())}
        if logp.shape[1] > 5:
            best = np.argpartition(-logp, 5, axis=1)[:, :5]
            scores["top5"] = 100 * float((best == labels[:, None]).any(axis=1).mean())
        return ValidationResult(scores, self._samples(found))

    def _samples(self, found: np.ndarray) -> list[tuple[str, str, str]]:
        shown = np.array(self.shown, dtype=np.int64)
        names, classes, labels = self.valid.take(shown).names(), self.valid.classes, self.valid.labels
        return [(name, classes[labels[i]], classes[found[i]]) for name, i in zip(names, self.shown, strict=True)]

    def facts(self, model: nn.Module) -> dict[str, Any]:
        return {}

    def too_long(self, max_length: int) -> int:
        return 0

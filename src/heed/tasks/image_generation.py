"""Image generation: predict every value of an image from those before it; by class, or as super-resolution."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from heed.data.batching import DataPosition
from heed.data.images import prepare as images
from heed.data.images.augment import CropAndFlip, Pipeline
from heed.data.images.batches import ImageBatch, ImageBatches, ImageStore, in_order
from heed.data.images.config import ImagesConfig
from heed.data.images.prepare import ImageSet
from heed.models.abilities import DrawsImages
from heed.models.package import Package
from heed.nn.pixel_outputs import bits_per_dimension
from heed.nn.pixels import from_bytes, shrink
from heed.products.image_generator import ImageGenerator
from heed.tasks.base import Metric, Objective, Prepared, Task, Tell, Validation, ValidationResult
from heed.tasks.image_classification import broken_notes, held_out, prepared_form
from heed.tasks.validation import trained_rows_too
from heed.training.loss import Loss
from heed.vocabularies.labels import Labels

VALIDATED = {"cuda": 64, "cpu": 8}  # images in a batch of validation


@dataclass(frozen=True)
class ImageGenerationSettings:
    by_class: bool = False  # condition on the class of each image
    enlarge: int = 0  # super-resolution: size of the small input image in pixels; 0 is off
    flip: bool = False  # flip half of the images horizontally
    valid_images: int = 1000  # number of validation images; 0 is all

    def __post_init__(self):
        for name in ("enlarge", "valid_images"):
            if getattr(self, name) < 0:
                raise ValueError(f"task.{name} is {getattr(self, name)}; it must be 0 or more")


class ImageGeneration(Task):
    name, title, example = "image-generation", "Image generator", "heed generate {} --out samples.png"
    Settings, needs, products, unit = ImageGenerationSettings, DrawsImages, (ImageGenerator,), "images"
    sections: ClassVar[Mapping[str, type]] = {"data": ImagesConfig}
    best, equal_batches = "bits", True
    metrics = (
        Metric("bits", "bits/dim", False, lambda: "bits per dimension: -log2 p of a value of a channel, on average", 3),
        Metric("loss", "loss", False, lambda: "the same in nats", 3),
    )

    def check(self, recipe: Any) -> None:
        if recipe.model.folder:
            raise ValueError("model.folder (--from) is not supported for image generation: leave it out")

    def prepare(self, recipe: Any, base: Package | None, tell: Tell) -> Prepared:
        data, s = recipe.data, self.settings
        form = prepared_form(data, None)
        labelled = s.by_class
        key, train = images.prepare(data.images, data, form, None, tell, labelled)
        size = train.facts["size"]
        if s.enlarge and (size % s.enlarge or s.enlarge == size):
            raise ValueError(
                f"task.enlarge is {s.enlarge}, which must divide the {size} pixels of an image and be smaller"
            )
        if data.valid_images:
            form = replace(form, size=size)
            _, valid = images.prepare(data.valid_images, data, form, train.classes, tell, labelled)
        else:
            train, valid = held_out(train, data.holdout)
        processors = {"images": images.processor(train)} | (
            {"labels": Labels(train.classes, data.classes)} if labelled else {}
        )
        sizes = {"size": size, "channels": train.facts["channels"], "small": s.enlarge}
        sizes["labels"] = len(train.classes) if labelled else 0
        return Prepared(key, train, valid, processors, sizes)

    def batches(
        self, recipe: Any, prepared: Prepared, plan: Any, share: tuple[int, int], position: DataPosition
    ) -> Iterator[tuple[DataPosition, Any]]:
        return self._batches(recipe, prepared, plan.longest, share).start(position)

    def _batches(self, recipe: Any, prepared: Prepared, length: int, share: tuple[int, int] = (0, 1)) -> ImageBatches:
        t = recipe.training
        size = max(1, t.batch_tokens // length)
        return ImageBatches(prepared.train, size, seed=t.seed, draw=self._augmentation().draw, share=share)

    def _augmentation(self) -> Pipeline:
        return Pipeline([CropAndFlip(0, True)] if self.settings.flip else [])

    def objective(self, prepared: Prepared, teachers: Sequence[nn.Module] = ()) -> Objective:
        return PixelLoss(self._augmentation(), self.settings)

    def validation(self, recipe: Any, prepared: Prepared) -> "PixelValidation":
        valid, most = prepared.valid, self.settings.valid_images
        if most and most < len(valid):
            valid = valid.take(np.sort(np.random.default_rng(0).permutation(len(valid))[:most]))
        return PixelValidation(valid, self.settings)

    def data_summary(self, prepared: Prepared) -> str:
        return prepared.train.summary()

    def notes(self, recipe: Any, prepared: Prepared, validation: Validation, max_length: int) -> list[str]:
        made = self._batches(recipe, prepared, max_length)
        return [
            *broken_notes(prepared),
            *trained_rows_too(self.unit, prepared.train, prepared.valid),
            f"{validation.size:,} images to validate on. {made.size:,} images per batch, {max_length:,} positions "
            f"each; {made.count(0):,} batches per epoch.",
        ]

    def card_rows(self, recipe: Any, prepared: Prepared, facts: Mapping[str, Any]) -> dict[str, str]:
        return {
            "data": ", ".join(Path(path).name for path in recipe.data.images),
            "images": self.data_summary(prepared),
            "licence of the data": recipe.data.licence or "not stated",
        }


def asked(settings: ImageGenerationSettings, pixels: Tensor, labels: Tensor) -> dict[str, Tensor]:
    """The conditioning of a model besides the pixel values."""
    told = {"labels": labels} if settings.by_class else {}
    return told | ({"small": shrink(pixels, settings.enlarge)} if settings.enlarge else {})


class PixelLoss:
    """The mean -log p of the values of each image; its count is the number of images."""

    windows = True  # all images have the same number of positions

    def __init__(self, augment: Pipeline, settings: ImageGenerationSettings):
        self.augment, self.settings = augment, settings

    def __call__(self, model: nn.Module, batch: ImageBatch) -> Loss:
        with torch.no_grad():
            count = batch.count
            pixels, labels = batch.images[:count], batch.labels[:count]
            if self.augment.parts:
                x = self.augment(from_bytes(pixels), batch.draws[:count])
                pixels = (x * 255).round().to(torch.uint8).permute(0, 2, 3, 1)
            told = asked(self.settings, pixels, labels)
        total = model.pixel_nll(pixels, **told).sum() / pixels[0].numel()
        return Loss(total, total.detach(), count)


class PixelValidation:
    """Bits per dimension."""

    def __init__(self, valid: ImageSet, settings: ImageGenerationSettings):
        self.valid, self.size, self.store, self.settings = valid, len(valid), ImageStore(valid), settings

    @torch.inference_mode()
    def run(self, model: nn.Module) -> ValidationResult:
        model.eval()
        device, total, count = next(model.parameters()).device, 0.0, 0
        for pixels, labels in in_order(self.valid, VALIDATED.get(device.type, 8), device, self.store):
            total += model.pixel_nll(pixels, **asked(self.settings, pixels, labels)).double().sum().item()
            count += pixels.numel()
        return ValidationResult({"bits": bits_per_dimension(total, count), "loss": total / count}, [])

    def facts(self, model: nn.Module) -> dict[str, Any]:
        return {}

    def too_long(self, max_length: int) -> int:
        return 0

"""Image classification: images in, classes out."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from heed.models.abilities import ClassifiesImages, EncodesImages
from heed.models.outputs import check_outputs
from heed.models.package import Package
from heed.nn.pixels import Normalize, from_bytes
from heed.products.cuda_images import FusedImageModel
from heed.products.int8_images import Int8ImageModel, int8_engine
from heed.products.product import Product, single
from heed.vocabularies.images import MAX_PIXELS, Images, UnreadableImage
from heed.vocabularies.labels import Labels

BATCH_PATCHES = {"cuda": 131_072, "cpu": 1_536}  # read and run at one time: a GPU needs many, a CPU has small caches
Source = Path | str | bytes  # a file, or what is in it


@dataclass(frozen=True)
class ImageLabel:
    """The most likely class of an image, and the probability of each, most likely first."""

    name: str
    label: str
    probabilities: dict[str, float]


class ImageModel(Product):
    """Shared by image models: reading files, and running the model in batches."""

    engines: ClassVar[tuple[str, ...]] = ("auto", "torch", "int8")

    def __init__(self, model: Any, images: Images, facts: dict[str, Any] | None = None):
        self.model, self.images, self.facts = model, images, facts or {}
        self.normalize, self.fused = Normalize(images.mean, images.std), FusedImageModel(model)
        self.int8: Int8ImageModel | None = None
        self.copies: torch.cuda.Stream | None = None

    def use(self, engine: str) -> None:
        """Choose the engine: "torch" computes in the precision of the weights, "int8" in 8-bit integers on a CPU, and
        "auto" so if the CPU has instructions for them.
        """
        if engine not in self.engines:
            names = f"{', '.join(self.engines[:-1])} or {self.engines[-1]}"
            raise ValueError(f"engine is {engine!r}; to {self.verbs[0]} images it must be {names}")
        self.int8 = int8_engine(self.model, engine)

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    def read(self, sources: Iterable[Source], max_pixels: int = MAX_PIXELS) -> np.ndarray:
        """Images as bytes (n, size, size, channels); an unreadable one is refused by name."""
        found = [self._read(source, max_pixels) for source in sources]
        shape = self.images.size, self.images.size, self.images.channels
        return np.stack(found) if found else np.zeros((0, *shape), np.uint8)

    def _read(self, source: Source, max_pixels: int) -> np.ndarray:
        try:
            return self.images.read(Path(source) if isinstance(source, str) else source, max_pixels)
        except UnreadableImage as error:
            raise ValueError(f"{'the image' if isinstance(source, bytes) else source} {error}") from None

    def inputs(self, pixels: np.ndarray | Tensor) -> Float[Tensor, "b c h w"]:
        """The model input, on its device."""
        return self._prepare(self.upload(pixels))

    def _prepare(self, pixels: UInt8[Tensor, "b h w c"]) -> Float[Tensor, "b c h w"]:
        return self.normalize(from_bytes(pixels)).to(next(self.model.parameters()).dtype)

    def upload(self, pixels: np.ndarray | Tensor) -> UInt8[Tensor, "b h w c"]:
        """Copy to the device; a GPU meanwhile computes what it was given before."""
        if isinstance(pixels, np.ndarray):
            # torch takes neither read-only arrays nor negative strides, not even for a single image
            own = pixels.flags.c_contiguous and pixels.flags.writeable and min(pixels.strides) >= 0
            pixels = torch.from_numpy(pixels if own else pixels.copy())
        if self.device.type != "cuda" or pixels.device.type != "cpu":
            return pixels.to(self.device)
        current = torch.cuda.current_stream(self.device)
        self.copies = self.copies or torch.cuda.Stream(self.device)
        with torch.cuda.stream(self.copies):  # pinned, else the copy waits in the driver, at a third of the speed
            found = pixels.pin_memory().to(self.device, non_blocking=True)
        current.wait_stream(self.copies)
        found.record_stream(current)
        return found

    def _run(self, pixels: Tensor, work: Callable[[Any, Tensor], Tensor], full: bool = False) -> Tensor:
        """`work` of the model, or of a faster copy, and a batch; `full` ones have all one size."""
        if self.int8 is not None and self.int8.takes():
            return self.int8.run(pixels, work)
        return self.fused.run(pixels, work, full)

    def batches(self, sources: Any, size: int | None = None) -> Iterator[Sequence[Any]]:
        size = size or self._batch()
        for start in range(0, len(sources), size):
            yield sources[start : start + size]

    def _batch(self) -> int:
        patches = BATCH_PATCHES.get(self.device.type, BATCH_PATCHES["cpu"])
        return max(1, patches // self.model.config.max_length)


class ImageClassifier(ImageModel):
    """A model that classifies images."""

    noun, verbs, reads = "an image classifier", ("classify", "evaluate"), ("images", "labels")
    needs: ClassVar[type] = ClassifiesImages
    engines = (*ImageModel.engines, "fp8")

    def __init__(self, model: Any, images: Images, labels: Labels, facts: dict[str, Any] | None = None):
        super().__init__(model, images, facts)
        self.labels, self.numbered = labels.names, labels.numbered

    @classmethod
    def open(cls, packages: Sequence[Package], names: Sequence[str], **options: Any) -> "ImageClassifier":
        own = single(packages, names, cls.noun)
        found = cls(own.model, own.processors["images"], own.processors["labels"], own.facts)
        found.use(options.get("engine", "auto"))
        return found

    def use(self, engine: str) -> None:
        """As for every image model; and "fp8" computes in 8-bit floats on a GPU, as does "auto" if the GPU multiplies
        them and the model is in bfloat16.
        """
        super().use(engine)
        self.fused = FusedImageModel(self.model, engine)

    def classify(self, sources: Sequence[Source]) -> list[ImageLabel]:
        """Classify image files, or their bytes."""
        found = []
        for part in self.batches(list(sources)):
            for source, own in zip(part, self.probabilities(self.read(part)), strict=True):
                order = np.argsort(-own, kind="stable")
                ranked = {self.labels[i]: float(own[i]) for i in order}
                name = "" if isinstance(source, bytes) else str(source)
                found.append(ImageLabel(name, self.labels[order[0]], ranked))
        return found

    @torch.inference_mode()
    def probabilities(self, pixels: np.ndarray | Tensor) -> Float[np.ndarray, "n labels"]:
        """The probability of each class for images as bytes."""
        self.model.eval()
        size = self._batch()
        parts = [self._run(self.upload(part), self._classify, len(part) == size) for part in self.batches(pixels)]
        found = torch.cat(parts).cpu() if parts else torch.zeros(0, len(self.labels))
        check_outputs(found)
        return found.numpy()

    def _classify(self, model: Any, pixels: UInt8[Tensor, "b h w c"]) -> Float[Tensor, "b labels"]:
        return model.classify_images(self._prepare(pixels)).double().softmax(dim=1)


class ImageEmbedder(ImageModel):
    """A model that embeds images: the output of its last layer."""

    noun, verbs, reads = "an image model", ("embed",), ("images",)
    needs: ClassVar[type] = EncodesImages

    @classmethod
    def open(cls, packages: Sequence[Package], names: Sequence[str], **options: Any) -> "ImageEmbedder":
        own = single(packages, names, cls.noun)
        found = cls(own.model, own.processors["images"], own.facts)
        found.use(options.get("engine", "auto"))
        return found

    def embed(self, sources: Sequence[Source]) -> Float[np.ndarray, "n dim"]:
        """One vector per image file."""
        parts = [self.vectors(self.read(part)) for part in self.batches(list(sources))]
        return np.concatenate(parts) if parts else np.zeros((0, self.model.config.dim), np.float32)

    @torch.inference_mode()
    def vectors(self, pixels: np.ndarray) -> Float[np.ndarray, "n dim"]:
        """The same for images as bytes, in one batch."""
        found = self._run(self.upload(pixels), self._vectors).cpu()
        check_outputs(found)
        return found.numpy()

    def _vectors(self, model: Any, pixels: UInt8[Tensor, "b h w c"]) -> Float[Tensor, "b dim"]:
        return model.image_vectors(self._prepare(pixels)).float()

"""Served image models: classifiers, which batch images of all requests, and generators."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch

from heed.products.image_classifier import ImageClassifier
from heed.products.image_generator import ImageGenerator
from heed.products.image_trace import ImageLook, look
from heed.service.http.asked_model import AskedModel, next_slice
from heed.service.http.queue import BatchWorker, Ticket, wait_for_results
from heed.vocabularies.images import UnreadableImage, measure

MAX_PIXELS = 16_000_000  # of an image
MAX_ALL_PIXELS = 64_000_000  # of all images of a request
PIXEL_FLOPS = 1500  # that take a CPU as long as reading a pixel: 30 ns
SLICE_TURNS = 8  # that a slice counts as in the queue, for each image


def count_pixels(images: Sequence[bytes]) -> list[int]:
    """The pixels of each image, by their headers; a few kilobytes of file may decode to gigabytes."""
    found = []
    for number, image in enumerate(images, 1):
        try:
            found.append(measure(image, MAX_PIXELS))
        except UnreadableImage as error:
            raise ValueError(f"{f'image {number}' if len(images) > 1 else 'the image'} {error}") from None
    if sum(found) > MAX_ALL_PIXELS:
        raise ValueError(
            f"the images have {sum(found):,} pixels; the limit per request is {MAX_ALL_PIXELS:,}: send fewer, or smaller ones"
        )
    return found


class ServedImageModel(AskedModel):
    """One image classifier and the worker that runs it."""

    attends = False  # it has no texts to look at; images have a view of their own

    def __init__(self, name: str, product: ImageClassifier, worker: BatchWorker | None = None):
        super().__init__(name, product, worker)

    def warm_up(self) -> None:
        """Build now what the first call would build."""
        own = self.product.images
        self.product.probabilities(np.zeros((1, own.size, own.size, own.channels), np.uint8))

    def run(self, key: tuple, items: list[Any]) -> list[tuple[Any, Exception | None]]:
        """A batch, in the worker's thread. An unreadable image is refused individually: then smaller batches are
        tried.
        """
        if key[0] != "classify":
            return super().run(key, items)
        try:
            return [(one, None) for one in self.product.classify(items)]
        except ValueError as error:
            if len(items) > 1:
                raise
            return [(None, error)]

    def classify(self, ticket: Ticket, images: list[bytes]) -> list[Any]:
        """The classes of each image."""
        size = self.model.config.max_length
        costs = [size + self._reading(own) for own in count_pixels(images)]
        futures = self.worker.submit(ticket, ("classify",), images, [size] * len(images), costs)
        found = []
        for number, (result, error) in enumerate(wait_for_results(futures, ticket), 1):
            if error is not None:
                raise ValueError(str(error).replace("the image", f"image {number}", 1))
            found.append(result)
        return found

    def look_at(self, ticket: Ticket, image: bytes, layer: int | None) -> ImageLook:
        [pixels] = count_pixels([image])
        size = 4 * self.model.config.max_length + round(self._reading(pixels))
        return self.ask(ticket, "call", lambda: look(self.product, image, layer), size)

    def _reading(self, pixels: int) -> float:
        """The tokens of plain work, two operations per weight, that take as long as reading so many pixels."""
        return pixels * PIXEL_FLOPS / (2 * self.weights)

    @cached_property
    def weights(self) -> int:
        return sum(weight.numel() for weight in self.model.parameters())

    def facts(self) -> dict[str, Any]:
        """Its entry in /v1/models."""
        config, own = self.model.config, self.product.images
        return {
            "name": self.name,
            "kind": type(self.model).__name__.lower(),
            "weights": self.weights,
            "layers": config.layers,
            "heads": config.heads,
            "dim": config.dim,
            "patch": config.patch,
            "size": own.size,
            "channels": own.channels,
            "labels": self.product.labels,
        }


class ServedImageGenerator(AskedModel):
    """One image generator. Images are generated in short time slices, between which other requests run."""

    attends = False
    product: ImageGenerator

    def warm_up(self) -> None:
        """Build now what the first call would build."""

    def draw(self, ticket: Ticket, count: int, **options: Any) -> Iterator[np.ndarray]:
        """The values of the next steps as bytes (steps, count, values of a step), slice by slice."""
        count_pixels([own for name in ("complete", "enlarge") if (own := options.get(name)) is not None])
        found = self.product.draw(count, **options)
        while steps := self.ask(ticket, "draw", lambda: next_slice(found), SLICE_TURNS * count):
            yield torch.stack(steps).to(torch.uint8).cpu().numpy()

    def images(self, drawn: np.ndarray) -> np.ndarray:
        """Images (count, h, w, c) from all values that `draw` returned."""
        values = torch.from_numpy(drawn).long().transpose(0, 1).to(self.product.device)
        return self.product.assemble(values)

    def facts(self) -> dict[str, Any]:
        """Its entry in /v1/models."""
        config, product = self.model.config, self.product
        own = {"size": config.size, "channels": config.channels, "labels": product.labels, "enlarges": product.enlarges}
        return {**super().facts(), **own}

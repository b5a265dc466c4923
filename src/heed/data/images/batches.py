"""Batches of images of the same size, in an order that depends only on the seed and the epoch."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from heed.data.batching import DataPosition
from heed.data.images.prepare import ImageSet

SHARE = 0.25  # of a GPU's free memory that images may take to stay there


class ImageStore:
    """The images of a set; they stay on the GPU if they fit, otherwise each batch is copied."""

    def __init__(self, images: ImageSet):
        self.images = images
        self.resident: tuple[torch.device, Tensor, Tensor] | None = None

    def take(self, rows: np.ndarray, device: torch.device) -> tuple[Tensor, Tensor]:
        """Pixels (n, h, w, c) and labels (n) of some rows of the set, on a device."""
        if device.type == "cuda" and (held := self._held(device)):
            own = torch.from_numpy(rows).pin_memory().to(device, non_blocking=True)
            return held[0].index_select(0, own), held[1].index_select(0, own)
        own = self.images.rows[rows]
        pixels, labels = torch.from_numpy(self.images.pixels[own]), torch.from_numpy(self.images.every_label[own])
        if device.type == "cpu":
            return pixels, labels
        return tuple(part.pin_memory().to(device, non_blocking=True) for part in (pixels, labels))

    def _held(self, device: torch.device) -> tuple[Tensor, Tensor] | None:
        if self.resident is None or self.resident[0] != device:
            size = len(self.images) * int(np.prod(self.images.pixels.shape[1:]))
            if size > SHARE * torch.cuda.mem_get_info(device)[0]:
                return None
            pixels = torch.from_numpy(self.images.pixels[self.images.rows]).to(device)
            self.resident = device, pixels, torch.from_numpy(self.images.labels).to(device)
        return self.resident[1:]


class ImageBatch(NamedTuple):
    """Images (m, h, w, c) as bytes with their labels (m), and the augmentation drawn for each (m, k). The first
    `len(partners)` are trained on; each may be mixed with its partner according to `mixing`.
    """

    images: Tensor
    labels: Tensor
    draws: Tensor
    partners: Tensor
    mixing: Tensor

    @property
    def count(self) -> int:
        return len(self.partners)

    @property
    def shape(self) -> tuple[int, ...]:
        """Batches of equal shape use the same kernels."""
        return *self.images.shape, len(self.partners)

    def tensors(self) -> list[Tensor]:
        return list(self)

    def clone(self) -> "ImageBatch":
        return ImageBatch(*(tensor.clone() for tensor in self))

    def to(self, device: torch.device) -> "ImageBatch":
        return ImageBatch(*(tensor.to(device) for tensor in self))


class PlannedBatch(NamedTuple):
    """A batch before its images are read: they are gathered where they are needed."""

    store: ImageStore
    rows: np.ndarray
    draws: np.ndarray
    partners: np.ndarray
    mixing: np.ndarray

    def to(self, device: torch.device) -> ImageBatch:
        others = [torch.from_numpy(own) for own in self[2:]]
        if device.type == "cuda":
            others = [own.pin_memory().to(device, non_blocking=True) for own in others]
        return ImageBatch(*self.store.take(self.rows, device), *others)


Draw = Callable[[np.random.Generator, int], np.ndarray]  # a row of numbers for each of n images


class ImageBatches:
    """Equal batches, from any position on. An epoch is every image once; a batch may span the end of one epoch and
    the start of the next.
    """

    def __init__(
        self,
        images: ImageSet,
        size: int,
        *,
        seed: int,
        draw: Draw,
        draw_mixing: Draw | None = None,
        share: tuple[int, int] = (0, 1),
    ):
        """`draw` and `draw_mixing` draw the random numbers of the augmentation. `share` is (rank, world size): each
        process gets its part of every batch.
        """
        self.store, self.total = ImageStore(images), len(images)
        self.size, self.seed, self.share = max(1, min(size, self.total)), seed, share
        self.draw, self.draw_mixing = draw, draw_mixing

    def count(self, epoch: int) -> int:
        """The number of batches that begin in an epoch."""
        return -(-(self.total - self._first(epoch)) // self.size)

    def _first(self, epoch: int) -> int:
        """The start of the first batch that begins in an epoch."""
        return -epoch * self.total % self.size

    def order(self, epoch: int) -> np.ndarray:
        return np.random.default_rng([self.seed, epoch]).permutation(self.total)

    def start(self, position: tuple[int, int] = (0, 0)) -> Iterator[tuple[DataPosition, PlannedBatch]]:
        """Each batch with the position after it."""
        epoch, index = position
        own, following = self.order(epoch), self.order(epoch + 1)
        while True:
            both, first, count = np.concatenate([own, following]), self._first(epoch), self.count(epoch)
            for i in range(index, count):
                rows = both[first + i * self.size :][: self.size]
                after = DataPosition(epoch, i + 1) if i + 1 < count else DataPosition(epoch + 1, 0)
                yield after, self.make(rows, (epoch, i))
            epoch, index = epoch + 1, 0
            own, following = following, self.order(epoch + 1)

    def make(self, rows: np.ndarray, position: tuple[int, int]) -> PlannedBatch:
        """The part of a batch for this process; each image is augmented and mixed as in the whole batch."""
        random = np.random.default_rng([self.seed, *position, 1])
        number, (rank, world) = len(rows), self.share
        draws = self.draw(random, number)
        mixing = np.zeros((number, 0), np.float32) if self.draw_mixing is None else self.draw_mixing(random, number)
        partners = random.permutation(number) if self.draw_mixing else np.arange(number)
        mine = np.arange(number)[rank::world]
        if world == 1:
            return PlannedBatch(self.store, rows, draws, partners, mixing)
        chosen = np.concatenate([mine, partners[mine]])  # partners may be in the share of another process
        return PlannedBatch(self.store, rows[chosen], draws[chosen], len(mine) + np.arange(len(mine)), mixing[mine])


def in_order(images: ImageSet, size: int, device: torch.device, store: ImageStore | None = None) -> Iterator[Any]:
    """All images as (pixels, labels), in batches, in the order of the set."""
    store = store or ImageStore(images)
    for start in range(0, len(images), size):
        yield store.take(np.arange(start, min(start + size, len(images))), device)

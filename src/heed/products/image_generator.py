"""Image generation: unconditional, by class, from the upper part of an image, or from a small image."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from PIL import Image
from torch import Tensor

from heed.decoding.images import draw_turns, random_numbers
from heed.models.abilities import DrawsImages
from heed.models.outputs import check_outputs
from heed.models.package import Package
from heed.nn.pixels import shrink
from heed.products.image_classifier import ImageModel, Source
from heed.products.product import single
from heed.vocabularies.images import MAX_PIXELS, MODES, Images, UnreadableImage, decode
from heed.vocabularies.labels import Labels

Pixels = UInt8[np.ndarray, "n h w c"]
CACHE_BYTES = {"cuda": 4 << 30, "cpu": 1 << 30}  # of keys and values of the images that are generated at a time


class Upper(NamedTuple):
    """The upper part of an image that is completed: of `pixels` the first `rows` are kept. `note` says what they are."""

    pixels: UInt8[np.ndarray, "h w c"]
    rows: int
    note: str


class ImageGenerator(ImageModel):
    """A model that generates images; `labels` are its classes, if any."""

    noun, verbs, reads = "an image generator", ("generate", "evaluate"), ("images",)
    needs: ClassVar[type] = DrawsImages

    def __init__(self, model: Any, images: Images, labels: Labels | None = None, facts: dict[str, Any] | None = None):
        super().__init__(model, images, facts)
        self.labels, self.numbered = ([], []) if labels is None else (labels.names, labels.numbered)

    @classmethod
    def open(cls, packages: Sequence[Package], names: Sequence[str], **options: Any) -> "ImageGenerator":
        own = single(packages, names, cls.noun)
        return cls(own.model, own.processors["images"], own.processors.get("labels"), own.facts)

    @property
    def enlarges(self) -> int:
        """The side of the small images that it enlarges, in pixels; 0: it does not."""
        return self.model.config.small

    def generate(self, count: int = 1, **options: Any) -> Pixels:
        """`count` images as bytes; the options are those of `draw`."""
        return np.concatenate(list(self.parts(count, **options)))

    def parts(self, count: int, size: int | None = None, **options: Any) -> Iterator[Pixels]:
        """The same, `size` images at a time (default: as many as fit into a few gigabytes)."""
        config = self.model.config
        cached = 8 * config.layers * config.max_length * config.dim
        size = size or max(1, CACHE_BYTES.get(self.device.type, CACHE_BYTES["cpu"]) // cached)
        for first in range(0, max(count, 1), size):
            drawn = self.draw(range(first, min(first + size, count)), **options)
            yield self.assemble(torch.stack(list(drawn), dim=1))

    @property
    def offsets(self) -> Int[np.ndarray, " t"]:
        """Where in the bytes of an image the values of each step begin."""
        config = self.model.config
        return self.model.turns.order.cpu().numpy() * (config.channels // config.values)

    def assemble(self, values: Int[Tensor, "n t k"]) -> Pixels:
        """Images from the values of all steps."""
        return self.model.in_place(values).cpu().numpy()

    def draw(
        self,
        count: int | range = 1,
        *,
        labels: Sequence[str] = (),
        complete: Source | None = None,
        keep: float | None = None,
        enlarge: Source | None = None,
        seed: int = 1,
        temperature: float = 1.0,
        each_turn: Callable[[int, Any], None] = lambda turn, states: None,
    ) -> Iterator[Int[Tensor, "n k"]]:
        """The values that each step adds to `count` images, as soon as they are sampled. `labels`: their classes,
        cycled. `complete`: an image whose upper part is kept (see `upper`). `enlarge`: an image to enlarge, if the model
        supports it. The same seed gives the same images; a range asks for some of them.
        """
        images = range(count) if isinstance(count, int) else count
        if not (count := len(images)):
            raise ValueError(f"{count} images requested; it must be at least 1")
        if seed < 0:
            raise ValueError(f"seed is {seed}; it must be 0 or larger")
        self.model.eval()
        given: dict[str, Any] = {"labels": self._numbers(labels, images)} if self.labels or labels else {}
        if self.enlarges or enlarge is not None:
            given["small"] = self._small(enlarge, count)
        if complete is not None:
            given["known"] = self._known(self.upper(complete, keep), count)
        uniform = random_numbers(self.model, seed, images).to(self.device)
        return draw_turns(self.model, uniform, temperature=temperature, each_turn=each_turn, **given)

    def _numbers(self, labels: Sequence[str], images: range) -> Tensor:
        """The indices of the classes, cycled; without any, all classes."""
        if labels and not self.labels:
            raise ValueError("the model has no classes: leave them out")
        unknown = [name for name in labels if name not in self.labels]
        if unknown:
            raise ValueError(
                f"{unknown[0]!r} is not a class of this model; its classes are {', '.join(self.labels[:10])}"
            )
        chosen = [self.labels.index(name) for name in labels or self.labels]
        return torch.tensor([chosen[i % len(chosen)] for i in images], device=self.device)

    def _small(self, source: Source | None, count: int) -> Tensor:
        if not self.enlarges:
            raise ValueError("the model does not enlarge images: it was trained without task.enlarge")
        if source is None:
            raise ValueError("the model enlarges images: set enlarge to a small image")
        size, own = self.enlarges, self.images
        pixels = Images(size, own.channels, own.mean, own.std, own.fit, "box").pixels(_decoded(source))
        return self._tensor(pixels).expand(count, -1, -1, -1)

    def upper(self, source: Source, keep: float | None = None) -> Upper:
        """The upper part of an image. A picture wider than it is tall is an upper part itself: at the width of the
        model, all of its rows are kept. Otherwise it is a whole image, of which half is kept. `keep`: the share of a
        whole image to keep, at most all there is.
        """
        if keep is not None and not 0 < keep < 1:
            raise ValueError(f"the share of the image to keep is {keep}; it must be above 0 and below 1")
        image, own, size = _decoded(source), self.images, self.images.size
        height = max(1, int(image.height * size / image.width + 0.5))
        if partial := image.height < image.width and height < size:
            pixels = np.zeros((size, size, own.channels), np.uint8)
            pixels[:height] = _at(image, size, height, own)
            shape, how = (size, height), "resized"
        else:
            pixels, height, shape = own.pixels(image), size, (size, size)
            how = "resized" if own.fit == "stretch" or image.width == image.height else f"resized ({own.fit})"
        share = keep if keep is not None else 1.0 if partial else 0.5
        rows = min(height, max(1, int(share * size + 0.5)))
        sizes = f"{how} from {image.width} × {image.height} to {size} × {height} pixels"
        changed = "" if image.size == shape else f", {sizes}"
        note = f"{rows} of {height} rows of the picture are kept{changed}; {size - rows} are generated"
        return Upper(pixels, rows, note)

    def _known(self, upper: Upper, count: int) -> tuple[Tensor, Tensor]:
        size = self.images.size
        rows = torch.arange(size, device=self.device) < upper.rows
        return self._tensor(upper.pixels).expand(count, -1, -1, -1), rows[:, None].expand(-1, size)

    def _tensor(self, pixels: np.ndarray) -> Tensor:
        return torch.from_numpy(pixels.copy()).to(self.device)[None]

    @torch.inference_mode()
    def bits(self, pixels: np.ndarray, labels: np.ndarray) -> Float[np.ndarray, " n"]:
        """Bits per dimension of each image."""
        self.model.eval()
        found = []
        for start in range(0, len(pixels), size := 16 if self.device.type == "cpu" else 64):
            own = torch.from_numpy(np.array(pixels[start : start + size])).to(self.device)
            told: dict[str, Tensor] = {}
            if self.labels:
                told["labels"] = torch.from_numpy(labels[start : start + size]).to(self.device)
            if self.enlarges:
                told["small"] = shrink(own, self.enlarges)
            nll = self.model.pixel_nll(own, **told).double().cpu()
            check_outputs(nll)
            found.append(nll.numpy() / (np.log(2) * own[0].numel()))
        return np.concatenate(found)


def _decoded(source: Source) -> Image.Image:
    try:
        return decode(source if isinstance(source, bytes) else Path(source), MAX_PIXELS)
    except UnreadableImage as error:
        raise ValueError(f"{'the image' if isinstance(source, bytes) else source} {error}") from None


def _at(image: Image.Image, width: int, height: int, own: Images) -> np.ndarray:
    image, shape = image.convert(MODES[own.channels]), (width, height)
    image = image if image.size == shape else image.resize(shape, Image.Resampling[own.resample.upper()])
    return np.asarray(image).reshape(height, width, own.channels)


def sheet(images: Pixels, columns: int | None = None, scale: int = 1, gap: int = 2) -> Image.Image:
    """Images side by side with white borders; each pixel becomes `scale` × `scale` pixels."""
    count, height, width, channels = images.shape
    columns = columns or int(np.ceil(np.sqrt(count)))
    rows, step = -(-count // columns), (height * scale + gap, width * scale + gap)
    whole = np.full((rows * step[0] + gap, columns * step[1] + gap, channels), 255, np.uint8)
    for number, image in enumerate(images):
        top, left = gap + number // columns * step[0], gap + number % columns * step[1]
        whole[top : top + height * scale, left : left + width * scale] = image.repeat(scale, 0).repeat(scale, 1)
    return picture(whole)


def picture(pixels: UInt8[np.ndarray, "h w c"]) -> Image.Image:
    """One image, pixel by pixel."""
    return Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)

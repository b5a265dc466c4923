"""Image preprocessing: decoded by Pillow, upright, in the model's colours and size. No torch."""

import hashlib
import io
import json
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

Fit = Literal["crop", "stretch", "pad"]
Resample = Literal["nearest", "lanczos", "bilinear", "bicubic", "box", "hamming"]  # by Pillow's numbers, 0 to 5
MAX_PIXELS = 50_000_000  # of an image that is decoded, unless more are allowed
ENDINGS = (
    ".png", ".jpg", ".jpeg", ".jpe", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm", ".pbm", ".avif",
    ".jfif", ".jp2", ".tga",
)  # fmt: skip
FORMATS = ("PNG", "JPEG", "MPO", "WEBP", "BMP", "GIF", "TIFF", "PPM", "AVIF")  # of a service, as Pillow calls them
LARGEST = 1e30  # of a mean or a standard deviation
MODES = {1: "L", 3: "RGB"}
OPENING = threading.Lock()  # of headers: Python's warning filters are those of all threads


class UnreadableImage(ValueError):
    """What is wrong with an image, as a phrase that follows its name."""


class TooLarge(UnreadableImage):
    """It has more pixels than are decoded."""


def decode(source: Path | bytes, max_pixels: int = MAX_PIXELS) -> Image.Image:
    """An image from a file or its bytes: the first frame, upright by its EXIF orientation, 8 bits per channel,
    without transparency. Raises UnreadableImage. The size is checked in the header, so that a huge image is never
    decoded.
    """
    with _reported(max_pixels):
        data = source if isinstance(source, bytes) else _contents(source, max_pixels)
        with _opened(data, max_pixels) as image:
            image.load()
            return _eight_bits(ImageOps.exif_transpose(image))


def measure(data: bytes, max_pixels: int = MAX_PIXELS, formats: Sequence[str] = FORMATS) -> int:
    """The pixels of an image of one of these formats, by its header: nothing is decoded. Raises UnreadableImage."""
    with _reported(max_pixels), _opened(data, max_pixels) as image:
        if image.format not in formats:
            raise UnreadableImage(f"is in the format {image.format}; use {', '.join(formats[:-1])} or {formats[-1]}")
        return image.width * image.height


def _opened(data: bytes, max_pixels: int) -> Image.Image:
    with OPENING, warnings.catch_warnings(action="ignore", category=Image.DecompressionBombWarning):
        opened = Image.open(io.BytesIO(data))
    if opened.width * opened.height > max_pixels:
        raise _too_large(f"{opened.width:,} × {opened.height:,} pixels", max_pixels)
    return opened


@contextmanager
def _reported(max_pixels: int) -> Iterator[None]:
    """What goes wrong in Pillow becomes an UnreadableImage."""
    try:
        yield
    except UnreadableImage:
        raise
    except Image.DecompressionBombError:
        raise _too_large("more pixels than Pillow decodes", max_pixels) from None
    except UnidentifiedImageError:
        raise UnreadableImage("is not an image that Pillow can read") from None
    except FileNotFoundError:
        raise UnreadableImage("does not exist") from None
    except (MemoryError, KeyboardInterrupt):
        raise
    except Exception as error:  # each of Pillow's decoders raises its own kinds
        raise UnreadableImage(f"is damaged ({' '.join(str(error).split()) or type(error).__name__})") from None


def is_grey(path: Path, max_pixels: int = MAX_PIXELS) -> bool:
    """Whether an image is grey by its header: nothing is decoded. One that cannot be read counts as grey: it is left out."""
    try:
        with _reported(max_pixels), _opened(_contents(path, max_pixels), max_pixels) as opened:
            return opened.mode in ("1", "L", "LA") or opened.mode.startswith("I")
    except UnreadableImage:
        return True


def _contents(path: Path, max_pixels: int) -> bytes:
    """Read all of a file. From an open one Pillow would try to read as many bytes as a damaged header claims."""
    size = path.stat().st_size
    if not path.is_file():  # reading a pipe would wait for a writer
        what = "a folder" if path.is_dir() else "a pipe or a device"
        raise UnreadableImage(f"is {what}: give a file")
    if size > (1 << 20) + 16 * max_pixels:
        raise _too_large(f"{size:,} bytes, more than its pixels need", max_pixels)
    return path.read_bytes()


def _too_large(what: str, most: int) -> TooLarge:
    return TooLarge(f"has {what}, and at most {most:,} are decoded: make it smaller")


def _eight_bits(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I"):  # 16 bits, which Pillow would cut off at 255
        values = np.asarray(image).astype(np.int64)
        if values.min(initial=0) < 0 or values.max(initial=0) > 65535:
            raise UnreadableImage("has 32-bit values: save it with 8 or 16 bits")
        return Image.fromarray(((values + 128) // 257).astype(np.uint8))
    if image.mode == "F":
        raise UnreadableImage("has floating-point values: save it with 8 or 16 bits")
    if image.has_transparency_data:
        image = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")
    return image if image.mode in ("L", "RGB") else image.convert("L" if image.mode == "1" else "RGB")


@dataclass(frozen=True)
class Images:
    """How an image file becomes numbers: `size` × `size` pixels, 1 channel (grey) or 3, then (x / 255 - mean) / std.
    With `resize`, an image is fitted to that size, and its center of `size` × `size` is what the model reads.
    """

    size: int
    channels: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    fit: Fit = "crop"
    resample: Resample = "bilinear"
    resize: int | None = None

    def pixels(self, image: Image.Image) -> np.ndarray:
        """A decoded image as (size, size, channels) bytes."""
        image = fitted(image.convert(MODES[self.channels]), self.size, self.fit, self.resample, self.resize)
        return np.asarray(image).reshape(self.size, self.size, self.channels)

    def read(self, source: Path | bytes, max_pixels: int = MAX_PIXELS) -> np.ndarray:
        return self.pixels(decode(source, max_pixels))

    def key(self) -> str:
        return hashlib.sha256(json.dumps(asdict(self)).encode()).hexdigest()

    def write(self, folder: Path) -> dict[str, Any]:
        """Its entry in config.json; it has no file of its own."""
        return {"kind": "images", **asdict(self), "mean": list(self.mean), "std": list(self.std)}

    @classmethod
    def read_facts(cls, facts: Mapping[str, Any], where: str) -> "Images":
        own = {name: facts.get(name) for name in cls.__dataclass_fields__}
        for name, choices in (("fit", get_args(Fit)), ("resample", get_args(Resample)), ("channels", tuple(MODES))):
            if own[name] not in choices or isinstance(own[name], bool):
                raise ValueError(f"{where}.{name} is {own[name]!r}; it must be one of {', '.join(map(str, choices))}")
        if type(own["size"]) is not int or not 1 <= own["size"] <= 1 << 14:
            raise ValueError(f"{where}.size is {own['size']!r}; it must be an integer from 1 to {1 << 14:,}")
        most = 1 << 14 if own["fit"] != "pad" else own["size"]
        if own["resize"] is not None and (type(own["resize"]) is not int or not own["size"] <= own["resize"] <= most):
            raise ValueError(
                f"{where}.resize is {own['resize']!r}; it must be an integer from {own['size']} to {most:,}"
            )
        for name in ("mean", "std"):
            own[name] = _numbers(own[name], own["channels"], f"{where}.{name}", above_zero=name == "std")
        return cls(**own)


def _numbers(values: Any, count: int, where: str, above_zero: bool) -> tuple[float, ...]:
    right = isinstance(values, Sequence) and len(values) == count
    right = right and all(type(one) in (int, float) and abs(one) < LARGEST for one in values)
    if not right or (above_zero and min(values) <= 0):
        more = " above zero" if above_zero else ""
        raise ValueError(f"{where} is {values!r}; it must be a list of {count} numbers{more}, one per channel")
    return tuple(map(float, values))


def fitted(image: Image.Image, size: int, fit: Fit, resample: Resample, resize: int | None = None) -> Image.Image:
    """An image of `size` × `size` pixels: stretched; center-cropped; or padded with black. With `resize`, it is the
    center of one of that size.
    """
    filter_, first = Image.Resampling[resample.upper()], resize or size
    if image.size == (first, first) == (size, size):
        return image
    if fit == "stretch":
        width, height = first, first
    else:
        whole = min(image.size) if fit == "crop" else max(image.size)  # the side that gets this size
        width, height = (max(1, first * side // whole) for side in image.size)
    image = image.resize((width, height), filter_)
    left, top = (width - size) // 2, (height - size) // 2
    return image.crop((left, top, left + size, top + size))  # beyond its edges it is black

"""Prepare image files as byte arrays of one size, with labels: done once, cached, and reused by the next run."""

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from heed.data.images.config import ImagesConfig
from heed.data.images.sources import NAMED, ImageSource, Item, open_source, skipped
from heed.data.in_thread import in_order
from heed.data.prepare import cached, digest
from heed.files import atomic_folder, sha256, write_sums
from heed.vocabularies.images import MODES, Fit, Images, Resample, TooLarge, UnreadableImage, fitted
from heed.vocabularies.labels import Labels

EDITION = 2  # of the folders in the cache
PIXELS = "pixels.u8"  # images one after another, row by row, channels last
Tell = Callable[[str, int | None], None]


class ImageSet:
    """Prepared images, opened from their folder; `rows` are those in use (default: all)."""

    def __init__(self, folder: Path, rows: np.ndarray | None = None):
        self.folder = folder
        self.facts: dict[str, Any] = json.loads((folder / "images.json").read_text("utf-8"))
        self.every_label = np.load(folder / "labels.npy", allow_pickle=False)
        shape = len(self.every_label), self.facts["size"], self.facts["size"], self.facts["channels"]
        self.pixels = np.memmap(folder / PIXELS, np.uint8, "r", shape=shape)
        self.rows = np.arange(len(self.every_label)) if rows is None else rows

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def classes(self) -> list[str]:
        return self.facts["classes"]

    @property
    def labels(self) -> np.ndarray:
        return self.every_label[self.rows]

    def names(self) -> list[str]:
        every = (self.folder / "names.txt").read_text("utf-8").split("\n")
        return [every[row] for row in self.rows]

    def take(self, rows: np.ndarray) -> "ImageSet":
        """Some of these images."""
        return ImageSet(self.folder, self.rows[rows])

    def content(self, index: int) -> np.ndarray:
        """The pixels of an image."""
        return self.pixels[self.rows[index]]

    def summary(self) -> str:
        """How many images there are, and of what kind."""
        size, kind = self.facts["size"], "in colour" if self.facts["channels"] == 3 else "in grey"
        classes = f", of {len(self.classes)} classes," if len(self.classes) > 1 else ""
        return f"{len(self):,} images of {size} × {size} pixels {kind}{classes} to train on."

    def broken_summary(self) -> list[str]:
        """A sentence about unreadable images, with names, and one about files that are not images."""
        broken, found = self.facts["broken"], []
        if broken:
            some = "; ".join(f"{name} {why}" for name, why in broken[:NAMED])
            rest = f"; and {len(broken) - NAMED:,} more" if len(broken) > NAMED else ""
            found.append(f"{len(broken):,} images cannot be read and are skipped: {some}{rest}.")
        if others := self.facts["others"]:
            found.append(skipped(self.facts["others_named"], others))
        return found

    def statistics(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Mean and standard deviation of each channel, of values from 0 to 1."""
        return tuple(self.facts["mean"]), tuple(self.facts["std"])


@dataclasses.dataclass(frozen=True)
class Form:
    """The common shape of all images of a set; None for a size taken from the images themselves."""

    size: int | None
    channels: int
    fit: Fit
    resample: Resample
    resize: int | None = None  # images are fitted to this size first, and their center is cut out


def prepare(
    names: Sequence[str],
    config: ImagesConfig,
    form: Form,
    classes: Sequence[str] | None,
    tell: Tell,
    labelled: bool = True,
) -> tuple[str, ImageSet]:
    """The key of some entries of data.images and their images, read or cached. `classes` are the allowed labels in
    order; None: taken from the labels. Without `labelled`, all images have a single unnamed class, and a folder needs
    no subfolders.
    """
    sources = [open_source(name, config.columns, config.max_pixels, labelled) for name in names]
    if not labelled:
        sources, classes = [own.without_labels() for own in sources], [""]
    hashes = [
        [(_name(path, name), sha256(path)) for path in own.files] for name, own in zip(names, sources, strict=True)
    ]
    given = [config.columns, config.classes if labelled else [], config.broken, config.max_pixels, list(classes or [])]
    key = digest("images", EDITION, hashes, dataclasses.asdict(form), given)

    def make(folder: Path) -> None:
        _write(folder, sources, config, form, classes, tell)

    return key, cached(f"images-{key}", ImageSet, make, tell)


def _name(path: Path, root: str) -> str:
    """A path that is independent of where the data are stored: its folder may be the label."""
    return path.relative_to(root).as_posix() if Path(root).is_dir() else path.name


def channels_of(names: Sequence[str], config: ImagesConfig) -> int:
    """1 for grey, 3 for color."""
    if config.colours != "auto":
        return 1 if config.colours == "grey" else 3
    return 1 if all(open_source(name, config.columns, config.max_pixels, False).grey() for name in names) else 3


def _write(
    folder: Path,
    sources: Sequence[ImageSource],
    config: ImagesConfig,
    form: Form,
    classes: Sequence[str] | None,
    tell: Tell,
) -> None:
    broken: list[tuple[str, str]] = []
    labels, names, counts = [], [], np.zeros((form.channels, 256), np.int64)
    with atomic_folder(folder, "keep") as part:
        with open(part / PIXELS, "wb") as file:  # one by one: all at once may be more than fits in memory
            for found, item in _readable(sources, config, form, broken, tell):
                form = form if form.size else dataclasses.replace(form, size=_size(found, item))
                pixels = _pixels(found, form, item, config) if isinstance(found, Image.Image) else found
                counts += np.stack([np.bincount(own, minlength=256) for own in pixels.reshape(-1, form.channels).T])
                file.write(pixels.tobytes())
                labels.append(_label(item, config.classes))
                names.append(item.name)
        _check(labels, broken, training=classes is None)
        known = list(classes) if classes is not None else config.classes or _in_order(set(labels))
        numbers = _numbers(labels, names, known)
        mean, std = _statistics(counts)
        others = [name for source in sources for name in source.others]
        facts = {"classes": known, "broken": broken, "others": len(others), "others_named": others[:NAMED]}
        facts |= {"mean": mean, "std": std, **dataclasses.asdict(form)}
        np.save(part / "labels.npy", numbers, allow_pickle=False)
        text = "".join(f"{' '.join(name.split())}\n" for name in names)
        (part / "names.txt").write_text(text, encoding="utf-8", newline="\n")
        (part / "images.json").write_text(json.dumps(facts, indent=1), encoding="utf-8", newline="\n")
        write_sums(part)


def _in_order(labels: Iterable[str]) -> list[str]:
    """Class names sorted; if all are numbers, by value."""
    every = sorted(labels)
    return sorted(every, key=int) if all(name.isdecimal() and len(name) < 10 for name in every) else every


def _numbers(labels: Sequence[str], names: Sequence[str], known: Sequence[str]) -> np.ndarray:
    """The index of each label among the known classes."""
    numbers = {name: i for i, name in enumerate(known)}
    for name, label in zip(names, labels, strict=True):
        if label not in numbers:
            raise ValueError(f"{name} is of class {label!r}, which is not among the training classes: {_some(known)}")
    return np.array([numbers[label] for label in labels], np.int64)


def _readable(
    sources: Sequence[ImageSource], config: ImagesConfig, form: Form, broken: list[tuple[str, str]], tell: Tell
) -> Iterator[tuple[Image.Image | np.ndarray, Item]]:
    """The pixels of the readable images, or while no size is known the images, decoded in several threads; the others
    are added to `broken` with the reason.
    """

    def read(item: Item) -> Image.Image | np.ndarray:
        return _pixels(item.read(), form, item, config) if form.size else item.read()

    every = (item for source in sources for item in source.items())
    with closing(in_order(read, every)) as found:
        for done, (item, result) in enumerate(found, 1):
            if done % 500 == 0:
                tell("reading images", done)
            try:
                own = result()
            except UnreadableImage as error:
                error = f"{error}, or raise max_pixels" if isinstance(error, TooLarge) else error
                if config.broken == "refuse":
                    raise ValueError(f"{item.name} {error}; or set data.broken to 'leave out'") from None
                broken.append((item.name, str(error)))
            else:
                yield own, item


def _size(image: Image.Image, item: Item) -> int:
    """The size of the first image, which must be that of all."""
    if image.width != image.height:
        raise ValueError(
            f"{item.name} is {image.width} × {image.height} pixels, which is not square: set data.size, for example to 224, and "
            "all images are fitted to it (data.fit)"
        )
    return image.width


def _pixels(image: Image.Image, form: Form, item: Item, config: ImagesConfig) -> np.ndarray:
    if config.size is None and image.size != (form.size, form.size):
        raise ValueError(
            f"{item.name} is {image.width} × {image.height} pixels, and the first image {form.size} × {form.size}: set "
            "data.size, and all images are resized to it (data.fit)"
        )
    image = fitted(image.convert(MODES[form.channels]), form.size, form.fit, form.resample, form.resize)
    return np.asarray(image).reshape(form.size, form.size, form.channels)


def _label(item: Item, classes: Sequence[str]) -> str:
    """The class name of an item; a number is looked up in data.classes, unless a text is itself among them."""
    label = Labels([]).clean(str(item.label))
    if not classes or (isinstance(item.label, str) and (label in classes or not label.isdecimal())):
        return label
    if len(label) > 9 or int(label) >= len(classes):
        raise ValueError(f"{item.name} has label {label}, but data.classes has {len(classes)} names, counted from 0")
    return classes[int(label)]


def _check(labels: Sequence[str], broken: Sequence[tuple[str, str]], training: bool) -> None:
    if not labels:
        first = f", for example {broken[0][0]}, which {broken[0][1]}" if broken else ""
        raise ValueError(f"data: no image can be read of {len(broken):,}{first}")
    if training and len(set(labels)) == 1:
        raise ValueError(
            f"data.images: all {len(labels):,} images are of one class, {labels[0]!r}: a classifier needs at least "
            "two, each in its own folder"
        )


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", …" if len(names) > 5 else "")


def _statistics(counts: np.ndarray) -> tuple[list[float], list[float]]:
    """Mean and standard deviation of each channel, from a histogram of byte values."""
    values, shares = np.arange(256) / 255, counts / counts.sum(axis=1, keepdims=True)
    mean = shares @ values
    variance = (shares * (values - mean[:, None]) ** 2).sum(axis=1)
    return mean.tolist(), np.maximum(1e-3, np.sqrt(variance)).tolist()


def processor(images: ImageSet) -> Images:
    """How to read further images for a model trained on these."""
    f = images.facts
    mean, std = images.statistics()
    return Images(f["size"], f["channels"], mean, std, f["fit"], f["resample"], f["resize"])

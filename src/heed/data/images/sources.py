"""Image files with labels: class folders, CSV, the IDX files of MNIST, and CIFAR sheets."""

import csv
import gzip
import json
import os
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from heed.config import parse_json
from heed.data.readers import OPENERS
from heed.files import check_file
from heed.vocabularies.images import ENDINGS, UnreadableImage, decode, is_grey

NAMED = 5  # skipped files that are named
CIFAR = 32  # pixels each way of an image in a sheet


class Item(NamedTuple):
    """An image of a source: its name, its label (a number if the file has numbers), and how to read it."""

    name: str
    label: str | int
    read: Callable[[], Image.Image]


class ImageSource(NamedTuple):
    """The images of one entry of data.images. `files` are all files read, for a hash of their contents; `grey` says
    whether all images are, by their headers. `others` are files that are not images.
    """

    files: list[Path]
    items: Callable[[], Iterator[Item]]
    grey: Callable[[], bool]
    others: Sequence[str] = ()

    def without_labels(self) -> "ImageSource":
        items = self.items
        return self._replace(items=lambda: (item._replace(label="") for item in items()))


def open_source(
    name: str, columns: Sequence[int | str] = (1, 2), max_pixels: int = 1 << 62, labelled: bool = True
) -> ImageSource:
    """The source of an entry of data.images, by its extension; with `labelled`, a folder must have subfolders."""
    path = Path(name)
    if path.is_dir():
        return _folders(path, max_pixels, labelled)
    if not path.exists():
        raise ValueError(f"{path}: no such file or folder of images")
    check_file(path)
    plain = path.name.removesuffix(".gz")
    if re.search(r"idx\d-ubyte$|\.idx\d?$", plain):
        return _idx(path, labelled)
    if plain.endswith((".csv", ".tsv")):
        return _table(path, columns, max_pixels)
    if plain.endswith(".json"):
        return _sheets(path)
    raise ValueError(
        f"{path}: images can be read from a folder per class, .csv and .tsv files of paths and labels, IDX files "
        "(train-images-idx3-ubyte.gz), and the label files of CIFAR sheets (train_lables.json)"
    )


def image_files(folder: Path) -> tuple[list[Path], list[Path]]:
    """All images in a folder and its subfolders by name, and the other files; hidden files are ignored."""
    found = sorted(_files(folder, ()))
    images = [path for path in found if path.suffix.lower() in ENDINGS]
    return images, [path for path in found if path.suffix.lower() not in ENDINGS]


def _files(folder: Path, above: tuple[Path, ...]) -> Iterator[Path]:
    """All files, also those of linked folders, and links to nothing. A link back to a folder `above` is not followed."""
    own = folder.resolve()
    if own in above:
        return
    try:
        entries = [entry for entry in os.scandir(folder) if not entry.name.startswith(".")]
    except OSError as error:
        raise ValueError(f"{folder} cannot be read ({error.strerror}): check its permissions") from None
    for entry in entries:
        path = folder / entry.name
        if entry.is_dir():
            yield from _files(path, (*above, own))
        elif entry.is_file() or not path.exists():
            yield path


def skipped(others: Sequence[str], count: int | None = None) -> str:
    """A sentence about files that are not images, with the first few; `count`: how many they are in all."""
    count = len(others) if count is None else count
    some = ", ".join(others[:NAMED]) + (f" and {count - NAMED:,} more" if count > NAMED else "")
    return f"{count:,} files that do not look like images, by their endings, are skipped: {some}."


def _folders(root: Path, max_pixels: int, labelled: bool) -> ImageSource:
    images, others = image_files(root)
    inside = [path for path in images if path.parent != root or not labelled]
    if not images:
        what = ": it must have one folder of images per class" if labelled else ""
        kinds = f" (files with other endings, such as {others[0].relative_to(root)}, do not count)" if others else ""
        raise ValueError(f"{root} has no images{kinds}{what}")
    if not inside:
        raise ValueError(
            f"{root} has images, but no subfolders: put the images of each class into a folder named after it, or "
            "write a CSV file of paths and labels"
        )
    if len(inside) < len(images):
        raise ValueError(
            f"{root} has {len(images) - len(inside)} images outside the class folders, such as "
            f"{next(path for path in images if path.parent == root).name}: move each into one of them"
        )

    def items() -> Iterator[Item]:
        for path in inside:
            own = path.relative_to(root)
            yield Item(own.as_posix(), own.parts[0], lambda path=path: decode(path, max_pixels))

    names = [path.relative_to(root).as_posix() for path in others]
    there = [path for path in inside if path.is_file()]
    return ImageSource(there, items, lambda: all(is_grey(path, max_pixels) for path in there), names)


def _table(path: Path, columns: Sequence[int | str], max_pixels: int) -> ImageSource:
    rows = list(_cells(path, columns))
    if not rows:
        raise ValueError(f"{path} has no lines with both a path and a label")
    files = [path.parent / own for own, _ in rows]

    def items() -> Iterator[Item]:
        for file, (own, label) in zip(files, rows, strict=True):
            yield Item(own, label, lambda file=file: decode(file, max_pixels))

    there = [file for file in files if file.is_file()]
    return ImageSource([path, *there], items, lambda: all(is_grey(file, max_pixels) for file in there))


def _cells(path: Path, columns: Sequence[int | str]) -> Iterator[tuple[str, str]]:
    """The path and label of each line; if columns are given by name, the first line is the header."""
    tab = path.name.removesuffix(".gz").endswith(".tsv")
    places = [column - 1 for column in columns if isinstance(column, int)]
    try:
        with OPENERS.get(path.suffix, open)(path, "rt", encoding="utf-8-sig", newline="") as file:
            for number, cells in enumerate(csv.reader(file, delimiter="\t" if tab else ","), 1):
                if len(places) < len(columns):
                    places = [_place(path, cells, column) for column in columns]
                    continue
                if not cells:
                    continue
                if len(cells) <= max(places):
                    raise ValueError(f"{path}, line {number} has {len(cells)} columns; data.columns requires {columns}")
                own, label = (cells[place].strip() for place in places)
                if not own or not label:
                    raise ValueError(f"{path}, line {number} has no {'label' if own else 'path'}")
                yield own, label
    except (UnicodeDecodeError, csv.Error, OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path} cannot be read as a table ({error}): save it as UTF-8") from None


def _place(path: Path, header: Sequence[str], column: int | str) -> int:
    if isinstance(column, int):
        return column - 1
    if column not in header:
        raise ValueError(f"{path} has no column {column!r}; its header has {', '.join(header)}")
    return list(header).index(column)


def _idx(path: Path, labelled: bool) -> ImageSource:
    """An IDX file of images, and next to it the file of labels: the same name with labels for images and idx1 for
    idx3. Without `labelled` it may be missing.
    """
    name = path.name.replace("images", "labels").replace("idx3", "idx1")
    beside = path.with_name(name)
    alone = name == path.name or not beside.is_file()
    if labelled and alone:
        raise ValueError(
            f"{path}: the labels of these images should be in {beside.name} next to it, which does not exist"
        )

    def items() -> Iterator[Item]:
        images = read_idx(path, 3)
        labels = np.zeros(len(images), np.uint8) if alone else read_idx(beside, 1)
        if len(images) != len(labels):
            raise ValueError(f"{path} has {len(images):,} images, but {beside.name} {len(labels):,} labels")
        for number, (pixels, label) in enumerate(zip(images, labels.tolist(), strict=True)):
            yield Item(f"{path.name}:{number}", label, lambda pixels=pixels: Image.fromarray(pixels))

    return ImageSource([path] if alone else [path, beside], items, lambda: True)


def read_idx(path: Path, axes: int) -> np.ndarray:
    """The bytes of an IDX file, plain or gzipped, which must have this many axes."""
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is damaged ({error}): copy it again") from None
    if len(data) < 4 * (axes + 1) or data[:4] != bytes([0, 0, 8, axes]):
        raise ValueError(f"{path} is not an IDX file of bytes with {axes} axes")
    shape = np.frombuffer(data, ">u4", axes, offset=4).astype(np.int64).tolist()
    if len(data) != 4 * (axes + 1) + int(np.prod(shape)):
        raise ValueError(f"{path} is truncated or too long: its header states {' × '.join(map(str, shape))} bytes")
    return np.frombuffer(data, np.uint8, offset=4 * (axes + 1)).reshape(shape)


def _sheets(path: Path) -> ImageSource:
    """Labels as a JSON list, next to the sheets: PNG files in which each row holds the 32 × 32 pixels of one image."""
    pattern = "test_batch*.png" if path.name.startswith("test") else "data_batch*.png"
    sheets = sorted(path.parent.glob(pattern))
    if not sheets:
        raise ValueError(f"{path}: the sheets for these labels, {pattern}, are not next to it")
    for sheet in sheets:
        check_file(sheet)

    def items() -> Iterator[Item]:
        labels = _labels(path)
        count = 0
        for sheet in sheets:
            pixels = _sheet(sheet)
            for row, own in enumerate(pixels[: max(0, len(labels) - count)]):
                yield Item(f"{sheet.name}:{row}", labels[count + row], lambda own=own: Image.fromarray(own))
            count += len(pixels)
        if count != len(labels):
            raise ValueError(f"{path} has {len(labels):,} labels, but its sheets have {count:,} images")

    return ImageSource([path, *sheets], items, lambda: False)


def _labels(path: Path) -> list[int]:
    try:
        labels = parse_json(path.read_text("utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, ValueError) as error:
        raise ValueError(f"{path} is not valid JSON: {error}") from None
    if not isinstance(labels, list) or not all(type(label) is int and label >= 0 for label in labels):
        raise ValueError(f"{path} must be a list of integers, one label per image")
    return labels


def _sheet(path: Path) -> np.ndarray:
    try:
        image = decode(path, 1 << 62)
    except UnreadableImage as error:
        raise ValueError(f"{path} {error}") from None
    if image.mode != "RGB" or image.width != CIFAR * CIFAR:
        raise ValueError(f"{path} is {image.width} pixels wide; a sheet has {CIFAR * CIFAR}, one color image per row")
    return np.asarray(image).reshape(-1, CIFAR, CIFAR, 3)

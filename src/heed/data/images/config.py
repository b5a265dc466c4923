"""The [data] section of image tasks."""

from dataclasses import dataclass, field
from typing import Literal

from heed.vocabularies.images import MAX_PIXELS, Fit, Resample

Colours = Literal["auto", "grey", "rgb"]


@dataclass(frozen=True)
class ImagesConfig:
    """Image sources, and how they are read."""

    images: list[str] = field(default_factory=list)  # class folders, CSV, IDX or CIFAR sheets (docs/guides/images.md)
    valid_images: list[str] = field(default_factory=list)  # validation images
    holdout: int = 1000  # without validation images, this many are set aside (at most a tenth)
    columns: list[int | str] = field(default_factory=lambda: [1, 2])  # CSV columns of path and label, by number or name
    classes: list[str] = field(default_factory=list)  # class names, where the files have numbers from 0
    size: int | None = (
        None  # image size in pixels (default: that of the images, if all are the same size; with --from, that of the model)
    )
    colours: Colours = "auto"  # "auto": grey if all readable files are, by their headers; with --from, as that model
    fit: Fit | None = (
        None  # for images that are not square: crop the center, stretch, or pad with black (default: "crop"; with --from, as that model)
    )
    resample: Resample | None = (
        None  # interpolation used to resize images (default: "bilinear"; with --from, as that model)
    )
    broken: Literal["leave out", "refuse"] = (
        "leave out"  # what to do with unreadable images; they are counted and listed
    )
    max_pixels: int = MAX_PIXELS  # larger images are not decoded and count as unreadable
    licence: str | None = None  # licence of the data, for the model card

    def __post_init__(self):
        if not self.images:
            raise ValueError("data.images is empty: set it to a folder with one subfolder of images per class")
        if len(self.columns) != 2 or any(
            column == "" or (type(column) is int and column < 1) for column in self.columns
        ):
            raise ValueError(f"data.columns is {self.columns}; it must be two columns, path and label")
        if self.size is not None and not 1 <= self.size <= 4096:
            raise ValueError(f"data.size is {self.size}; it must be from 1 to 4,096")
        if self.holdout < 0:
            raise ValueError(f"data.holdout is {self.holdout}; it must be at least 0")
        if self.max_pixels < 1:
            raise ValueError(f"data.max_pixels is {self.max_pixels}; it must be at least 1")
        if len(set(self.classes)) < len(self.classes) or "" in self.classes:
            raise ValueError("data.classes must be distinct names")

"""The [data] section of tasks on images."""

from dataclasses import dataclass, field
from typing import Literal

from heed.vocabularies.images import MAX_PIXELS, Fit, Resample

Colours = Literal["auto", "grey", "rgb"]


@dataclass(frozen=True)
class ImagesConfig:
    """Where images are, and the form in which they are read."""

    images: list[str] = field(
        default_factory=list
    )  # folders of folders, CSV, IDX, CIFAR's sheets (docs/guides/images.md)
    valid_images: list[str] = field(default_factory=list)  # the same, to validate on
    holdout: int = 1000  # without those, this many images are set aside, a tenth at most
    columns: list[int | str] = field(default_factory=lambda: [1, 2])  # of CSV: path and label, by number or by name
    classes: list[str] = field(default_factory=list)  # names, where the files have numbers from 0 on
    size: int | None = None  # pixels each way; by default that of the images if all have one, or of the model (--from)
    colours: Colours = "auto"  # "auto": grey if all files are, as IDX files; the same as the model's (--from)
    fit: Fit = "crop"  # an image of another shape: its middle, or "stretch" it, or "pad" it with black
    resample: Resample = "bilinear"  # how an image of another size is resized
    broken: Literal["leave out", "refuse"] = "leave out"  # images that cannot be read; they are counted and named
    max_pixels: int = MAX_PIXELS  # a larger image is not decoded, and counts as one that cannot be read
    licence: str | None = None  # of the data, for the model card

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

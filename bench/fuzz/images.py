"""Readers of images: files that Pillow decodes, tables of paths, IDX files, CIFAR's sheets, and how a folder says that images are read."""

import gzip
import io
import json
from pathlib import Path

import numpy as np
from PIL import Image

from bench.fuzz.cases import Case
from heed.convert import vit
from heed.data.images.sources import open_source
from heed.models.vit import ViTConfig
from heed.vocabularies.images import Images, UnreadableImage, decode

MOST = 1_000_000  # pixels of an image


def _encoded(kind: str, mode: str = "RGB", **options) -> bytes:
    pixels = np.arange(16 * 16 * 3, dtype=np.uint8).reshape(16, 16, 3)
    out = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(out, format=kind, **options)
    return out.getvalue()


def file_seeds() -> list[Case]:
    exif = Image.Exif()
    exif[0x0112] = 6
    kinds = {
        "a.png": ("PNG", "RGB"),
        "b.png": ("PNG", "P"),
        "c.png": ("PNG", "RGBA"),
        "d.gif": ("GIF", "P"),
        "e.bmp": ("BMP", "RGB"),
    }
    kinds |= {"f.webp": ("WEBP", "RGB"), "g.tiff": ("TIFF", "RGB"), "h.jpg": ("JPEG", "CMYK"), "i.ppm": ("PPM", "RGB")}
    return [{name: _encoded(*own)} for name, own in kinds.items()] + [{"j.jpg": _encoded("JPEG", exif=exif)}]


def read_files(folder: Path) -> None:
    for path in folder.iterdir():
        try:
            image = decode(path, MOST)
        except UnreadableImage:
            continue
        for fit in ("crop", "stretch", "pad"):
            Images(8, 3, (0.5,) * 3, (0.5,) * 3, fit).pixels(image)


def _idx(values: np.ndarray) -> bytes:
    return bytes([0, 0, 8, values.ndim]) + np.array(values.shape, ">u4").tobytes() + values.tobytes()


def set_seeds() -> list[Case]:
    images, labels = _idx(np.arange(3 * 16, dtype=np.uint8).reshape(3, 4, 4)), _idx(np.array([1, 0, 1], np.uint8))
    sheet = io.BytesIO()
    Image.fromarray(np.zeros((2, 1024, 3), np.uint8)).save(sheet, format="PNG")
    packed = {"t-images-idx3-ubyte.gz": gzip.compress(images), "t-labels-idx1-ubyte.gz": gzip.compress(labels)}
    return [
        {"t-images-idx3-ubyte": images, "t-labels-idx1-ubyte": labels},
        packed,
        {"train_lables.json": b"[1, 0]", "data_batch_1.png": sheet.getvalue()},
        {"list.csv": b'a.png,cat\n"b.png",dog\n', "a.png": _encoded("PNG")},
        {"list.tsv": "path\tlabel\na.png\t고양이\n".encode()},
    ]


def read_sets(folder: Path) -> None:
    for path in sorted(folder.iterdir()):
        if path.name.startswith(("t-images", "train", "list")):
            columns = ["path", "label"] if path.suffix == ".tsv" else [1, 2]
            for item in open_source(str(path), columns, MOST).items():
                try:
                    item.read()
                except UnreadableImage:
                    continue


def preprocessor_seeds() -> list[Case]:
    own = {
        "do_resize": True,
        "size": {"height": 8, "width": 8},
        "resample": 2,
        "rescale_factor": 1 / 255,
        "image_mean": [0.5] * 3,
    }
    cut = {
        "size": {"shortest_edge": 8},
        "crop_size": {"height": 8, "width": 8},
        "do_center_crop": True,
        "image_std": [0.5] * 3,
    }
    larger = {**cut, "size": {"height": 9, "width": 9}}
    return [
        {"preprocessor_config.json": json.dumps(one).encode()} for one in (own, own | cut, own | larger, {"size": 8})
    ]


def read_preprocessor(folder: Path) -> None:
    from heed.files import damage_reported
    from heed.models.folder_config import read_json

    path = folder / vit.PREPROCESSOR
    settings = read_json(path, "settings")
    with damage_reported(str(path)):
        vit.to_ours(settings, ViTConfig(size=8, patch=4))

"""The sheets of docs/guides/images.md: `python -m bench.image_sheets --draw RUN --enlarge RUN --fashion RUN --out docs/guides`.

Samples of the first run are completed and enlarged, so that no image of a corpus is shown.
"""

import argparse
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from heed.loading import load
from heed.products.image_generator import ImageGenerator, Pixels, sheet

CELL, GAP, COLUMNS = 64, 2, 12  # pixels of an image in a sheet, and between two; samples in a row


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m bench.image_sheets", description=__doc__.splitlines()[0])
    top.add_argument("--draw", metavar="RUN", help="an Image Transformer that is told nothing")
    top.add_argument("--samples", type=Path, metavar="SHEET", help="its sheet of samples, instead of --draw")
    top.add_argument("--enlarge", metavar="RUN", help="one for super-resolution, which gets these samples")
    top.add_argument("--fashion", metavar="RUN", help="one by class")
    top.add_argument("--out", type=Path, default=Path(), help="the folder for the sheets")
    top.add_argument("--images", type=int, default=6, help="images that are completed and enlarged (default: 6)")
    top.add_argument("--variants", type=int, default=6, help="completions and enlargements of each (default: 6)")
    top.add_argument("--device", default="auto")
    return top


def png(pixels: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels).save(file, format="PNG")
    return file.getvalue()


def samples_of(path: Path, size: int, count: int) -> Pixels:
    """The first images of a sheet of samples, each with `size` pixels both ways."""
    whole, scale = np.asarray(Image.open(path).convert("RGB")), max(1, CELL // size)
    end, step = size * scale, size * scale + GAP
    corners = [(GAP + i // COLUMNS * step, GAP + i % COLUMNS * step) for i in range(count)]
    return np.stack([whole[top : top + end : scale, left : left + end : scale] for top, left in corners])


def completions(model: ImageGenerator, samples: Pixels, variants: int) -> Pixels:
    """Of each sample the upper half, completions of it, and the sample itself."""
    rows = []
    for number, image in enumerate(samples):
        half = image.copy()
        half[len(half) // 2 :] = 128
        rows += [half[None], model.generate(variants, complete=png(image), seed=number + 1), image[None]]
    return np.concatenate(rows)


def enlargements(model: ImageGenerator, samples: Pixels, variants: int) -> Pixels:
    """Of each sample what is left at the small size, enlargements of it, and the sample itself."""
    rows, size = [], model.enlarges
    for number, image in enumerate(samples):
        times = len(image) // size
        small = image.reshape(size, times, size, times, -1).mean(axis=(1, 3)).round().astype(np.uint8)
        large = small.repeat(times, 0).repeat(times, 1)
        rows += [large[None], model.generate(variants, enlarge=png(small), seed=number + 1), image[None]]
    return np.concatenate(rows)


def main(words: Sequence[str] | None = None) -> int:
    top = parser()
    args = top.parse_args(words)
    if args.enlarge and bool(args.draw) == bool(args.samples):
        top.error("--enlarge needs samples: add either --draw or --samples")
    args.out.mkdir(parents=True, exist_ok=True)

    def opened(run: str) -> ImageGenerator:
        return load(run, args.device, verb="generate")

    def save(name: str, images: Pixels, columns: int) -> None:
        path = args.out / f"images-{name}.png"
        sheet(images, columns, scale=max(1, CELL // images.shape[1]), gap=GAP).save(path, optimize=True)
        print(f"{path}: {len(images)} images")

    if args.draw:
        model = opened(args.draw)
        samples = model.generate(64, seed=1)
        save("samples", samples[:48], COLUMNS)
        save("completed", completions(model, samples[: args.images], args.variants), args.variants + 2)
    if args.enlarge:
        larger = opened(args.enlarge)
        samples = samples_of(args.samples, larger.model.config.size, args.images) if args.samples else samples
        save("enlarged", enlargements(larger, samples[: args.images], args.variants), args.variants + 2)
    if args.fashion:
        save("by-class", opened(args.fashion).generate(60, seed=1), 10)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

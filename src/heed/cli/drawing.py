"""heed generate for image models."""

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def generate(args: argparse.Namespace) -> int:
    """Write generated images: one as it is, several as a sheet or, into a folder, each to its own file."""
    from heed.cli.common import errors, open_product

    out, folder = Path(args.out or ""), bool(args.out) and _is_folder(args.out)
    if not folder and out.suffix.lower() != ".png":
        raise ValueError(
            f"images are written to a file or a folder: give --out samples.png or --out samples/ (--out is {args.out})"
        )
    if args.keep is not None and not args.complete:
        raise ValueError("--keep is the share of the image of --complete: add --complete IMAGE, or leave it out")
    options = {"complete": args.complete, "keep": args.keep, "enlarge": args.enlarge, "labels": args.class_name or ()}
    options["temperature"] = 1.0 if args.temperature is None else args.temperature
    generator = open_product(args, "generate")
    parts = generator.parts(args.count, seed=1 if args.seed is None else args.seed, **options)
    _write_each(parts, out, args.count) if folder else _write_sheet(parts, out)
    what = "1 image" if args.count == 1 else f"{args.count:,} images"
    errors().print(f"[dim]{what} in {args.out}[/]", highlight=False)
    if args.complete:
        errors().print(f"[dim]{generator.upper(args.complete, args.keep).note}[/]", highlight=False)
    return 0


def _is_folder(out: str) -> bool:
    """Whether --out names a folder: one that exists, or a new one."""
    path = Path(out)
    return path.is_dir() or (not path.exists() and (out.endswith("/") or not path.suffix))


def _write_each(parts: Iterable[Any], folder: Path, count: int) -> None:
    """Each image to a file named by its number, as soon as its part is generated."""
    from heed.files import atomic_file
    from heed.products.image_generator import picture

    for number, image in enumerate((own for part in parts for own in part), 1):
        with atomic_file(folder / f"{number:0{len(str(count))}}.png") as part:
            picture(image).save(part, format="PNG")


def _write_sheet(parts: Iterable[Any], path: Path) -> None:
    """One image as it is; several side by side, small ones enlarged."""
    import numpy as np

    from heed.files import atomic_file
    from heed.products.image_generator import picture, sheet

    found = np.concatenate(list(parts))
    whole = picture(found[0]) if len(found) == 1 else sheet(found, scale=max(1, 96 // found.shape[1]))
    with atomic_file(path) as part:
        whole.save(part, format="PNG")

"""heed classify, heed embed and heed evaluate for image models."""

import argparse
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any


def add_images(parser: argparse.ArgumentParser) -> None:
    """The options of heed evaluate."""
    from heed.cli.common import add_max_pixels

    option = parser.add_argument
    option(
        "--images", nargs="+", metavar="PATH", help="for an image classifier: class folders, CSV, IDX or CIFAR sheets"
    )
    option(
        "--pictures",
        type=Path,
        metavar="FOLDER",
        help="write a confusion matrix, a calibration plot and the worst mistakes as PNG, and all mistakes as mistakes.tsv",
    )
    option(
        "--precision",
        choices=["float32", "bfloat16"],
        help="for an image classifier (default: float32; with --engine auto as heed classify)",
    )
    add_max_pixels(parser)


def reads_images(folder: str, verb: str | None = None) -> bool:
    """Whether a folder, or a name on the hub, is opened as an image model."""
    from heed.cli.common import product_of_model

    return "images" in getattr(product_of_model(folder, verb), "reads", ())


def found_files(names: Sequence[str]) -> list[Path]:
    """Image files, and those in folders, in the order given; other files in folders are counted on standard error."""
    from heed.cli.common import errors
    from heed.data.images.sources import image_files, skipped

    found: list[Path] = []
    for name in names:
        path = Path(name)
        if not path.exists():
            raise ValueError(f"{name}: no such file or folder")
        inside, others = image_files(path) if path.is_dir() else ([path], [])
        if others:
            line = f"{name}: {skipped([str(own.relative_to(path)) for own in others])}"
            errors().print(line, highlight=False, markup=False, soft_wrap=True)
        if not inside:
            raise ValueError(f"{name} contains no images")
        found += inside
    if not found:
        raise ValueError("give images, or folders of images")
    return found


def readable(product: Any, paths: Sequence[Path], max_pixels: int) -> Iterator[tuple[list[Path], list[Any], int]]:
    """For each batch the readable images with their pixels; the others are counted and listed on standard error. The
    next batch is decoded while the model works.
    """
    from heed.cli.common import errors
    from heed.data.in_thread import in_order
    from heed.vocabularies.images import TooLarge, UnreadableImage

    if max_pixels < 1:
        raise ValueError(f"--max-pixels is {max_pixels}; it must be at least 1")
    parts = list(product.batches(paths))
    found = in_order(partial(product.images.read, max_pixels=max_pixels), paths, ahead=len(parts[0]) if parts else 0)
    for part in parts:
        kept, pixels = [], []
        for path, result in islice(found, len(part)):
            try:
                pixels.append(result())
                kept.append(path)
            except UnreadableImage as error:
                more = ", or raise --max-pixels" if isinstance(error, TooLarge) else ""
                errors().print(f"{path} {error}{more}", highlight=False, markup=False, soft_wrap=True)
        yield kept, pixels, len(part) - len(kept)


def _opened(args: argparse.Namespace, verb: str, folders: list[str] | None = None) -> Any:
    """The model in its precision; if one is given, engine auto does not quantize. heed evaluate gives none and, unless
    the engine is auto, leaves the weights as they are.
    """
    from heed.cli.common import open_product
    from heed.products.text_batches import in_precision

    precision = args.precision or ("auto" if args.engine == "auto" else None)
    if precision != "auto" and args.engine == "auto":
        args.engine = "torch"
    product = open_product(args, verb, folders)
    if precision:
        in_precision(product.model, precision)
    return product


def classify(args: argparse.Namespace) -> int:
    """One line per image: its path and its most likely classes with their probabilities."""
    import numpy as np

    from heed.cli.common import write_chunks

    for name in ("input", "tsv", "reference"):
        if getattr(args, name):
            raise ValueError(f"--{name} is for texts, and {args.folder} is an image model: give images or folders")
    if args.top < 1:
        raise ValueError(f"--top is {args.top}; it must be at least 1")
    paths = found_files(args.text)
    classifier, unread = _opened(args, "classify"), 0

    def lines():
        nonlocal unread
        for kept, pixels, failed in readable(classifier, paths, args.max_pixels):
            unread += failed
            found = classifier.probabilities(np.stack(pixels)) if pixels else []
            yield [_line(path, own, classifier.labels, args.top) for path, own in zip(kept, found, strict=True)]

    write_chunks(lines(), args.out)
    return _told(unread, len(paths))


def _line(path: Path, probabilities: Any, labels: Sequence[str], top: int) -> str:
    best = (-probabilities).argsort(kind="stable")[:top]
    return "\t".join([str(path), *(f"{labels[i]}\t{probabilities[i]:.4f}" for i in best)])


def _told(unread: int, total: int) -> int:
    from heed.cli.common import errors

    if unread:
        errors().print(f"{unread:,} of {total:,} images could not be read", highlight=False)
    return 1 if unread else 0


def embed(args: argparse.Namespace) -> int:
    """Write the vectors of images to a .npy file and their paths next to it, or find the images of a folder most similar to each."""
    import numpy as np

    from heed.cli.common import errors, write_lines
    from heed.evaluation.retrieval import nearest_rows
    from heed.files import atomic_file

    if args.pairs or args.input:
        raise ValueError("--pairs and --input are for texts, and this is an image model: give images or folders")
    if args.pool:
        raise ValueError("--pool is for text models: a ViT has its own setting, model.pooling")
    paths, embedder = found_files(args.text), _opened(args, "embed")
    paths, vectors, unread = _vectors(embedder, paths, args.max_pixels)
    if args.search:
        others, found, failed = _vectors(embedder, found_files([str(args.search)]), args.max_pixels)
        rows, cosines = nearest_rows(vectors, found, args.top)
        lines = [
            "\t".join([str(path), *(f"{others[row]}\t{cosine:.4f}" for row, cosine in zip(own, near, strict=True))])
            for path, own, near in zip(paths, rows.tolist(), cosines.tolist(), strict=True)
        ]
        write_lines(lines, args.out)
        return _told(unread + failed, len(paths) + len(others) + unread + failed)
    if args.normalize:
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    with atomic_file(args.out) as part, open(part, "wb") as file:
        np.save(file, vectors)
    names = args.out.with_suffix(".txt")
    write_lines([" ".join(str(path).splitlines()) for path in paths], names)
    line = f"{len(paths):,} images, vectors of {vectors.shape[1]} in {args.out}; the path of each row in {names}"
    errors().print(f"[dim]{line}[/]", highlight=False, soft_wrap=True)
    return _told(unread, len(paths) + unread)


def _vectors(embedder: Any, paths: Sequence[Path], max_pixels: int) -> tuple[list[Path], Any, int]:
    import numpy as np

    kept, parts, unread = [], [], 0
    for own, pixels, failed in readable(embedder, paths, max_pixels):
        kept, unread = [*kept, *own], unread + failed
        if pixels:
            parts.append(embedder.vectors(np.stack(pixels)))
    if not kept:
        raise ValueError("no image can be read")
    return kept, np.concatenate(parts), unread


def evaluate(args: argparse.Namespace) -> int:
    """Accuracy and calibration of a classifier, or bits per dimension of a generator."""
    from heed.loading import product_of

    if not args.images:
        raise ValueError(f"{args.system} is {product_of(args.system).noun}: give images with --images FOLDER or FILE")
    return _evaluate_drawing(args) if "generate" in product_of(args.system).verbs else _evaluate_classes(args)


def _evaluate_drawing(args: argparse.Namespace) -> int:
    import numpy as np

    from heed.cli.common import open_product
    from heed.cli.scores import show_scores
    from heed.tasks.image_generation import ImageGeneration

    if args.pictures:
        raise ValueError(f"--pictures shows the mistakes of a classifier, and {args.system} draws images: leave it out")
    if args.precision:
        raise ValueError(f"--precision is for image classifiers, and {args.system} draws images: leave it out")
    models = [open_product(args, "generate", [name]) for name in (args.system, args.against) if name]
    sets = [_labelled(args, model) for model in models]
    found = [model.bits(own.pixels, own.labels) for model, own in zip(models, sets, strict=True)]
    measure = lambda own, expected: {"bits": float(own.mean())}  # noqa: E731
    _show_broken(sets[0])
    more, decimals = {"broken": sets[0].facts["broken"]}, ImageGeneration.metrics[0].decimals
    what = f"{len(found[0]):,} images; lower is better"
    show_scores(args, measure, found, np.zeros(len(found[0])), what, more, decimals=decimals)
    return 0


def _evaluate_classes(args: argparse.Namespace) -> int:
    """Accuracy with its interval, and calibration; with --pictures, also plots of the confusion matrix and the worst
    mistakes.
    """
    import numpy as np
    from rich.console import Console

    from heed.cli.scores import show_scores
    from heed.evaluation.calibration import expected_calibration_error, label_ranks, rank_accuracy

    names = [name for name in (args.system, args.against) if name]
    models = [_opened(args, "classify", [name]) for name in names]
    if any(model.labels != models[0].labels for model in models[1:]):
        raise ValueError(f"{' and '.join(names)} have different classes: they cannot be compared")
    sets = [_labelled(args, model) for model in models]
    found = [model.probabilities(own.pixels) for model, own in zip(models, sets, strict=True)]
    labels, console = sets[0].labels, Console()
    ranks = [label_ranks(own, labels) for own in found]
    error = 100 * expected_calibration_error(found[0], labels)
    nll = float(-np.log(np.maximum(found[0][np.arange(len(labels)), labels], 1e-300)).mean())
    more = {"calibration_error": error, "loss": nll, "broken": sets[0].facts["broken"]}
    _show_broken(sets[0])
    show_scores(
        args, rank_accuracy(len(models[0].labels)), ranks, np.zeros_like(labels), f"{len(labels):,} images", more
    )
    line = f"expected calibration error {error:.2f} %, loss {nll:.3f}"
    console.print(f"[dim]{line}[/]", highlight=False)
    if args.pictures:
        for path in _figures(args.pictures, found[0], sets[0], models[0].labels):
            console.print(f"Picture: {path}", highlight=False)
        path = _write_mistakes(args.pictures / "mistakes.tsv", found[0], sets[0], models[0].labels)
        console.print(f"All mistakes: {path}", highlight=False)
    return 0


def _show_broken(own: Any) -> None:
    from rich.console import Console

    for line in own.broken_summary():
        Console().print(line, highlight=False, markup=False, soft_wrap=True)


def _figures(folder: Path, probabilities: Any, own: Any, names: Sequence[str]) -> list[Path]:
    from heed.evaluation.calibration import expected_calibration_error, reliability
    from heed.evaluation.classification import confusion
    from heed.lab import image_report

    table = confusion(probabilities.argmax(axis=1), own.labels, len(names))
    error = expected_calibration_error(probabilities, own.labels)
    figures = {
        "confusion.png": lambda: image_report.confusion_figure(table, names),
        "calibration.png": lambda: image_report.calibration_figure(*reliability(probabilities, own.labels), error),
        "mistakes.png": lambda: image_report.mistakes_figure(
            *image_report.worst_mistakes(probabilities, own.labels, own.pixels, names)
        ),
    }
    return image_report.write_figures(folder, figures, "".join(names))


def _write_mistakes(path: Path, probabilities: Any, own: Any, names: Sequence[str]) -> Path:
    """A line for each wrongly classified image, the most confident first, in the order of mistakes.png."""
    from heed.cli.common import write_lines
    from heed.lab.image_report import mistaken

    rows, told = mistaken(probabilities, own.labels)
    files, right = own.names(), own.labels
    lines = ["image\tclass\tpredicted\tprobability"]
    lines += [
        f"{files[row]}\t{names[right[row]]}\t{names[told[row]]}\t{probabilities[row, told[row]]:.4f}" for row in rows
    ]
    write_lines(lines, str(path))
    return path


def _labelled(args: argparse.Namespace, model: Any) -> Any:
    """The images of --images at the model's size, with labels among its classes."""
    from heed.data.images.config import ImagesConfig
    from heed.data.images.prepare import Form, prepare

    columns = [int(name) if name.isdecimal() else name for name in args.columns or ("1", "2")]
    own = model.images
    known = model.labels
    named = model.numbered or ([] if all(name.isdecimal() for name in known) else known)  # what numbers stand for
    config = ImagesConfig(images=args.images, columns=columns, classes=named, size=own.size, max_pixels=args.max_pixels)
    form = Form(own.size, own.channels, own.fit, own.resample, own.resize)
    return prepare(args.images, config, form, known, lambda what, done: None, labelled=bool(known))[1]

"""heed average"""

import argparse
from pathlib import Path

EXAMPLES = """\
examples:
  heed average runs/en-de --out runs/en-de-avg                   # the checkpoints that are kept (training.keep)
  heed average runs/en-de --last 2 --out runs/en-de-avg
  heed average runs/a/model runs/b/model --out averaged          # models of the same shape

The result is a model folder that every other verb takes.
"""


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folders", nargs="+", type=Path, help="one run, or several model folders")
    parser.add_argument(
        "--last", type=int, help="of a run: how many of its last checkpoints (all that are kept, unless said)"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where the model is written")


def run(args: argparse.Namespace) -> int:
    from heed.cli.common import errors
    from heed.models import folder as model_folder
    from heed.serving.load import find_model, load
    from heed.training.average import mean

    paths, base = _weights(args, find_model)
    if args.out.exists() and any(args.out.iterdir()):
        raise ValueError(f"{args.out} exists already: choose another --out")
    weights = mean(paths)
    args.out.mkdir(parents=True, exist_ok=True)
    facts = model_folder.read_config(base)
    for name in set(facts["subwords"].values()):
        (args.out / name).write_bytes((base / name).read_bytes())
    facts["trained"] = {"weights": "mean of " + ", ".join(str(path.parent) for path in paths)}
    model_folder.write_weights(args.out / model_folder.WEIGHTS, weights)
    model_folder.write_json(args.out / model_folder.CONFIG, facts)
    load(args.out, "cpu")  # it can be read back
    errors().print(
        f"{args.out} is the mean of {len(paths)}: {', '.join(path.parent.name for path in paths)}", soft_wrap=True
    )
    return 0


def _weights(args: argparse.Namespace, find_model) -> tuple[list[Path], Path]:
    """The files to average, and the model folder that tells how to read them."""
    from heed.training import checkpoints

    if len(args.folders) > 1:
        if args.last:
            raise ValueError("--last goes with one run; for several model folders, name just those you want")
        models = [find_model(path) for path in args.folders]
        for model in models[1:]:
            _check_alike(models[0], model)
        return [path / "model.safetensors" for path in models], models[0]
    run_folder = args.folders[0]
    found = checkpoints.found(run_folder / "checkpoints")
    if not found:
        raise ValueError(f"{run_folder} has no checkpoints: name a run folder, or several model folders")
    wanted = found[-args.last :] if args.last else found
    if args.last and len(found) < args.last:
        raise ValueError(
            f"{run_folder} keeps {len(found)} checkpoints, not {args.last}; training.keep says how many are kept"
        )
    return [path / checkpoints.MODEL for path in wanted], find_model(run_folder)


def _check_alike(one: Path, other: Path) -> None:
    """A mean of models that do not read and write the same way means nothing."""
    from heed.models.folder import read_config

    first, second = read_config(one), read_config(other)
    names = zip(sorted(first["subwords"].items()), sorted(second["subwords"].items()), strict=True)
    if any((one / a[1]).read_bytes() != (other / b[1]).read_bytes() for a, b in names):
        raise ValueError(f"{one} and {other} have different subwords: their mean would mean nothing")
    if first["model"] != second["model"]:
        raise ValueError(f"{one} and {other} are of different shapes: see `heed info` of both")

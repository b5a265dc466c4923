"""heed average"""

import argparse
from pathlib import Path

EXAMPLES = """\
examples:
  heed average runs/en-de --last 5 --out runs/en-de-avg          # the last checkpoints that are kept
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
    args.out.mkdir(parents=True, exist_ok=True)
    facts = model_folder.read_config(base)
    for name in set(facts["subwords"].values()):
        (args.out / name).write_bytes((base / name).read_bytes())
    facts["trained"] = {"weights": "mean of " + ", ".join(str(path.parent) for path in paths)}
    model_folder.write_weights(args.out / model_folder.WEIGHTS, mean(paths))
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

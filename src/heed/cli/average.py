"""heed average"""

import argparse
from dataclasses import asdict
from pathlib import Path

EXAMPLES = """\
examples:
  heed average runs/en-de --out runs/en-de-avg                   # all checkpoints kept (training.keep)
  heed average runs/en-de --last 2 --out runs/en-de-avg
  heed average runs/a/model runs/b/model --out averaged          # models of the same shape

The folders may be in any format Heed reads. The result is a model folder that works with every other command.
"""


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folders", nargs="+", help="one run, or several model folders")
    parser.add_argument(
        "--last", type=int, help="for a run: how many of its last checkpoints to average (default: all that are kept)"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where to write the model")


def run(args: argparse.Namespace) -> int:
    from heed.cli.common import errors
    from heed.files import atomic_folder, refuse_existing
    from heed.loading import write_package

    refuse_existing(args.out)
    if args.last is not None and args.last < 1:
        raise ValueError(f"--last is {args.last}; it must be at least 1")
    if len(args.folders) > 1:
        if args.last:
            raise ValueError("--last is for a single run; with several model folders, list only the ones you want")
        package, names = _mean_of_models(args.folders), args.folders
    else:
        package, names = _mean_of_checkpoints(Path(args.folders[0]), args.last)
    task = {name: value for name, value in package.facts.get("trained", {}).items() if name == "task"}
    trained = {**task, "weights": f"mean of {', '.join(names)}"}  # the scores were those of other weights
    with atomic_folder(args.out) as part:
        write_package(package._replace(facts={**package.facts, "trained": trained}), part)
    sentence = f"{args.out} is the mean of {len(names)}: {', '.join(Path(name).name for name in names)}"
    errors().print(sentence, soft_wrap=True, markup=False, highlight=False)
    return 0


def _mean_of_checkpoints(folder: Path, last: int | None):
    """The model of a run with the mean of its checkpoints' weights, and the names of these checkpoints."""
    from heed.loading import open_package
    from heed.models.folder import put
    from heed.training import checkpoints
    from heed.training.average import mean

    kept = checkpoints.list_checkpoints(folder / "checkpoints")
    if not kept:
        raise ValueError(f"{folder} has no checkpoints: give a run folder, or several model folders")
    if last and len(kept) < last:
        raise ValueError(f"{folder} keeps {len(kept)} checkpoints, not {last}; training.keep sets how many are kept")
    chosen = kept[-last:] if last else kept
    package = open_package(folder)
    put(package.model, mean(chosen, checkpoints.read_weights), folder / "checkpoints")
    return package, [str(path) for path in chosen]


def _mean_of_models(names: list[str]):
    """The first model with the mean of all models' weights. Only one other is in memory at a time."""
    from heed.loading import open_package

    first = open_package(names[0])
    weights = first.model.state_dict()
    total = {name: weight.double() for name, weight in weights.items()}
    for name in names[1:]:
        other = open_package(name)
        _check_alike(names[0], first, name, other)
        for key, weight in other.model.state_dict().items():
            total[key] += weight.double()
    first.model.load_state_dict({key: (total[key] / len(names)).to(weight) for key, weight in weights.items()})
    return first


def _check_alike(name: str, one, other_name: str, other) -> None:
    """Refuse models with different vocabularies, labels or shapes: the mean of their weights would be meaningless."""
    inputs = [_input_keys(own) for own in (one, other)]
    if inputs[0] != inputs[1]:
        what = "different subwords" if "images" not in one.processors else "another size or colours of images"
        raise ValueError(f"{name} and {other_name} have {what}: their average would be meaningless")
    labels = [own.processors["labels"].names if "labels" in own.processors else None for own in (one, other)]
    if labels[0] != labels[1]:
        raise ValueError(f"{name} and {other_name} have different labels: their average would be meaningless")
    if _shape(one.model) != _shape(other.model):
        raise ValueError(f"{name} and {other_name} have different architectures: compare them with `heed info`")


def _input_keys(package) -> list[str]:
    """What determines how input becomes numbers."""
    if "images" in package.processors:
        return [package.processors["images"].key()]
    return [part.key() for part in package.vocabularies]


def _shape(model) -> tuple:
    from heed.config import dropout_fields

    for_training = {*dropout_fields(model.config), "init_std"}  # these do not matter to a trained model
    return type(model), {name: value for name, value in asdict(model.config).items() if name not in for_training}

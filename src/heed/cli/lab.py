"""heed lab"""

import argparse
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

EXAMPLES = """\
examples:
  heed lab gradients --out lab                        # lab/gradients.png, lab/gradients.json, and tables here
  heed lab positions --out lab --model runs/en-de     # beside the waves, what a model has learned
  heed lab complexity --out lab --device cuda
  heed lab bottleneck runs/fixed runs/additive runs/transformer --source test.de --reference test.en --out lab
  heed lab all --out lab

heed lab NAME --help tells the settings of each. Nothing is trained; each takes some seconds. All but bottleneck, which
wants models, come with all.
"""

LABS = {
    "gradients": "how far a gradient reaches through RNN, GRU, LSTM and self-attention",
    "positions": "sinusoids: their norms, their distances, and positions that were learned",
    "scaling": "why scores are divided by √d_k: variance, entropy and gradient of the softmax",
    "complexity": "operations, longest paths, time and memory of attention, recurrence and convolution",
    "norms": "layer norm beside batch norm, and the gradient through deep stacks with a part left out",
    "bottleneck": "BLEU of several models by the length of the source: what a fixed vector cannot hold",
}


def add(parser: argparse.ArgumentParser) -> None:
    labs = parser.add_subparsers(dest="lab", metavar="NAME", title="what there is to see", required=True)
    for name, line in {**LABS, "all": "each of these but bottleneck, one after another"}.items():
        own = labs.add_parser(name, help=line, description=line[0].upper() + line[1:] + ".")
        own.add_argument(
            "--out", type=Path, required=True, metavar="DIR", help="a folder for the picture and the numbers"
        )
        own.add_argument("--threads", type=int, help="how many threads to use on the CPU")
        if name not in ("positions", "bottleneck"):
            own.add_argument("--seed", type=int, default=0, help="of all that is drawn by chance (0)")
        SETTINGS[name](own)


def run(args: argparse.Namespace) -> int:
    import torch

    if args.threads is not None and args.threads < 1:
        raise ValueError(f"--threads is {args.threads}; it must be at least 1")
    if args.out.exists() and not args.out.is_dir():
        raise ValueError(f"--out {args.out} is a file; name a folder")
    if args.threads:
        torch.set_num_threads(args.threads)
    for name in [own for own in LABS if own != "bottleneck"] if args.lab == "all" else [args.lab]:
        _show(name, MEASURES[name](args), args.out)
    return 0


def _show(name: str, result: Any, out: Path) -> None:
    """Tables and a sentence here, picture and numbers into the folder."""
    import importlib

    from rich.console import Console

    from heed.cli.common import errors

    lab = importlib.import_module(f"heed.lab.{name}")
    picture, numbers = save(name, result, out)  # first: the reader of the tables may go
    console = Console()
    for table in lab.tables(result):
        console.print(table.title, style="bold", highlight=False, markup=False)
        console.print(_table(table), "")
    console.print(lab.summary(result), highlight=False, markup=False)
    errors().print(f"[dim]{picture}, {numbers}[/]", highlight=False, soft_wrap=True)


def save(name: str, result: Any, out: Path) -> tuple[Path, Path]:
    """The picture and the numbers of a result, each written aside and renamed."""
    import importlib
    import json

    from heed.files import atomic_file, write_text
    from heed.lab import charts

    lab = importlib.import_module(f"heed.lab.{name}")
    out.mkdir(parents=True, exist_ok=True)
    picture, numbers = out / f"{name}.png", out / f"{name}.json"
    facts = {"lab": name, "says": lab.summary(result), **asdict(result)}
    lines = [f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in facts.items()]
    write_text(numbers, "{\n" + ",\n".join(lines) + "\n}\n")
    with atomic_file(picture) as part:
        charts.save(lab.figure(result), part)
    return picture, numbers


def _table(table):
    from rich.table import Table

    shown = Table(box=None, padding=(0, 2, 0, 0))
    for place, column in enumerate(table.columns):
        shown.add_column(
            column, justify="left" if place == 0 else "right", no_wrap=place == 0, header_style="dim", overflow="fold"
        )
    for row in table.rows:
        shown.add_row(*row)
    return shown


def _gradients_settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dim", type=int, default=32, help="the width of states (32)")
    parser.add_argument("--length", type=int, default=41, help="the steps of a text: distances up to one less (41)")
    parser.add_argument("--draws", type=int, default=6, help="how many draws of all weights to take the mean of (6)")


def _positions_settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dim", type=int, default=64, help="the width of positions, an even number (64)")
    parser.add_argument("--length", type=int, default=64, help="how many positions (64)")
    parser.add_argument("--model", metavar="FOLDER", help="a run or a model that has learned its positions")


def _scaling_settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--keys", type=int, default=64, help="how many keys share the attention of a query (64)")


def _complexity_settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dim", type=int, default=128, help="d, where n varies (128)")
    parser.add_argument("--length", type=int, default=128, help="n, where d varies (128)")
    parser.add_argument(
        "--tokens",
        type=int,
        default=0,
        help="how many to give at once; the longest n is no longer (512 on a CPU, 4096 on a GPU)",
    )
    parser.add_argument("--device", default="auto", help="auto (the CPU, and a GPU if there is one), cpu, cuda, cuda:1")


def _norms_settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dim", type=int, default=64, help="the width of the layers (64)")
    parser.add_argument("--layers", type=int, default=24, help="how deep the stacks are (24)")
    parser.add_argument("--length", type=int, default=16, help="how many words a text has (16)")
    parser.add_argument("--draws", type=int, default=3, help="how many draws of all weights to take the mean of (3)")


def _bottleneck_settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "system", nargs="+", help="a run, a model folder or a file of translations; NAME=FOLDER calls it NAME"
    )
    parser.add_argument("--source", required=True, metavar="FILE", help="what is translated")
    parser.add_argument("--reference", required=True, metavar="FILE", help="how it should be")
    parser.add_argument("--groups", type=int, default=6, help="how many groups of lengths (6)")
    parser.add_argument("--device", default="auto", help="auto (a GPU if there is one), cpu, cuda, cuda:1")


def _all_settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", metavar="FOLDER", help="for positions: a run or a model that has learned its own")
    parser.add_argument("--device", default="auto", help="for complexity: auto, cpu, cuda, cuda:1")


def _asked(args: argparse.Namespace, *names: str) -> dict[str, Any]:
    """The settings that were given or have defaults; `all` leaves them to the labs."""
    return {name: getattr(args, name) for name in names if hasattr(args, name)}


def _gradients(args: argparse.Namespace):
    from heed.lab.gradients import measure

    return measure(**_asked(args, "dim", "length", "draws", "seed"))


def _positions(args: argparse.Namespace):
    from heed.lab.positions import measure

    learned = None if args.model is None else _learned(args.model)
    return measure(**_asked(args, "dim", "length"), learned=learned, model=args.model)


def _learned(folder: str):
    """The positions of a model that has learned them; of two sides with positions of their own, the first it lists."""
    from heed.loading import open_package
    from heed.nn.positions import Learned

    part = next((part for part in open_package(folder).model.modules() if isinstance(part, Learned)), None)
    if part is None:
        raise ValueError(
            f'{folder} has learned no positions: --model wants a model trained with positions = "learned", or a BART'
        )
    return part.places.weight.detach()[part.offset :]


def _scaling(args: argparse.Namespace):
    from heed.lab.scaling import measure

    return measure(**_asked(args, "keys", "seed"))


def _complexity(args: argparse.Namespace):
    import torch

    from heed.device import choose_device
    from heed.lab.complexity import measure

    devices = [str(choose_device(args.device))]
    if args.device == "auto" and torch.cuda.is_available():
        devices = ["cpu", *devices]
    return measure(**_asked(args, "dim", "length", "tokens", "seed"), devices=devices)


def _norms(args: argparse.Namespace):
    from heed.lab.norms import measure

    return measure(**_asked(args, "dim", "layers", "length", "draws", "seed"))


def _bottleneck(args: argparse.Namespace):
    from heed.cli.common import read_lines
    from heed.lab.bottleneck import measure
    from heed.loading import load

    sources, references = read_lines(args.source), read_lines(args.reference)
    systems = {}
    for system in args.system:
        name, _, path = system.rpartition("=")
        name = name or Path(path).name
        if name in systems:
            raise ValueError(f"two systems are called {name}: give one of them another name, as in NAME={path}")
        file = Path(path).is_file()
        texts = read_lines(path) if file else [t.text for t in load(path.split(","), args.device).translate(sources)]
        systems[name] = texts
    return measure(systems, sources, references, args.groups)


SETTINGS: dict[str, Callable[[argparse.ArgumentParser], None]] = {
    "gradients": _gradients_settings,
    "positions": _positions_settings,
    "scaling": _scaling_settings,
    "complexity": _complexity_settings,
    "norms": _norms_settings,
    "bottleneck": _bottleneck_settings,
    "all": _all_settings,
}
MEASURES: dict[str, Callable[[argparse.Namespace], Any]] = {
    "gradients": _gradients,
    "positions": _positions,
    "scaling": _scaling,
    "complexity": _complexity,
    "norms": _norms,
    "bottleneck": _bottleneck,
}

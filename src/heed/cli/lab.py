"""heed lab"""

import argparse
import importlib
import shlex
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heed.cli.lab_settings import COMMON, LABS, SETTINGS

if TYPE_CHECKING:
    from heed.lab.experiment_page import Shown

EXAMPLES = """\
examples:
  heed lab gradients --out lab                        # writes lab/gradients.png, .json and .html, and prints tables
  heed lab positions --out lab --model runs/learned   # compared with a model trained with model.positions=learned
  heed lab complexity --out lab --device cuda
  heed lab bottleneck runs/fixed runs/additive runs/transformer --source test.de --reference test.en --out lab
  heed lab all --out lab --lang ko                    # and lab/index.html

heed lab NAME --help lists the settings of each. Most take a few seconds; order, schedule, words and bias train small
models and take about a minute. "all" runs all but bottleneck, which needs trained models.
"""


def add(parser: argparse.ArgumentParser) -> None:
    labs = parser.add_subparsers(dest="lab", metavar="NAME", title="measurements", required=True)
    for name, line in {**LABS, "all": "all of these except bottleneck"}.items():
        lab = labs.add_parser(name, help=line, description=line[0].upper() + line[1:] + ".")
        for option, settings in {**COMMON, **SETTINGS[name]}.items():
            lab.add_argument(option, **settings)


def run(args: argparse.Namespace) -> int:
    import torch

    from heed.lab.language import speaking

    if args.threads is not None and args.threads < 1:
        raise ValueError(f"--threads is {args.threads}; it must be at least 1")
    if args.out.exists() and not args.out.is_dir():
        raise ValueError(f"--out {args.out} is a file; give a folder")
    if args.threads:
        torch.set_num_threads(args.threads)
    with speaking(args.lang):
        names = [lab for lab in LABS if lab != "bottleneck"] if args.lab == "all" else [args.lab]
        pages = [_show(name, MEASURES[name](args), args.out, command(name, args)) for name in names]
        if args.lab == "all":
            from heed.files import write_text
            from heed.lab.experiment_page import build_index

            write_text(args.out / "index.html", build_index(pages, command("all", args)))
    return 0


def command(name: str, args: argparse.Namespace) -> str:
    """The command line that reproduces this result, with non-default settings."""
    words, options = ["heed", "lab", name], {**SETTINGS[name], **COMMON}
    for option, settings in options.items():
        value = getattr(args, option.removeprefix("--"), None)
        if not option.startswith("--"):
            words += value
        elif value is not None and (option == "--lang" or value != settings.get("default")):
            words += [option, str(value)]
    return shlex.join(words)


def _show(name: str, result: Any, out: Path, made_by: str) -> "Shown":
    """Print tables and a sentence; write a plot, the numbers and a page to the folder."""
    from rich.console import Console

    from heed.cli.common import errors

    lab = importlib.import_module(f"heed.lab.experiments.{name}")
    shown = save(name, result, out, made_by)  # first, because printing ends with an error if the pager is closed
    console = Console()
    for table in lab.tables(result):
        console.print(table.title, style="bold", highlight=False, markup=False)
        console.print(_table(table), "")
    console.print(lab.summary(result), highlight=False, markup=False)
    written = ", ".join(str(out / f"{name}.{ending}") for ending in ("png", "json", "html"))
    errors().print(f"[dim]{written}[/]", highlight=False, soft_wrap=True)
    return shown


def save(name: str, result: Any, out: Path, made_by: str) -> "Shown":
    """Write the plot, the numbers and the page of a result, each atomically."""
    import json

    from heed.files import atomic_file, write_text
    from heed.lab import charts
    from heed.lab.experiment_page import Shown, build_page

    lab = importlib.import_module(f"heed.lab.experiments.{name}")
    out.mkdir(parents=True, exist_ok=True)
    picture, numbers = out / f"{name}.png", out / f"{name}.json"
    facts = {"lab": name, "says": lab.summary(result), **asdict(result)}
    lines = [f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in facts.items()]
    write_text(numbers, "{\n" + ",\n".join(lines) + "\n}\n")
    figure = lab.figure(result)
    with atomic_file(picture) as part:
        charts.save(figure, part)
    texts = figure.get_suptitle(), lab.summary(result), lab.tables(result)
    shown = Shown(name, *texts, picture.read_bytes(), made_by)
    write_text(out / f"{name}.html", build_page(shown))
    return shown


def _table(table):
    from rich.table import Table

    shown = Table(box=None, padding=(0, 2, 0, 0))
    for number, column in enumerate(table.columns):
        sentences = any(len(row[number]) > 30 for row in table.rows)
        justify = "right" if number and not sentences else "left"
        shown.add_column(column, justify=justify, no_wrap=not number, header_style="dim", overflow="fold")
    for row in table.rows:
        shown.add_row(*row)
    return shown


def _measure(name: str, args: argparse.Namespace):
    return importlib.import_module(f"heed.lab.experiments.{name}").measure(**_settings(name, args))


def _settings(name: str, args: argparse.Namespace) -> dict[str, Any]:
    """The settings of an experiment given on this command line; `all` leaves most at their defaults."""
    names = [option.removeprefix("--") for option in SETTINGS[name]]
    return {name: getattr(args, name) for name in names if hasattr(args, name)}


def _positions(args: argparse.Namespace):
    from heed.lab.experiments.positions import measure

    learned = None if args.model is None else _learned_positions(args.model)
    return measure(**_settings("positions", args), learned=learned)


def _learned_positions(folder: str):
    """The learned positions of a model; if each side has its own, the first that the model lists."""
    from heed.loading import open_package
    from heed.nn.positions import Learned

    part = next((part for part in open_package(folder).model.modules() if isinstance(part, Learned)), None)
    if part is None:
        raise ValueError(
            f'{folder} has no learned positions: --model needs a model trained with positions = "learned", or a BART'
        )
    return part.places.weight.detach()[part.offset :]


def _complexity(args: argparse.Namespace):
    import torch

    from heed.device import choose_device
    from heed.lab.experiments.complexity import measure

    settings = _settings("complexity", args)
    devices = [str(choose_device(settings.pop("device")))]
    if args.device == "auto" and torch.cuda.is_available():
        devices = ["cpu", *devices]
    return measure(**settings, devices=devices)


def _bottleneck(args: argparse.Namespace):
    from heed.cli.common import open_product, read_lines, split_names
    from heed.lab.experiments.bottleneck import measure

    sources, references = read_lines(args.source), read_lines(args.reference)
    systems = {}
    for system in args.system:
        name, _, path = system.rpartition("=")
        name = name or Path(path).name
        if name in systems:
            raise ValueError(f"two systems are called {name}: give one of them another name, as in NAME={path}")
        if Path(path).is_file():
            systems[name] = read_lines(path)
        else:
            translator = open_product(args, "translate", split_names(path))
            systems[name] = [translation.text for translation in translator.translate(sources)]
    return measure(systems, sources, references, args.groups)


MEASURES: dict[str, Callable[[argparse.Namespace], Any]] = {name: partial(_measure, name) for name in LABS}
MEASURES |= {"positions": _positions, "complexity": _complexity, "bottleneck": _bottleneck}

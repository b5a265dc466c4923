"""heed train"""

import argparse
import os
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

EXAMPLES = """\
examples:
  heed train --source train.en --target train.de --valid-source val.en --valid-target val.de --out runs/en-de
  heed train --tsv corpus.tsv.gz --set data.columns=[2,3] --out runs/ko-en
  heed train my-recipe.toml --out runs/en-de --set training.steps=4000
  heed train phrasebook --out runs/ko-en          # a built-in recipe; heed recipes lists them
  heed train --from Helsinki-NLP/opus-mt-ko-en --source my.ko --target my.en --out runs/tuned     # fine-tuning
  heed train --source text.ko --set task.name=denoising --set model.name=bart --out runs/bart    # pre-training
  heed train --from openai-community/gpt2 --source text.txt --out runs/more    # continued pre-training
  heed train --source train.en --target train.de --rejected rejected.tsv --out runs/en-de    # report which pairs were filtered
  heed train --source train.en --target train.de --out runs/en-de --dry-run > my-recipe.toml    # what would be trained, to edit
  heed train --source train.en --target train.de --out runs/quick --time 10m    # a finished model in ten minutes
  heed train --out runs/quick --resume --time +1h    # train it for another hour
  heed train --out runs/en-de --resume            # continue after Ctrl-C, a crash or kill -9
  torchrun --nproc-per-node=8 --max-restarts=3 -m heed train paper-base --out runs/base    # on eight GPUs

Files may be plain, .gz or .xz; several of a kind are concatenated. Every setting has a name (section.name); heed
recipes all-settings lists them all. Prepared corpora are cached in $HEED_CACHE (default: ~/.cache/heed).
"""

FILES = {
    "source": "source text; or the texts, for tasks without translations",
    "target": "target text (translations, summaries or labels), line by line",
    "tsv": "tables with source and target columns, TSV or .jsonl (data.columns, by number or name; default: 1 and 2)",
    "valid_source": "validation source text (default: set 1,000 pairs aside)",
    "valid_target": "its translations",
    "valid_tsv": "validation tables",
}


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "recipe", nargs="?", type=Path, help="a TOML file with settings, or the name of a built-in recipe"
    )
    parser.add_argument(
        "--from",
        dest="start",
        metavar="FOLDER",
        help="start from an existing model: a run, a folder, or a name on the hub",
    )
    parser.add_argument(
        "--rejected",
        metavar="FILE",
        help="report which pairs were filtered, and by which rule (docs/guides/cleaning.md)",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="show what would be trained and how long it would take, without training; if standard output is redirected, the recipe with every setting is written there",
    )
    parser.set_defaults(began=None)  # main knows
    add_run_options(parser, "training.steps=4000")


def add_run_options(parser: argparse.ArgumentParser, example: str) -> None:
    """The options that heed train and heed distill share; `example` is a setting."""
    option = parser.add_argument
    for name, line in FILES.items():
        option(f"--{name.replace('_', '-')}", nargs="+", metavar="FILE", help=line)
    option("--out", type=Path, required=True, metavar="FOLDER", help="the run folder")
    option("--resume", action="store_true", help="continue an interrupted run")
    option("--set", action="append", default=[], metavar="NAME=VALUE", help=f"one setting, for example {example}")
    option(
        "--time",
        metavar="TIME",
        help="time budget: finish with a complete model after this time, for example 10m or 2h; +1h with --resume",
    )
    option("--device", help="auto (a GPU if available), cpu, cuda, cuda:1 (default: training.device, which is auto)")
    option("--threads", type=int, help="number of CPU threads (default: training.threads, or else all cores)")
    option(
        "--no-report", action="store_true", help="do not write report.html at the end (heed report can write it later)"
    )
    option("--quiet", action="store_true", help="print errors only")


def run(args: argparse.Namespace) -> int:
    from heed.cli.common import errors
    from heed.runs.ending import Command
    from heed.runs.train import run as train
    from heed.training.report import Report
    from heed.training.torchrun import is_first

    _check_dry_run(args)
    try:
        recipe = _recipe(args)
    except ValueError:
        if is_first():
            raise
        return 1  # the first process reports it
    console = errors()
    console.quiet = not is_first()  # of the processes that torchrun starts, one prints
    quiet = args.quiet or console.quiet

    def say(sentence: str) -> None:
        if not quiet:
            console.print(sentence, highlight=False, soft_wrap=True)

    def warn(sentence: str) -> None:
        """Warnings about damage are printed even with --quiet."""
        console.print(sentence, highlight=False, markup=False, soft_wrap=True)

    with console.status("reading") as status:

        def tell(what: str, done: int) -> None:
            status.update(f"{what} · {done:,} pairs" if done else what)

        def report(start: int, steps: int | None) -> Report:
            status.stop()
            return Report(console, steps, start, quiet)

        command = None if args.began is None else Command(args.began, not args.no_report)
        told = {"report": report, "say": say, "tell": tell, "warn": warn, "command": command}
        outcome = (_rehearse if args.dry_run else train)(recipe, args.out, resume=args.resume, **told)
    return _end(outcome, recipe, args, console, say)


def _end(outcome, recipe, args: argparse.Namespace, console, say) -> int:
    from rich.markup import escape

    from heed.models.folder_config import read_config
    from heed.training.torchrun import is_first

    if args.dry_run:
        interrupted = outcome.how == "interrupted"
        what = "Interrupted before the time was known" if interrupted else "This was a dry run: no model was saved"
        say(escape(f"{what}. Without --dry-run, the run would be in {args.out}."))
        return 130 if interrupted else 0
    if outcome.how == "interrupted":
        say(f"Interrupted at step {outcome.step:,} and saved. Continue with: heed train --out {args.out} --resume")
        return 130
    if is_first() and not args.no_report:
        _report(args.out, recipe.training.device, console, say)
    usage = recipe.task.usage(args.out, read_config(args.out / "model"))
    say(f"Done ({outcome.how}, step {outcome.step:,}). Try it: {usage}")
    return 0


def _check_dry_run(args: argparse.Namespace) -> None:
    if not args.dry_run:
        return
    if args.resume:
        raise ValueError("--dry-run shows a run that has not begun: leave out one of --dry-run and --resume")
    if args.quiet and not _is_redirected():
        raise ValueError("--dry-run with --quiet prints nothing here: leave out --quiet, or redirect the output")
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ValueError("--dry-run needs one process: start it without torchrun")


def _is_redirected() -> bool:
    return sys.stdout is not None and not sys.stdout.isatty()


def _rehearse(recipe, out: Path, *, resume: bool, command, **told):
    """Begin the run in a temporary folder, and write its recipe to standard output unless that is a terminal."""
    from heed.runs import saved_recipe
    from heed.runs.ending import Command
    from heed.runs.resume import check_new
    from heed.runs.run_folder import RECIPE
    from heed.runs.train import run as train

    check_new(out, resume)
    with TemporaryDirectory() as temporary:
        folder = Path(temporary) / "run"
        began = time.monotonic() if command is None else command.began
        outcome = train(recipe, folder, **told, command=Command(began, rehearsal=True))
        if outcome.how != "interrupted" and _is_redirected():
            print(saved_recipe.body(folder / RECIPE), end="")
    return outcome


def _report(folder: Path, device: str, console, say) -> None:
    """Write the report of a translation run. The model is already saved: if the report fails, the run is still
    complete.
    """
    from heed.runs import final_validation
    from heed.runs.report.collect import Options
    from heed.runs.report.write import write_report

    try:
        kept = final_validation.read(folder)
        if kept is None or not kept.outputs:
            return
        with console.status("writing the report") as status:
            path = write_report(folder, options=Options(device=device), tell=status.update)
        say(f"Report: {path}")
    except (ValueError, OSError) as error:
        say(f"No report was written: {error}")


def settings(args: argparse.Namespace) -> list[tuple[str, object]]:
    """The settings given by `add_run_options`. Paths are absolute, since a run may be resumed from another folder."""
    from heed.config import assignment

    files = ((name, getattr(args, name)) for name in FILES)
    changes = [(f"data.{name}", [os.path.abspath(path) for path in paths]) for name, paths in files if paths]
    options = ((name, getattr(args, name)) for name in ("device", "threads", "time"))
    changes += [(f"training.{name}", value) for name, value in options if value is not None]
    return changes + [assignment(text) for text in args.set]


def resumes_alone(args: argparse.Namespace) -> bool:
    """Whether a run is resumed with the recipe in its folder: the command line gives no recipe and no files."""
    return args.resume and args.recipe is None and not any(getattr(args, name) for name in FILES)


def _plain_text_alone(args: argparse.Namespace, changes: list[tuple[str, object]]) -> bool:
    """Whether the command line gives a text, and neither a task, a recipe nor targets."""
    given = {name for name, _ in changes}
    return args.recipe is None and "data.source" in given and not given & {"task.name", "data.target", "data.corpora"}


def _task_of(folder: str, args: argparse.Namespace) -> str | None:
    """The task for a plain text: that of the resumed run, or of the model to start from."""
    from heed.config import load_toml
    from heed.runs.pretrained import task_of_plain_text

    saved = args.out / "recipe.toml"
    if args.resume and saved.is_file():
        return load_toml(saved).get("task", {}).get("name")
    return task_of_plain_text(folder)


def _recipe(args: argparse.Namespace):
    from heed.runs import built_in, recipe
    from heed.runs.pretrained import check_folder

    args.recipe = args.recipe and built_in.find(args.recipe)
    changes = settings(args)
    if args.recipe is None and not resumes_alone(args):
        if not any(name == "data" or name.startswith("data.") for name, _ in changes):
            raise ValueError(
                "nothing to train on: give --source and --target, or --tsv, or a recipe (heed recipes lists those built in)"
            )
        changes.insert(0, ("training.auto", True))  # a recipe file says what it wants
    if args.start:
        folder = str(Path(args.start).absolute()) if Path(args.start).is_dir() else args.start  # or a name on the hub
        if _plain_text_alone(args, changes) and (task := _task_of(folder, args)):
            changes.insert(0, ("task.name", task))
        changes.insert(0, ("model.folder", folder))
    if args.rejected:
        changes.append(("filters.rejected", os.path.abspath(args.rejected)))
    if not resumes_alone(args):
        found = recipe.read(args.recipe, changes)
        if args.recipe and found.model.folder and not args.resume:
            check_folder(found.model.folder, args.recipe.parent)
        return found
    path = args.out / "recipe.toml"
    if path.is_file():
        return recipe.read(path, changes, saved=True)
    if any(name.startswith("data.") for name, _ in changes):  # it ended before its recipe was written
        return recipe.read(None, [("training.auto", True), *changes])
    raise ValueError(f"{args.out} is not a run that can be resumed: it has no recipe.toml")

"""heed train"""

import argparse
import os
from pathlib import Path

EXAMPLES = """\
examples:
  heed train --source train.en --target train.de --valid-source val.en --valid-target val.de --out runs/en-de
  heed train --tsv corpus.tsv.gz --set data.columns=[2,3] --out runs/ko-en
  heed train recipes/multi30k-en-de.toml --out runs/en-de --set training.steps=4000
  heed train recipes/phrasebook.toml --out runs/ko-en
  heed train --from Helsinki-NLP/opus-mt-ko-en --source my.ko --target my.en --out runs/tuned     # fine-tuning
  heed train --source text.ko --set task.name=denoising --set model.name=bart --out runs/bart    # pre-training
  heed train --out runs/en-de --resume            # go on after Ctrl-C, a crash, kill -9
  torchrun --nproc-per-node=8 --max-restarts=3 -m heed train recipes/paper-base.toml --out runs/base    # on eight GPUs

Files may be plain, .gz or .xz; several of a kind are read one after the other. Every setting has a name
(section.name); recipes/all-settings.toml has them all. Prepared corpora are kept in $HEED_CACHE (~/.cache/heed).
"""

FILES = {
    "source": "text in the language to translate from",
    "target": "its translations, line by line",
    "tsv": "files with both sides in columns (data.columns, 1 and 2 unless set)",
    "valid_source": "text to validate on; without any, 1,000 pairs are set aside",
    "valid_target": "its translations",
}


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recipe", nargs="?", type=Path, help="a TOML file with settings")
    for name, line in FILES.items():
        parser.add_argument(f"--{name.replace('_', '-')}", nargs="+", metavar="FILE", help=line)
    parser.add_argument(
        "--from", dest="start", metavar="FOLDER", help="start from this model: a run, a folder, or a name on the hub"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where the run is kept")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="one setting, for example training.steps=4000"
    )
    parser.add_argument("--device", help="auto (a GPU if there is one), cpu, cuda, cuda:1")
    parser.add_argument("--threads", type=int, help="how many threads to use on the CPU")
    parser.add_argument("--quiet", action="store_true", help="say nothing but errors")


def run(args: argparse.Namespace) -> int:
    from heed.cli.common import errors
    from heed.runs.train import run as train
    from heed.training.report import Report
    from heed.training.torchrun import is_first

    try:
        recipe = _recipe(args)
    except ValueError:
        if is_first():
            raise
        return 1  # the first says why
    console = errors()
    console.quiet = not is_first()  # of the processes that torchrun starts, one speaks
    quiet = args.quiet or console.quiet

    def say(sentence: str) -> None:
        if not quiet:
            console.print(sentence, highlight=False, soft_wrap=True)

    with console.status("reading") as status:

        def tell(what: str, done: int) -> None:
            status.update(f"{what} · {done:,} pairs" if done else what)

        def report(start: int) -> Report:
            status.stop()
            return Report(console, recipe.training.steps, start, quiet)

        outcome = train(recipe, args.out, resume=args.resume, report=report, say=say, tell=tell)
    if outcome.how == "interrupted":
        say(f"Interrupted at step {outcome.step:,} and saved. Go on with: heed train --out {args.out} --resume")
        return 130
    say(f"Done ({outcome.how}, step {outcome.step:,}). Try it: {recipe.task.example.format(args.out)}")
    return 0


def _absolute(name: str) -> str:
    """A folder wherever the run goes on from; a name on the hub as it is."""
    return str(Path(name).absolute()) if Path(name).is_dir() else name


def named(args: argparse.Namespace) -> list[tuple[str, list[str]]]:
    """The files of a command line, as whole paths: a run may go on from another folder."""
    given = ((name, getattr(args, name)) for name in FILES)
    return [(f"data.{name}", [os.path.abspath(own) for own in files]) for name, files in given if files]


def _recipe(args: argparse.Namespace):
    from heed.config import assignment
    from heed.runs import recipe

    changes = named(args)
    changes += [("model.folder", _absolute(args.start))] if args.start else []
    changes += [
        (f"training.{name}", getattr(args, name)) for name in ("device", "threads") if getattr(args, name) is not None
    ]
    changes += [assignment(text) for text in args.set]
    path, saved = args.recipe, False
    if args.resume and path is None and not any(getattr(args, name) for name in FILES):
        path, saved = args.out / "recipe.toml", True
        if not path.is_file():
            raise ValueError(f"{args.out} is not a run that could go on: it has no recipe.toml")
    return recipe.read(path, changes, saved=saved)

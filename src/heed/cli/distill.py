"""heed distill"""

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from heed.cli.train import FILES, named

EXAMPLES = """\
examples:
  heed distill runs/en-de --source train.en --valid-source val.en --valid-target val.de --out runs/student
  heed distill runs/en-de recipes/distill.toml --out runs/student
  heed distill runs/a,runs/b,runs/c recipes/distill.toml --out runs/student       # an ensemble teaches
  heed distill runs/en-de recipes/distill.toml --out runs/student --set distill.nbest=5 --set distill.mix=true
  heed distill Helsinki-NLP/opus-mt-ko-en --source my.ko --set distill.vocabulary=own --out runs/student
  heed distill --out runs/student --resume            # go on after Ctrl-C, a crash, kill -9

The teacher translates the source side of the corpus into OUT/distilled/, and the student trains on that as heed train
would. References (--target) are not needed but for distill.nbest (of so many translations the one nearest to the
reference, by distill.nearest: chrf or bleu) and distill.mix (the references are learned too). With distill.soft=0.7
the student also hears, at each step, what its teacher thinks of each next word: slower to train, and nearer to it.
distill.beam is the teacher's own unless set; distill.vocabulary is the teacher's, or own. All other settings are those
of heed train; a model.preset that is not set is tiny-6-2, small-6-2 or base-6-2 by the size of the corpus.
"""


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "teacher", nargs="?", help="a run, a model folder, or a name on the hub; several with commas are an ensemble"
    )
    parser.add_argument("recipe", nargs="?", type=Path, help="a TOML file with the settings of the student")
    for name, line in FILES.items():
        parser.add_argument(f"--{name.replace('_', '-')}", nargs="+", metavar="FILE", help=line)
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where the run is kept")
    parser.add_argument("--resume", action="store_true", help="go on where it stopped")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="one setting, for example distill.beam=4"
    )
    parser.add_argument("--device", help="auto (a GPU if there is one), cpu, cuda, cuda:1")
    parser.add_argument("--threads", type=int, help="how many threads to use on the CPU")
    parser.add_argument("--quiet", action="store_true", help="say nothing but errors")


def run(args: argparse.Namespace) -> int:
    import torch

    from heed.cli import train
    from heed.cli.common import errors
    from heed.runs import distill

    _refuse_several(args)
    plan = _plan(args)
    distill.check_folder(plan, args.out, args.resume)
    if plan.recipe.training.threads:
        torch.set_num_threads(plan.recipe.training.threads)
    console = errors()
    console.quiet, console.soft_wrap = args.quiet, True
    if not plan.data.validated and not plan.referenced:
        console.print("There are no references: the student is validated on translations of its teacher.")
    try:
        with _progress(console) as tell:
            recipe = distill.make(plan, args.out, tell)
    except KeyboardInterrupt:
        console.print(f"Interrupted; what is translated is kept. Go on with: heed distill --out {args.out} --resume")
        return 130
    console.print(f"The corpus of the student is in {recipe.parent}.", highlight=False)
    parser = argparse.ArgumentParser()
    train.add(parser)
    more = ["--quiet"] if args.quiet else []
    return train.run(parser.parse_args([str(recipe), "--out", str(args.out), "--resume", *more]))


def _refuse_several(args: argparse.Namespace) -> None:
    import os

    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ValueError(
            "a teacher translates in one process: start heed distill without torchrun; when it has come to the training, "
            f"torchrun can go on with: heed train --out {args.out} --resume"
        )


def _plan(args: argparse.Namespace):
    from heed.config import assignment
    from heed.runs import distill

    if args.teacher and args.teacher.endswith(".toml"):
        raise ValueError(
            f"{args.teacher} is a recipe; the teacher comes before it: heed distill TEACHER {args.teacher}"
        )
    changes = [("distill.teacher", args.teacher.split(","))] if args.teacher else []
    changes += named(args)
    changes += [
        (f"training.{name}", getattr(args, name)) for name in ("device", "threads") if getattr(args, name) is not None
    ]
    changes += [assignment(text) for text in args.set]
    path, saved = args.recipe, False
    if args.resume and path is None and not any(getattr(args, name) for name in FILES):
        path, saved = args.out / distill.FOLDER / distill.PLAN, True
        if not path.is_file():
            raise ValueError(f"{args.out} is not a student that could be gone on with: it has no {path}")
    return distill.read(path, changes, saved=saved)


@contextmanager
def _progress(console) -> Iterator[Callable[[str, int, int], None]]:
    """How far the teacher is: a bar on a terminal, else a line now and then."""
    import time

    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(bar_width=None), TimeRemainingColumn(compact=True))
    with Progress(*columns, TextColumn("left"), console=console, disable=not console.is_terminal) as bar:
        task, known, spoken = bar.add_task("reading", total=None), 0, time.monotonic()

        def tell(what: str, done: int, total: int) -> None:
            nonlocal known, spoken
            said = f"{what} · {done:,} of {total:,} sentences" if total else what
            if total != known:  # from here on time is counted: what was done before cost none now
                known = total
                bar.reset(task, total=total, completed=done, description=said)
            bar.update(task, completed=done, description=said)
            if not console.is_terminal and total and (done == total or time.monotonic() - spoken > 10):
                spoken = time.monotonic()
                console.print(said, highlight=False)

        yield tell

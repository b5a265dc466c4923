"""heed distill"""

import argparse
import os
from functools import partial
from pathlib import Path

from heed.cli.progress import progress
from heed.cli.train import add_run_options, resumes_alone, settings

EXAMPLES = """\
examples:
  heed distill runs/en-de --source train.en --valid-source val.en --valid-target val.de --out runs/student
  heed distill runs/en-de recipes/distill.toml --out runs/student
  heed distill runs/a,runs/b,runs/c recipes/distill.toml --out runs/student       # an ensemble as the teacher
  heed distill runs/en-de recipes/distill.toml --out runs/student --set distill.nbest=5 --set distill.mix=true
  heed distill Helsinki-NLP/opus-mt-ko-en --source my.ko --set distill.vocabulary=own --out runs/student
  heed distill --out runs/student --resume            # continue after Ctrl-C, a crash or kill -9

The teacher translates the source side of the corpus into OUT/distilled/, and the student is trained on the result as
by heed train. References (--target) are needed only for distill.nbest (the translation nearest to
the reference is chosen from this many, by distill.nearest: chrf or bleu) and distill.mix (the student also learns the references).
With distill.soft=0.7 the student also learns the teacher's distribution over each next token: training is slower, and
the student closer to the teacher. distill.beam is by default the teacher's; distill.vocabulary is teacher or own. All
other settings are those of heed train; the default of model.preset is tiny-6-2, small-6-2 or base-6-2 by the size of
the corpus.
"""


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "teacher",
        nargs="?",
        help="a run, a model folder, or a name on the hub; several, separated by commas, form an ensemble",
    )
    parser.add_argument(
        "recipe",
        nargs="?",
        type=Path,
        help="a TOML file with the student's settings, or the name of a built-in recipe",
    )
    add_run_options(parser, "distill.beam=4")


def run(args: argparse.Namespace) -> int:
    import torch

    from heed.cli import train
    from heed.cli.common import errors, warn_on
    from heed.runs import distill

    _refuse_torchrun(args)
    plan = _plan(args)
    distill.check_folder(plan, args.out, args.resume)
    if plan.recipe.training.threads:
        torch.set_num_threads(plan.recipe.training.threads)
    console = errors()
    console.quiet, console.soft_wrap = args.quiet, True
    if not plan.data.validated and not plan.referenced:
        console.print("There are no references: the student is validated on its teacher's translations.")
    try:
        with progress(console) as tell:
            say = partial(console.print, highlight=False)
            recipe = distill.make(plan, args.out, tell, say, warn_on(console))
    except KeyboardInterrupt:
        console.print(
            f"Interrupted; finished translations are kept. Continue with: heed distill --out {args.out} --resume"
        )
        return 130
    console.print(f"The student's corpus is in {recipe.parent}.", highlight=False)
    parser = argparse.ArgumentParser()
    train.add(parser)
    more = ["--quiet"] * args.quiet + ["--no-report"] * args.no_report
    return train.run(parser.parse_args([str(recipe), "--out", str(args.out), "--resume", *more]))


def _refuse_torchrun(args: argparse.Namespace) -> None:
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ValueError(
            "the teacher runs in a single process: start heed distill without torchrun; once training has begun, "
            f"torchrun can continue it with: heed train --out {args.out} --resume"
        )


def _plan(args: argparse.Namespace):
    from heed.runs import built_in, distill

    if args.teacher and args.teacher.endswith(".toml"):
        raise ValueError(
            f"{args.teacher} is a recipe; the teacher must come before it: heed distill TEACHER {args.teacher}"
        )
    changes = [("distill.teacher", args.teacher.split(","))] if args.teacher else []
    changes += settings(args)
    if not resumes_alone(args):
        return distill.read(args.recipe and built_in.find(args.recipe), changes)
    path = args.out / distill.FOLDER / distill.PLAN
    if not path.is_file():
        raise ValueError(f"{args.out} is not a distillation run that can be resumed: it has no {path}")
    return distill.read(path, changes, saved=True)

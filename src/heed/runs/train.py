"""Train a model in a folder from a recipe, from scratch or resumed."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import torch

from heed.device import choose_device
from heed.runs import text_length, valid_engine
from heed.runs.choosing import complete
from heed.runs.ending import Command, Outcome
from heed.runs.gpu_start import starting
from heed.runs.models import decided_by_data
from heed.runs.pretrained import open_base, with_base_search
from heed.runs.recipe import Recipe
from heed.runs.resume import alone_in, as_built, begin, check_folder, check_new, restarted
from heed.runs.run import Run
from heed.runs.teacher import WEIGHTS, check_weights, open_teachers
from heed.training import distributed, torchrun
from heed.training.report import Report


def run(
    recipe: Recipe,
    folder: Path,
    *,
    resume: bool = False,
    report: Callable[[int, int | None], Report],
    say: Callable[[str], None] = lambda sentence: None,
    tell: Callable[[str, int], None] = lambda what, done: None,
    warn: Callable[[str], None] | None = None,
    command: Command | None = None,
) -> Outcome:
    """Train a recipe in a folder; together with other processes if torchrun has started this one. `warn` is called
    with messages about damage. `command` is what a time budget includes besides training; if it is a rehearsal, the
    run takes a few steps, to tell how long it takes, and leaves a folder with its recipe.
    """
    command = command or Command(time.monotonic())

    def spent() -> float:
        return time.monotonic() - command.began

    showing, tell = tell, lambda what, done: (warn or say)(what) if done is None else showing(what, done)
    if recipe.training.threads:
        torch.set_num_threads(recipe.training.threads)
    device = choose_device(torchrun.local_device(recipe.training.device))
    workers, held = distributed.join(device, recipe.training.parallel), ExitStack()
    try:
        again = workers.broadcast(lambda: resume or restarted(folder))
        if recipe.training.adds_time and not again:
            raise ValueError(
                f"training.time is {recipe.training.time!r}, which extends a resumed run: remove the +, or add --resume"
            )
        workers.broadcast(lambda: check_new(folder, again))  # before the corpus is read to choose settings
        recipe = workers.broadcast(lambda: complete(recipe, folder, again, device, tell, say, spent))
        base = workers.first_before_others(lambda: open_base(recipe, folder, again))
        teachers = workers.first_before_others(lambda: open_teachers(recipe))
        recipe = with_base_search(recipe, base)
        recipe = workers.broadcast(lambda: valid_engine.as_before(recipe, folder, again))
        recipe = workers.broadcast(lambda: as_built(text_length.settled(recipe, base, folder, again), folder, again))
        workers.broadcast(lambda: check_folder(recipe, folder, again, say))
        with starting(device):
            prepared = workers.broadcast(lambda: recipe.task.prepare(recipe, base, tell))
        workers.broadcast(lambda: begin(folder))
        workers.broadcast(lambda: held.enter_context(alone_in(folder)))
        if teachers:
            frozen = [own.model for own in teachers.values()]
            workers.broadcast(lambda: check_weights(frozen, folder / WEIGHTS, begun=again))
        with workers.errors_from_first():
            at_work = Run(recipe, folder, prepared, report, base, workers, teachers, command)
        if again and not at_work.step:
            at_work.report.say("No checkpoint to continue from: starting at step 1.")
        workers.broadcast(lambda: at_work.files.write_recipe(at_work.recipe, decided_by_data(at_work.model)))
        outcome = _to_the_end(at_work, at_work.rehearse if command.rehearsal else at_work.train)
    except RuntimeError as error:
        workers.raise_if_peer_died(error)
        raise
    finally:
        held.close()
    workers.close()
    return outcome


def _to_the_end(run: Run, train: Callable[[], Outcome]) -> Outcome:
    try:
        with run.stopping.obeyed():
            return train()
    finally:
        run.close()

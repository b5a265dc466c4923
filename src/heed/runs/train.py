"""A run: from a recipe to a trained model in a folder, from the beginning or from where it stopped."""

import dataclasses
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from heed import config
from heed.data.batching import DataPosition
from heed.data.prefetch import in_thread
from heed.device import choose_device
from heed.files import write_text
from heed.models.package import Package
from heed.runs import models, vectors
from heed.runs.execution_plan import batches, longest, plan_execution
from heed.runs.jobs import job
from heed.runs.prepare import Prepared, prepare
from heed.runs.pretrained import open_base, with_search
from heed.runs.recipe import Recipe
from heed.runs.resume import alone_in, begin, check_folder, place_of, restarted
from heed.runs.run_folder import RunFolder
from heed.runs.teacher import WEIGHTS, check_room, check_weights, heard, open_teachers
from heed.runs.validation import ValidationResult
from heed.runs.validation_history import ValidationHistory
from heed.training import average, checkpoints, distributed, loop, torchrun
from heed.training.average import EMA, swapped
from heed.training.checkpoints import TrainingState
from heed.training.config import make_optimizer, make_schedule
from heed.training.distributed import SingleProcess
from heed.training.meter import Meter, perplexity
from heed.training.recurrent_state import Carried
from heed.training.report import SCORES, Log, Report
from heed.training.shards import gathered
from heed.version import __version__


@dataclass(frozen=True)
class Outcome:
    """How a run ended: "finished", "stopped early" or "interrupted"."""

    how: str
    step: int
    folder: Path


class Run:
    """A run at work: its parts, and what happens after each step. Of several processes, the first writes."""

    def __init__(
        self,
        recipe: Recipe,
        folder: Path,
        prepared: Prepared,
        report: Callable[[int], Report],
        base: Package | None = None,
        workers: SingleProcess | None = None,
        teachers: Mapping[str, Package] | None = None,
    ):
        t = recipe.training
        self.recipe, self.folder, self.prepared = recipe, folder, prepared
        self.workers = workers or SingleProcess(choose_device(t.device))
        teachers = tuple(heard(own, name, prepared.subwords) for name, own in (teachers or {}).items())
        self.job = job(recipe, prepared.valid, prepared.subwords, teachers)
        torch.manual_seed(t.seed)
        self.model = models.build(recipe, base, prepared)
        for name, voice in zip(teachers or {}, teachers, strict=True):
            check_room(voice, name, self.model)
        begun = vectors.begin(self.model, recipe, prepared, folder, self.workers)
        if self.workers.world > 1:  # another machine may draw, or have in its cache, other ones
            self.model.load_state_dict(self.workers.broadcast_tensors(self.model.state_dict()))
        models.check_places(self.model, recipe, prepared)
        self.plan_execution = plan_execution(
            t, self.model, self.job, self.workers, longest(recipe, prepared, self.model.config.max_length)
        )
        for voice in () if self.plan_execution.accelerated else teachers:  # where it goes swiftly, to a rounded copy
            voice.to(self.workers.device)
        if self.plan_execution.accelerated:
            self.objective = SingleProcess.wrap(self.workers, self.model, self.job.objective)
        else:
            self.objective = self.workers.wrap(self.model, self.job.objective, t.compile)
        self.optimizer = make_optimizer(t, self.model.parameters())
        carried = Carried(self.job.objective, self.workers)
        self.learner = TrainingState(self.model, self.optimizer, EMA(self.model, t.ema) if t.ema else None, carried)
        self.record = ValidationHistory()
        self.place, self.step = DataPosition(), 0
        self.decoding = dataclasses.replace(recipe.decoding, beam=t.valid_beam, nbest=1, sample=False)
        self.product = RunFolder(folder, recipe, prepared, self.job.validation, base)
        said = [*vectors.says(begun), *self.job.says(self.model.config.max_length, prepared.corpus)]
        restored = [*self.product.says(), *said, *self.plan_execution.says(self.workers.device), *self._restore()]
        self.report = report(self.step)
        for sentence in restored:
            self.report.say(sentence)
        self.log = Log(folder, self.step) if self.workers.first else None
        for one in begun if self.log else ():
            self.log.write("vectors", **one._asdict())
        self.meter = Meter(self.step, t.steps)

    def train(self) -> Outcome:
        t = self.recipe.training
        if self.log:
            self.log.write("start", step=self.step, key=self.prepared.key, heed=__version__, torch=torch.__version__)
        if self.step < t.steps and not self.record.stopped:
            made = batches(self.recipe, self.prepared, self.job, self.plan_execution, self.workers, self.place)
            moved = ((place, batch.to(self.workers.device)) for place, batch in made)
            with closing(made), closing(in_thread(moved)) as ready:
                loop.train(
                    self.model,
                    ready,
                    self.objective,
                    self.optimizer,
                    make_schedule(t, self.model.config.dim),
                    steps=range(self.step + 1, t.steps + 1),
                    accumulate=t.accumulate,
                    clip=t.clip,
                    seed=t.seed,
                    workers=self.workers,
                    context=self._precision,
                    passes=self.plan_execution.passes(self.model, self.job.objective),
                    after_step=[self._average, self._tell, self._check, self._save],
                )
        if self.workers.leaving():
            return Outcome("interrupted", self.step, self.folder)
        with self.workers.full_model(self.model, self._watched()) as model:
            self.workers.broadcast(lambda: self._finish(model))
        return Outcome("stopped early" if self.record.stopped else "finished", self.step, self.folder)

    def interrupt(self, number: int, frame: Any) -> None:
        """Ask the loop to save and leave after the step it is in."""
        self.workers.ask_to_leave()

    def close(self) -> None:
        self.report.close()
        if self.log:
            self.log.close()

    def _precision(self):
        return self.plan_execution.context(self.workers.device)

    # after each step, in this order

    def _average(self, progress: loop.Progress) -> None:
        self.step, self.place = progress.step, progress.place
        if self.learner.ema is not None:
            self.learner.ema.update(self.model, progress.step)

    def _tell(self, progress: loop.Progress) -> None:
        self.meter.add(progress)
        if progress.step % self.recipe.training.log_every == 0 or progress.step == self.recipe.training.steps:
            with self.workers.errors_from_first():
                facts = self.meter.read(progress)
            if self.log:
                self.log.write("step", **facts)
            self.report.step(facts)

    def _check(self, progress: loop.Progress) -> None:
        if progress.step % self.recipe.training.valid_every and progress.step != self.recipe.training.steps:
            return
        began = time.monotonic()
        with self.workers.full_model(self.model, self._watched()) as model:
            self.record = self.workers.broadcast(lambda: self._look(model, progress))
        self.meter.pause(time.monotonic() - began)

    def _save(self, progress: loop.Progress) -> bool:
        """Write a checkpoint where one is due; say whether the run is over."""
        t = self.recipe.training
        every = t.checkpoint_every or t.valid_every
        regular = progress.step % every == 0 or progress.step == t.steps
        if regular:
            self.record.saved.append(progress.step)
        leave = self.workers.leaving() or self.record.stopped
        if regular or leave or progress.step in self.record.best_steps(t.average):
            with self.workers.errors_from_first():
                self.meter.check(progress)
            self._write_checkpoint()
        return leave

    # the parts of that

    def _look(self, model: nn.Module, progress: loop.Progress) -> ValidationHistory:
        """Validate; the record with what was found."""
        began = time.monotonic()
        found = self._validate(model)
        facts = {
            "step": progress.step, "epoch": progress.place.epoch, "perplexity": perplexity(found.scores["loss"]),
            **found.scores, "seconds": time.monotonic() - began,
        }  # fmt: skip
        metric, patience = self.job.metric, self.recipe.training.patience
        best = self.record.note(
            progress.step, found.scores[metric], smaller_is_better=metric == "loss", patience=patience
        )
        self.log.write("valid", **facts)
        self.product.write_samples(progress.step, found)
        self.report.valid(facts, found.samples, best)
        if best:
            self.product.write_model(model, found, f"step {progress.step:,}")
        return self.record

    def _watched(self) -> dict[str, torch.Tensor] | None:
        """The weights to look at: the running average where that will be the model, or else (None) the model's own."""
        return self.learner.ema.weights if self.recipe.training.final == "ema" else None

    def _validate(self, model: nn.Module) -> ValidationResult:
        with self._precision():
            return self.job.validation.run(model, self.decoding, self.product.max_source)

    def _write_checkpoint(self) -> None:
        parts = [gathered(own, self.workers.first) for own in self.learner.tensors()]
        order = self.plan_execution.order(self.recipe.training)
        state = {"place": list(self.place), "order": order, "record": dataclasses.asdict(self.record)}
        self.workers.broadcast(lambda: self.product.write_checkpoint(self.step, *parts, state))

    def _restore(self) -> list[str]:
        """Go back to the newest checkpoint that is whole; what to say about it."""
        said: list[str] = []
        kept = checkpoints.newest(self.product.checkpoints, said.append) if self.workers.first else None
        found = self.workers.broadcast(lambda: kept and (kept.step, kept.state))
        if found is None:
            return said
        step, state = found
        if state["key"] != self.prepared.key:
            raise ValueError(
                f"{self.folder} was trained on other data: the files, the filters or the subwords have changed since, or another "
                "version of heed prepares them otherwise; put them back, or start a new run with another --out"
            )
        parts = (kept.model, kept.training) if kept else ({}, {})
        said += self.learner.restore(*map(self.workers.broadcast_tensors, parts), self.product.checkpoints)
        self.record = ValidationHistory(**state["record"])
        self.record.stopped = 0 < self.recipe.training.patience <= self.record.waited
        self.step = step
        self.place, changed = place_of(state, self.plan_execution.order(self.recipe.training))
        return [*said, f"Going on from step {self.step:,}.", *changed]

    def _finish(self, model: nn.Module) -> None:
        """Make the final model of the weights that were asked for, and measure it. `model` has the last ones."""
        kept = self.product.kept(self.record)
        if len(kept) < len(self.product.needed(self.record)):
            self.report.say(
                "Not all checkpoints for the mean are still there: training.final or average was changed on the way."
            )
        steps = ", ".join(f"{step:,}" for step in kept)
        last = "moving average at step" if self.recipe.training.final == "ema" else "step"
        made_of = f"step {steps}" if len(kept) == 1 else f"mean of steps {steps}" if kept else f"{last} {self.step:,}"
        with swapped(model, average.mean(list(kept.values()))) if kept else nullcontext():
            found = self._validate(model)
            self.product.write_model(model, found, made_of, final=True)
        self.log.write("end", step=self.step, weights=made_of, **found.scores)
        scores = ", ".join(f"{SCORES[name]} {value:.{2 + (name == 'loss')}f}" for name, value in found.scores.items())
        self.report.say(f"The model is of {made_of}: validation {scores}.")


def run(
    recipe: Recipe,
    folder: Path,
    *,
    resume: bool = False,
    report: Callable[[int], Report],
    say: Callable[[str], None] = lambda sentence: None,
    tell: Callable[[str, int], None] = lambda what, done: None,
) -> Outcome:
    """Train by a recipe into a folder; together with the others, where torchrun has started this process."""
    if recipe.training.threads:
        torch.set_num_threads(recipe.training.threads)
    device = choose_device(torchrun.card(recipe.training.device))
    workers, held = distributed.join(device, recipe.training.parallel), ExitStack()
    try:
        again = workers.broadcast(lambda: resume or restarted(folder))
        base = workers.in_turn(lambda: open_base(recipe, folder, again))
        teachers = workers.in_turn(lambda: open_teachers(recipe))
        recipe = with_search(recipe, base)
        workers.broadcast(lambda: check_folder(recipe, folder, again, say))
        prepared = workers.broadcast(lambda: prepare(recipe, tell, base))
        r = prepared.corpus.report
        aside = f"; {r.held_out:,} set aside for validation" if r.held_out else ""
        what = "texts" if recipe.task.one_sided else "pairs"
        say(f"{r.kept:,} {what} to train on, of {r.read:,}{aside}; left out: {r.describe()}.")
        workers.broadcast(lambda: begin(folder))
        workers.broadcast(lambda: held.enter_context(alone_in(folder)))
        if teachers:
            heard_now = [own.model for own in teachers.values()]
            workers.broadcast(lambda: check_weights(heard_now, folder / WEIGHTS, begun=again))
        with workers.errors_from_first():
            at_work = Run(recipe, folder, prepared, report, base, workers, teachers)
        if again and not at_work.step:
            at_work.report.say("There is no checkpoint to go on from: it begins with step 1.")
        workers.broadcast(lambda: write_text(folder / "recipe.toml", config.to_toml(recipe)))
        outcome = _to_the_end(at_work)
    except RuntimeError as error:
        workers.explain(error)
        raise
    finally:
        held.close()
    workers.close()
    return outcome


def _to_the_end(run: Run) -> Outcome:
    signals = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # which nohup asks for
        signals.append(signal.SIGHUP)
    before = {number: signal.signal(number, run.interrupt) for number in signals}
    try:
        return run.train()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        run.close()

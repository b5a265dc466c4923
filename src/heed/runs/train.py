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

from heed.data.batching import DataPosition
from heed.data.prefetch import in_thread
from heed.device import choose_device
from heed.files import write_text
from heed.models.package import Package
from heed.runs import models, vectors
from heed.runs.execution_plan import plan_execution
from heed.runs.pretrained import open_base, with_base_search
from heed.runs.recipe import Recipe
from heed.runs.resume import alone_in, begin, check_folder, position_of, restarted
from heed.runs.run_folder import RunFolder
from heed.runs.teacher import WEIGHTS, check_vocab_size, check_weights, open_teachers, teacher_model
from heed.runs.validation_history import ValidationHistory
from heed.tasks.base import Prepared, ValidationResult
from heed.training import average, checkpoints, distributed, loop, torchrun
from heed.training.average import EMA, temporary_weights
from heed.training.checkpoints import TrainingState
from heed.training.config import make_optimizer, make_schedule
from heed.training.distributed import SingleProcess
from heed.training.meter import Meter, perplexity
from heed.training.recurrent_state import RecurrentState
from heed.training.report import Log, Report
from heed.training.shards import gather
from heed.version import __version__


@dataclass(frozen=True)
class Outcome:
    """How a run ended: "finished", "stopped early" or "interrupted"."""

    how: str
    step: int
    folder: Path


class Run:
    """A run in progress: its parts, and what happens after each step. Of several processes, the first one writes."""

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
        t, task = recipe.training, recipe.task
        self.recipe, self.task, self.folder, self.prepared = recipe, task, folder, prepared
        self.workers = workers or SingleProcess(choose_device(t.device))
        pair = tuple(prepared.processors.values())
        frozen = [teacher_model(own, name, pair) for name, own in (teachers or {}).items()]
        self.objective, self.validation = task.objective(prepared, frozen), task.validation(recipe, prepared)
        torch.manual_seed(t.seed)
        self.model = models.build(recipe, base, prepared)
        for name, teacher in zip(teachers or {}, frozen, strict=True):
            check_vocab_size(teacher, name, self.model)
        begun = vectors.begin(self.model, recipe, prepared, folder, self.workers)
        if self.workers.world > 1:  # another machine may initialize them otherwise
            self.model.load_state_dict(self.workers.broadcast_tensors(self.model.state_dict()))
        models.check_positions(self.model, recipe, prepared)
        longest = task.longest(recipe, prepared, max_length := self.model.config.max_length)
        self.plan = plan_execution(t, self.model, task, self.objective, self.workers, longest)
        for teacher in () if self.plan.accelerated else frozen:  # the accelerated step has copies in half precision
            teacher.to(self.workers.device)
        wrap = SingleProcess.wrap_objective if self.plan.accelerated else type(self.workers).wrap_objective
        self.wrapped = wrap(self.workers, self.model, self.objective, t.compile and not self.plan.accelerated)
        self.optimizer = make_optimizer(t, self.model.parameters())
        recurrent = RecurrentState(self.objective, self.workers)
        self.state = TrainingState(self.model, self.optimizer, EMA(self.model, t.ema) if t.ema else None, recurrent)
        self.history = ValidationHistory()
        self.position, self.step = DataPosition(), 0
        self.files = RunFolder(folder, recipe, prepared, self.validation, base)
        notes = [*vectors.summaries(begun), *task.notes(recipe, prepared, self.validation, max_length)]
        notes += [*self.plan.notes(self.workers.device), *self._restore()]
        self.report = report(self.step)
        for sentence in notes:
            self.report.say(sentence)
        self.log = Log(folder, self.step) if self.workers.first else None
        for one in begun if self.log else ():
            self.log.write("vectors", **one._asdict())
        self.meter = Meter(self.step, t.steps)

    def train(self) -> Outcome:
        t = self.recipe.training
        if self.log:
            self.log.write("start", step=self.step, key=self.prepared.key, heed=__version__, torch=torch.__version__)
        if self.step < t.steps and not self.history.stopped:
            share = self.workers.rank, self.workers.world
            made = self.task.batches(self.recipe, self.prepared, self.plan, share, self.position)
            moved = ((position, batch.to(self.workers.device)) for position, batch in made)
            with closing(made), closing(in_thread(moved)) as ready:
                loop.train(
                    self.model,
                    ready,
                    self.wrapped,
                    self.optimizer,
                    make_schedule(t, self.model.config.dim),
                    steps=range(self.step + 1, t.steps + 1),
                    accumulate=t.accumulate,
                    clip=t.clip,
                    seed=t.seed,
                    workers=self.workers,
                    context=self._precision,
                    forward_backward=self.plan.passes(self.model, self.objective),
                    parts=getattr(self.objective, "parts", ()),
                    after_step=[self._average, self._tell, self._check, self._save],
                )
        if self.workers.should_stop():
            return Outcome("interrupted", self.step, self.folder)
        with self.workers.full_model(self.model, self._validated_weights()) as model:
            self.workers.broadcast(lambda: self._finish(model))
        return Outcome("stopped early" if self.history.stopped else "finished", self.step, self.folder)

    def interrupt(self, number: int, frame: Any) -> None:
        """Ask the loop to save and exit after the current step."""
        self.workers.request_stop()

    def close(self) -> None:
        self.report.close()
        if self.log:
            self.log.close()

    def _precision(self):
        return self.plan.context(self.workers.device)

    # after each step, in this order

    def _average(self, progress: loop.Progress) -> None:
        self.step, self.position = progress.step, progress.position
        if self.state.ema is not None:
            self.state.ema.update(self.model, progress.step)

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
        with self.workers.full_model(self.model, self._validated_weights()) as model:
            self.history = self.workers.broadcast(lambda: self._look(model, progress))
        self.meter.pause(time.monotonic() - began)

    def _save(self, progress: loop.Progress) -> bool:
        """Write a checkpoint if one is due; returns whether the run is over."""
        t = self.recipe.training
        every = t.checkpoint_every or t.valid_every
        regular = progress.step % every == 0 or progress.step == t.steps
        if regular:
            self.history.saved.append(progress.step)
        leave = self.workers.should_stop() or self.history.stopped
        if regular or leave or progress.step in self.history.best_steps(t.average):
            with self.workers.errors_from_first():
                self.meter.check(progress)
            self._write_checkpoint()
        return leave

    def _look(self, model: nn.Module, progress: loop.Progress) -> ValidationHistory:
        """Validate, and record the results."""
        began = time.monotonic()
        found = self._validate(model)
        facts = {
            "step": progress.step, "epoch": progress.position.epoch, "perplexity": perplexity(found.scores["loss"]),
            **found.scores, "seconds": time.monotonic() - began,
        }  # fmt: skip
        score, patience = self.task.score(found.scores, self.recipe.training.metric), self.recipe.training.patience
        best = self.history.add(progress.step, score, patience=patience)
        self.log.write("valid", **facts)
        self.files.write_samples(progress.step, found)
        self.report.valid(facts, found.samples, best, self.task.labels())
        if best:
            self.files.write_model(model, found, f"step {progress.step:,}")
        return self.history

    def _validated_weights(self) -> dict[str, torch.Tensor] | None:
        """The weights to validate: the moving average if it will be the model, else None for the model's own."""
        return self.state.ema.weights if self.recipe.training.final == "ema" else None

    def _validate(self, model: nn.Module) -> ValidationResult:
        with self._precision():
            return self.validation.run(model)

    def _write_checkpoint(self) -> None:
        parts = [gather(own, self.workers.first) for own in self.state.tensors()]
        order = self.plan.order(self.recipe.training)
        state = {"place": list(self.position), "order": order, "record": dataclasses.asdict(self.history)}
        self.workers.broadcast(lambda: self.files.write_checkpoint(self.step, *parts, state))

    def _restore(self) -> list[str]:
        """Load the newest intact checkpoint; returns messages for the user."""
        messages: list[str] = []
        kept = checkpoints.read_newest(self.files.checkpoints, messages.append) if self.workers.first else None
        found = self.workers.broadcast(lambda: kept and (kept.step, kept.state))
        if found is None:
            return messages
        step, state = found
        if state["key"] != self.prepared.key:
            raise ValueError(
                f"{self.folder} was trained on other data: the files, the filters or the subwords have changed since, or another "
                "version of heed prepares them otherwise; put them back, or start a new run with another --out"
            )
        parts = (kept.model, kept.training) if kept else ({}, {})
        messages += self.state.restore(*map(self.workers.broadcast_tensors, parts), self.files.checkpoints)
        self.history = ValidationHistory(**state["record"])
        self.history.stopped = 0 < self.recipe.training.patience <= self.history.waited
        self.step = step
        self.position, changed = position_of(state, self.plan.order(self.recipe.training))
        return [*messages, f"Continuing from step {self.step:,}.", *changed]

    def _finish(self, model: nn.Module) -> None:
        """Make the final model from the weights that the recipe asks for, and validate it. `model` has the last weights."""
        kept = self.files.kept(self.history)
        if len(kept) < len(self.files.needed(self.history)):
            self.report.say("Some checkpoints for the mean are missing: training.final or average has changed.")
        steps = ", ".join(f"{step:,}" for step in kept)
        last = "moving average at step" if self.recipe.training.final == "ema" else "step"
        made_of = f"step {steps}" if len(kept) == 1 else f"mean of steps {steps}" if kept else f"{last} {self.step:,}"
        with temporary_weights(model, average.mean(list(kept.values()))) if kept else nullcontext():
            found = self._validate(model)
            self.files.write_model(model, found, made_of, final=True)
        self.log.write("end", step=self.step, weights=made_of, **found.scores)
        self.report.say(f"The model has the weights of {made_of}: validation {self.task.describe(found.scores)}.")


def run(
    recipe: Recipe,
    folder: Path,
    *,
    resume: bool = False,
    report: Callable[[int], Report],
    say: Callable[[str], None] = lambda sentence: None,
    tell: Callable[[str, int], None] = lambda what, done: None,
) -> Outcome:
    """Train a recipe in a folder; together with other processes if torchrun has started this one."""
    if recipe.training.threads:
        torch.set_num_threads(recipe.training.threads)
    device = choose_device(torchrun.local_device(recipe.training.device))
    workers, held = distributed.join(device, recipe.training.parallel), ExitStack()
    try:
        again = workers.broadcast(lambda: resume or restarted(folder))
        base = workers.first_before_others(lambda: open_base(recipe, folder, again))
        teachers = workers.first_before_others(lambda: open_teachers(recipe))
        recipe = with_base_search(recipe, base)
        workers.broadcast(lambda: check_folder(recipe, folder, again, say))
        prepared = workers.broadcast(lambda: recipe.task.prepare(recipe, base, tell))
        say(recipe.task.data_summary(prepared))
        workers.broadcast(lambda: begin(folder))
        workers.broadcast(lambda: held.enter_context(alone_in(folder)))
        if teachers:
            frozen = [own.model for own in teachers.values()]
            workers.broadcast(lambda: check_weights(frozen, folder / WEIGHTS, begun=again))
        with workers.errors_from_first():
            at_work = Run(recipe, folder, prepared, report, base, workers, teachers)
        if again and not at_work.step:
            at_work.report.say("There is no checkpoint to continue from: the run starts at step 1.")
        workers.broadcast(lambda: write_text(folder / "recipe.toml", recipe.to_toml()))
        outcome = _to_the_end(at_work)
    except RuntimeError as error:
        workers.raise_if_peer_died(error)
        raise
    finally:
        held.close()
    workers.close()
    return outcome


def _to_the_end(run: Run) -> Outcome:
    signals = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup ignores SIGHUP
        signals.append(signal.SIGHUP)
    before = {number: signal.signal(number, run.interrupt) for number in signals}
    try:
        return run.train()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        run.close()

"""A run in progress: its parts, what happens after each step, and how it resumes and ends."""

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from heed.data.batching import DataPosition
from heed.data.in_thread import in_thread
from heed.device import choose_device
from heed.models.package import Package
from heed.runs import models, trial, valid_engine, vectors
from heed.runs.ending import WHY, Command, Ending, Outcome, cooled
from heed.runs.execution_plan import plan_execution
from heed.runs.finishing import expected_seconds, finish
from heed.runs.recipe import Recipe
from heed.runs.resume import checkpoint_to_resume, position_of
from heed.runs.run_folder import RunFolder
from heed.runs.stopping import GivenUp, Stopping
from heed.runs.summary import training_summary
from heed.runs.teacher import check_vocab_size, teacher_model
from heed.runs.timing import Timing
from heed.runs.validation_history import ValidationHistory
from heed.tasks.base import Prepared, Validation, ValidationResult
from heed.training import loop
from heed.training.average import EMA
from heed.training.checkpoints import TrainingState
from heed.training.config import make_optimizer, make_schedule
from heed.training.distributed import SingleProcess
from heed.training.meter import Meter, perplexity
from heed.training.recurrent_state import RecurrentState
from heed.training.report import Log, Report
from heed.training.shards import gather
from heed.version import __version__


class Run:
    """A run in progress. Of several processes, only the first one writes."""

    def __init__(
        self,
        recipe: Recipe,
        folder: Path,
        prepared: Prepared,
        report: Callable[[int, int | None], Report],
        base: Package | None = None,
        workers: SingleProcess | None = None,
        teachers: Mapping[str, Package] | None = None,
        command: Command | None = None,
    ):
        t, task = recipe.training, recipe.task
        self.recipe, self.task, self.folder, self.prepared = recipe, task, folder, prepared
        self.workers = workers or SingleProcess(choose_device(t.device))
        pair = tuple(prepared.processors.values())
        frozen = [teacher_model(own, name, pair) for name, own in (teachers or {}).items()]
        self.objective = task.objective(prepared, frozen)
        torch.manual_seed(t.seed)
        self.model = models.build(recipe, base, prepared)
        recipe = self.recipe = models.stated(recipe, self.model, prepared)
        for name, teacher in zip(teachers or {}, frozen, strict=True):
            check_vocab_size(teacher, name, self.model)
        begun = vectors.begin(self.model, recipe, prepared, folder, self.workers)
        if self.workers.world > 1:  # another machine may initialize them otherwise
            self.model.load_state_dict(self.workers.broadcast_tensors(self.model.state_dict()))
        models.check_positions(self.model, recipe, prepared)
        longest = task.longest(recipe, prepared, max_length := self.model.config.max_length)
        self.plan = plan_execution(t, self.model, task, self.objective, self.workers, longest)
        why = self._choose_valid_engine()
        self.validation = task.validation(self.recipe, prepared)
        for teacher in () if self.plan.accelerated else frozen:  # the accelerated step has copies in half precision
            teacher.to(self.workers.device)
        wrap = SingleProcess.wrap_objective if self.plan.accelerated else type(self.workers).wrap_objective
        self.wrapped = wrap(self.workers, self.model, self.objective, t.compile and not self.plan.accelerated)
        self.optimizer = make_optimizer(t, [own for own in self.model.parameters() if own.requires_grad])
        recurrent = RecurrentState(self.objective, self.workers)
        self.state = TrainingState(self.model, self.optimizer, EMA(self.model, t.ema) if t.ema else None, recurrent)
        self.history, self.command = ValidationHistory(), command or Command(time.monotonic())
        self.ending = Ending(t, self.command.began, finishing=partial(expected_seconds, self))
        self.position, self.step = DataPosition(), 0
        self.results: dict[int, ValidationResult] = {}  # of the last and the best validation, by step
        self.stopping, self.unvalidated = Stopping(self.workers.request_stop), False
        self.files = RunFolder(folder, self.recipe, prepared, self.validation, base)
        notes = [*vectors.summaries(begun), *task.notes(recipe, prepared, self.validation, max_length)]
        damage: list[str] = []
        notes += [*self.plan.notes(self.workers.device), *filter(None, [why]), *self._restore(damage.append)]
        self.report = report(self.step, self.ending.expected_last_step(self.step, self.history))
        for sentence in damage:
            self.report.warn(sentence)
        self.report.summary(training_summary(self, base))
        for sentence in notes:
            self.report.say(sentence)
        self.log = Log(folder, self.step) if self.workers.first else None
        for one in begun if self.log else ():
            self.log.write("vectors", **one._asdict())
        self.meter = Meter(self.step, self.task.perplexity)

    def _choose_valid_engine(self) -> str:
        """The search of validations if the recipe leaves it open, here for good; returns why it is that one."""
        if self.recipe.training.valid_engine != "auto":
            return ""
        dtype = torch.bfloat16 if self.plan.precision == "bfloat16" else torch.float32
        engine, why = self.workers.broadcast(
            lambda: tuple(valid_engine.chosen(self.recipe, self.model, self.workers.device, dtype))
        )
        self.recipe = valid_engine.with_engine(self.recipe, engine)
        return why

    def train(self) -> Outcome:
        if self.log:
            facts = {"key": self.prepared.key, "heed": __version__, "torch": torch.__version__}
            self.log.write("start", step=self.step, **facts, valid_engine=self.recipe.training.valid_engine)
        if not self._catch_up() and not self.ending.is_over(self.step, self.history):
            trial.measure(self)
            self._take_steps([self._average, self._tell, self._check, self._plan_end, self._save])
        if self.unvalidated or self.workers.should_stop() or not self._finished():
            return Outcome("interrupted", self.step, self.folder)
        early = self.history.stopped and self.history.ends_at is None
        return Outcome("stopped early" if early else "finished", self.step, self.folder)

    def rehearse(self) -> Outcome:
        """Take steps until it can be told how long the run takes, without validating or saving."""
        timing = Timing(self.recipe.training)
        self.report.say("Timing a few steps.")
        done = lambda progress: timing.is_enough(progress.step) or self.workers.should_stop()  # noqa: E731
        self._take_steps([self._average, self._tell, done])
        if self.workers.should_stop():
            return Outcome("interrupted", self.step, self.folder)
        self.report.expect(timing.expectation())
        return Outcome("rehearsed", self.step, self.folder)

    def _take_steps(self, after_step: Sequence[Callable[[loop.Progress], bool | None]]) -> None:
        """Train from the current position until one of the callbacks ends it."""
        t, share = self.recipe.training, (self.workers.rank, self.workers.world)
        made = self.task.batches(self.recipe, self.prepared, self.plan, share, self.position)
        moved = ((position, batch.to(self.workers.device)) for position, batch in made)
        with closing(made), closing(in_thread(moved)) as ready:
            loop.train(
                self.model,
                ready,
                self.wrapped,
                self.optimizer,
                cooled(make_schedule(t, self.model.config.dim), lambda: self.history),
                steps=range(self.step + 1, t.steps + 1),
                accumulate=t.accumulate,
                clip=t.clip,
                seed=t.seed,
                workers=self.workers,
                context=lambda: self.plan.context(self.workers.device),
                forward_backward=self.plan.passes(self.model, self.objective),
                parts=getattr(self.objective, "parts", ()),
                after_step=after_step,
            )

    def _finished(self) -> bool:
        """Create the final model; False if interrupted by a signal."""
        with self.workers.full_model(self.model, self.validated_weights()) as model:
            return self.workers.broadcast(lambda: finish(self, model))

    def close(self) -> None:
        self.report.close()
        if self.log:
            self.log.close()

    def _is_last(self, step: int) -> bool:
        return step >= self.ending.last_step(self.history)

    # after each step, in this order

    def _average(self, progress: loop.Progress) -> None:
        self.step, self.position = progress.step, progress.position
        if self.state.ema is not None:
            self.state.ema.update(self.model, progress.step)

    def _tell(self, progress: loop.Progress) -> None:
        self.meter.add(progress)
        step, now = progress.step, (progress.step, self.history)
        shown, logged = self.report.moves(step), step % self.recipe.training.log_every == 0 or self._is_last(step)
        if shown or logged:
            self.report.steps = self.ending.expected_last_step(*now)
            known = progress, self.report.steps, self.ending.seconds_left(*now)
            with self.workers.errors_from_first() if logged else nullcontext():
                facts = (self.meter.read if logged else self.meter.peek)(*known)
            if self.log and logged:
                self.log.write("step", **facts)
            self.report.step(facts)
        self.report.expect(self.ending.expectation(*now))

    def _check(self, progress: loop.Progress) -> None:
        if not self.ending.validates(progress.step, self.history):
            return
        with self.workers.errors_from_first():  # a model that has diverged has no outputs to validate
            self.meter.check(progress)
        began = time.monotonic()
        self.report.busy("validating")
        with self.workers.full_model(self.model, self.validated_weights()) as model:
            found = self.workers.broadcast(lambda: self._look(model, progress))
        self.history, self.unvalidated = found or self.history, found is None
        self.meter.pause(time.monotonic() - began)
        self.ending.pause(time.monotonic() - began)

    def _plan_end(self, progress: loop.Progress) -> None:
        """Decide when the run ends, if this is the step for it; the same in all processes."""
        if self.unvalidated or (self.workers.world > 1 and progress.step % self.recipe.training.log_every):
            return
        before = self.history.ends_at
        self.history = self.workers.broadcast(lambda: self.ending.update(progress.step, self.history))
        if before is None and (last := self.history.ends_at) is not None and self.history.ended_by in WHY:
            self.report.say(f"{WHY[self.history.ended_by]}: the learning rate decays to zero until step {last:,}.")

    def _save(self, progress: loop.Progress) -> bool:
        """Write a checkpoint if one is due; returns whether the run is over."""
        t = self.recipe.training
        every = t.checkpoint_every or t.valid_every
        over = self.ending.is_over(progress.step, self.history)
        cooling = self.history.ends_at is not None and progress.step == self.history.cooldown_from
        regular = not self.unvalidated and (progress.step % every == 0 or over or cooling)
        if regular:
            self.history.saved.append(progress.step)
        leave = self.unvalidated or self.workers.should_stop() or over
        if regular or leave or progress.step in self.history.best_steps(t.average):
            with self.workers.errors_from_first():
                self.meter.check(progress)
            self._write_checkpoint()
        return leave

    def _catch_up(self) -> bool:
        """Finish what a signal interrupted in the last step, the validation first; returns whether the run is over."""
        if not self.unvalidated:
            return False
        self.unvalidated = False
        progress = loop.Progress(self.step, self.position, torch.zeros(()), 0, torch.zeros(()), 0.0)
        self._check(progress)
        self._plan_end(progress)
        return self._save(progress)

    def _look(self, model: nn.Module, progress: loop.Progress) -> ValidationHistory | None:
        """Validate, and record the results; None if interrupted by a signal."""
        began = time.monotonic()
        try:
            with self.stopping.given_up_if_asked():
                found = self.validate(model)
        except GivenUp:
            self.report.say(f"The validation at step {progress.step:,} was interrupted: a resumed run does it first.")
            return None
        words = {"perplexity": perplexity(found.scores["loss"])} if self.task.perplexity else {}
        facts = {"step": progress.step, "epoch": progress.position.epoch, **words, **found.scores}
        facts["seconds"] = time.monotonic() - began
        score, patience = self.task.score(found.scores, self.recipe.training.metric), self.recipe.training.patience
        best = self.history.add(progress.step, score, patience=patience)
        known = {**self.results, progress.step: found}
        self.results = {step: known[step] for step in (progress.step, *self.history.best_steps(1)) if step in known}
        self.log.write("valid", **facts)
        self.files.write_samples(progress.step, found)
        self.report.valid(progress.step, self.task.describe_briefly(facts), facts["seconds"], best)
        if best and self.history.best_model() == [score, progress.step]:  # not worse than before an extension
            self.files.write_model(model, found, f"step {progress.step:,}")
        return self.history

    def validated_weights(self) -> dict[str, torch.Tensor] | None:
        """The weights to validate: the moving average if it will be the final model, else None for the current
        weights.
        """
        return self.state.ema.weights if self.recipe.training.averages else None

    def validate(self, model: nn.Module, validation: Validation | None = None) -> ValidationResult:
        with self.plan.context(self.workers.device):
            return (validation or self.validation).run(model)

    def final_search(self, model: nn.Module, seconds: float | None) -> tuple[Any, str] | None:
        """The search settings chosen for the final model, within some seconds if given, and a sentence."""
        with self.plan.context(self.workers.device):
            return self.task.final_search(self.recipe, model, self.validation, seconds)

    def _write_checkpoint(self) -> None:
        parts = [gather(own, self.workers.first) for own in self.state.tensors()]
        self.history.seconds, self.history.validation = self.ending.spent(), self.ending.validation
        self.history.pace = self.ending.seconds_per_step(self.step) or self.ending.pace
        order = self.plan.order(self.recipe.training)
        state = {"place": list(self.position), "order": order, "record": dataclasses.asdict(self.history)}
        state["unvalidated"] = self.unvalidated  # then a resumed run begins with the validation
        self.workers.broadcast(lambda: self.files.write_checkpoint(self.step, *parts, state))

    def _restore(self, warn: Callable[[str], None]) -> list[str]:
        """Load the newest intact checkpoint; returns messages for the user. `warn` is called with those about
        damage.
        """
        messages: list[str] = []
        chosen = self.recipe.training
        kept = checkpoint_to_resume(self.files, chosen, messages.append, warn) if self.workers.first else None
        found = self.workers.broadcast(lambda: kept and (kept.step, kept.state))
        if found is None:
            return messages
        step, state = found
        if state["key"] not in (self.prepared.key, *self.prepared.earlier_keys):
            raise ValueError(
                f"{self.folder} was trained on other data: the files, the filters or the subwords have changed since, "
                "or this version of heed prepares them differently; restore them, or start a new run with another "
                "--out"
            )
        parts = (kept.model, kept.training) if kept else ({}, {})
        messages += self.state.restore(*map(self.workers.broadcast_tensors, parts), self.files.checkpoints)
        self.history = ValidationHistory(**state["record"])
        self.history.stopped = 0 < self.recipe.training.patience <= self.history.waited
        self.step, self.unvalidated = step, state.get("unvalidated", False)
        self.files.recorded = {*state.get("kept", [])}
        self.ending.resume(self.history)
        if self.ending.budget is not None:  # "+1h" is a total from here on
            total = dataclasses.replace(self.recipe.training, time=f"{round(self.ending.budget)}s")
            self.recipe = dataclasses.replace(self.recipe, training=total)
        self.position, changed = position_of(state, self.plan.order(self.recipe.training))
        short = [one] if (one := self.ending.too_short(self.step, self.history)) else []
        return [*messages, f"Continuing from step {self.step:,}.", *changed, *short]

"""A run: from a recipe to a trained model in a folder, from the beginning or from where it stopped."""

import dataclasses
import signal
import time
from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from heed import __version__, config
from heed.data import corpus as corpora
from heed.data.batches import Batches, Place, ahead, elsewhere
from heed.models import folder as model_folder
from heed.models.package import Package
from heed.runs import models
from heed.runs.jobs import job
from heed.runs.prepare import Prepared, prepare
from heed.runs.product import Product
from heed.runs.recipe import Recipe
from heed.runs.record import Record
from heed.runs.resume import check_folder
from heed.runs.validation import Validity
from heed.serving.load import choose_device, open_package
from heed.training import average, checkpoints, loop
from heed.training.average import EMA, swapped
from heed.training.config import make_schedule
from heed.training.meter import Meter, perplexity
from heed.training.report import SCORES, Log, Report


@dataclass(frozen=True)
class Outcome:
    """How a run ended: "finished", "stopped early" or "interrupted"."""

    how: str
    step: int
    folder: Path


class Run:
    """A run at work: its parts, and what happens after each step."""

    def __init__(
        self,
        recipe: Recipe,
        folder: Path,
        prepared: Prepared,
        report: Callable[[int], Report],
        base: Package | None = None,
    ):
        t = recipe.training
        self.recipe, self.folder, self.prepared = recipe, folder, prepared
        self.device = choose_device(t.device)
        torch.manual_seed(t.seed)
        self.model = models.build(recipe, base, prepared).to(self.device)
        most = self.model.config.max_length - len(prepared.subwords[0].marks.before)
        if recipe.filters.max_length > most:
            raise ValueError(
                f"filters.max_length is {recipe.filters.max_length}, but the model has places for {most}: set it no higher"
            )
        self.names = [name for name, _ in self.model.named_parameters()]
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(),
            lr=0.0,
            betas=(t.beta1, t.beta2),
            eps=t.epsilon,
            weight_decay=t.weight_decay,
            fused=True,
        )
        self.ema = EMA(self.model, t.ema) if t.ema else None
        self.record = Record()
        self.place, self.step = Place(), 0
        self.job = job(recipe, prepared.valid, prepared.subwords)
        self.decoding = dataclasses.replace(recipe.decoding, beam=t.valid_beam, nbest=1, sample=False)
        self.product = Product(folder, recipe, prepared, self.job.validation)
        self.interrupted: str | None = None
        restored = self._restore()
        self.report = report(self.step)
        for sentence in restored:
            self.report.say(sentence)
        self.log = Log(folder, self.step)
        self.meter = Meter(self.step, t.steps)

    def train(self) -> Outcome:
        t = self.recipe.training
        batches = Batches(
            self.prepared.corpus,
            budget=t.batch_tokens,
            seed=t.seed,
            sampling=self.recipe.subwords.sampling,
            subwords=self.prepared.subwords if self.recipe.subwords.sampling else None,
            max_length=self.model.config.max_length,
            marks=tuple(part.marks for part in self.prepared.subwords),
            together=self.job.together,
            noise=self.job.noise,
        )
        # to sample subwords or to make noise costs as much as to train on it: a process of its own does it
        apart = self.recipe.subwords.sampling or self.job.noise is not None
        made = elsewhere(batches, self.place) if apart else batches.start(self.place)
        moved = ((place, batch.to(self.device)) for place, batch in made)
        self.log.write("start", step=self.step, key=self.prepared.key, heed=__version__, torch=torch.__version__)
        if self.step < t.steps and not self.record.stopped:
            with closing(made), closing(ahead(moved)) as ready:
                loop.train(
                    self.model,
                    ready,
                    torch.compile(self.job.objective, dynamic=True) if t.compile else self.job.objective,
                    self.optimizer,
                    make_schedule(t, self.model.config.dim),
                    steps=range(self.step + 1, t.steps + 1),
                    accumulate=t.accumulate,
                    clip=t.clip,
                    seed=t.seed,
                    context=self._precision,
                    after_step=[self._average, self._tell, self._check, self._save],
                )
        if self.interrupted:
            return Outcome("interrupted", self.step, self.folder)
        self._finish()
        return Outcome("stopped early" if self.record.stopped else "finished", self.step, self.folder)

    def interrupt(self, number: int, frame: Any) -> None:
        """Ask the loop to save and leave after the step it is in."""
        self.interrupted = signal.Signals(number).name

    def close(self) -> None:
        self.report.close()
        self.log.close()

    def _precision(self):
        torch.set_float32_matmul_precision("high" if self.recipe.training.precision == "tf32" else "highest")
        if self.recipe.training.precision == "bfloat16":
            return torch.autocast(self.device.type, dtype=torch.bfloat16)
        return nullcontext()

    # after each step, in this order

    def _average(self, progress: loop.Progress) -> None:
        self.step, self.place = progress.step, progress.place
        if self.ema is not None:
            self.ema.update(self.model, progress.step)

    def _tell(self, progress: loop.Progress) -> None:
        self.meter.add(progress)
        if progress.step % self.recipe.training.log_every == 0 or progress.step == self.recipe.training.steps:
            facts = self.meter.read(progress)
            self.log.write("step", **facts)
            self.report.step(facts)

    def _check(self, progress: loop.Progress) -> None:
        t = self.recipe.training
        if progress.step % t.valid_every and progress.step != t.steps:
            return
        paused = time.monotonic()
        with self._weights(self._watched()):
            found = self._validate()
        facts = {
            "step": progress.step, "epoch": progress.place.epoch, "perplexity": perplexity(found.scores["loss"]),
            **found.scores, "seconds": time.monotonic() - paused,
        }  # fmt: skip
        metric = self.job.metric
        best = self.record.note(
            progress.step, found.scores[metric], smaller_is_better=metric == "loss", patience=t.patience
        )
        self.log.write("valid", **facts)
        self.product.write_samples(progress.step, found)
        self.report.valid(facts, found.samples, best)
        if best:
            with self._weights(self._watched()):
                self.product.write_model(self.model, found, f"step {progress.step:,}")
        self.meter.pause(time.monotonic() - paused)

    def _save(self, progress: loop.Progress) -> bool:
        """Write a checkpoint where one is due; say whether the run is over."""
        t = self.recipe.training
        every = t.checkpoint_every or t.valid_every
        regular = progress.step % every == 0 or progress.step == t.steps
        if regular:
            self.record.saved.append(progress.step)
        leave = bool(self.interrupted) or self.record.stopped
        if regular or leave or progress.step in self.record.best_steps(t.average):
            self.meter.check(progress)
            training = checkpoints.optimizer_tensors(self.optimizer, self.names)
            if self.ema is not None:
                training |= {f"ema.{name}": weight for name, weight in self.ema.weights.items()}
            state = {"place": list(self.place), "record": dataclasses.asdict(self.record), "key": self.prepared.key}
            checkpoints.write(self.folder / "checkpoints", self.step, self.model.state_dict(), training, state)
            checkpoints.prune(self.folder / "checkpoints", t.keep, self._needed())
        return leave

    # the parts of that

    def _needed(self) -> list[int]:
        """The steps whose weights the final model may be made of."""
        t = self.recipe.training
        wanted = {
            "best": self.record.best_steps(1),
            "average-best": self.record.best_steps(t.average),
            "average-last": self.record.saved[-t.average :],
        }
        return wanted.get(t.final, [])

    def _watched(self) -> dict[str, torch.Tensor]:
        """The weights that validation looks at: the running average where that will be the model."""
        return self.ema.weights if self.recipe.training.final == "ema" else self.model.state_dict()

    def _weights(self, weights: dict[str, torch.Tensor]):
        return nullcontext() if weights is not getattr(self.ema, "weights", None) else swapped(self.model, weights)

    def _validate(self) -> Validity:
        with self._precision():
            return self.job.validation.run(self.model, self.decoding, self.product.max_source)

    def _restore(self) -> list[str]:
        """Go back to the newest checkpoint that is whole; what to say about it."""
        said: list[str] = []
        kept = checkpoints.newest(self.folder / "checkpoints", said.append)
        if kept is None:
            return said
        if kept.state["key"] != self.prepared.key:
            raise ValueError(
                f"{self.folder} was trained on other data: the files, the filters or the subwords have changed since; "
                "put them back, or start a new run with another --out"
            )
        model_folder.put(self.model, kept.model, self.folder / "checkpoints")
        checkpoints.restore_optimizer(self.optimizer, kept.training, self.names)
        said += self._restore_average(kept.training)
        self.record = Record(**kept.state["record"])
        self.record.stopped = 0 < self.recipe.training.patience <= self.record.waited
        self.step, self.place = kept.step, Place(*kept.state["place"])
        return [*said, f"Going on from step {self.step:,}."]

    def _restore_average(self, training: dict[str, torch.Tensor]) -> list[str]:
        if self.ema is None:
            return []
        if f"ema.{self.names[0]}" not in training:
            self.ema = EMA(self.model, self.recipe.training.ema)
            return ["The checkpoint has no moving average: it starts from the weights there."]
        for name, weight in self.ema.weights.items():
            weight.copy_(training[f"ema.{name}"])
        return []

    def _finish(self) -> None:
        """Make the final model of the weights that were asked for, and measure it."""
        t = self.recipe.training
        folder = self.folder / "checkpoints"
        steps = [step for step in self._needed() if (folder / f"step-{step:06d}" / checkpoints.MODEL).is_file()]
        if len(steps) < len(self._needed()):
            self.report.say(
                "Not all checkpoints for the mean are still there: training.final or average was changed on the way."
            )
        if t.final == "ema":
            weights, made_of = self.ema.weights, f"moving average at step {self.step:,}"
        elif t.final == "last" or not steps:
            weights, made_of = self.model.state_dict(), f"step {self.step:,}"
        else:
            weights = average.mean([folder / f"step-{step:06d}" / checkpoints.MODEL for step in steps])
            steps_in_words = ", ".join(f"{step:,}" for step in steps)
            made_of = f"step {steps_in_words}" if len(steps) == 1 else f"mean of steps {steps_in_words}"
        with swapped(self.model, weights):
            found = self._validate()
            self.product.write_model(self.model, found, made_of)
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
    """Train by a recipe into a folder."""
    check_folder(recipe, folder, resume, say)
    if recipe.training.threads:
        torch.set_num_threads(recipe.training.threads)
    base = open_package(recipe.model.folder) if recipe.model.folder else None
    prepared = prepare(recipe, tell, base)
    r = prepared.corpus.report
    aside = f"; {r.held_out:,} set aside for validation" if r.held_out else ""
    say(f"{r.kept:,} pairs to train on, of {r.read:,}{aside}; left out: {corpora.describe(r)}.")
    folder.mkdir(parents=True, exist_ok=True)
    at_work = Run(recipe, folder, prepared, report, base)
    model_folder.write_text(folder / "recipe.toml", config.to_toml(recipe))
    before = {number: signal.signal(number, at_work.interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        return at_work.train()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        at_work.close()

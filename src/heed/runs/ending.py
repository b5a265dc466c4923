"""When a run ends: after a number of steps, after a time, or when validation stops improving. With a cool-down, the
learning rate decays linearly to zero in the last part of the run. Its first step is decided during the run, recorded
in the checkpoint, and then fixed: a resumed run ends at the same step.
"""

import dataclasses
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from heed.runs.validation_history import ValidationHistory
from heed.training.config import TrainingConfig
from heed.training.duration import in_words, seconds_of
from heed.training.schedule import Schedule

WHY = {"patience": "Validation no longer improves", "time": "The time budget is nearly used up"}
WARM = 5  # steps that are not timed: kernels are compiled and caches filled in them
MEASURED = 3.0  # seconds of steps before it is said how long the run will take
WRONG = 2.0, 60.0  # it is said again if it was wrong by this factor and by these seconds


@dataclass(frozen=True)
class Outcome:
    """How a run ended: "finished", "stopped early" or "interrupted"."""

    how: str
    step: int
    folder: Path


class Command(NamedTuple):
    """When the command began, by time.monotonic(), and whether it writes a report at the end: a time budget includes
    both.
    """

    began: float
    reports: bool = False


class Ending:
    """`began` is when the command started. It has the clock; decisions go into the ValidationHistory. `finishing`
    estimates the seconds after the last validation from those of a validation.
    """

    def __init__(
        self,
        config: TrainingConfig,
        began: float,
        clock: Callable[[], float] = time.monotonic,
        finishing: Callable[[float], float] = lambda validation: 2 + validation / 2,
    ):
        self.config, self.began, self.clock, self.finishing = config, began, clock, finishing
        self.before = 0.0  # seconds that earlier parts of a resumed run took
        self.budget = None if config.time is None or config.adds_time else seconds_of(config.time)
        self.validation = 0.0  # seconds of the last validation
        self.warm: int | None = None  # the last step that is not timed
        self.marks: list[tuple[int, float]] = []  # steps and when they were done; each stretch is as long as all before
        self.paused = 0.0
        self.expected: float | None = None  # the end that was said last, on the clock

    def resume(self, history: ValidationHistory) -> None:
        self.before, self.validation = history.seconds, history.validation
        if self.config.adds_time:
            self.budget = history.seconds + seconds_of(self.config.time[1:])

    def spent(self) -> float:
        return self.before + self.clock() - self.began

    def pause(self, seconds: float) -> None:
        """Record the duration of a validation."""
        self.validation = seconds
        self.paused += seconds

    def seconds_per_step(self, step: int) -> float | None:
        """Of the last half of the steps or more, without validations: at first, kernels are compiled and shapes recorded.
        None before there is anything to measure.
        """
        first, began = self.marks[-2:][0] if self.marks else (step, 0.0)
        return None if step <= first else max(self._stepped() - began, 1e-9) / (step - first)

    def _stepped(self) -> float:
        """The clock, without the time of validations."""
        return self.clock() - self.paused

    def _mark(self, step: int) -> None:
        """Remember the time of this step if the stretch that it ends is long enough."""
        first, last = (self.marks[0][0], self.marks[-1][0]) if self.marks else (step, step - 1)
        if step - last >= max(1, last - first):
            self.marks.append((step, self._stepped()))

    def last_step(self, history: ValidationHistory) -> int:
        return history.ends_at if history.ends_at is not None else self.config.steps

    def expected_last_step(self, step: int, history: ValidationHistory) -> int | None:
        """The last step as far as it is known; None if a time budget is set and no step was timed yet."""
        if history.ends_at is not None or self.budget is None:
            return self.last_step(history)
        pace = self.seconds_per_step(step)
        if pace is None:
            return None
        return max(step, min(self.config.steps, step + self._steps_in(self._left(), pace)))

    def seconds_left(self, step: int, history: ValidationHistory) -> float | None:
        """Seconds until the model is finished, as far as known: steps, and validations as long as the last one."""
        pace, last = self.seconds_per_step(step), self.expected_last_step(step, history)
        if pace is None or last is None:
            return None
        return (last - step) * (pace + self.validation / self.config.valid_every) + self.validation

    def expectation(self, step: int, history: ValidationHistory) -> str:
        """The expected duration as text, if it was not said yet or was far from what is expected now; empty before
        `MEASURED` seconds of steps were timed.
        """
        pace, left = self.seconds_per_step(step), self.seconds_left(step, history)
        if left is None or self._stepped() - self.marks[0][1] < MEASURED:
            return ""
        if self.expected is not None and not self._was_wrong(left, self.expected - self.clock()):
            return ""
        self.expected = self.clock() + left
        more = "" if self.validation or self.budget is not None else " and the validations"
        return f"about {in_words(left)} more{more}, at {1 / pace:.3g} steps/s"

    @staticmethod
    def _was_wrong(left: float, expected: float) -> bool:
        factor, seconds = WRONG
        return abs(left - expected) > seconds and not 1 / factor < expected / max(left, 1.0) < factor

    def is_over(self, step: int, history: ValidationHistory) -> bool:
        return step >= self.last_step(history) or (history.stopped and not self.config.cooldown)

    def update(self, step: int, history: ValidationHistory) -> ValidationHistory:
        """The history, with the end decided if this is the step to decide it."""
        if self.warm is None:
            self.warm = step + WARM
        elif step >= self.warm:
            self._mark(step)
        c, decided = self.config, history.ends_at is not None
        if decided:
            late = history.ended_by == "time" and self._left() < 0
            return dataclasses.replace(history, ends_at=min(history.ends_at, step + 1)) if late else history
        why, length = self._decide(step, history)
        if not why:
            return history
        last = min(c.steps, step + max(1, length))
        return dataclasses.replace(history, ends_at=last, cooldown_from=step, ended_by=why, budget=self.budget)

    def _decide(self, step: int, history: ValidationHistory) -> tuple[str, int]:
        """Why the end begins after this step, and after how many steps it comes; ("", 0) if it does not yet."""
        c = self.config
        if c.cooldown and step >= round((1 - c.cooldown) * c.steps):
            return "steps", c.steps - step
        if c.cooldown and history.stopped:
            return "patience", round(step * c.cooldown / (1 - c.cooldown))
        if self.budget is not None and self.spent() >= (1 - c.cooldown) * (self.budget - self._reserve()):
            pace = self.seconds_per_step(step)
            return "time", self._steps_in(self._left(), pace) if pace else 1
        return "", 0

    def _left(self) -> float:
        return self.budget - self._reserve() - self.spent()

    def _reserve(self) -> float:
        """Seconds for what comes after the last step: a validation, and finishing the model."""
        return self.validation + self.finishing(self.validation)

    def _steps_in(self, seconds: float, pace: float) -> int:
        return max(0, int(seconds / (pace + self.validation / self.config.valid_every)))


def cooled(schedule: Schedule, history: Callable[[], ValidationHistory]) -> Schedule:
    """The schedule, multiplied by a factor that decays from one to zero once the end is decided."""

    def rate(step: int) -> float:
        now = history()
        if now.ends_at is None or step <= now.cooldown_from:
            return schedule(step)
        return schedule(step) * max(0.0, (now.ends_at + 1 - step) / (now.ends_at + 1 - now.cooldown_from))

    return rate


def can_extend(config: TrainingConfig, history: ValidationHistory) -> bool:
    """Whether the current settings extend a run that had ended."""
    if history.ends_at is None:
        return False
    budget = None if config.time is None or config.adds_time else seconds_of(config.time)
    if config.adds_time or (budget is not None and budget > (history.budget or 0)):
        return True
    if history.ended_by == "steps":
        return config.steps > history.ends_at
    if history.ended_by == "time":
        return budget is None
    return not config.patience or config.patience > history.waited


def reopened(record: Mapping[str, Any], ended: ValidationHistory) -> dict[str, Any]:
    """The record of a ValidationHistory, with its end undecided. `ended` is the history at the end of the run."""
    undecided = {"ends_at": None, "cooldown_from": 0, "ended_by": "", "waited": 0, "stopped": False}
    finished = ended.best_model() if ended.best else None
    return {**record, **undecided, "validation": ended.validation, "finished": finished}

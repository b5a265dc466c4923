"""When a run ends: after a number of steps, after a time, or when validation stops improving. With a cool-down, the
learning rate decays linearly to zero in the last part of the run. Its first step is decided during the run, recorded
in the checkpoint, and then fixed: a resumed run ends at the same step.
"""

import dataclasses
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from heed.runs.validation_history import ValidationHistory
from heed.training.config import TrainingConfig
from heed.training.duration import as_setting, in_words, seconds_of
from heed.training.schedule import Schedule

WHY = {"patience": "Validation no longer improves", "time": "The time budget is nearly used up"}
WARM = 5  # steps that are not timed: kernels are compiled and caches filled in them
MEASURED = 3.0  # seconds of steps before it is said how long the run will take
SHORT = 600.0  # seconds: in a shorter budget, what is optional after the last step gets what is left
WRONG = 2.0, 60.0  # it is said again if it was wrong by this factor and by these seconds
SETTLED = 1.5, 30.0, 60.0  # the speed may change by this factor, or so many seconds are timed at first, and later


@dataclass(frozen=True)
class Outcome:
    """How a run ended: "finished", "stopped early", "interrupted" or "rehearsed"."""

    how: str
    step: int
    folder: Path


class Command(NamedTuple):
    """When the command began, by time.monotonic(), and whether it writes a report at the end: a time budget includes
    both. A `rehearsal` only shows what would be trained.
    """

    began: float
    reports: bool = False
    rehearsal: bool = False


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
        self.pace = 0.0  # seconds per step of its last part
        self.budget = None if config.time is None or config.adds_time else seconds_of(config.time)
        self.validation = 0.0  # seconds of the last validation
        self.started = 0.0  # seconds before the first step, in a short budget of a new run
        self.warm: int | None = None  # the last step that is not timed
        self.marks: list[tuple[int, float]] = []  # steps and when they were done; each stretch is as long as all before
        self.paused = 0.0
        self.expected: float | None = None  # the end that was said last, on the clock

    def resume(self, history: ValidationHistory) -> None:
        self.before, self.validation, self.pace = history.seconds, history.validation, history.pace
        if self.config.adds_time:
            self.budget = history.seconds + seconds_of(self.config.time[1:])

    @property
    def seconds(self) -> float | None:
        """The budget; of an extension, that of its own."""
        return None if self.budget is None else self.budget - (self.before if self.config.adds_time else 0.0)

    @property
    def is_short(self) -> bool:
        return self.seconds is not None and self.seconds < SHORT

    def spent(self) -> float:
        return self.before + self.clock() - self.began

    def left_for_options(self, needed: float) -> float | None:
        """Seconds of a short budget that are left beside the `needed` ones; None if the budget is no limit to what is
        optional, as when a run is resumed after its last step.
        """
        if not self.is_short or self.warm is None:
            return None
        return max(0.0, self.budget - self.spent() - needed)

    def too_short(self, step: int, history: ValidationHistory) -> str:
        """At the start of an extension: a sentence if its time does not suffice to train further than before."""
        least = history.least_end()
        if not least or self.budget is None or history.ends_at is not None:
            return ""
        needed = (least - step) * self.pace + self._reserve()
        if needed <= self.budget - self.spent():
            return ""
        shortest = as_setting(60 * math.ceil((self.clock() - self.began + needed) / 60))
        return (
            f"{in_words(self.seconds)} are too short to train further than before, to step {least:,}: with the "
            f"validation and the end that takes about {in_words(needed)} here. The run goes on until then; --time "
            f"+{shortest} would be enough."
        )

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
        return max(step, history.least_end(), min(self.config.steps, step + self._steps_in(self._left(), pace)))

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
        if left is None or self._stepped() - self.marks[0][1] < MEASURED or not self._is_settled(pace):
            return ""
        if self.expected is not None and not self._was_wrong(left, self.expected - self.clock()):
            return ""
        self.expected = self.clock() + left
        more = "" if self.validation or self.budget is not None else " and the validations"
        return f"about {in_words(left)} more{more}, at {1 / pace:.3g} steps/s"

    def _is_settled(self, pace: float) -> bool:
        """Whether steps are about as fast as in the stretch before, or were timed long enough to say it nevertheless:
        while kernels are compiled, or a GPU is given steps ahead, the speed says nothing.
        """
        factor, *enough = SETTLED
        since = self._stepped() - self.marks[0 if self.expected is None else -1][1]
        if since >= enough[self.expected is not None]:
            return True
        if len(self.marks) < 3:
            return False
        (first, began), (last, ended) = self.marks[-3:-1]
        return (
            self._stepped() - began >= MEASURED
            and 1 / factor < pace * (last - first) / max(ended - began, 1e-9) < factor
        )

    @staticmethod
    def _was_wrong(left: float, expected: float) -> bool:
        factor, seconds = WRONG
        return abs(left - expected) > seconds and not 1 / factor < expected / max(left, 1.0) < factor

    def validates(self, step: int, history: ValidationHistory) -> bool:
        """Whether this step is validated. In the cool-down of a short budget only the last one is."""
        if self.is_short and history.ends_at is not None:
            return step >= history.ends_at
        return step % self.config.valid_every == 0 or step >= self.last_step(history)

    def is_over(self, step: int, history: ValidationHistory) -> bool:
        return step >= self.last_step(history) or (history.stopped and not self.config.cooldown)

    def update(self, step: int, history: ValidationHistory) -> ValidationHistory:
        """The history, with the end decided if this is the step to decide it."""
        if self.warm is None:
            self.warm = step + WARM
            self.started = self.spent() if self.is_short and not history.reached else 0.0
        elif step >= self.warm:
            self._mark(step)
        c, decided = self.config, history.ends_at is not None
        if decided:
            late = history.ended_by == "time" and self._left() < 0
            validated = self.is_short and any(step == own for _, own in history.best)  # and so it can be the last
            soonest = max(step if validated else step + 1, history.least_end())
            return dataclasses.replace(history, ends_at=min(history.ends_at, soonest)) if late else history
        why, length = self._decide(step, history)
        if not why:
            return history
        last = min(c.steps, step + max(1, length))
        return dataclasses.replace(history, ends_at=last, cooldown_from=step, ended_by=why, budget=self.budget)

    def _decide(self, step: int, history: ValidationHistory) -> tuple[str, int]:
        """Why the end begins after this step, and after how many steps it comes; ("", 0) if it does not yet."""
        c, least = self.config, history.least_end()
        if c.cooldown and step >= round((1 - c.cooldown) * c.steps):
            return "steps", c.steps - step
        if c.cooldown and history.stopped:
            return "patience", max(round(step * c.cooldown / (1 - c.cooldown)), least - step)
        if step < round((1 - c.cooldown) * least):  # of an extension, which ends later than the run did before
            return "", 0
        if self.budget is not None and self._left() <= c.cooldown * (self.budget - self._reserve() - self.started):
            pace = self.seconds_per_step(step)
            pace = pace or self.pace or math.inf
            return "time", max(1, self._steps_in(self._left(), pace, cooling=True), least - step)
        return "", 0

    def _left(self) -> float:
        return self.budget - self._reserve() - self.spent()

    def _reserve(self) -> float:
        """Seconds for what comes after the last step: a validation, and finishing the model. At most half of the time
        that a short budget has after its start, even if the run is late then: a model of a few steps is worth nothing.
        """
        reserve = self.validation + self.finishing(self.validation)
        return min(reserve, (self.budget - self.started) / 2) if self.started else reserve

    def _steps_in(self, seconds: float, pace: float, cooling: bool = False) -> int:
        validating = 0.0 if cooling and self.is_short else self.validation / self.config.valid_every
        return max(0, int(seconds / (pace + validating)))


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


def reopened(record: Mapping[str, Any], ended: ValidationHistory, reached: int) -> dict[str, Any]:
    """The record of a ValidationHistory, with its end undecided. `ended` is the history at the end of the run, which
    is the step `reached`.
    """
    undecided = {"ends_at": None, "cooldown_from": 0, "ended_by": "", "waited": 0, "stopped": False}
    kept = {"validation": ended.validation, "pace": ended.pace, "reached": max(reached, ended.reached)}
    return {**record, **undecided, **kept, "finished": ended.best_model() if ended.best else None}

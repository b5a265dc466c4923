"""How long a run would take, from a few steps: for a dry run."""

import time
from collections.abc import Callable

from heed.training.config import TrainingConfig
from heed.training.duration import in_words, seconds_of

WARM = 5  # steps that are not timed if there is time for more: kernels are compiled and shapes recorded
ENOUGH = 3.0  # seconds of timed steps
LONGEST = 30.0  # seconds of all steps, if they are slow


class Timing:
    """When each step was done; `is_enough` is called after each."""

    def __init__(self, config: TrainingConfig, clock: Callable[[], float] = time.monotonic):
        self.config, self.clock, self.times = config, clock, [clock()]

    def is_enough(self, step: int) -> bool:
        self.times.append(self.clock())
        timed = len(self.times) - 1 > WARM and self.times[-1] - self.times[WARM] >= ENOUGH
        slow = len(self.times) > 2 and self.times[-1] - self.times[0] >= LONGEST
        return timed or slow or step >= self.config.steps

    @property
    def seconds_per_step(self) -> float:
        """Of the steps after the first ones; if there are none, of the last one."""
        first = min(WARM, len(self.times) - 2)
        return max(self.times[-1] - self.times[first], 1e-9) / (len(self.times) - 1 - first)

    def expectation(self) -> str:
        """The duration of the run as text, by its steps or its time limit."""
        seconds = self.config.steps * self.seconds_per_step
        words = f"about {in_words(seconds)} and the validations"
        if self.config.time is not None and (limit := seconds_of(self.config.time)) <= seconds:
            words = f"{in_words(limit)} at most"
        return f"{words}, at {1 / self.seconds_per_step:.3g} steps/s"

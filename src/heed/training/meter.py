"""Loss and speed of a training run in progress."""

import math
import time
from typing import Any

from heed.training.loop import Progress


def perplexity(loss: float) -> float:
    return math.exp(min(loss, 50.0))


class Meter:
    """Loss and speed since the last reading. Reading waits for the device; adding does not. A loss over words also
    has a perplexity.
    """

    def __init__(self, step: int, has_perplexity: bool = True):
        self.has_perplexity = has_perplexity
        self.began = self.since = time.monotonic()
        self.step, self.nll, self.count, self.paused = step, 0.0, 0, 0.0
        self.parts: dict[str, tuple[Any, Any]] = {}

    def add(self, progress: Progress) -> None:
        self.nll, self.count = self.nll + progress.nll, self.count + progress.count
        for name, (total, count) in progress.parts.items():
            before = self.parts.get(name, (0.0, 0))
            self.parts[name] = before[0] + total, before[1] + count

    def pause(self, seconds: float) -> None:
        self.paused += seconds

    def read(self, progress: Progress, steps: int | None = None, left: float | None = None) -> dict[str, Any]:
        """The measurements, which are then reset. `steps` and `left`: the last step and the seconds until it, if
        known.
        """
        self.check(progress)
        facts = self.peek(progress, steps, left)
        self.step, self.since, self.paused = progress.step, time.monotonic(), 0.0
        self.nll, self.count, self.parts = 0.0, 0, {}
        return facts

    def peek(self, progress: Progress, steps: int | None = None, left: float | None = None) -> dict[str, Any]:
        """What was measured so far."""
        count, now = float(self.count), time.monotonic()
        loss, seconds = float(self.nll) / count, max(now - self.since - self.paused, 1e-9)
        parts = {f"loss_{name}": float(total) / max(float(n), 1.0) for name, (total, n) in self.parts.items()}
        words = {"perplexity": perplexity(loss)} if self.has_perplexity else {}
        return {
            "step": progress.step, "epoch": progress.position.epoch, "loss": loss, **words,
            "rate": progress.rate, "gradient": float(progress.gradient_norm), "tokens_per_second": count / seconds,
            "steps_per_second": (progress.step - self.step) / seconds, "seconds": now - self.began,
            "seconds_left": left, "steps": steps, **parts,
        }  # fmt: skip

    def check(self, progress: Progress) -> None:
        """Raise an error if the loss or the gradient is not finite, before NaN weights are saved."""
        wrong = [name for name in ("nll", "gradient_norm") if not math.isfinite(float(getattr(progress, name)))]
        if wrong:
            what = "loss" if wrong[0] == "nll" else "gradient"
            raise ValueError(
                f"the {what} is no longer finite at step {progress.step:,}: lower training.rate, raise training.warmup, or set "
                "training.clip; --resume continues from the last checkpoint"
            )

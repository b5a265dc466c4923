"""Loss and speed of a running training run."""

import math
import time
from typing import Any

from heed.training.loop import Progress


def perplexity(loss: float) -> float:
    return math.exp(min(loss, 50.0))


class Meter:
    """Loss and speed since it was last read. Reading waits for the device; adding does not.

    `steps` is the last step as far as it is known, or None. Where the loss is of words, it has a perplexity.
    """

    def __init__(self, step: int, steps: int | None, has_perplexity: bool = True):
        self.steps, self.first, self.has_perplexity = steps, step, has_perplexity
        self.began = self.since = time.monotonic()
        self.nll, self.count, self.paused = 0.0, 0, 0.0
        self.parts: dict[str, tuple[Any, Any]] = {}

    def add(self, progress: Progress) -> None:
        self.nll, self.count = self.nll + progress.nll, self.count + progress.count
        for name, (total, count) in progress.parts.items():
            before = self.parts.get(name, (0.0, 0))
            self.parts[name] = before[0] + total, before[1] + count

    def pause(self, seconds: float) -> None:
        self.paused += seconds

    def read(self, progress: Progress) -> dict[str, Any]:
        self.check(progress)
        count, gradient = float(self.count), float(progress.gradient_norm)
        loss = float(self.nll) / count
        now = time.monotonic()
        speed = count / max(now - self.since - self.paused, 1e-9)
        seconds_per_step = (now - self.began) / max(progress.step - self.first, 1)
        left = None if self.steps is None else seconds_per_step * (self.steps - progress.step)
        parts = {f"loss_{name}": float(total) / max(float(n), 1.0) for name, (total, n) in self.parts.items()}
        self.nll, self.count, self.paused, self.since, self.parts = 0.0, 0, 0.0, now, {}
        words = {"perplexity": perplexity(loss)} if self.has_perplexity else {}
        return {
            "step": progress.step, "epoch": progress.position.epoch, "loss": loss, **words,
            "rate": progress.rate, "gradient": gradient, "tokens_per_second": speed, "seconds": now - self.began,
            "seconds_left": left, "steps": self.steps, **parts,
        }  # fmt: skip

    def check(self, progress: Progress) -> None:
        """Raise when the loss or the gradient is not finite, before weights that are NaN as well are saved."""
        wrong = [name for name in ("nll", "gradient_norm") if not math.isfinite(float(getattr(progress, name)))]
        if wrong:
            what = "loss" if wrong[0] == "nll" else "gradient"
            raise ValueError(
                f"the {what} became NaN at step {progress.step:,}: lower training.rate, raise training.warmup, or set "
                "training.clip; --resume continues from the last checkpoint"
            )

"""The learning rate of each step, counted from 1."""

import math
from collections.abc import Callable

Schedule = Callable[[int], float]


def noam(dim: int, warmup: int, factor: float = 1.0) -> Schedule:
    """dim^-0.5 · min(step^-0.5, step · warmup^-1.5): the paper's schedule (Vaswani et al., 2017)."""
    return lambda step: factor * dim**-0.5 * min(step**-0.5, step * max(warmup, 1) ** -1.5)


def inverse_root(peak: float, warmup: int) -> Schedule:
    """Linear warm-up to `peak`, then decay with the inverse square root of the step."""
    return lambda step: peak * min(step / max(warmup, 1), math.sqrt(max(warmup, 1) / step))


def cosine(peak: float, warmup: int, steps: int, minimum: float = 0.0) -> Schedule:
    """Linear warm-up to `peak`, then half a cosine down to `minimum` at `steps`."""

    def rate(step: int) -> float:
        if step <= warmup:
            return peak * step / warmup
        done = min(1.0, (step - warmup) / max(1, steps - warmup))
        return minimum + (peak - minimum) * (1 + math.cos(math.pi * done)) / 2

    return rate


def constant(peak: float, warmup: int) -> Schedule:
    """Linear warm-up to `peak`, then constant."""
    return lambda step: peak * min(1.0, step / max(warmup, 1))

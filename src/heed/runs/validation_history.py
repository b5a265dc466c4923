"""The record of a run's validations and checkpoints: which were best, how long ago, and when it ends."""

from dataclasses import dataclass, field


@dataclass
class ValidationHistory:
    """`best` holds [score, step], best first; a higher score is better.

    Once the end is decided, `ends_at` is the last step, `cooldown_from` the step after which the rate decays, and
    `ended_by` the reason: "steps", "time" or "patience". `seconds` is the time spent so far, `budget` the time
    budget, `validation` the seconds of the last validation, `pace` those of a step. `finished` is [score, step] of the
    model that an extended run had before, and `reached` its last step.
    """

    best: list[list[float | int]] = field(default_factory=list)
    saved: list[int] = field(default_factory=list)
    waited: int = 0
    stopped: bool = False
    ends_at: int | None = None
    cooldown_from: int = 0
    ended_by: str = ""
    seconds: float = 0.0
    budget: float | None = None
    validation: float = 0.0
    finished: list[float | int] | None = None
    pace: float = 0.0
    reached: int = 0

    def add(self, step: int, score: float, *, patience: int) -> bool:
        """Record a validation; returns whether it is the best so far."""
        best = not self.best or score > self.best[0][0]
        self.best.append([score, step])
        self.best.sort(key=lambda pair: (-pair[0], pair[1]))
        self.waited = 0 if best else self.waited + 1
        self.stopped = bool(patience) and self.waited >= patience
        return best

    def least_end(self) -> int:
        """The first step at which an extended run may end: after its last one before. 0 if it was not extended."""
        return self.reached + 1 if self.reached else 0

    def best_model(self) -> list[float | int]:
        """[score, step] of the best validation, including those before the run was extended."""
        return max([*self.best[:1], *([self.finished] if self.finished else [])], key=lambda pair: pair[0])

    def best_steps(self, count: int) -> list[int]:
        return sorted(int(step) for _, step in self.best[:count])

"""The [distill] section of a recipe: how a student learns from its teacher."""

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class DistillConfig:
    """`beam` None: the teacher's own. Of `nbest` translations the student learns the `take` ones `nearest` to the
    reference. `teacher`: several form an ensemble. `mix`: also train on the references. `vocabulary`: the teacher's,
    or a new one. `soft`: the weight of the teacher's (or the ensemble's mean) next-token distribution in the
    student's loss.
    """

    teacher: list[str] = field(default_factory=list)
    beam: int | None = None
    nbest: int = 1
    take: int = 1
    nearest: Literal["chrf", "bleu"] = "chrf"
    mix: bool = False
    soft: float = 0.0
    vocabulary: Literal["teacher", "own"] = "teacher"
    batch_tokens: int = 4096

    def __post_init__(self):
        for name in ("beam", "nbest", "take", "batch_tokens"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"distill.{name} is {value}; it must be at least 1")
        if self.beam and self.nbest > self.beam:
            raise ValueError(
                f"distill.nbest is {self.nbest}, but distill.beam is {self.beam}: a beam cannot return more"
            )
        if not 0 <= self.soft <= 1:
            raise ValueError(f"distill.soft is {self.soft}; it must be from 0 to 1")
        if self.soft and self.vocabulary == "own":
            raise ValueError(f"distill.soft is {self.soft}, which needs the teacher's vocabulary")
        if self.take > self.nbest:
            raise ValueError(f"distill.take is {self.take}, but distill.nbest is {self.nbest}: it cannot exceed that")

"""The training log of a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from heed.training.curves import RunCurve, read_log

Points = Sequence[tuple[float, float]]  # (step, value)
Value = TypeVar("Value")
LAST = 10  # log lines whose mean is the training loss at the end


@dataclass(frozen=True)
class TrainingLog:
    """By step: `train` is the training loss, `valid` every metric of the validations, `speed` is in target tokens per second.

    `ended_by` is "steps", "time" or "patience", "" if unknown; the rate decays after step `cooldown_from`, 0 if it
    does not.
    """

    train: Points
    valid: Mapping[str, Points]
    rate: Points
    speed: Points
    seconds: float
    epochs: int
    finished: bool
    weights: str = ""  # of the final model: which steps they are from
    ended_by: str = ""
    cooldown_from: int = 0

    @property
    def steps(self) -> int:
        last = [points[-1][0] for points in (self.train, *self.valid.values()) if points]
        return int(max(last, default=0))

    @property
    def tokens_per_second(self) -> float:
        return sum(value for _, value in self.speed) / max(1, len(self.speed))

    @property
    def final_train_loss(self) -> float | None:
        """The mean of the last logged training losses."""
        last = [loss for _, loss in self.train[-LAST:]]
        return sum(last) / len(last) if last else None


def read_training(folder: Path, metrics: Sequence[str]) -> TrainingLog:
    """Read log.jsonl of a run folder; `metrics` are the names of the validation metrics."""
    lines = read_log(folder)
    curve = RunCurve(folder.name, "", lines)

    def points(kind: str, field: str) -> Points:
        return list(zip(*curve.points(kind, field), strict=True))

    steps = [line for line in lines if line["kind"] == "step"]
    ends = [line for line in lines if line["kind"] == "end"]
    end = ends[-1] if ends else {}
    return TrainingLog(
        points("step", "loss"),
        {name: found for name in metrics if (found := points("valid", name))},
        points("step", "rate"),
        points("step", "tokens_per_second"),
        _seconds(lines),
        max((_get(line, "epoch", 0) for line in steps), default=-1) + 1,
        bool(ends),
        _get(end, "weights", ""),
        _get(end, "ended_by", ""),
        _get(end, "cooldown_from", 0),
    )


def _get(line: Mapping[str, Any], name: str, default: Value) -> Value:
    """The value of an entry, if it has the right type."""
    value = line.get(name)
    return value if type(value) is type(default) else default


def _seconds(lines: Sequence[Mapping]) -> float:
    """The time of training and validation; the clock restarts when a run is resumed."""
    total, last = 0.0, 0.0
    for line in lines:
        if line["kind"] == "start":
            total, last = total + last, 0.0
        elif line["kind"] == "step" and isinstance(line.get("seconds"), int | float):
            last = float(line["seconds"])
    return total + last

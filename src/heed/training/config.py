"""The settings of a training run."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import nn

from heed.training import schedule
from heed.training.schedule import Schedule


@dataclass(frozen=True)
class TrainingConfig:
    """`rate` is the peak; for "noam", a factor on the paper's formula. `patience` 0: never stop early.

    `precision` "auto": bfloat16 on a GPU that has it. `packed`: sentences end to end, without padding; unless said, where
    that is the fast road (one GPU, bfloat16). `teacher`: a model, or several together, whose opinion of each next word is
    `distillation_loss` for this share of the loss.
    """

    steps: int = 10_000
    batch_tokens: int = 4096
    accumulate: int = 1
    schedule: Literal["noam", "inverse-root", "cosine", "constant"] = "inverse-root"
    rate: float = 1e-3
    warmup: int = 1000
    beta1: float = 0.9
    beta2: float = 0.98
    epsilon: float = 1e-9
    weight_decay: float = 0.0
    clip: float = 1.0
    label_smoothing: float = 0.1
    r_drop: float = 0.0
    teacher: list[str] = field(default_factory=list)
    distillation_loss: float = 0.5
    precision: Literal["auto", "float32", "tf32", "bfloat16"] = "auto"
    packed: bool | None = None
    compile: bool = False
    seed: int = 1
    threads: int | None = None
    device: str = "auto"
    parallel: Literal["ddp", "fsdp"] = "ddp"
    log_every: int = 20
    valid_every: int = 500
    valid_beam: int = 1
    valid_tokens: int = 8192
    checkpoint_every: int | None = None
    keep: int = 2
    samples: int = 4
    metric: Literal["auto", "chrf", "bleu", "rouge", "accuracy", "loss"] = "auto"
    patience: int = 0
    final: Literal["best", "last", "average-best", "average-last", "ema"] = "best"
    average: int = 5
    ema: float = 0.0

    def __post_init__(self):
        self._check_sizes()
        self._check_rates()
        self._check_average()
        self._check_teacher()
        if not 0 <= self.label_smoothing < 1:
            raise ValueError(f"training.label_smoothing is {self.label_smoothing}; it must be at least 0 and below 1")
        if self.valid_beam < 1 or self.valid_tokens < 1 or self.samples < 0 or self.patience < 0:
            raise ValueError("training.valid_beam and valid_tokens must be at least 1, samples and patience at least 0")

    def _check_sizes(self) -> None:
        for name in ("steps", "batch_tokens", "accumulate", "log_every", "valid_every", "keep", "average"):
            if getattr(self, name) < 1:
                raise ValueError(f"training.{name} is {getattr(self, name)}; it must be at least 1")
        if self.warmup < 0:
            raise ValueError(f"training.warmup is {self.warmup}; it must be at least 0")
        for name in ("checkpoint_every", "threads"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise ValueError(f"training.{name} is {getattr(self, name)}; it must be at least 1")
        if self.threads is not None and self.threads > 1024:
            raise ValueError(f"training.threads is {self.threads}; it must be at most 1,024")

    def _check_rates(self) -> None:
        for name in ("beta1", "beta2"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"training.{name} is {getattr(self, name)}; it must be at least 0 and below 1")
        for name in ("rate", "clip", "weight_decay", "r_drop"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"training.{name} is {getattr(self, name)}; it must be 0 (off) or a number above 0")

    def _check_average(self) -> None:
        if self.final == "ema" and not 0 < self.ema < 1:
            raise ValueError(
                f"training.final is 'ema', but training.ema is {self.ema}; set it near 1, for example 0.999"
            )
        if not 0 <= self.ema < 1:
            raise ValueError(f"training.ema is {self.ema}; it must be 0 (off) or a number below 1, for example 0.999")
        if self.ema and self.final != "ema":
            raise ValueError(
                f"training.ema is {self.ema}, but training.final is {self.final!r}: set it to 'ema', or ema to 0"
            )

    def _check_teacher(self) -> None:
        if not 0 < self.distillation_loss <= 1:
            raise ValueError(f"training.taught is {self.taught}; it must be above 0 and no more than 1")
        if self.teachers and self.r_drop:
            raise ValueError(
                f"training.teacher is {self.teachers!r} and training.r_drop is {self.r_drop}: a student has one or the other"
            )

    @property
    def teachers(self) -> str:
        """Their names, for whoever reads them."""
        return ", ".join(filter(None, self.teacher))


def make_schedule(config: TrainingConfig, dim: int) -> Schedule:
    schedules = {
        "noam": lambda: schedule.noam(dim, config.warmup, config.rate),
        "inverse-root": lambda: schedule.inverse_root(config.rate, config.warmup),
        "cosine": lambda: schedule.cosine(config.rate, config.warmup, config.steps),
        "constant": lambda: schedule.constant(config.rate, config.warmup),
    }
    return schedules[config.schedule]()


def make_optimizer(config: TrainingConfig, weights: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.AdamW(
        weights,
        lr=0.0,
        betas=(config.beta1, config.beta2),
        eps=config.epsilon,
        weight_decay=config.weight_decay,
        fused=True,
    )

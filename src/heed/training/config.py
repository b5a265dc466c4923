"""The settings of a training run."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn

from heed.config import check_fraction, check_not_negative
from heed.training import schedule
from heed.training.adamw import AdamW
from heed.training.duration import seconds_of
from heed.training.schedule import Schedule


@dataclass(frozen=True)
class TrainingConfig:
    """Settings common to all tasks."""

    auto: bool = False  # choose unset settings from the data and the machine (docs/guides/defaults.md)
    steps: int = 10_000  # maximum number of training steps
    time: str | None = None  # time budget, for example "10m" or "2h"; with --resume, "+1h" adds an hour
    batch_tokens: int = 4096  # tokens per batch and side over all processes, including padding
    accumulate: int = 1  # gradient accumulation: batches per step
    schedule: Literal["noam", "inverse-root", "cosine", "constant"] = "inverse-root"  # "noam" is the paper's
    rate: float = 1e-3  # peak learning rate; for "noam", a factor on the paper's formula
    minimum_rate: float = 0.0  # final rate of "cosine"
    warmup: int = 1000
    cooldown: float = 0.0  # final share of the run in which the learning rate decays to zero; 0 is off
    beta1: float = 0.9
    beta2: float = 0.98
    epsilon: float = 1e-9
    weight_decay: float = 0.0
    decayed: Literal["all", "matrices"] = "all"  # weights that decay; "matrices" excludes biases and norms
    clip: float = 1.0  # gradient clipping norm; 0 is no limit
    precision: Literal["auto", "float32", "tf32", "bfloat16"] = "auto"  # bfloat16 on a GPU that has it, else float32
    packed: bool | None = (
        None  # pack sequences without padding (default: on a single GPU in bfloat16; docs/internals/speed-training.md)
    )
    compile: bool = False  # torch.compile
    seed: int = 1
    threads: int | None = (
        None  # number of CPU threads (default: all cores); results are reproducible for the same number
    )
    device: str = "auto"  # "auto": a GPU if available; cpu, cuda, cuda:1
    parallel: Literal["ddp", "fsdp"] = (
        "ddp"  # under torchrun: "ddp", a whole model on each GPU, or "fsdp", a part of it
    )
    log_every: int = 20
    valid_every: int = 500
    valid_beam: int = 1  # beam size for validation; 1 (greedy) is fast
    valid_engine: Literal["auto", "torch", "cuda"] = (
        "auto"  # search of validations; "cuda" is the GPU's, whose first one compiles kernels; "auto" chooses it where that pays
    )
    valid_tokens: int = 8192  # tokens per validation batch
    checkpoint_every: int | None = None  # steps between checkpoints (default: valid_every)
    keep: int = 2  # number of full checkpoints to keep
    samples: int = 4  # number of examples kept from each validation, in samples/
    metric: str = "auto"  # the metric for "best": chrf, bleu, rouge, accuracy or loss; "auto" depends on the task
    patience: int = 0  # stop (with a cool-down: begin it) after this many validations without a new best; 0 is never
    final: Literal["best", "last", "average-best", "average-last", "ema", "best-ema"] = (
        "best"  # which weights the model gets
    )
    average: int = 5  # number of checkpoints to average
    ema: float = 0.0  # decay of the moving average (0.999) for final = "ema" and "best-ema"; 0 is off

    def __post_init__(self):
        if self.time is not None:
            self._check_time()
        self._check_sizes()
        self._check_rates()
        self._check_average()
        if self.valid_beam < 1 or self.valid_tokens < 1 or self.samples < 0 or self.patience < 0:
            raise ValueError("training.valid_beam and valid_tokens must be at least 1, samples and patience at least 0")

    @property
    def adds_time(self) -> bool:
        return self.time is not None and self.time.startswith("+")

    @property
    def averages(self) -> bool:
        """Whether the model will be a moving average of the weights."""
        return self.final in ("ema", "best-ema")

    def _check_time(self) -> None:
        try:
            seconds_of(self.time.removeprefix("+"))
        except ValueError as error:
            raise ValueError(f"training.time: {error}") from None

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
        for name in ("beta1", "beta2", "cooldown"):
            check_fraction(f"training.{name}", getattr(self, name))
        for name in ("rate", "minimum_rate", "clip", "weight_decay"):
            check_not_negative(f"training.{name}", getattr(self, name))
        if self.minimum_rate and self.schedule != "cosine":
            raise ValueError(
                f"training.minimum_rate is {self.minimum_rate}, but training.schedule is {self.schedule!r}; it only "
                "applies to 'cosine'"
            )
        if self.minimum_rate > self.rate:
            raise ValueError(
                f"training.minimum_rate is {self.minimum_rate}; it must be at most training.rate, {self.rate}"
            )

    def _check_average(self) -> None:
        if self.averages and not 0 < self.ema < 1:
            raise ValueError(
                f"training.final is {self.final!r}, but training.ema is {self.ema}; set it near 1, for example 0.999"
            )
        if not 0 <= self.ema < 1:
            raise ValueError(f"training.ema is {self.ema}; it must be 0 (off) or a number below 1, for example 0.999")
        if self.ema and not self.averages:
            raise ValueError(
                f"training.ema is {self.ema}, but training.final is {self.final!r}: set it to 'best-ema' or 'ema', or ema to 0"
            )


def make_schedule(config: TrainingConfig, dim: int) -> Schedule:
    schedules = {
        "noam": lambda: schedule.noam(dim, config.warmup, config.rate),
        "inverse-root": lambda: schedule.inverse_root(config.rate, config.warmup),
        "cosine": lambda: schedule.cosine(config.rate, config.warmup, config.steps, config.minimum_rate),
        "constant": lambda: schedule.constant(config.rate, config.warmup),
    }
    return schedules[config.schedule]()


def make_optimizer(config: TrainingConfig, weights: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """AdamW. With decayed = "matrices", one-dimensional weights are a separate group without decay."""
    groups: Any = list(weights)
    if config.weight_decay and config.decayed == "matrices":
        vectors = [weight for weight in groups if weight.dim() < 2]
        matrices = [weight for weight in groups if weight.dim() >= 2]
        groups = [{"params": matrices}, {"params": vectors, "weight_decay": 0.0}]
    return AdamW(
        groups,
        lr=0.0,
        betas=(config.beta1, config.beta2),
        eps=config.epsilon,
        weight_decay=config.weight_decay,
        fused=True,
    )

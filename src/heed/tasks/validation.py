"""What the validations of several tasks share."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from heed.data.batching import plan
from heed.training.loss import Loss


@torch.inference_mode()
def mean_nll(
    model: nn.Module,
    objective: Callable[[nn.Module, Any], Loss],
    examples: Sequence[tuple],
    collate: Callable[[Sequence[tuple]], Any],
    budget: int,
) -> float:
    """The negative log-likelihood of an expected token, or label, on average."""
    device = next(model.parameters()).device
    lengths = [np.array([len(example[side]) + 1 for example in examples]) for side in (0, 1)]
    total, count = 0.0, 0
    for rows in plan(*lengths, budget=budget, seed=0, epoch=0):
        loss = objective(model, collate([examples[i] for i in rows]).to(device))
        total, count = total + loss.nll.item(), count + loss.count
    return total / max(count, 1)


def short_enough(examples: Sequence[tuple], max_length: int) -> list[tuple]:
    """The examples that a model has positions for; if there are none, there is nothing to measure."""
    short = [example for example in examples if max(len(example[0]), len(example[1])) < max_length]
    if examples and not short:
        raise ValueError(
            f"all {len(examples):,} validation texts are longer than the model's {max_length} positions: use others, or shorter ones"
        )
    return short


def sample_rows(size: int, samples: int) -> list[int]:
    """Which examples are shown during training: spread over all."""
    return np.linspace(0, size - 1, min(samples, size), dtype=int).tolist()

"""The training loop that the peers share: what a careful user of torch would write."""

import itertools
from collections.abc import Callable
from contextlib import nullcontext

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench import data
from bench.rows import PAD, SMOOTHING, TrainRow

IGNORED = -100
Objective = Callable[[nn.Module, Tensor, Tensor, Tensor], Tensor]  # (model, sources, inputs, labels) -> mean loss


def loss(logits: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), label_smoothing=SMOOTHING, ignore_index=IGNORED)


def trainer(
    model: nn.Module, objective: Objective, row: TrainRow, device: str, how: str, ignored: int = IGNORED
) -> Callable[[int], int]:
    """What makes so many steps, and tells how many target tokens they had; the batches are on the device."""
    model = model.to(device).train()
    sets = data.sets(row)
    arrays = [[torch.from_numpy(part).to(device) for part in data.padded(row, batch, ignored)] for batch in sets]
    batches = itertools.cycle(zip(arrays, map(data.target_tokens, sets), strict=True))
    if how == "compiled":
        objective = torch.compile(objective, dynamic=False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)

    def run(steps: int) -> int:
        count = 0
        for _ in range(steps):
            parts, tokens = next(batches)
            with torch.autocast("cuda", dtype=torch.bfloat16) if device == "cuda" else nullcontext():
                value = objective(model, *parts)
            value.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            count += tokens
        return count

    return run


def valid(sources: Tensor) -> Tensor:
    return sources != PAD

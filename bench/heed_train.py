"""Heed's training: its loop, its task, its batches."""

import itertools
from collections.abc import Callable
from contextlib import nullcontext

import torch

from bench import data
from bench.rows import SMOOTHING, TrainRow
from heed.data.batching import collate
from heed.data.packing import pack
from heed.device import choose_device
from heed.models.transformer import Transformer, TransformerConfig
from heed.tasks.sequence_loss import CrossEntropy
from heed.training import loop
from heed.training.accelerated.cuda_graph_step import CudaGraphStep
from heed.training.schedule import constant


def build(row: TrainRow, device: str, how: str) -> Callable[[int], int]:
    """What makes so many steps, and tells how many target tokens they had."""
    place, s = choose_device(device), row.shape
    sizes = {
        "dim": s.dim,
        "heads": s.heads,
        "hidden": s.hidden,
        "dropout": s.dropout,
        "max_length": max(256, row.length),
    }
    config = TransformerConfig(s.vocab, encoder_layers=s.layers, decoder_layers=s.layers, **sizes)
    model = Transformer(config).to(place)
    objective, passes = CrossEntropy(SMOOTHING), None
    if how == "swift":  # what `heed train` does on such a device
        made = [pack(*zip(*batch, strict=True), slots=row.slots).to(place) for batch in data.full(row)]
        passes = CudaGraphStep(model, objective)
    else:
        made = [collate(*zip(*batch, strict=True)).to(place) for batch in data.sets(row)]
    batches = itertools.cycle((None, batch) for batch in made)
    if how == "compiled":
        objective = torch.compile(objective, dynamic=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)

    def context():
        return torch.autocast("cuda", dtype=torch.bfloat16) if device == "cuda" else nullcontext()

    def run(steps: int) -> int:
        counts = []
        after = [lambda progress: counts.append(progress.count)]
        rate, numbers = constant(1e-4, 0), range(1, steps + 1)
        loop.train(
            model,
            batches,
            objective,
            optimizer,
            rate,
            steps=numbers,
            clip=1.0,
            context=context,
            forward_backward=passes,
            after_step=after,
        )
        return sum(counts)

    return run

"""The training speed of a new model of some size here, measured in a few steps on random tokens."""

import time
from contextlib import nullcontext
from typing import Any

import torch

from heed.data.batching import collate
from heed.models.system import System
from heed.runs.execution_plan import gpu_multiplies_bfloat16
from heed.tasks.sequence_loss import CrossEntropy
from heed.training.adamw import AdamW
from heed.vocabularies.sentencepiece import LAST

LENGTH = 20  # tokens of a text
TOKENS = {"cpu": 1000, "cuda": 8000}  # of a batch


def tokens_per_second(system: System, settings: dict[str, Any], vocab_size: int, device: torch.device) -> float:
    """Target tokens per second in plain training steps; the first step is not timed."""
    rows = TOKENS[device.type] // LENGTH
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(LAST + 1, vocab_size, (2, rows, LENGTH - 1), generator=generator).tolist()
    batch = collate(*ids).to(device)
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        model = system.model(system.config(vocab_size=vocab_size, **settings)).to(device).train()
        optimizer, objective = AdamW(model.parameters(), lr=1e-6, fused=True), CrossEntropy()
        half = device.type == "cuda" and gpu_multiplies_bfloat16()
        times = []
        for _ in range(3):
            with torch.autocast(device.type, dtype=torch.bfloat16) if half else nullcontext():
                loss = objective(model, batch)
            loss.total.backward()
            optimizer.step()
            optimizer.zero_grad()
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            times.append(time.perf_counter())
    return loss.count * (len(times) - 1) / (times[-1] - times[0])

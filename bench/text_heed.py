"""Heed's language models: the training loop that `heed train` runs, and the generator that `heed.load` makes."""

import itertools
import os
from collections.abc import Callable
from contextlib import nullcontext

import torch

from bench import text
from bench.rows import TextRow
from heed.data.streams import Window
from heed.device import choose_device
from heed.products.generator import Generator
from heed.products.prompts import Prompt
from heed.tasks.language_loss import IndependentLoss
from heed.training import loop
from heed.training.accelerated.cuda_graph_step import CudaGraphStep
from heed.training.schedule import constant


def build(row: TextRow, device: str, how: str) -> Callable[[int], int]:
    return (_training if row.training else _generating)(row, device, how)


def _training(row: TextRow, device: str, how: str) -> Callable[[int], int]:
    place = choose_device(device)
    model, objective = text.model(row).to(place), IndependentLoss()
    passes = CudaGraphStep(model, objective) if how == "swift" else None
    made = [Window(*own, True, own[0].numel()).to(place) for own in text.batches(row)]
    batches = itertools.cycle((None, batch) for batch in made)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), fused=True)

    def context():
        return torch.autocast("cuda", dtype=torch.bfloat16) if device == "cuda" else nullcontext()

    def run(steps: int) -> int:
        options = {"steps": range(1, steps + 1), "clip": 1.0, "context": context, "forward_backward": passes}
        loop.train(model, batches, objective, optimizer, constant(1e-4, 0), **options)
        return steps * row.batch * row.length

    return run


def _generating(row: TextRow, device: str, how: str) -> text.Generating:
    os.environ["HEED_CACHE"] = ""  # drawn weights are not worth keeping
    vocabulary = text.vocabulary(row.shape.vocab)
    generator = Generator(text.model(row).to(choose_device(device)), vocabulary)
    generator.use(how)
    ids = {piece: i for i, piece in enumerate(vocabulary.pieces(range(len(vocabulary))))}
    prompts = [Prompt(own[1:], own[0]) for own in text.prompts(row)]
    options = {"sample": True, "top_k": text.TOP_K} if row.sampled else {"sample": False}

    def generate() -> list[list[int]]:
        slots = row.batch * (row.prompt + row.length)
        found = generator.generate_prompts(prompts, slots, length=row.length, **options)
        return [[ids[piece] for piece in each[0].tokens] for each in found]

    return text.Generating(generate)

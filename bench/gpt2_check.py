"""Is the fast path of GPT-2 right on this GPU? `python -m bench.gpt2_check` compares it with the plain model in float32.

Windows and packed documents: the loss, and the cosine between the gradients. Generation: how many texts are those of torch, with
the weights of the graphs in float32.
"""

import argparse
import dataclasses
import sys
import warnings

import numpy as np
import torch

from bench import text
from bench.rows import TEXT_ROWS, TextRow, quick
from heed.data.documents import DocumentBatches, PackedDocuments, cut_documents
from heed.data.streams import Window
from heed.device import choose_device
from heed.products.cuda_text import CudaTextEngine
from heed.products.generator import Generator
from heed.products.prompts import Prompt
from heed.tasks.language_loss import IndependentLoss
from heed.training.accelerated.cuda_graph_step import CudaGraphStep

LEAST_COSINE = 0.99  # bfloat16 has two to three digits


def compared(
    row: TextRow, batch: Window | PackedDocuments, device: torch.device, dtype: torch.dtype
) -> tuple[float, float]:
    """The difference of the losses of a token, and the cosine of the gradients."""
    model, objective = text.model(row).to(device), IndependentLoss()
    wanted = objective(model, batch)
    wanted.total.backward()
    gradient = torch.cat([weight.grad.flatten() for weight in model.parameters()])
    model.zero_grad()
    passes = CudaGraphStep(model, objective, dtype)
    found = passes(batch)
    assert passes.gradients is not None  # which sets them at the weights
    fast = torch.cat([weight.grad.flatten() for weight in model.parameters()])
    cosine = torch.nn.functional.cosine_similarity(gradient.double(), fast.double(), dim=0)
    return float(found.total - wanted.total.detach()) / wanted.count, float(cosine)


def documents(row: TextRow, slots: int) -> PackedDocuments:
    """Packed documents of different lengths, some longer than a tile of attention."""
    ids = text.batches(row)[0][0].flatten().numpy()
    starts = np.array([0, 5, 5 + row.length // 3])
    pieces = cut_documents(ids, starts, np.zeros(len(starts), dtype=int), row.length, 3)
    return DocumentBatches(ids, pieces, budget=len(ids), pad=0, slots=slots).make(np.arange(len(pieces)))


def same_texts(row: TextRow, device: torch.device) -> float:
    """The share of greedy texts that are torch's to the last token."""
    generator = Generator(text.model(row).to(device), text.vocabulary(row.shape.vocab))
    prompts = [Prompt(own[1:], own[0]) for own in text.prompts(row)]

    def said() -> list[list[str]]:
        found = generator.generate_prompts(prompts, 2**20, length=row.length, sample=False)
        return [each[0].tokens for each in found]

    wanted = said()
    generator.engine = CudaTextEngine(generator.model, generator.vocabulary, torch.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a fallback is no success
        return sum(map(list.__eq__, wanted, said())) / len(wanted)


def report(what: str, good: bool, said: str) -> bool:
    print(f"{'ok   ' if good else 'WRONG'} {what}: {said}", flush=True)
    return good


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.gpt2_check", description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--quick", action="store_true", help="toy sizes")
    args = parser.parse_args(words)
    device = choose_device(args.device)
    rows = [quick(row) if args.quick else row for row in TEXT_ROWS]
    rows = [dataclasses.replace(row, shape=dataclasses.replace(row.shape, dropout=0.0)) for row in rows]
    train = rows[0] if args.quick else TextRow("train", rows[0].shape, batch=4, length=1024, training=True)
    dtype, good = torch.bfloat16 if device.type == "cuda" else torch.float32, []
    tokens, expected = text.batches(train)[0]
    window = Window(tokens, expected, True, tokens.numel()).to(device)
    packed = documents(train, 32 if args.quick else 512).to(device)
    for what, batch in (("windows", window), ("packed documents", packed)):
        difference, cosine = compared(train, batch, device, dtype)
        right = abs(difference) < 0.02 and cosine > LEAST_COSINE
        good.append(report(what, right, f"loss {difference:+.5f} a token, cosine of gradients {cosine:.6f}"))
    for row in rows[1:3] if device.type == "cuda" else ():
        share = same_texts(row, device)
        good.append(report(row.name, share > 0.9, f"{share:.1%} of the texts are torch's"))
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())

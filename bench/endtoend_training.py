"""transformers' Marian from two text files to a trained model, in a process of its own: `python -m bench.endtoend_training JOB`.

A vocabulary is learned, texts are encoded and batched by tokens, sentences of similar lengths together; training is in bfloat16 on a GPU, compiled, with
the fused AdamW. At the end the validation set is translated greedily, and the model is saved. Prints the seconds of the steps.
"""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from bench.rows import FIRST, LAST, PAD, UNKNOWN, Shape

Batch = tuple[np.ndarray, np.ndarray, np.ndarray]  # sources, decoder inputs, labels
WARMUP, RATE, VALID = 400, 0.001, 256  # steps; the peak; sentences of a batch


def encoded(folder: Path, out: Path, vocab: int, threads: int) -> tuple[Any, dict[str, list[list[int]]]]:
    """A shared vocabulary of the training texts, and the ids of all texts, with an end."""
    import sentencepiece

    sentencepiece.SentencePieceTrainer.train(
        input=[str(folder / f"train.{side}") for side in ("source", "target")], model_prefix=str(out / "subwords"),
        vocab_size=vocab, model_type="bpe", pad_id=PAD, unk_id=UNKNOWN, bos_id=FIRST, eos_id=LAST, num_threads=threads,
        hard_vocab_limit=False, minloglevel=2,
    )  # fmt: skip
    learned = sentencepiece.SentencePieceProcessor(str(out / "subwords.model"))
    names = [f"{part}.{side}" for part in ("train", "valid") for side in ("source", "target")]
    texts = {name: (folder / name).read_text("utf-8").splitlines() for name in names}
    return learned, {name: learned.encode(own, add_eos=True, num_threads=threads) for name, own in texts.items()}


def padded(rows: list[list[int]], value: int, before: int | None = None) -> np.ndarray:
    """Rows of one length, a multiple of eight; with `before`, moved by one behind it."""
    length = -(-max(map(len, rows)) // 8) * 8
    found = np.full((len(rows), length), value, dtype=np.int64)
    for row, ids in zip(found, rows, strict=True):
        moved = ids if before is None else [before, *ids[:-1]]
        row[: len(moved)] = moved
    return found


def batches(sources: list[list[int]], targets: list[list[int]], budget: int, seed: int) -> Iterator[Batch]:
    """Epoch after epoch, in another order each time; no side of a batch has more tokens than the budget, with padding."""
    chance = np.random.default_rng(seed)
    order = np.lexsort(([len(ids) for ids in sources], [len(ids) for ids in targets]))
    groups: list[list[int]] = [[]]
    longest = 0
    for number in order.tolist():
        longest = max(longest, len(sources[number]), len(targets[number]))
        if groups[-1] and (len(groups[-1]) + 1) * (-(-longest // 8) * 8) > budget:
            groups.append([])
            longest = max(len(sources[number]), len(targets[number]))
        groups[-1].append(number)
    while True:
        for at in chance.permutation(len(groups)).tolist():
            own, other = [sources[row] for row in groups[at]], [targets[row] for row in groups[at]]
            yield padded(own, PAD), padded(other, PAD, FIRST), padded(other, -100)


def main(job: str) -> None:
    import torch
    from sacrebleu import corpus_bleu
    from transformers import MarianMTModel

    from bench.marian_train import configured, objective

    stated = json.loads(job)
    folder = Path(stated["folder"])
    out, shape, device, threads = Path(stated["out"]), Shape(*stated["shape"]), stated["device"], stated["threads"]
    cuda = device == "cuda"
    out.mkdir(parents=True)
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    learned, ids = encoded(folder, out, shape.vocab, threads)
    model = MarianMTModel(configured(shape, 256)).to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.98), eps=1e-9, fused=True)
    warm = min(WARMUP, max(1, stated["steps"] // 3))
    rates = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / warm, (warm / (step + 1)) ** 0.5)
    )
    loss = torch.compile(objective, dynamic=True) if cuda else objective
    began = time.perf_counter()
    made = batches(ids["train.source"], ids["train.target"], stated["tokens"], 1)
    for _, arrays in zip(range(stated["steps"]), made, strict=False):
        parts = [torch.from_numpy(part).to(device, non_blocking=True) for part in arrays]
        with torch.autocast("cuda", dtype=torch.bfloat16) if cuda else nullcontext():
            value = loss(model, *parts)
        value.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        rates.step()
    last = float(value.detach())  # waits for the GPU
    seconds = time.perf_counter() - began
    said = translated(model, learned, ids["valid.source"], device)
    model.save_pretrained(out)
    expected = (folder / "valid.target").read_text("utf-8").splitlines()
    print(json.dumps({"seconds": seconds, "loss": last, "bleu": corpus_bleu(said, [expected]).score}))


def translated(model: Any, learned: Any, sources: list[list[int]], device: str) -> list[str]:
    """Greedy translations, in batches of similar lengths."""
    import torch

    said = [""] * len(sources)
    order = sorted(range(len(sources)), key=lambda row: -len(sources[row]))
    model.eval()
    with torch.inference_mode(), torch.autocast("cuda", dtype=torch.bfloat16) if device == "cuda" else nullcontext():
        for at in range(0, len(order), VALID):
            rows = order[at : at + VALID]
            given = torch.from_numpy(padded([sources[row] for row in rows], PAD)).to(device)
            found = model.generate(input_ids=given, attention_mask=(given != PAD).long(), max_length=128, num_beams=1)
            for row, own in zip(rows, found.tolist(), strict=True):
                kept = [token for token in own if token not in (PAD, FIRST, LAST)]
                said[row] = learned.decode(kept)
    return said


if __name__ == "__main__":
    main(*sys.argv[1:])

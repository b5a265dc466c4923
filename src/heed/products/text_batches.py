"""Batches of texts for fast inference: packed if possible, sorted by length."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from heed.data.batching import text_inputs
from heed.data.packing import pack_texts, to_device
from heed.models.abilities import EncodesImages, EncodesText
from heed.vocabularies.ragged import Ids
from heed.vocabularies.vocabulary import SpecialTokens

BATCH_TOKENS = {"cpu": 4096, "cuda": 32768}  # a GPU needs many to be busy, a CPU has small caches
CHUNK = 4096  # texts that are encoded at one time, while a GPU reads those before them


def device_of(model: nn.Module) -> torch.device:
    return next(model.parameters()).device


def usual_batch(model: nn.Module) -> int:
    """The default number of tokens per batch."""
    return BATCH_TOKENS.get(device_of(model).type, BATCH_TOKENS["cpu"])


def model_inputs(model: nn.Module, rows: Sequence[Ids], special: SpecialTokens) -> list[Any]:
    """The tokens of texts, their positions, and segments if the vocabulary has them; on the model's device."""
    parts: Sequence[Any] = text_inputs(rows, special)
    if isinstance(model, EncodesText) and model.packs(parts[1].shape[1]):
        parts = pack_texts(*parts)
    return [to_device(part, device_of(model)) for part in parts]


def in_chunks(read: Callable[[int, int], Iterable[tuple[list[int], Tensor]]], count: int) -> Tensor | None:
    """The results for this many texts, one row each, on the CPU; None for none. `read` processes a range of them:
    batches of rows, with the indices of their texts. The GPU is synchronized only after it has been given the next
    chunk.
    """
    found: list[Tensor] = []
    waiting: tuple[list[int], Tensor] | None = None
    for start in range(0, count, CHUNK):
        batches = list(read(start, min(count, start + CHUNK)))
        if waiting is not None:
            found.append(_in_order(*waiting))
        waiting = [row for rows, _ in batches for row in rows], torch.cat([own for _, own in batches])
    if waiting is not None:
        found.append(_in_order(*waiting))
    return torch.cat(found) if found else None


def _in_order(order: list[int], rows: Tensor) -> Tensor:
    return rows.cpu()[torch.tensor(order).argsort()]


def in_precision(model: nn.Module, name: str) -> nn.Module:
    """The model in float32 or bfloat16; "auto" is bfloat16 for an encoder on a GPU that supports it, otherwise
    unchanged.
    """
    if name == "auto":
        cuda = device_of(model).type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
        return model.bfloat16() if cuda and isinstance(model, EncodesText | EncodesImages) else model
    return model.to(getattr(torch, name))

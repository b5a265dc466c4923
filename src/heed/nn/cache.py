"""Keys and values that a decoder caches from one token to the next."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor

ROOM = 64  # positions


class Cache:
    """Keys and values of one attention so far, (b, h, k, d). In inference mode there is room after them, so that not
    all are copied at each step.
    """

    def __init__(self):
        self.k: Tensor | None = None
        self.v: Tensor | None = None
        self._rooms: list[Tensor | None] = [None, None]

    def __len__(self) -> int:
        return 0 if self.k is None else self.k.shape[2]

    def __bool__(self) -> bool:
        return True  # an empty cache is still a cache

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        if self.k is not None:
            k, v = self._extended(0, self.k, k), self._extended(1, self.v, v)
        self.k, self.v = k, v
        return k, v

    def _extended(self, which: int, held: Tensor, new: Tensor) -> Tensor:
        """`held` with `new` after it."""
        if not torch.is_inference_mode_enabled():
            return torch.cat([held, new], dim=2)
        room, (rows, heads, before, width), length = self._rooms[which], held.shape, held.shape[2] + new.shape[2]
        if room is None or room.data_ptr() != held.data_ptr() or room.shape[2] < length:
            room = self._rooms[which] = held.new_empty(rows, heads, length + ROOM, width)
            room[:, :, :before] = held
        room[:, :, before:length] = new
        return room[:, :, :length]

    def reorder(self, rows: Tensor) -> None:
        """Keep these rows of the batch, in this order, as beam search does at each step."""
        self.k, self.v = self.k.index_select(0, rows), self.v.index_select(0, rows)

    def drop(self, positions: int) -> None:
        """Drop the first positions."""
        self.k, self.v = self.k[:, :, positions:], self.v[:, :, positions:]


@dataclass
class LayerCache:
    attention: Cache = field(default_factory=Cache)
    cross: Cache = field(default_factory=Cache)


class StackCache(list[LayerCache]):
    """One LayerCache for each layer of a decoder."""

    def __init__(self, layers: int):
        super().__init__(LayerCache() for _ in range(layers))

    @property
    def length(self) -> int:
        """Number of cached tokens."""
        return len(self[0].attention)

    def reorder(self, rows: Tensor) -> None:
        """Keep these rows of the cached tokens, in this order."""
        for layer in self:
            if len(layer.attention):
                layer.attention.reorder(rows)

    def reorder_sources(self, rows: Tensor) -> None:
        """The same for the cached keys and values of the encoder output."""
        for layer in self:
            if len(layer.cross):
                layer.cross.reorder(rows)


def join_left_padded(
    parts: Sequence[Tensor | None], rows: Sequence[int], axis: int
) -> tuple[Tensor | None, Int[Tensor, " b"]]:
    """Concatenate tensors of several batches, padded on the left along `axis` to equal lengths; and the padding of
    each row. None stands for a tensor of length 0; `rows` are the rows of each.
    """
    lengths = [0 if part is None else part.shape[axis] for part in parts]
    longest = max(lengths)
    padding = [longest - length for length, count in zip(lengths, rows, strict=True) for _ in range(count)]
    like = next((part for part in parts if part is not None), None)
    if like is None:
        return None, torch.tensor(padding)
    empty = list(like.shape)
    empty[axis] = 0
    full = []
    for part, count, length in zip(parts, rows, lengths, strict=True):
        own = like.new_zeros(count, *empty[1:]) if part is None else part
        full.append(F.pad(own, (0, 0) * (like.dim() - 1 - axis) + (longest - length, 0)))
    return torch.cat(full), torch.tensor(padding, device=like.device)


@dataclass
class DecoderState:
    """State of incremental decoding: the encoder output and the cached keys and values.

    The encoder output, with its keys and values, has one row per source. Each source has the same number of rows of
    cached tokens, `width`, which are adjacent: the beams of a search share their source.
    """

    memory: Tensor
    valid: Tensor | None
    cache: StackCache
    width: int = 1

    def reorder(self, rows: Tensor) -> None:
        """Keep these rows, in this order."""
        self.cache.reorder(rows)
        sources, self.width = keep_sources(rows, self.width, len(self.memory))
        if sources is not None:
            self.memory = self.memory.index_select(0, sources)
            self.valid = None if self.valid is None else self.valid.index_select(0, sources)
            self.cache.reorder_sources(sources)


def keep_sources(rows: Int[Tensor, " r"], width: int, count: int) -> tuple[Int[Tensor, " sources"] | None, int]:
    """The sources that `rows` need, in order, and the rows of each, if each of `count` sources had `width` adjacent
    rows. None: they need all of them, in the same order.
    """
    sources, counts = torch.unique_consecutive(rows // width, return_counts=True)
    counts = counts.tolist()
    if len(set(counts)) > 1:  # each row has its own source again
        sources, counts = rows // width, [1]
    same = len(sources) == count and torch.equal(sources, torch.arange(count, device=sources.device))
    return None if same else sources, counts[0] if counts else 1

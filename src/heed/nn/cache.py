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
        self.length = 0  # positions in use
        self._rooms: tuple[Tensor, Tensor] | None = None

    def __len__(self) -> int:
        return self.length

    def __bool__(self) -> bool:
        return True  # an empty cache is still a cache

    @property
    def k(self) -> Tensor | None:
        return None if self._rooms is None else self._rooms[0][:, :, : self.length]

    @property
    def v(self) -> Tensor | None:
        return None if self._rooms is None else self._rooms[1][:, :, : self.length]

    def set(self, k: Tensor, v: Tensor) -> None:
        """Replace all keys and values."""
        self._rooms, self.length = (k, v), k.shape[2]

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        if self._rooms is None:
            self.set(k, v)
        elif not torch.is_inference_mode_enabled():
            self.set(torch.cat([self.k, k], dim=2), torch.cat([self.v, v], dim=2))
        else:
            before, length = self.length, self.length + k.shape[2]
            for room, new in zip(self.rooms(length), (k, v), strict=True):
                room[:, :, before:length] = new
            self.length = length
        return self.k, self.v

    def rooms(self, length: int) -> tuple[Tensor, Tensor]:
        """Keys and values with room for `length` positions; positions follow each other in memory."""
        self._rooms = tuple(self._room(room, length) for room in self._rooms)
        return self._rooms

    def _room(self, held: Tensor, length: int) -> Tensor:
        if held.shape[2] >= length and held.stride(3) == 1 and held.stride(2) == held.shape[3]:
            return held
        room = held.new_empty(*held.shape[:2], length + ROOM, held.shape[3])
        room[:, :, : self.length] = held[:, :, : self.length]
        return room

    def reorder(self, rows: Tensor) -> None:
        """Keep these rows of the batch, in this order, as beam search does at each step."""
        self._rooms = tuple(self._kept(room, rows) for room in self._rooms)

    def _kept(self, held: Tensor, rows: Tensor) -> Tensor:
        if not torch.is_inference_mode_enabled():
            return held[:, :, : self.length].index_select(0, rows)
        room = held.new_empty(len(rows), *held.shape[1:])
        torch.index_select(held[:, :, : self.length], 0, rows, out=room[:, :, : self.length])
        return room

    def drop(self, positions: int) -> None:
        """Drop the first positions."""
        self._rooms = tuple(room[:, :, positions:] for room in self._rooms)
        self.length -= positions


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

"""Keys and values that a decoder caches from one token to the next."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Int
from torch import Tensor


class Cache:
    """Keys and values of one attention so far, (b, h, k, d)."""

    def __init__(self):
        self.k: Tensor | None = None
        self.v: Tensor | None = None

    def __len__(self) -> int:
        return 0 if self.k is None else self.k.shape[2]

    def __bool__(self) -> bool:
        return True  # an empty cache is still a cache

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        if self.k is not None:
            k, v = torch.cat([self.k, k], dim=2), torch.cat([self.v, v], dim=2)
        self.k, self.v = k, v
        return k, v

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
    cached tokens, `width`, which are adjacent: the beams of a search share their source. `padding` is the number of
    first positions of each row that are none of its own, or None if all rows are equally long.
    """

    memory: Tensor
    valid: Tensor | None
    cache: StackCache
    width: int = 1
    padding: Tensor | None = None

    def reorder(self, rows: Tensor) -> None:
        """Keep these rows, in this order."""
        self.cache.reorder(rows)
        self._trim(rows)
        sources, counts = torch.unique_consecutive(rows // self.width, return_counts=True)
        counts = counts.tolist()
        if len(set(counts)) > 1:  # each row has its own source again
            sources, counts = rows // self.width, [1]
        self.width = counts[0] if counts else 1
        if len(sources) < len(self.memory) or not torch.equal(sources, torch.arange(len(self.memory)).to(sources)):
            self.memory = self.memory.index_select(0, sources)
            self.valid = None if self.valid is None else self.valid.index_select(0, sources)
            self.cache.reorder_sources(sources)

    def _trim(self, rows: Tensor) -> None:
        """Drop the positions that were only those of rows that have left."""
        if self.padding is None or not len(rows):
            return
        self.padding = self.padding.index_select(0, rows)
        if common := int(self.padding.min()):
            self.padding = self.padding - common
            for layer in self.cache:
                layer.attention.drop(common)

    @staticmethod
    def join(states: "Sequence[DecoderState]") -> "DecoderState":
        """One state for sequences of different lengths. Each state has taken a step, and all have one width."""
        rows = [len(state.memory) * state.width for state in states]
        sizes = [state.source_size() for state in states]
        joined = DecoderState(
            _join_padded([state.memory for state in states], sizes, 1),
            _join_padded([state.source_mask() for state in states], sizes, 1),
            StackCache(len(states[0].cache)),
            states[0].width,
        )
        for i, own in enumerate(joined.cache):
            layers = [state.cache[i] for state in states]
            own.attention.k, padding = join_left_padded([layer.attention.k for layer in layers], rows, 2)
            own.attention.v, _ = join_left_padded([layer.attention.v for layer in layers], rows, 2)
            own.cross.k = _join_padded([layer.cross.k for layer in layers], sizes, 2)
            own.cross.v = _join_padded([layer.cross.v for layer in layers], sizes, 2)
        before = [padding.new_zeros(n) if s.padding is None else s.padding for s, n in zip(states, rows, strict=True)]
        joined.padding = padding + torch.cat(before)
        return joined

    def source_mask(self) -> Bool[Tensor, "sources s"]:
        return self.memory.new_ones(self.memory.shape[:2], dtype=torch.bool) if self.valid is None else self.valid

    def source_size(self) -> int:
        """The length of the longest source."""
        return self.memory.shape[1] if self.valid is None else int(self.valid.sum(dim=1).max())


def _join_padded(parts: Sequence[Tensor], sizes: Sequence[int], axis: int) -> Tensor:
    """Concatenate the first `sizes[i]` positions of each part along `axis`, padded on the right to equal lengths."""
    longest, full = max(sizes), []
    for part, size in zip(parts, sizes, strict=True):
        after = (0, 0) * (part.dim() - 1 - axis) + (0, longest - size)
        full.append(F.pad(part.narrow(axis, 0, size), after))
    return torch.cat(full)

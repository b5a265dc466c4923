"""Batches of similar lengths within a token budget, in an order that depends only on the seed and the epoch. The
batches after a position depend only on (seed, epoch, index), so resuming means starting there.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import islice, pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from heed.data.corpus import Corpus
from heed.data.packing import kernel_lengths, to_device
from heed.data.weights import rows_of_epoch
from heed.vocabularies.ragged import Ids, RaggedRows, as_ragged
from heed.vocabularies.sampling import DRAWS, Sampler, sentencepiece_sampler
from heed.vocabularies.sentencepiece import SPECIAL_PAIR, SPECIAL_TOKENS
from heed.vocabularies.vocabulary import Pair, SpecialPair, SpecialTokens

Collate = Callable[[Sequence[Ids], Sequence[Ids], SpecialPair], Any]
# returns (source, target), or (source, target, masked positions, tokens masked there)
Noise = Callable[[np.ndarray, np.random.Generator], tuple]


class DataPosition(NamedTuple):
    """The next batch to read: its epoch, and its index within the epoch."""

    epoch: int = 0
    index: int = 0


class Batch(NamedTuple):
    """Source tokens, decoder inputs, and the token expected at each target position that is not padding.

    `positions` index the flattened (b, t) inputs; `expected` are the tokens due there. If source words are masked,
    `masked_positions` index the flattened (b, s) source, and `masked_tokens` are the original tokens.
    """

    source: Tensor
    valid: Tensor
    target: Tensor
    positions: Tensor
    expected: Tensor
    masked_positions: Tensor | None = None
    masked_tokens: Tensor | None = None

    to = to_device


class LabelledBatch(NamedTuple):
    """Texts, and the index of each text's label; `segments` are the segment ids of the tokens, for models that use
    them.
    """

    source: Tensor
    valid: Tensor
    labels: Tensor
    segments: Tensor | None = None

    to = to_device

    @property
    def count(self) -> int:
        return len(self.labels)

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The model input: tokens, mask and, if there are any, segments."""
        return (self.source, self.valid) if self.segments is None else (self.source, self.valid, self.segments)


def plan(source: np.ndarray, target: np.ndarray, budget: int, seed: int, epoch: int) -> list[np.ndarray]:
    """The sentences of each batch: similar lengths, at most `budget` tokens per side, including padding."""
    random = np.random.default_rng([seed, epoch])
    longest, index_type = np.maximum(source, target), np.int32 if len(source) < 2**31 else np.int64
    order = random.permutation(np.arange(len(source), dtype=index_type))  # mixes sentences of equal length every epoch
    for lengths in (source, longest):  # stable sorts: the last key counts first; numpy radix-sorts 16-bit keys
        small = lengths.astype(np.uint16) if lengths.max(initial=0) < 2**16 else lengths
        order = order[np.argsort(small[order], kind="stable")]
    batches = [order[start:end] for start, end in pairwise(_boundaries(longest[order], budget))]
    return [batches[i] for i in random.permutation(len(batches))]


def plan_packed(source: np.ndarray, target: np.ndarray, budget: int, seed: int, epoch: int) -> list[np.ndarray]:
    """The sentences of each packed batch: lengths that share a kernel, at most `budget` tokens per side, or one
    sentence.
    """
    random = np.random.default_rng([seed, epoch])
    index_type = np.int32 if len(source) < 2**31 else np.int64
    order = random.permutation(np.arange(len(source), dtype=index_type))
    kernel = kernel_lengths(np.maximum(source, target))
    order = order[np.argsort(kernel[order], kind="stable")]
    ends = [np.concatenate([[0], lengths[order].cumsum(dtype=np.int64)]) for lengths in (source, target)]
    boundaries = [0] if len(order) else []
    while boundaries and boundaries[-1] < len(order):
        most = min(int(np.searchsorted(side, side[boundaries[-1]] + budget, side="right")) - 1 for side in ends)
        boundaries.append(max(most, boundaries[-1] + 1))
    batches = [order[start:end] for start, end in pairwise(boundaries)]
    return [batches[i] for i in random.permutation(len(batches))]


def _boundaries(lengths: np.ndarray, budget: int) -> list[int]:
    """Split ascending lengths so that in each part (longest) x (count) is within the budget, or the part is one sentence."""
    boundaries = [0] if len(lengths) else []
    firsts = np.flatnonzero(np.diff(lengths, prepend=-1))
    for first, end in pairwise([*firsts.tolist(), len(lengths)]):  # sentences of one length
        most = max(1, budget // max(1, int(lengths[first])))
        if boundaries[-1] + most < first:
            boundaries.append(first)
        boundaries += range(boundaries[-1] + most, end, most)
    return [*boundaries, len(lengths)]


def shard_mask(tokens: np.ndarray, rank: int, world: int) -> np.ndarray:
    """The rows of `rank`: dealt out back and forth, longest first, so that all ranks get similar token counts."""
    turn = np.arange(len(tokens)) % (2 * world)
    mine = np.empty(len(tokens), dtype=bool)
    mine[np.argsort(-tokens, kind="stable")] = np.minimum(turn, 2 * world - 1 - turn) == rank
    return mine


def collate(source: Sequence[Ids], target: Sequence[Ids], special: SpecialPair = SPECIAL_PAIR) -> Batch:
    """A padded batch: the source with its end token, the target shifted by one. Without rows, a single row without a
    loss.
    """
    (sources, valid), (outputs, target_valid) = pad(source, special[0]), pad(target, special[1])
    if not len(sources):
        return _empty_batch(special)
    inputs = np.empty_like(outputs)
    inputs[:, 0], inputs[:, 1:] = special[1].first, outputs[:, :-1]
    inputs[~target_valid] = special[1].pad
    positions = np.flatnonzero(target_valid)
    parts = (sources, valid, inputs, positions, outputs.reshape(-1)[positions])
    return Batch(*map(torch.from_numpy, parts))


def _empty_batch(special: SpecialPair) -> Batch:
    """One row of padding. Its source is valid, because attention over no keys is undefined."""
    source, target = (torch.full((1, 1), side.pad) for side in special)
    none = torch.zeros(0, dtype=torch.int64)
    return Batch(source, torch.ones_like(source, dtype=torch.bool), target, none, none)


def collate_masked(examples: Sequence[tuple], special: SpecialPair) -> Batch:
    """A padded batch of noised examples, with the masked words if the noise returns them."""
    batch = collate([example[0] for example in examples], [example[1] for example in examples], special)
    if not examples or len(examples[0]) == 2:
        return batch
    row_starts = batch.valid.shape[1] * np.arange(len(examples)) + len(special[0].before)
    positions = np.concatenate([example[2] + start for example, start in zip(examples, row_starts, strict=True)])
    tokens = np.concatenate([example[3] for example in examples]).astype(np.int64)
    return batch._replace(masked_positions=torch.from_numpy(positions), masked_tokens=torch.from_numpy(tokens))


def pad(rows: Sequence[Ids], special: SpecialTokens = SPECIAL_TOKENS) -> tuple[np.ndarray, np.ndarray]:
    """Rows of ids with their special tokens as one padded array, and its mask."""
    ragged, first = as_ragged(rows), len(special.before)
    position = np.arange(ragged.lengths.max(initial=0) + 1)
    array = np.full((len(ragged), first + len(position)), special.pad, dtype=np.int64)
    valid = np.ones_like(array, dtype=bool)
    valid[:, first:] = position <= ragged.lengths[:, None]
    array[:, :first] = special.before
    array[:, first:][position < ragged.lengths[:, None]] = ragged.ids
    array[np.arange(len(ragged)), first + ragged.lengths] = special.last
    return array, valid


def segment_ids(tokens: np.ndarray, valid: np.ndarray, special: SpecialTokens) -> np.ndarray | None:
    """Segment ids: 0 for the first text of each row with its delimiter, and for padding; 1 for the rest. None if the
    model uses none.
    """
    if not special.segments:
        return None
    size, length = len(special.delimiter), tokens.shape[1]
    begins = np.ones((len(tokens), max(0, length - size)), dtype=bool)
    for offset, token in enumerate(special.delimiter):
        begins &= tokens[:, offset : offset + begins.shape[1]] == token
    segments = np.zeros_like(tokens)
    segments[:, length - begins.shape[1] :] = np.logical_or.accumulate(begins, axis=1)
    return segments * valid


def text_inputs(rows: Sequence[Ids], special: SpecialTokens) -> tuple[Tensor, ...]:
    """The model input of texts: tokens, mask and, if the vocabulary has them, segments."""
    tokens, valid = pad(rows, special)
    segments = segment_ids(tokens, valid, special)
    return tuple(torch.from_numpy(part) for part in (tokens, valid, segments) if part is not None)


class Batches:
    """The batches of a corpus, epoch after epoch, from any position on."""

    def __init__(  # noqa: PLR0913 (the parts of a loader, each by its name)
        self,
        corpus: Corpus,
        *,
        budget: int,
        seed: int,
        sampling: float = 0.0,
        vocabularies: Pair | None = None,
        max_length: int = 1024,
        special: SpecialPair = SPECIAL_PAIR,
        collate: Collate = collate,
        noise: Noise | None = None,
        share: tuple[int, int] = (0, 1),
        plan: Callable = plan,
        weights: Sequence[float] = (),
    ):
        """`weights` are those of the individual corpora. `noise` creates examples from sources alone. `collate`
        builds a batch from any number of rows, including none. `share` is (rank, world size): each process gets its
        part of the rows of every batch.
        """
        if not 0 <= share[0] < share[1]:
            raise ValueError(f"share is {share}; it must be (rank, world size) with 0 <= rank < world size")
        self.corpus, self.budget, self.seed, self.share, self.planner = corpus, budget, seed, share, plan
        self.sampling, self.vocabularies, self.max_length = sampling, vocabularies, max_length
        self.special, self.collate, self.noise = special, collate, noise
        self.weights = weights if any(weight != 1 for weight in weights) else ()

    def plan(self, epoch: int) -> list[np.ndarray]:
        source, target = self.corpus.source.lengths + 1, self.corpus.target.lengths + 1
        if not self.weights:
            return self.planner(source, target, self.budget, self.seed, epoch)
        rows = rows_of_epoch(self.corpus.counts, self.weights, self.seed, epoch)
        return [rows[own] for own in self.planner(source[rows], target[rows], self.budget, self.seed, epoch)]

    def start(
        self, position: tuple[int, int] = (0, 0), worker: int = 0, workers: int = 1
    ) -> Iterator[tuple[DataPosition, Any]]:
        """Each batch with the position after it; with `workers` taking turns, those of number `worker`."""
        for after, rows, current in islice(self._schedule(position), worker, None, workers):
            yield after, self.make(rows, current)

    def _schedule(self, position: tuple[int, int]) -> Iterator[tuple[DataPosition, np.ndarray, tuple[int, int]]]:
        """For each batch the position after it, its rows, and its own position."""
        epoch, index = position
        while True:
            planned = self.plan(epoch)
            for i in range(index, len(planned)):
                after = DataPosition(epoch, i + 1) if i + 1 < len(planned) else DataPosition(epoch + 1, 0)
                yield after, planned[i], (epoch, i)
            epoch, index = epoch + 1, 0
            del planned  # frees its memory before the next plan is made

    def make(self, rows: np.ndarray, position: tuple[int, int] = (0, 0)) -> Any:
        """A batch of this process's share of the rows; each row is the same as in the whole batch."""
        mine = shard_mask(self.corpus.source.lengths[rows] + self.corpus.target.lengths[rows], *self.share)
        source = self._ids(0, rows, mine, position)
        if self.noise is None:
            return self.collate(source, self._ids(1, rows, mine, position), self.special)
        seeds = [self.seed, *position] if self.weights else [self.seed, position[0]]
        which = np.flatnonzero(mine) if self.weights else rows[mine]  # with weights a row may occur twice in an epoch
        generators = (np.random.default_rng([*seeds, number]) for number in which.tolist())
        examples = [self.noise(ids, generator) for ids, generator in zip(source, generators, strict=True)]
        if self.collate is collate:
            return collate_masked(examples, self.special)
        return self.collate([example[0] for example in examples], [example[1] for example in examples], self.special)

    def _ids(self, side: int, rows: np.ndarray, mine: np.ndarray, position: tuple[int, int]) -> RaggedRows:
        sentences = (self.corpus.source, self.corpus.target)[side]
        if not self.sampling:
            return sentences.take(rows[mine])
        sampled = self._sampled(side, sentences.text.take(rows), mine, [self.seed, *position, side])
        if side == 0 and any(self.corpus.prefixes):
            prefixes = self.corpus.prefixes_of(rows[mine])
            sampled = as_ragged([[*prefix, *ids.tolist()] for prefix, ids in zip(prefixes, sampled, strict=True)])
        if sampled.lengths.max(initial=0) < self.max_length:
            return sampled
        plain = sentences.take(rows[mine])
        return as_ragged([new if len(new) < self.max_length else old for new, old in zip(sampled, plain, strict=True)])

    def _sampled(self, side: int, texts: RaggedRows, mine: np.ndarray, seeds: list[int]) -> RaggedRows:
        """The texts of this process in sampled subwords; random numbers are drawn for all texts, so that sharding does not
        change the result.
        """
        seed = int(np.random.SeedSequence(seeds).generate_state(1)[0])
        counts = texts.count(ord(" "))
        draws = np.random.default_rng(seed).integers(0, DRAWS, counts.sum())
        words = texts.ids[np.repeat(mine, texts.lengths)].tobytes().decode().split()
        return self._samplers[side].segment(words, draws[np.repeat(mine, counts)]).merge(counts[mine])

    @cached_property
    def _samplers(self) -> tuple[Sampler, Sampler]:
        source, target = self.vocabularies
        first = sentencepiece_sampler(source, self.sampling)
        return first, first if target is source else sentencepiece_sampler(target, self.sampling)


def by_length(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Batches of row numbers, longest rows first: similar lengths, at most `budget` tokens including padding."""
    rows: list[int] = []
    for row in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if rows and lengths[rows[0]] * (len(rows) + 1) > budget:
            yield rows
            rows = []
        rows.append(row)
    if rows:
        yield rows

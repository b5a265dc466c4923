"""Batches of near-equal lengths within a budget of tokens, in an order drawn by seed and epoch alone.

What comes after a place in the data depends on nothing but (seed, epoch, index): to resume is to start there.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import islice, pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from heed.data import packing
from heed.data.corpus import Corpus
from heed.data.ragged import Ids, RaggedRows, join
from heed.vocabularies.sampling import DRAWS, Sampler, sampler
from heed.vocabularies.sentencepiece import MARKS
from heed.vocabularies.vocabulary import Pair, SpecialTokens

Collate = Callable[[Sequence[Ids], Sequence[Ids], tuple[SpecialTokens, SpecialTokens]], Any]
Noise = Callable[
    [np.ndarray, np.random.Generator], tuple
]  # (source, target) or (source, target, places, words hidden there)


class DataPosition(NamedTuple):
    """The next batch to be read."""

    epoch: int = 0
    index: int = 0


class Batch(NamedTuple):
    """Source tokens, the decoder's inputs, and what it should say at each of its places that is no padding.

    `places` index the flattened (b, t) inputs; `expected` are the tokens due there. Where words of the source are
    hidden, `hidden` are their places in the flattened (b, s) source, and `answers` the words.
    """

    source: Tensor
    valid: Tensor
    target: Tensor
    places: Tensor
    expected: Tensor
    hidden: Tensor | None = None
    answers: Tensor | None = None

    def to(self, device: torch.device) -> "Batch":
        return self if device.type == "cpu" else Batch(*_moved(self, device))


class Labelled(NamedTuple):
    """Texts, and the number of each one's label."""

    source: Tensor
    valid: Tensor
    labels: Tensor

    def to(self, device: torch.device) -> "Labelled":
        return self if device.type == "cpu" else Labelled(*_moved(self, device))


def _moved(parts: Sequence[Tensor | None], device: torch.device) -> Sequence[Tensor | None]:
    return [part if part is None else part.pin_memory().to(device, non_blocking=True) for part in parts]


def plan(source: np.ndarray, target: np.ndarray, budget: int, seed: int, epoch: int) -> list[np.ndarray]:
    """Which sentences go together: neighbours in length, at most `budget` slots a side, padding included."""
    random = np.random.default_rng([seed, epoch])
    longest, number = np.maximum(source, target), np.int32 if len(source) < 2**31 else np.int64
    order = random.permutation(np.arange(len(source), dtype=number))  # so that equal lengths meet others in each epoch
    for lengths in (source, longest):  # the last is the first to count; of 16 bits they are sorted in no time
        small = lengths.astype(np.uint16) if lengths.max(initial=0) < 2**16 else lengths
        order = order[np.argsort(small[order], kind="stable")]
    batches = [order[start:end] for start, end in pairwise(_cuts(longest[order], budget))]
    return [batches[i] for i in random.permutation(len(batches))]


def plan_packed(source: np.ndarray, target: np.ndarray, budget: int, seed: int, epoch: int) -> list[np.ndarray]:
    """Which sentences go end to end: of lengths that one kernel serves, at most `budget` tokens a side, or one sentence."""
    random = np.random.default_rng([seed, epoch])
    number = np.int32 if len(source) < 2**31 else np.int64
    order = random.permutation(np.arange(len(source), dtype=number))
    kind = packing.rounded(np.maximum(source, target))
    order = order[np.argsort(kind[order], kind="stable")]
    ends = [np.concatenate([[0], own[order].cumsum(dtype=np.int64)]) for own in (source, target)]
    cuts = [0] if len(order) else []
    while cuts and cuts[-1] < len(order):
        most = min(int(np.searchsorted(own, own[cuts[-1]] + budget, side="right")) - 1 for own in ends)
        cuts.append(max(most, cuts[-1] + 1))
    batches = [order[start:end] for start, end in pairwise(cuts)]
    return [batches[i] for i in random.permutation(len(batches))]


def _cuts(lengths: np.ndarray, budget: int) -> list[int]:
    """Where to cut rising lengths so that in each part (the longest) times (how many) is within the budget, or it is one."""
    cuts = [0] if len(lengths) else []
    firsts = np.flatnonzero(np.diff(lengths, prepend=-1))
    for first, end in pairwise([*firsts.tolist(), len(lengths)]):  # sentences of one length
        most = max(1, budget // max(1, int(lengths[first])))
        if cuts[-1] + most < first:
            cuts.append(first)
        cuts += range(cuts[-1] + most, end, most)
    return [*cuts, len(lengths)]


def deal(tokens: np.ndarray, rank: int, world: int) -> np.ndarray:
    """Which rows go to `rank` of `world`: they are dealt out to and fro, the longest first, so that all get as many tokens."""
    turn = np.arange(len(tokens)) % (2 * world)
    mine = np.empty(len(tokens), dtype=bool)
    mine[np.argsort(-tokens, kind="stable")] = np.minimum(turn, 2 * world - 1 - turn) == rank
    return mine


class Batches:
    """The batches of a corpus, epoch after epoch, from any place on."""

    def __init__(  # noqa: PLR0913 (the parts of a loader, each by its name)
        self,
        corpus: Corpus,
        *,
        budget: int,
        seed: int,
        sampling: float = 0.0,
        subwords: Pair | None = None,
        max_length: int = 1024,
        marks: tuple[SpecialTokens, SpecialTokens] = (MARKS, MARKS),
        together: Collate | None = None,
        noise: Noise | None = None,
        share: tuple[int, int] = (0, 1),
        plan: Callable = plan,
    ):
        """`noise` makes examples of the sources alone; `together` makes a batch of sources and targets, or of none.

        `plan` says which sentences go together.

        `share` is (rank, world): of `world` processes that learn together each gets its part of every batch's rows.
        """
        if not 0 <= share[0] < share[1]:
            raise ValueError(
                f"share is {share}; it must be a rank from 0 on, and of how many, which is more than the rank"
            )
        self.corpus, self.budget, self.seed, self.share, self.planner = corpus, budget, seed, share, plan
        self.sampling, self.subwords, self.max_length = sampling, subwords, max_length
        self.marks, self.together, self.noise = marks, together or collate, noise

    def plan(self, epoch: int) -> list[np.ndarray]:
        source, target = self.corpus.source.lengths + 1, self.corpus.target.lengths + 1
        return self.planner(source, target, self.budget, self.seed, epoch)

    def start(
        self,
        place: DataPosition = DataPosition(),  # noqa: B008 (a tuple)
        turn: int = 0,
        of: int = 1,
    ) -> Iterator[tuple[DataPosition, Any]]:
        """Each batch with the place after it; of `of` that take turns, what the one does whose turn is `turn`."""
        for after, rows, own in islice(self._route(place), turn, None, of):
            yield after, self.make(rows, own)

    def _route(self, place: DataPosition) -> Iterator[tuple[DataPosition, np.ndarray, tuple[int, int]]]:
        """The rows of each batch, between the places after it and before it."""
        epoch, index = place
        while True:
            planned = self.plan(epoch)
            for i in range(index, len(planned)):
                yield (
                    DataPosition(epoch, i + 1) if i + 1 < len(planned) else DataPosition(epoch + 1, 0),
                    planned[i],
                    (epoch, i),
                )
            epoch, index = epoch + 1, 0
            del planned  # before the next is made

    def make(self, rows: np.ndarray, place: tuple[int, int] = (0, 0)) -> Any:
        """A batch of these rows, or of those that are my share of them; each is as it would be in the whole."""
        mine = deal(self.corpus.source.lengths[rows] + self.corpus.target.lengths[rows], *self.share)
        source = self._ids(0, rows, mine, place)
        if self.noise is None:
            return self.together(source, self._ids(1, rows, mine, place), self.marks)
        chances = (np.random.default_rng([self.seed, place[0], row]) for row in rows[mine].tolist())
        examples = [self.noise(*own) for own in zip(source, chances, strict=True)]
        if self.together is collate:
            return with_hidden(examples, self.marks)
        return self.together([own[0] for own in examples], [own[1] for own in examples], self.marks)

    def _ids(self, side: int, rows: np.ndarray, mine: np.ndarray, place: tuple[int, int]) -> RaggedRows:
        sentences = (self.corpus.source, self.corpus.target)[side]
        if not self.sampling:
            return sentences.take(rows[mine])
        drawn = self._sampled(side, sentences.text.take(rows), mine, [self.seed, *place, side])
        if drawn.lengths.max(initial=0) < self.max_length:
            return drawn
        plain = sentences.take(rows[mine])
        return join([new if len(new) < self.max_length else old for new, old in zip(drawn, plain, strict=True)])

    def _sampled(self, side: int, texts: RaggedRows, mine: np.ndarray, seeds: list[int]) -> RaggedRows:
        """My texts, their words cut as they would be in the whole batch: by one draw for all words of all texts."""
        seed = int(np.random.SeedSequence(seeds).generate_state(1)[0])
        counts = texts.count(ord(" "))
        luck = np.random.default_rng(seed).integers(0, DRAWS, counts.sum())
        words = texts.ids[np.repeat(mine, texts.lengths)].tobytes().decode().split()
        return self._samplers[side].cut(words, luck[np.repeat(mine, counts)]).joined(counts[mine])

    @cached_property
    def _samplers(self) -> tuple[Sampler, Sampler]:
        one, other = self.subwords
        first = sampler(one, self.sampling)
        return first, first if other is one else sampler(other, self.sampling)


def collate(
    source: Sequence[Ids], target: Sequence[Ids], marks: tuple[SpecialTokens, SpecialTokens] = (MARKS, MARKS)
) -> Batch:
    """Sentences side by side: the source and its end, the target shifted by one; of none, a row that nothing is due of."""
    (sources, valid), (outputs, spoken) = pad(source, marks[0]), pad(target, marks[1])
    if not len(sources):
        return _nothing(marks)
    inputs = np.empty_like(outputs)
    inputs[:, 0], inputs[:, 1:] = marks[1].first, outputs[:, :-1]
    inputs[~spoken] = marks[1].pad
    places = np.flatnonzero(spoken)
    parts = (sources, valid, inputs, places, outputs.reshape(-1)[places])
    return Batch(*map(torch.from_numpy, parts))


def _nothing(marks: tuple[SpecialTokens, SpecialTokens]) -> Batch:
    """One row of padding; the source may look at itself, since to look at nothing is not defined."""
    source, target = (torch.full((1, 1), own.pad) for own in marks)
    none = torch.zeros(0, dtype=torch.int64)
    return Batch(source, torch.ones_like(source, dtype=torch.bool), target, none, none)


def labelled(
    source: Sequence[Ids], target: Sequence[Ids], marks: tuple[SpecialTokens, SpecialTokens] = (MARKS, MARKS)
) -> Labelled:
    """Texts side by side; each target is one number, that of its label."""
    sources, valid = map(torch.from_numpy, pad(source, marks[0]))
    return Labelled(sources, valid, torch.tensor([int(label) for (label,) in target], dtype=torch.int64))


def with_hidden(examples: Sequence[tuple], marks: tuple[SpecialTokens, SpecialTokens]) -> Batch:
    """A batch of what noise has made; with the words it has hidden, where it tells them."""
    batch = collate([example[0] for example in examples], [example[1] for example in examples], marks)
    if not examples or len(examples[0]) == 2:
        return batch
    start = batch.valid.shape[1] * np.arange(len(examples)) + len(marks[0].before)
    places = np.concatenate([own[2] + first for own, first in zip(examples, start, strict=True)])
    answers = np.concatenate([own[3] for own in examples])
    return batch._replace(hidden=torch.from_numpy(places), answers=torch.from_numpy(answers.astype(np.int64)))


def pad(rows: Sequence[Ids], marks: SpecialTokens = MARKS) -> tuple[np.ndarray, np.ndarray]:
    """Rows of ids, each within its marks, as one array filled up with padding, and where it holds none."""
    own, first = join(rows), len(marks.before)
    place = np.arange(own.lengths.max(initial=0) + 1)
    array = np.full((len(own), first + len(place)), marks.pad, dtype=np.int64)
    valid = np.ones_like(array, dtype=bool)
    valid[:, first:] = place <= own.lengths[:, None]
    array[:, :first] = marks.before
    array[:, first:][place < own.lengths[:, None]] = own.ids
    array[np.arange(len(own)), first + own.lengths] = marks.last
    return array, valid


def by_length(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Rows of near-equal lengths that together hold no more than `budget`; the longest first."""
    rows: list[int] = []
    for row in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        if rows and lengths[rows[0]] * (len(rows) + 1) > budget:
            yield rows
            rows = []
        rows.append(row)
    if rows:
        yield rows

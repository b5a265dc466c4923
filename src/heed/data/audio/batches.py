"""Batches of recordings of similar length, in an order that depends only on the seed and the epoch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from heed.config import check_fraction
from heed.data.audio.prepare import SpeechCorpus
from heed.data.batching import DataPosition, plan
from heed.data.packing import to_device
from heed.vocabularies.sound import SoundFeatures
from heed.vocabularies.vocabulary import SpecialTokens


class SpeechBatch(NamedTuple):
    """Features (b, t, size), zero-padded; decoder inputs; the expected token at each of `positions` of the flattened
    inputs; and for CTC the concatenated tokens of all texts, or of all transcripts. `lengths` are those of the
    recordings, also on the host as `frame_counts`; `label_counts` are those of the CTC labels.
    """

    features: Tensor
    lengths: Tensor
    target: Tensor
    positions: Tensor
    expected: Tensor
    labels: Tensor
    frame_counts: list[int]
    label_counts: list[int]

    to = to_device


@dataclass(frozen=True)
class SpecAugment:
    """SpecAugment: time spans and frequency bands are set to the mean (Park et al., 2019). Bands cover up to `band`
    of a frame, spans up to `stretch` frames and at most `share` of a recording.
    """

    bands: int = 2
    band: float = 0.3
    stretches: int = 2
    stretch: int = 40
    share: float = 0.2

    def __post_init__(self):
        check_fraction("task.mask_band", self.band)
        check_fraction("task.mask_share", self.share)

    def __call__(self, frames: np.ndarray, random: np.random.Generator) -> None:
        """Mask normalized features, in place."""
        length, size = frames.shape
        for _ in range(self.bands):
            width = int(random.integers(0, int(self.band * size) + 1))
            first = int(random.integers(0, size - width + 1))
            frames[:, first : first + width] = 0
        most = min(self.stretch, int(self.share * length))
        for _ in range(self.stretches):
            width = int(random.integers(0, most + 1))
            first = int(random.integers(0, length - width + 1))
            frames[first : first + width] = 0


def collate(
    frames: Sequence[np.ndarray],
    texts: Sequence[Sequence[int]],
    special: SpecialTokens,
    transcripts: Sequence[Sequence[int]] | None = None,
) -> SpeechBatch:
    """A batch of normalized features and their token ids; the CTC labels are `transcripts`, or else the texts."""
    lengths = np.array([len(own) for own in frames])
    padded = np.zeros((len(frames), int(lengths.max()), frames[0].shape[1]), dtype=np.float32)
    for row, own in zip(padded, frames, strict=True):
        row[: len(own)] = own
    outputs = [[*special.before, *text, special.last] for text in texts]
    longest = max(map(len, outputs))
    target = np.full((len(texts), longest), special.pad, dtype=np.int64)
    for row, own in zip(target, outputs, strict=True):
        row[: len(own)] = [special.first, *own[:-1]]
    positions = np.concatenate([i * longest + np.arange(len(own)) for i, own in enumerate(outputs)])
    flat = [np.asarray(list(own), dtype=np.int64) for own in (texts if transcripts is None else transcripts)]
    expected, labels = np.concatenate([np.asarray(own) for own in outputs]), np.concatenate(flat)
    tensors = map(torch.from_numpy, (padded, lengths, target, positions, expected, labels))
    return SpeechBatch(*tensors, lengths.tolist(), [len(own) for own in flat])


@dataclass(frozen=True)
class Speech:
    """Features of recordings, which of them are used, and the token ids of their texts and, for CTC, transcripts."""

    corpus: SpeechCorpus
    rows: np.ndarray
    ids: list[list[int]]
    transcripts: list[list[int]] | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def content(self, index: int) -> np.ndarray:
        """The frames of a recording."""
        return self.corpus.mapped(self.rows[index])


class SpeechBatches:
    """The batches of a corpus, epoch after epoch, from any position on."""

    def __init__(
        self,
        speech: Speech,
        features: SoundFeatures,
        special: SpecialTokens,
        *,
        budget: int,
        seed: int,
        augment: SpecAugment | None = None,
        share: tuple[int, int] = (0, 1),
    ):
        """`budget` is the maximum number of frames per batch, including padding. `share` is (rank, world size): each
        process gets its part of every batch.
        """
        self.corpus, self.rows = speech.corpus, speech.rows
        self.texts, self.transcripts = speech.ids, speech.transcripts
        self.features, self.special = features, special
        self.budget, self.seed, self.augment, self.share = budget, seed, augment, share
        self.lengths = self.corpus.lengths[self.rows]
        self.text_lengths = np.array([len(own) + 1 for own in self.texts])

    def plan(self, epoch: int) -> list[np.ndarray]:
        return plan(self.lengths, self.text_lengths, self.budget, self.seed, epoch)

    def start(self, position: tuple[int, int] = (0, 0)) -> Iterator[tuple[DataPosition, SpeechBatch]]:
        """Each batch with the position after it."""
        epoch, index = position
        while True:
            planned = self.plan(epoch)
            for i in range(index, len(planned)):
                after = DataPosition(epoch, i + 1) if i + 1 < len(planned) else DataPosition(epoch + 1, 0)
                yield after, self.make(planned[i], (epoch, i))
            epoch, index = epoch + 1, 0

    def make(self, chosen: np.ndarray, position: tuple[int, int]) -> SpeechBatch:
        """A batch of this process's share; if it is empty, one without anything to predict."""
        mine = chosen[self.share[0] :: self.share[1]]
        random = np.random.default_rng([self.seed, *position, self.share[0]])
        used = mine if len(mine) else chosen[:1]
        frames = [self.features.normalized(self.corpus.frames(int(self.rows[i]))) for i in used]
        for own in frames if self.augment is not None else ():
            self.augment(own, random)
        said = None if self.transcripts is None else [self.transcripts[i] for i in used]
        made = collate(frames, [self.texts[i] for i in used], self.special, said)
        if len(mine):
            return made
        nothing = {name: getattr(made, name)[:0] for name in ("positions", "expected", "labels")}
        return made._replace(**nothing, label_counts=[0] * len(made.label_counts))

"""Recordings for training a voice: the [data] section, and batches of texts and frames."""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from heed.data.audio.batches import Speech
from heed.data.audio.config import AudioConfig
from heed.data.batching import DataPosition, plan
from heed.data.packing import to_device
from heed.vocabularies.sound import FeatureSettings, SoundFeatures
from heed.vocabularies.vocabulary import SpecialTokens


@dataclass(frozen=True)
class VoiceConfig(AudioConfig):
    """The same with the features that a voice produces: log-mel magnitudes, which can be turned into audio."""

    features: Literal["mel"] = "mel"  # log-mel magnitudes
    frame: float = 64.0  # frame length in milliseconds
    shift: float = 16.0  # frame shift in milliseconds
    normalize: Literal["corpus"] = "corpus"  # mean 0 and standard deviation 1 over all recordings
    top: float | None = None  # upper edge of the highest mel filter in Hz (default: half the sample rate)
    phonemes: str | None = None  # a pronouncing dictionary: train on phonemes instead of letters (English)
    g2p: str | None = None  # a model that pronounces words missing from the dictionary (recipes/g2p.toml)

    def __post_init__(self):
        super().__post_init__()
        if self.g2p and not self.phonemes:
            raise ValueError("data.g2p is for words missing from data.phonemes: set data.phonemes to a dictionary")

    def settings(self, given: int = 0) -> FeatureSettings:
        return replace(super().settings(given), top=self.top)


def spelled(text: str) -> str:
    """A text as voices read it: lowercase, with Hangul decomposed into jamo."""
    return unicodedata.normalize("NFD", " ".join(text.lower().split()))


class VoiceBatch(NamedTuple):
    """Texts (b, s) and speakers; frames (b, t, size), zero-padded, t a multiple of the frames per step. `count` is
    the number of real frames.
    """

    tokens: Tensor
    valid: Tensor
    speakers: Tensor
    frames: Tensor
    lengths: Tensor
    count: int

    to = to_device


def collate(
    frames: Sequence[np.ndarray],
    texts: Sequence[Sequence[int]],
    speakers: Sequence[int],
    special: SpecialTokens,
    reduction: int,
) -> VoiceBatch:
    """A batch of normalized features and token ids."""
    lengths, sizes = np.array([len(own) for own in frames]), np.array([len(own) + 1 for own in texts])
    longest = -(-int(lengths.max()) // reduction) * reduction
    padded = np.zeros((len(frames), longest, frames[0].shape[1]), dtype=np.float32)
    tokens = np.full((len(texts), int(sizes.max())), special.pad, dtype=np.int64)
    for i, (own, text) in enumerate(zip(frames, texts, strict=True)):
        padded[i, : len(own)] = own
        tokens[i, : len(text) + 1] = [*text, special.last]
    valid = np.arange(tokens.shape[1]) < sizes[:, None]
    arrays = (tokens, valid, np.asarray(speakers, dtype=np.int64), padded, lengths)
    return VoiceBatch(*map(torch.from_numpy, arrays), int(lengths.sum()))


class VoiceBatches:
    """The batches of a corpus, epoch after epoch, from any position on."""

    def __init__(
        self,
        speech: Speech,
        speakers: Sequence[int],
        features: SoundFeatures,
        special: SpecialTokens,
        *,
        reduction: int,
        budget: int,
        seed: int,
        share: tuple[int, int] = (0, 1),
    ):
        """`speakers` are those of the rows; `budget` is the maximum number of frames per batch, including padding."""
        self.speech, self.speakers, self.features, self.special = speech, speakers, features, special
        self.reduction, self.budget, self.seed, self.share = reduction, budget, seed, share
        self.lengths = speech.corpus.lengths[speech.rows]
        self.text_lengths = np.array([len(own) + 1 for own in speech.ids])

    def plan(self, epoch: int) -> list[np.ndarray]:
        return plan(self.lengths, self.text_lengths, self.budget, self.seed, epoch)

    def start(self, position: tuple[int, int] = (0, 0)) -> Iterator[tuple[DataPosition, VoiceBatch]]:
        """Each batch with the position after it."""
        epoch, index = position
        while True:
            planned = self.plan(epoch)
            for i in range(index, len(planned)):
                after = DataPosition(epoch, i + 1) if i + 1 < len(planned) else DataPosition(epoch + 1, 0)
                yield after, self.make(planned[i])
            epoch, index = epoch + 1, 0

    def make(self, chosen: np.ndarray) -> VoiceBatch:
        """A batch of this process's share; if it is empty, one without real frames."""
        mine = chosen[self.share[0] :: self.share[1]]
        used = mine if len(mine) else chosen[:1]
        frames = [self.features.normalized(self.speech.corpus.frames(int(self.speech.rows[i]))) for i in used]
        texts, speakers = [self.speech.ids[i] for i in used], [self.speakers[i] for i in used]
        made = collate(frames, texts, speakers, self.special, self.reduction)
        return made if len(mine) else made._replace(lengths=torch.zeros_like(made.lengths), count=0)

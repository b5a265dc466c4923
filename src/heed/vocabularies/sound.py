"""The input of speech models: audio features and their normalization."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heed import config
from heed.audio import features
from heed.audio.files import Sound
from heed.audio.resampling import resample
from heed.audio.spectrogram import mel_spectrogram, sound_of

FEWEST, MOST = 1, 1024  # numbers of a frame
RATES = (1000, 192_000)


@dataclass(frozen=True)
class FeatureSettings:
    """How features are computed. "given": they were computed elsewhere, with `size` values per frame."""

    kind: Literal["fbank", "mfcc", "mel", "given"] = "fbank"  # "mel" is what a voice writes, and can be heard
    rate: int = 16_000
    mels: int = 80
    cepstra: int = 13
    frame: float = 25.0  # milliseconds
    shift: float = 10.0
    normalize: Literal["utterance", "corpus"] = "utterance"
    given: int = 0
    top: float | None = None  # Hz: where the highest filter of "mel" ends; half the rate by default

    def __post_init__(self):
        if not RATES[0] <= self.rate <= RATES[1]:
            raise ValueError(f"rate is {self.rate}; it must be from {RATES[0]:,} to {RATES[1]:,} Hz")
        if not 1 <= self.shift <= self.frame <= 1000:
            raise ValueError(
                f"frame is {self.frame:g} and shift {self.shift:g}: the shift must be at least one millisecond, and at "
                "most a frame"
            )
        if not FEWEST <= self.size <= MOST:
            raise ValueError(f"{self._sized_by} is {self.size}; it must be from {FEWEST} to {MOST:,}")
        if self.top is not None and not 100 <= self.top <= self.rate / 2:
            raise ValueError(f"top is {self.top:g}; it must be from 100 to half the rate, {self.rate / 2:g} Hz")
        if self.kind == "mfcc" and self.cepstra > self.mels:
            raise ValueError(f"cepstra is {self.cepstra}; it must be at most mels, {self.mels}")

    @property
    def size(self) -> int:
        """The number of values per frame."""
        return getattr(self, self._sized_by)

    @property
    def _sized_by(self) -> str:
        """The setting that is the number of values per frame."""
        return {"mfcc": "cepstra", "given": "given"}.get(self.kind, "mels")

    @property
    def spectrum(self) -> dict[str, Any]:
        """The spectrogram settings."""
        return {**self.samples, "top": self.top}

    @property
    def samples(self) -> dict[str, int]:
        """The frame length and the hop, in samples, for spectrograms."""
        return {"width": round(self.rate * self.frame / 1000), "hop": round(self.rate * self.shift / 1000)}


class SoundFeatures:
    """Converts audio to model input. `mean` and `deviation` are those of the training data, per feature."""

    def __init__(self, settings: FeatureSettings, mean: Sequence[float] = (), deviation: Sequence[float] = ()):
        self.settings, self.mean, self.deviation = settings, list(mean), list(deviation)

    def __len__(self) -> int:
        return self.settings.size

    @property
    def seconds(self) -> float:
        """Seconds from one frame to the next."""
        return self.settings.shift / 1000

    def frames(self, sound: Sound) -> np.ndarray:
        """Features before normalization, as they are cached."""
        s = self.settings
        if s.kind == "given":
            raise ValueError(
                "the model reads precomputed features, not audio: train one on audio (docs/guides/speech.md)"
            )
        samples = torch.from_numpy(resample(sound.samples, sound.rate, s.rate))
        with torch.autocast("cpu", enabled=False):
            if s.kind == "mel":
                return mel_spectrogram(samples, s.rate, s.mels, **s.spectrum).numpy()
            log_mel = features.fbank(samples, s.rate, s.mels, frame=s.frame, shift=s.shift)
            return (features.mfcc(log_mel, s.cepstra) if s.kind == "mfcc" else log_mel).numpy()

    def normalized(self, frames: np.ndarray) -> np.ndarray:
        """Mean 0 and standard deviation 1, of the utterance or the training data."""
        if self.settings.normalize == "corpus":
            mean, deviation = (np.asarray(own, dtype=np.float32) for own in (self.mean, self.deviation))
        elif len(frames):
            mean, deviation = frames.mean(axis=0), frames.std(axis=0)
        else:
            return frames
        return ((frames - mean) / np.maximum(deviation, 1e-5)).astype(np.float32)

    def log_mel(self, frames: np.ndarray) -> Float[Tensor, "t mels"]:
        """Invert the normalization of features that can be turned into audio."""
        s = self.settings
        if s.kind != "mel" or s.normalize != "corpus":
            raise ValueError(f"{s.kind!r} features cannot be turned into audio")
        mean, deviation = (np.asarray(own, dtype=np.float32) for own in (self.mean, self.deviation))
        return torch.from_numpy(frames * np.maximum(deviation, 1e-5) + mean).float()

    def sound(self, frames: np.ndarray) -> Sound:
        """The audio of normalized features, by Griffin-Lim."""
        s, log_mel = self.settings, self.log_mel(frames)
        with torch.autocast("cpu", enabled=False):
            return Sound(sound_of(log_mel, s.rate, **s.spectrum).clamp(-1, 1).numpy(), s.rate)

    def __call__(self, sound: Sound) -> np.ndarray:
        return self.normalized(self.frames(sound))

    def key(self) -> str:
        return hashlib.sha256(json.dumps(self.facts(), sort_keys=True).encode()).hexdigest()

    def facts(self) -> dict[str, Any]:
        """Its entry in config.json."""
        own = {"mean": self.mean, "deviation": self.deviation} if self.settings.normalize == "corpus" else {}
        return {"kind": "sound", "features": asdict(self.settings), **own}

    @staticmethod
    def read(facts: Mapping[str, Any], where: str) -> "SoundFeatures":
        values = facts.get("features")
        if not isinstance(values, Mapping):
            raise ValueError(f"{where}.features is {values!r}; it must be a section")
        settings = config.read(FeatureSettings, values, f"{where}.features.")
        if settings.normalize != "corpus":
            return SoundFeatures(settings)
        for name in ("mean", "deviation"):
            own = facts.get(name)
            numbers = isinstance(own, list) and all(type(x) in (int, float) and abs(x) < 1e30 for x in own)
            if not numbers or len(own) != settings.size:
                raise ValueError(f"{where}.{name} must be a list of {settings.size} numbers")
        return SoundFeatures(settings, facts["mean"], facts["deviation"])

"""The [data] section of speech tasks."""

from dataclasses import dataclass, field
from typing import Literal

from heed.vocabularies.sound import FeatureSettings

Format = Literal["auto", "tsv", "ljspeech", "fsdd", "mfcc"]
SPEEDS = (0.5, 2.0)


@dataclass(frozen=True)
class AudioConfig:
    """Recordings and texts, which of them are skipped, and the features to compute."""

    audio: list[str] = field(
        default_factory=list
    )  # tables of path and text, LJSpeech's metadata.csv, or folders: FSDD's, or AN4's MFCC
    valid_audio: list[str] = field(default_factory=list)  # validation recordings
    format: Format = "auto"  # "tsv": path, tab, text; "fsdd": 7_name_12.wav; "mfcc": index.tsv with stored cepstra
    split: str = "train"  # the training split, for corpora with splits (FSDD: recordings 5 to 49; AN4)
    holdout: int = 0  # recordings set aside without validation files; 0 is one in twenty, at most 500
    features: Literal["fbank", "mfcc"] = "fbank"  # log-mel energies, or cepstra
    rate: int = 16_000  # sample rate in Hz; other rates are resampled
    mels: int = 80  # number of mel filters
    cepstra: int = 13  # number of cepstra, for features = "mfcc"
    frame: float = 25.0  # frame length in milliseconds
    shift: float = 10.0  # frame shift in milliseconds
    normalize: Literal["utterance", "corpus"] = (
        "utterance"  # normalize to mean 0 and deviation 1 per recording, or over all
    )
    speeds: list[float] = field(default_factory=lambda: [1.0])  # speed perturbation: also train at these speeds
    max_seconds: float = 30.0  # skip longer recordings in training
    language: str | None = None  # spoken language, for the model card
    target_language: str | None = None  # language of the text, if different (speech translation)
    licence: str | None = None  # licence of the data, for the model card

    def __post_init__(self):
        if not self.audio:
            raise ValueError(
                "data.audio is empty: give a table of paths and texts, or a folder (docs/guides/speech.md)"
            )
        if self.holdout < 0:
            raise ValueError(f"data.holdout is {self.holdout}; it must be 0 (automatic) or more")
        if not self.speeds or any(not SPEEDS[0] <= one <= SPEEDS[1] for one in self.speeds):
            raise ValueError(f"data.speeds is {self.speeds}; each must be from {SPEEDS[0]} to {SPEEDS[1]}")
        if not self.max_seconds > 0:
            raise ValueError(f"data.max_seconds is {self.max_seconds}; it must be above 0")
        try:
            self.settings()
        except ValueError as error:
            raise ValueError(f"data.{error}") from None

    def settings(self, given: int = 0) -> FeatureSettings:
        """The feature settings; with `given`, features are stored, with this many values per frame."""
        names = ("rate", "mels", "cepstra", "frame", "shift", "normalize")
        own = {name: getattr(self, name) for name in names}
        return FeatureSettings("given" if given else self.features, **own, given=given)

"""The spectrogram settings of voices and vocoders."""

from typing import NamedTuple

from heed.vocabularies.sound import SoundFeatures


class Spectrogram(NamedTuple):
    """How a vocoder's spectrograms are computed: frames in samples, frequencies in Hz, the base of the logarithm."""

    sampling_rate: int
    mels: int
    hop: int
    n_fft: int
    window: int
    fmin: float
    fmax: float
    log: str

    @classmethod
    def of(cls, sound: SoundFeatures) -> "Spectrogram":
        """The spectrogram settings of a voice."""
        s = sound.settings
        width, hop = s.samples["width"], s.samples["hop"]
        return cls(s.rate, s.mels, hop, width, width, 0.0, s.top or s.rate / 2, "e")

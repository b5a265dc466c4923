"""Which spectrograms a voice writes and a vocoder reads."""

from typing import NamedTuple

from heed.vocabularies.sound import SoundFeatures


class Spectrogram(NamedTuple):
    """How the spectrograms are computed that a vocoder reads: frames in samples, frequencies in Hz, the base of the logarithm."""

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
        """What a voice writes."""
        s = sound.settings
        width, hop = s.samples["width"], s.samples["hop"]
        return cls(s.rate, s.mels, hop, width, width, 0.0, s.top or s.rate / 2, "e")

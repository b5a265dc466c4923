"""A neural vocoder instead of Griffin-Lim: audio from a voice's spectrogram."""

from pathlib import Path

import numpy as np
import torch

from heed.audio.files import Sound
from heed.convert import hifi_gan
from heed.models.hifi_gan import HiFiGAN
from heed.vocabularies.sound import SoundFeatures
from heed.vocabularies.spectrogram import Spectrogram


class Vocoder:
    """A HiFi-GAN with the spectrogram settings it expects; `name` is for errors."""

    def __init__(self, model: HiFiGAN, spectrogram: Spectrogram, name: str = "the vocoder"):
        self.model, self.spectrogram, self.name = model, spectrogram, name

    @classmethod
    def open(cls, path: str | Path) -> "Vocoder":
        """The vocoder in a folder, or in a .safetensors file next to its config.json."""
        return cls(*hifi_gan.read(path), str(path))

    def check(self, sound: SoundFeatures) -> None:
        """Refuse a voice with other spectrogram settings than the vocoder was trained with."""
        pairs = zip(Spectrogram._fields, self.spectrogram, Spectrogram.of(sound), strict=True)
        other = [f"{name} is {_shown(own)}, not {_shown(voice)}" for name, own, voice in pairs if own != voice]
        if other:
            raise ValueError(
                f"{self.name} expects other spectrograms than this voice produces ({'; '.join(other)}): use "
                f"a vocoder trained with the voice's settings"
            )

    @torch.inference_mode()
    def sound(self, sound: SoundFeatures, frames: np.ndarray) -> Sound:
        """The audio of a voice's normalized frames."""
        weight = self.model.first.weight
        log_mel = sound.log_mel(frames).to(weight.device, weight.dtype)
        with torch.autocast(weight.device.type, enabled=False):
            samples = self.model(log_mel[None])[0]
        return Sound(samples.float().cpu().numpy(), self.spectrogram.sampling_rate)


def _shown(value: float | str) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)

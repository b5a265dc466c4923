"""A neural vocoder in place of Griffin and Lim's algorithm: the sound of a voice's spectrogram."""

from pathlib import Path

import numpy as np
import torch

from heed.audio.files import Sound
from heed.convert import hifi_gan
from heed.models.hifi_gan import HiFiGAN
from heed.vocabularies.sound import SoundFeatures
from heed.vocabularies.spectrogram import Spectrogram


class Vocoder:
    """A HiFi-GAN with the spectrograms that it reads; `name` is for errors."""

    def __init__(self, model: HiFiGAN, spectrogram: Spectrogram, name: str = "the vocoder"):
        self.model, self.spectrogram, self.name = model, spectrogram, name

    @classmethod
    def open(cls, path: str | Path) -> "Vocoder":
        """The vocoder of a folder, or of a .safetensors file with its config.json beside it."""
        return cls(*hifi_gan.read(path), str(path))

    def check(self, sound: SoundFeatures) -> None:
        """Refuse a voice that writes other spectrograms than the vocoder was trained on."""
        pairs = zip(Spectrogram._fields, self.spectrogram, Spectrogram.of(sound), strict=True)
        other = [f"{name} is {_shown(own)}, not {_shown(voice)}" for name, own, voice in pairs if own != voice]
        if other:
            raise ValueError(
                f"{self.name} expects other spectrograms than this voice produces ({'; '.join(other)}): use "
                f"a vocoder trained with the voice's settings"
            )

    @torch.inference_mode()
    def sound(self, sound: SoundFeatures, frames: np.ndarray) -> Sound:
        """The sound of a voice's normalized frames."""
        weight = self.model.first.weight
        log_mel = sound.log_mel(frames).to(weight.device, weight.dtype)
        with torch.autocast(weight.device.type, enabled=False):
            samples = self.model(log_mel[None])[0]
        return Sound(samples.float().cpu().numpy(), self.spectrogram.sampling_rate)


def _shown(value: float | str) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)

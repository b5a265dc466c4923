"""Audio features: log-mel energies and cepstra, as Kaldi computes them, and mel spectrograms as librosa does."""

import math
from functools import lru_cache

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

EPSILON = 1.1920928955078125e-07  # below it an energy is noise: Kaldi's floor
LOW = 20.0  # Hz: where the lowest filter begins
PREEMPHASIS = 0.97
LIFTER = 22.0
BLOCK = 4096  # frames that are computed at one time
FULL_SCALE = 32768.0  # Kaldi counts in steps of 16 bits


def frame_count(samples: int, size: int, shift: int) -> int:
    """The number of whole frames."""
    return 0 if samples < size else 1 + (samples - size) // shift


def fbank(
    samples: Float[Tensor, " n"], rate: int, mels: int = 80, *, frame: float = 25.0, shift: float = 10.0
) -> Float[Tensor, "t mels"]:
    """Log-mel energies of frames (in milliseconds), as Kaldi's `fbank` without dither; samples range from -1 to 1."""
    size, step = int(rate * frame / 1000), int(rate * shift / 1000)
    count, width = frame_count(len(samples), size, step), 1 << (size - 1).bit_length()
    window, bank = povey_window(size).to(samples), mel_filters(rate, width, mels, LOW).to(samples)
    parts = []
    for start in range(0, count, BLOCK):
        end = min(start + BLOCK, count)
        frames = samples[start * step : (end - 1) * step + size].unfold(0, size, step) * FULL_SCALE
        frames = frames - frames.mean(dim=1, keepdim=True)
        before = torch.cat([frames[:, :1], frames[:, :-1]], dim=1)
        spectrum = torch.fft.rfft((frames - PREEMPHASIS * before) * window, n=width)
        power = spectrum.real.square() + spectrum.imag.square()
        parts.append((power @ bank.T).clamp(min=EPSILON).log())
    return torch.cat(parts) if parts else samples.new_zeros(0, mels)


def mfcc(log_mel: Float[Tensor, "t mels"], cepstra: int = 13) -> Float[Tensor, "t cepstra"]:
    """Cepstra of log-mel energies, liftered, as Kaldi's `mfcc` with C0 in place of the energy."""
    count = torch.arange(cepstra, dtype=torch.float64)
    lifter = 1 + 0.5 * LIFTER * torch.sin(math.pi * count / LIFTER)
    return log_mel @ (cosines(log_mel.shape[1], cepstra) * lifter).to(log_mel)


def cosines(size: int, count: int) -> Float[Tensor, "size count"]:
    """The first columns of the orthonormal discrete cosine transform."""
    angle = math.pi / size * (torch.arange(size, dtype=torch.float64)[:, None] + 0.5) * torch.arange(count)
    table = math.sqrt(2 / size) * angle.cos()
    table[:, 0] = math.sqrt(1 / size)
    return table


@lru_cache(maxsize=8)
def povey_window(size: int) -> Float[Tensor, " size"]:
    """Kaldi's Povey window: Hann to the power 0.85."""
    return (0.5 - 0.5 * torch.cos(2 * math.pi * torch.arange(size, dtype=torch.float64) / (size - 1))) ** 0.85


@lru_cache(maxsize=8)
def mel_filters(rate: int, width: int, mels: int, low: float) -> Float[Tensor, "mels bins"]:
    """Triangular filters of equal width on the mel scale, up to half the sample rate."""
    edges = torch.linspace(_mel(low), _mel(rate / 2), mels + 2, dtype=torch.float64)
    bins = 1127.0 * torch.log(1 + torch.arange(width // 2 + 1, dtype=torch.float64) * rate / width / 700)
    left, centre, right = (edges[i : i + mels, None] for i in range(3))
    rising, falling = (bins - left) / (centre - left), (right - bins) / (right - centre)
    table = torch.minimum(rising, falling).clamp(min=0)
    table[:, -1] = 0  # Kaldi leaves the highest frequency out
    return table


def _mel(frequency: float) -> float:
    return 1127.0 * math.log(1 + frequency / 700)


def stretch(features: Float[Tensor, "t d"], speed: float) -> Float[Tensor, "n d"]:
    """Speed perturbation of features when there is no audio: interpolates between frames."""
    if speed == 1 or not len(features):
        return features
    size = max(1, round(len(features) / speed))
    return F.interpolate(features.T[None], size=size, mode="linear", align_corners=False)[0].T

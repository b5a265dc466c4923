"""Mel spectrograms as librosa computes them, and audio from a spectrogram (Griffin and Lim, 1984)."""

import math
from functools import lru_cache

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

FLOOR = 1e-5  # a magnitude below it is silence
ROUNDS, MOMENTUM = 60, 0.99  # of Griffin-Lim (Perraudin et al., 2013)
UPDATES = 30  # of the magnitudes of a mel spectrogram
LINEAR, STEP = 1000.0, 200.0 / 3  # Slaney's scale is linear up to this frequency, then logarithmic
LOG_STEP = math.log(6.4) / 27


def mel_spectrogram(
    samples: Float[Tensor, " n"],
    rate: int,
    mels: int = 80,
    *,
    width: int = 1024,
    hop: int = 256,
    top: float | None = None,
) -> Float[Tensor, "t mels"]:
    """Log-mel magnitudes up to `top` Hz (default: half the rate), one row per `hop` samples."""
    spectrum = _transform(samples, width, hop).abs()
    return (slaney_filters(rate, width, mels, top).to(samples) @ spectrum).clamp(min=FLOOR).log().T


def sound_of(
    log_mel: Float[Tensor, "t mels"],
    rate: int,
    *,
    width: int = 1024,
    hop: int = 256,
    top: float | None = None,
    rounds: int = ROUNDS,
) -> Float[Tensor, " n"]:
    """Audio with this spectrogram: magnitudes by least squares, phases by Griffin-Lim; deterministic."""
    bank = slaney_filters(rate, width, log_mel.shape[1], top).to(log_mel)
    magnitude = magnitudes(bank, log_mel.exp().T)
    generator = torch.Generator().manual_seed(0)
    angle = 2 * math.pi * torch.rand(magnitude.shape, generator=generator).to(magnitude)
    phase, before = torch.polar(torch.ones_like(angle), angle), torch.zeros_like(magnitude, dtype=torch.complex64)
    window, length = torch.hann_window(width).to(log_mel), hop * (magnitude.shape[1] - 1)
    for _ in range(rounds):
        samples = torch.istft(magnitude * phase, width, hop, window=window, length=length)
        found = _transform(samples, width, hop)
        phase = found - MOMENTUM / (1 + MOMENTUM) * before
        phase, before = phase / phase.abs().clamp(min=1e-12), found
    return torch.istft(magnitude * phase, width, hop, window=window, length=length)


def magnitudes(bank: Float[Tensor, "mels bins"], mel: Float[Tensor, "mels t"]) -> Float[Tensor, "bins t"]:
    """Magnitudes with these mel magnitudes, by least squares; none is negative (the updates of Lee and Seung, 2000)."""
    found = (torch.linalg.pinv(bank) @ mel).clamp(min=FLOOR)
    wanted, gram = bank.T @ mel, bank.T @ bank
    for _ in range(UPDATES):
        found = found * wanted / (gram @ found).clamp(min=1e-10)
    return found.clamp(min=FLOOR)


def _transform(samples: Float[Tensor, " n"], width: int, hop: int) -> Tensor:
    padded = F.pad(samples, (width // 2, width // 2))
    window = torch.hann_window(width).to(samples)
    return torch.stft(padded, width, hop, window=window, center=False, return_complex=True)


@lru_cache(maxsize=8)
def slaney_filters(rate: int, width: int, mels: int, top: float | None = None) -> Float[Tensor, "mels bins"]:
    """Triangular filters on Slaney's mel scale up to `top` Hz (default: half the rate), normalized to equal area."""
    points = torch.linspace(0, _mel(top or rate / 2), mels + 2, dtype=torch.float64)
    edges = torch.where(points < LINEAR / STEP, points * STEP, LINEAR * torch.exp(LOG_STEP * (points - LINEAR / STEP)))[
        :, None
    ]
    bins = torch.linspace(0, rate / 2, width // 2 + 1, dtype=torch.float64)
    rising = (bins - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - bins) / (edges[2:] - edges[1:-1])
    return torch.minimum(rising, falling).clamp(min=0) * 2 / (edges[2:] - edges[:-2])


def _mel(frequency: float) -> float:
    return frequency / STEP if frequency < LINEAR else LINEAR / STEP + math.log(frequency / LINEAR) / LOG_STEP

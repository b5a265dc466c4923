"""Resampling by windowed sinc interpolation."""

from fractions import Fraction
from math import ceil, gcd

import numpy as np

WIDTH = 6  # zero crossings of the sinc on each side
ROLLOFF = 0.99  # of the lower Nyquist frequency: what is above is filtered out
CHUNK = 1 << 16  # samples that are made at one time


def resample(samples: np.ndarray, old: int, new: int) -> np.ndarray:
    """Resample to `new` samples per second, with an anti-aliasing filter."""
    if old == new or not len(samples):
        return samples
    divisor = gcd(old, new)
    old, new = old // divisor, new // divisor
    cutoff = min(old, new) * ROLLOFF
    reach = ceil(WIDTH * old / cutoff)  # samples on each side that count
    phases, taps = np.arange(new), np.arange(-reach, reach + 2)
    # the time between an output and each sample near it, in zero crossings
    distance = (phases * old % new / new)[:, None] - taps
    x = np.clip(distance * (cutoff / old), -WIDTH, WIDTH)
    weights = (np.sinc(x) * np.cos(x * np.pi / WIDTH / 2) ** 2 * (cutoff / old)).astype(np.float32)
    padded = np.pad(samples.astype(np.float32), (reach, reach + 2))
    made = np.empty(-(-len(samples) * new // old), dtype=np.float32)
    for start in range(0, len(made), CHUNK):
        n = np.arange(start, min(start + CHUNK, len(made)))
        near = padded[(n * old // new)[:, None] + (taps + reach)]
        made[start : start + CHUNK] = np.einsum("nt,nt->n", near, weights[n % new])
    return made


def change_speed(samples: np.ndarray, speed: float) -> np.ndarray:
    """Play the audio faster (above 1) or slower, which also changes the pitch (Ko et al., 2015)."""
    ratio = Fraction(speed).limit_denominator(100)
    return resample(samples, ratio.numerator, ratio.denominator)

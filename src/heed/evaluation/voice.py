"""The distance of synthesized speech from a recording: mel-cepstral distortion along the best alignment."""

import math
from collections.abc import Sequence

import numpy as np

from heed.audio.features import cosines

CEPSTRA = 13  # after the first, which is loudness
DECIBELS = 20 / math.log(10)  # of a difference of logarithms of magnitudes


def distortion(made: np.ndarray, recorded: np.ndarray) -> float:
    """Mel-cepstral distortion of two log-mel spectrograms (frames, mels): the mean over the frames of the best
    alignment (Kubichek, 1993). It is the root mean square difference of the spectral envelopes in decibels.
    """
    table = cosines(made.shape[1], CEPSTRA + 1).numpy()[:, 1:]
    one, other = made @ table, recorded @ table
    distance = np.sqrt(np.square(one[:, None] - other[None]).sum(axis=2) / made.shape[1])
    return DECIBELS * float(np.mean([distance[i, j] for i, j in warp(distance)]))


def warp(distance: np.ndarray) -> list[tuple[int, int]]:
    """The cheapest path from the first to the last pair, with steps of one on either side or both (dynamic time
    warping).
    """
    rows, columns = distance.shape
    cost = np.full((rows + 1, columns + 1), np.inf)
    cost[0, 0] = 0.0
    for i in range(rows):
        for j in range(columns):
            cost[i + 1, j + 1] = distance[i, j] + min(cost[i, j], cost[i, j + 1], cost[i + 1, j])
    path, i, j = [], rows, columns
    while i and j:
        path.append((i - 1, j - 1))
        choices: Sequence[tuple[int, int]] = ((i - 1, j - 1), (i - 1, j), (i, j - 1))
        i, j = min(choices, key=lambda place: cost[place])
    return path[::-1]

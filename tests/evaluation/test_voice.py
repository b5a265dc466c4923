"""Mel-cepstral distortion beside its definition."""

import itertools

import numpy as np
import pytest

from heed.evaluation import voice


def test_the_warped_path_is_the_cheapest():
    distance = np.random.default_rng(0).random((3, 4))

    def paths(i, j):
        if (i, j) == (2, 3):
            return [[(2, 3)]]
        after = [(i + a, j + b) for a, b in ((1, 1), (1, 0), (0, 1)) if i + a <= 2 and j + b <= 3]
        return [[(i, j), *rest] for place in after for rest in paths(*place)]

    best = min(paths(0, 0), key=lambda path: sum(distance[place] for place in path))
    assert voice.warp(distance) == best


def test_distortion_is_the_difference_of_spectra_in_decibels(monkeypatch):
    monkeypatch.setattr(voice, "CEPSTRA", 7)  # all of 8: then nothing is smoothed
    one, other = np.random.default_rng(0).normal(0, 1, (2, 1, 8))
    one, other = one - one.mean(), other - other.mean()
    assert voice.distortion(one, other) == pytest.approx(20 * np.log10(np.e) * np.sqrt(np.mean((one - other) ** 2)))


def test_the_same_sound_slower_has_no_distortion_and_loudness_does_not_count():
    frames = np.random.default_rng(0).normal(0, 1, (5, 20))
    assert voice.distortion(np.repeat(frames, 2, axis=0), frames) == pytest.approx(0, abs=1e-9)
    assert voice.distortion(frames + 3, frames) == pytest.approx(0, abs=1e-9)
    assert all(voice.distortion(a, b) > 0 for a, b in itertools.permutations([frames, frames[::-1]], 2))

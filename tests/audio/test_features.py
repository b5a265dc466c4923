"""Features of sounds, beside Kaldi's."""

import numpy as np
import pytest
import torch
from transformers.audio_utils import mel_filter_bank

from heed.audio import features
from heed.audio.resampling import change_speed, resample
from heed.audio.spectrogram import magnitudes, mel_spectrogram, slaney_filters, sound_of

# kaldi-native-fbank 1.22.4 (OnlineFbank with 80 bins, OnlineMfcc without energy, no dither, 16 kHz) of `signal()`: frames 0 and 7,
# of the first every eighth number
FBANK = [
    [12.19595, 15.96786, 16.10176, 18.58094, 20.65406, 20.02008, 21.8456, 21.63597, 22.91562, 24.18261],
    [13.0826, 16.24782, 17.16745, 18.67423, 19.54752, 20.59565, 21.02276, 22.65426, 22.87786, 23.72618],
]  # fmt: skip
MFCC = [
    [103.99903, -29.5219, -4.4845, -13.73921, -18.02391, -22.75129, -22.79984, -27.5306, -20.38672, 0.08214, 9.81932, 6.89431, 5.59198],
    [104.40598, -28.16748, -2.15226, -10.74159, -13.92875, -20.631, -20.52191, -19.71273, -13.08543, -2.72244, 6.88478, 19.24521, 18.8329],
]  # fmt: skip


def signal(size=1600):
    n = np.arange(size)
    return torch.from_numpy((0.1 * np.sin(n * 0.17) + 0.1 * np.sin(n * n * 0.7711)).astype(np.float32))


def test_log_mel_energies_and_cepstra_are_kaldis():
    found = features.fbank(signal(), 16_000, 80)
    assert found.shape == (8, 80)
    torch.testing.assert_close(found[[0, 7], ::8], torch.tensor(FBANK), rtol=0, atol=1e-4)
    found = features.mfcc(features.fbank(signal(), 16_000, 23), 13)
    torch.testing.assert_close(found[[0, 7]], torch.tensor(MFCC), rtol=0, atol=1e-4)


def test_a_long_sound_in_blocks_has_the_same_features(monkeypatch):
    sound = signal(16_000)
    whole = features.fbank(sound, 16_000, 40)
    monkeypatch.setattr(features, "BLOCK", 7)
    torch.testing.assert_close(features.fbank(sound, 16_000, 40), whole, rtol=0, atol=1e-5)


def test_windows_that_overlap_have_the_features_of_the_whole():
    sound = signal(16_000).double()
    whole = features.fbank(sound, 16_000, 40)
    part = features.fbank(sound[160 * 20 :], 16_000, 40)
    torch.testing.assert_close(part, whole[20:], rtol=0, atol=1e-10)


def test_a_sound_that_is_too_short_has_no_frames():
    assert features.fbank(signal(399), 16_000).shape == (0, 80)
    assert len(features.fbank(signal(400), 16_000)) == 1


@pytest.mark.parametrize(("old", "new"), [(44_100, 16_000), (8000, 16_000), (96_000, 16_000), (16_001, 16_000)])
def test_another_rate_has_the_same_tone(old, new):
    tone = np.sin(2 * np.pi * 440 * np.arange(old // 2) / old).astype(np.float32)
    found = resample(tone, old, new)
    expected = np.sin(2 * np.pi * 440 * np.arange(len(found)) / new)
    assert len(found) == -(-len(tone) * new // old)
    np.testing.assert_allclose(found[200:-200], expected[200:-200], atol=1e-3)


def test_what_the_lower_rate_cannot_have_is_filtered_out():
    tone = np.sin(2 * np.pi * 7000 * np.arange(16_000) / 16_000).astype(np.float32)
    assert np.abs(resample(tone, 16_000, 8000)[200:-200]).max() < 0.02


def test_speed_changes_length_and_pitch():
    tone = np.sin(2 * np.pi * 440 * np.arange(16_000) / 16_000).astype(np.float32)
    found = change_speed(tone, 1.1)
    expected = np.sin(2 * np.pi * 484 * np.arange(len(found)) / 16_000)
    assert abs(len(found) - 16_000 / 1.1) <= 1
    np.testing.assert_allclose(found[200:-200], expected[200:-200], atol=1e-3)
    frames = torch.arange(20.0)[:, None]
    assert features.stretch(frames, 1.0) is frames
    assert len(features.stretch(frames, 2.0)) == 10 and features.stretch(frames, 2.0)[3, 0] == 6.5


# librosa 0.11.0 (melspectrogram with n_fft 1024, hop 256, power 1, 80 mels, no padding but zeros): the logarithm of frames 0 and 7, every
# eighth number
MEL = [
    [-2.66299, -2.18521, -3.52898, -2.88347, -2.7517, -2.81791, -2.56605, -2.71562, -3.08149, -3.0317],
    [-2.44399, -2.66773, -2.97038, -3.21311, -2.56765, -2.62, -2.67959, -2.61486, -2.55594, -2.45855],
]


def test_mel_spectrograms_are_librosas():
    found = mel_spectrogram(signal(4000), 16_000)
    assert found.shape == (16, 80)
    torch.testing.assert_close(found[[0, 7], ::8], torch.tensor(MEL), rtol=0, atol=1e-4)


@pytest.mark.parametrize("top", [None, 8000.0, 900.0])
def test_mel_filters_are_those_of_transformers(top):
    own = {
        "num_frequency_bins": 513,
        "num_mel_filters": 80,
        "sampling_rate": 22_050,
        "norm": "slaney",
        "mel_scale": "slaney",
    }
    expected = mel_filter_bank(min_frequency=0.0, max_frequency=top or 11_025.0, **own)
    found = slaney_filters(22_050, 1024, 80, top)
    torch.testing.assert_close(found, torch.from_numpy(expected.T), rtol=0, atol=1e-10)


def test_magnitudes_have_their_mel_magnitudes_and_none_is_negative():
    spectrum = (torch.randn(513, 6, generator=torch.Generator().manual_seed(0)) * 2).exp()
    bank = slaney_filters(16_000, 1024, 80).float()
    mel, plain = bank @ spectrum, (torch.linalg.pinv(bank) @ (bank @ spectrum)).clamp(min=1e-5)
    found = magnitudes(bank, mel)
    assert found.min() >= 1e-5
    away, before = ((bank @ own / mel).log().abs().mean().item() for own in (found, plain))
    assert away < 0.05 < before


def test_the_sound_of_a_spectrogram_has_this_spectrogram():
    tones = sum(torch.sin(2 * torch.pi * f * torch.arange(8000) / 16_000) for f in (300, 1100, 2500)) / 6
    wanted = mel_spectrogram(tones, 16_000)
    sound = sound_of(wanted, 16_000)
    assert torch.equal(sound, sound_of(wanted, 16_000))
    found = mel_spectrogram(sound, 16_000)
    inner = slice(3, -4)
    loud = wanted[inner] > wanted[inner].max() - 3
    assert (found[: len(wanted)][inner] - wanted[inner])[loud].abs().mean() < 0.2

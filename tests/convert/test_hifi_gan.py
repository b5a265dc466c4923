"""HiFi-GAN vocoders: transformers' numbers, the authors' names, and what is refused."""

import dataclasses
import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from transformers import SpeechT5HifiGan, SpeechT5HifiGanConfig

from heed.audio.files import read as read_sound
from heed.cli.main import main
from heed.data.audio.voices import VoiceConfig
from heed.loading import write_package
from heed.models.hifi_gan import HiFiGAN, HiFiGANConfig
from heed.models.package import Package
from heed.products.vocoder import Vocoder
from heed.vocabularies.sound import SoundFeatures
from heed.vocabularies.spectrogram import Spectrogram
from tests.service.http.test_audio import voice as made

STATED = {"n_fft": 256, "fmin": 0, "fmax": None, "log": "e"}
SIZES = {
    "model_in_dim": 20, "sampling_rate": 8000, "upsample_initial_channel": 8, "upsample_rates": [8, 4, 4],
    "upsample_kernel_sizes": [16, 8, 6], "resblock_kernel_sizes": [3, 5], "resblock_dilation_sizes": [[1, 3], [1, 2]],
}  # fmt: skip


def write(folder, stated=STATED, **more):
    """A folder of transformers with drawn weights, and the model."""
    torch.manual_seed(0)
    model = SpeechT5HifiGan(SpeechT5HifiGanConfig(**{**SIZES, **more})).eval()
    for weight in (*model.parameters(), model.mean):
        weight.data.normal_(0, 0.2)
    model.scale.uniform_(0.5, 2)
    model.save_pretrained(folder)
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **stated}), encoding="utf-8", newline="\n")
    return model


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("hifi-gan")
    write(path)
    return path


@pytest.mark.parametrize("normalized", [True, False])
def test_samples_are_those_of_transformers(tmp_path, normalized):
    theirs = write(tmp_path, normalize_before=normalized).double()
    ours = Vocoder.open(tmp_path).model.double()
    frames = torch.randn(2, 7, 20, dtype=torch.float64)
    with torch.inference_mode():
        found = ours(frames)
        torch.testing.assert_close(found, theirs(frames), rtol=0, atol=1e-10)
    assert found.shape == (2, 7 * 128)


@pytest.mark.parametrize("pair", [("weight_g", "weight_v"), ("parametrizations.weight.original0", "parametrizations.weight.original1")])  # fmt: skip
def test_the_authors_names_and_weight_normalization_are_read(folder, tmp_path, pair):
    weights = {}
    for name, own in SpeechT5HifiGan.from_pretrained(folder).state_dict().items():
        base, _, kind = name.replace("upsampler.", "ups.").rpartition(".")
        if kind == "weight":
            length = own.flatten(1).norm(dim=1)[:, None, None]
            weights |= {f"{base}.{pair[0]}": length, f"{base}.{pair[1]}": 3 * own}
        elif base:
            weights[f"{base}.{kind}"] = own
    save_file(weights, tmp_path / "generator.safetensors")
    names = {
        "num_mels": 20,
        "resblock": "1",
        "sampling_rate": 8000,
        "n_fft": 256,
        "win_size": 256,
        "fmin": 0,
        "fmax": 4000,
    }
    facts = {**{name: own for name, own in SIZES.items() if name != "model_in_dim"}, **names}
    (tmp_path / "config.json").write_text(json.dumps(facts), encoding="utf-8", newline="\n")
    found = Vocoder.open(tmp_path / "generator.safetensors")
    other = Vocoder.open(folder)
    assert found.spectrogram == other.spectrogram and not found.model.config.normalize
    frames = torch.randn(1, 5, 20)
    with torch.inference_mode():
        plain = (frames - other.model.mean) / other.model.scale
        torch.testing.assert_close(found.model(plain), other.model(frames))


def test_a_voice_speaks_by_a_vocoder(folder, tmp_path, capsys):
    voice = made()
    processors = {"sound": voice.sound, "text": voice.vocabulary, "speakers": voice.speakers}
    write_package(Package(voice.model, "speech-synthesis", processors, voice.facts), tmp_path / "voice")
    out = tmp_path / "a.wav"
    words = ["speak", str(tmp_path / "voice"), "hello.", "--out", str(out), "--device", "cpu"]
    assert main([*words, "--vocoder", str(folder)]) == 0
    sound, (plain,) = read_sound(out), voice.speak(["hello."])
    assert sound.rate == 8000 and len(sound.samples) == 128 * len(plain.frames)
    vocoder = Vocoder.open(folder)
    log_mel = torch.from_numpy(plain.frames * np.float32(voice.sound.deviation) + np.float32(voice.sound.mean))
    expected = vocoder.model(log_mel[None].float())[0].numpy()
    np.testing.assert_allclose(sound.samples, expected, atol=1e-3)
    (tmp_path / "bad").mkdir()
    write(tmp_path / "bad", {**STATED, "fmin": 80, "log": "10"}, upsample_rates=[8, 4, 2])
    assert main([*words, "--vocoder", str(tmp_path / "bad")]) != 0
    assert "(hop is 64, not 128; fmin is 80, not 0; log is 10, not e)" in capsys.readouterr().err.replace("\n", " ")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"fmin": None}, "n_fft, win_size, fmin and fmax must be numbers"),
        ({"resblock": "2"}, "resblock is '2'; Heed reads generators with residual blocks of kind 1"),
        ({"upsample_rates": [8, 4]}, "upsampling has 2 steps and 3 kernels; they must match"),
        ({"resblock_kernel_sizes": [3, 4]}, "kernels are [3, 4]; each must be odd"),
        ({"upsample_initial_channel": 16}, "but according to config.json it should be"),
        ({"sampling_rate": "fast"}, "config.json: rate: 'fast' is not an integer"),
    ],
)
def test_what_does_not_fit_is_refused(folder, tmp_path, changes, said):
    facts = json.loads((folder / "config.json").read_text("utf-8")) | changes
    (tmp_path / "config.json").write_text(json.dumps(facts), encoding="utf-8", newline="\n")
    (tmp_path / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes())
    with pytest.raises(ValueError) as error:
        Vocoder.open(tmp_path)
    assert said in str(error.value)


def test_what_is_not_there_is_named(folder, tmp_path):
    with pytest.raises(ValueError, match="no such file or folder"):
        Vocoder.open(tmp_path / "none")
    with pytest.raises(ValueError, match=r"has 0 \.safetensors files, and Heed loads no pickles"):
        Vocoder.open(tmp_path)
    (tmp_path / "generator_v1").write_bytes(b"")
    with pytest.raises(ValueError, match=r"is not a \.safetensors file: Heed loads no pickles"):
        Vocoder.open(tmp_path / "generator_v1")
    write(tmp_path, {})
    with pytest.raises(ValueError, match="n_fft, fmin, fmax, log must be stated"):
        Vocoder.open(tmp_path)


def test_a_voice_may_have_the_frequencies_of_a_published_vocoder():
    settings = VoiceConfig(audio=["a.tsv"], rate=22_050, frame=46.44, shift=11.61, top=8000.0).settings()
    vocoder = Vocoder(HiFiGAN(HiFiGANConfig(channels=16)), Spectrogram(22_050, 80, 256, 1024, 1024, 0.0, 8000.0, "e"))
    vocoder.check(SoundFeatures(settings))
    with pytest.raises(ValueError, match="fmax is 8000, not 11025"):
        vocoder.check(SoundFeatures(dataclasses.replace(settings, top=None)))
    with pytest.raises(ValueError, match=r"data\.top is 9000; it must be from 100 to half the rate, 8000 Hz"):
        VoiceConfig(audio=["a.tsv"], top=9000.0)


def test_each_frame_has_its_own_samples():
    model = HiFiGAN(HiFiGANConfig(4, channels=8, upsampling=[2, 2], upsampling_kernels=[4, 4])).eval()
    frames = torch.randn(1, 200, 4)
    with torch.inference_mode():
        torch.testing.assert_close(model(frames)[:, : 4 * 100], model(frames[:, :160])[:, : 4 * 100])

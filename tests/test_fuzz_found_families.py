"""What fuzzing and fault injection have found in the newer families: logs, vocoders, models of images and speech."""

import errno
import io
import json
import lzma
import os
import tempfile
import tracemalloc
from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from heed import loading
from heed.audio.files import Bounds, decode, wav_bytes
from heed.convert import hifi_gan
from heed.data.audio.stored_features import open_features, opened
from heed.data.interactions.config import InteractionsConfig
from heed.data.interactions.log import open_log
from heed.files import sha256
from heed.models import MODELS, folder
from heed.models.folder import outline
from heed.models.hifi_gan import HiFiGAN
from heed.models.package import Package
from heed.nn import pixel_context
from heed.vocabularies.characters import Characters
from heed.vocabularies.histories import Histories
from heed.vocabularies.images import Images
from heed.vocabularies.items import Items
from heed.vocabularies.sound import FeatureSettings, SoundFeatures
from tests.service.recommenders import histories


def read_log(path):
    with open_log(InteractionsConfig([str(path)])):
        pass


def test_a_log_without_rows_is_said_to_have_none(tmp_path):
    (tmp_path / "a.csv").write_text("user,item\n", encoding="utf-8", newline="\n")
    with pytest.raises(ValueError, match=r"a\.csv: no interactions"):
        read_log(tmp_path / "a.csv")


def test_a_parquet_file_that_is_damaged_in_its_rows_is_named(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"user": [f"user {i}" for i in range(50)], "item": [f"item {i % 3}" for i in range(50)]})
    parquet.write_table(table, tmp_path / "a.parquet", compression="none")
    data = bytearray((tmp_path / "a.parquet").read_bytes())
    data[4:60] = b"\xff" * 56  # the footer, which is read first, is at the end
    (tmp_path / "a.parquet").write_bytes(data)
    with pytest.raises(ValueError, match=r"a\.parquet is not valid Parquet: ") as caught:
        read_log(tmp_path / "a.parquet")
    assert caught.type is ValueError


def write_vocoder(folder, **changes):
    facts = {
        "num_mels": 4, "sampling_rate": 8000, "upsample_initial_channel": 4, "upsample_rates": [2], "upsample_kernel_sizes": [4],
        "resblock_kernel_sizes": [3], "resblock_dilation_sizes": [[1]], "n_fft": 64, "fmin": 0, "fmax": None,
    }  # fmt: skip
    save_file(HiFiGAN(hifi_gan._config(facts, "")).state_dict(), folder / "generator.safetensors")
    (folder / "config.json").write_text(json.dumps({**facts, **changes}), encoding="utf-8", newline="\n")


@pytest.mark.parametrize("name", ["n_fft", "win_size", "fmin"])
def test_a_vocoder_states_numbers(tmp_path, name):
    write_vocoder(tmp_path, **{name: 60})
    hifi_gan.read(tmp_path)
    for value in ("x", None, float("inf"), float("nan"), 10**400, True):
        write_vocoder(tmp_path, **{name: value})
        with pytest.raises(ValueError, match="must be numbers up to"):
            hifi_gan.read(tmp_path)


@pytest.mark.parametrize(
    ("name", "values", "says"),
    [
        ("vit", {"patch": 0}, "patch is 0; it must be at least 1"),
        ("vit", {"init_std": 0.0}, "init_std is 0; it must be above 0"),
        ("image-transformer", {"context": 1000}, "context is 1000; it must be from 0 to 15"),
        ("image-transformer", {"size": 8, "small": 16}, "small is 16; it must be smaller than the 8 pixels"),
        ("image-transformer", {"size": 8, "small": 3}, "small is 3; it must be smaller than the 8 pixels of a side and divide"),
    ],
)  # fmt: skip
def test_sizes_that_no_image_model_can_have_are_refused(name, values, says):
    with pytest.raises(ValueError, match=says):
        MODELS[name].config(**values)


@pytest.mark.parametrize(
    ("values", "pairs"),
    [
        ({"size": 8192}, 8192**2 * 768),
        ({"size": 512, "query_block": 512**2}, 512**4),
        ({"attention": "2d", "size": 4096, "memory_rows": 4000}, 4096**2 * 4008 * 24),
    ],
)
def test_a_mask_of_gigabytes_is_refused(values, pairs):
    system = MODELS["image-transformer"]
    with pytest.raises(ValueError, match=f"would attend to {pairs:,} others in all"):
        outline(system.model, system.config(dim=8, heads=2, hidden=8, layers=1, **values))


def test_opening_weights_does_not_compute_where_training_begins(tmp_path, monkeypatch):
    system, small = MODELS["image-transformer"], {"dim": 8, "heads": 2, "hidden": 8, "layers": 1, "small_layers": 1}
    own = system.model(system.config(size=4, small=2, context=1, **small))
    assert own.context.predict.weight.abs().max() > 0.1
    folder.save(tmp_path, own, {})

    def refuse(*_):
        raise AssertionError("the weights are in the file")

    monkeypatch.setattr(pixel_context, "best_weights", refuse)
    found = folder.load(tmp_path)
    assert torch.equal(found.context.predict.weight, own.context.predict.weight)
    outline(system.model, system.config(size=32, small=2, **small))


def test_a_model_of_text_with_processors_of_images_is_refused(tmp_path):
    sound, letters = SoundFeatures(FeatureSettings(mels=10)), Characters(list("ab c"))
    system = MODELS["speech-transformer"]
    small = {"dim": 8, "heads": 2, "hidden": 8, "encoder_layers": 1, "decoder_layers": 1, "channels": 2}
    model = system.model(system.config(vocab_size=len(letters), inputs=10, **small))
    loading.write_package(Package(model, "speech-recognition", {"sound": sound, "target": letters}, {}), tmp_path)
    path = tmp_path / "config.json"
    facts = {**json.loads(path.read_text("utf-8")), "task": {"name": "image-generation"}}
    facts["processors"] = {"images": Images(8, 1, (0.5,), (0.5,)).write(tmp_path)}
    del facts["sha256"]
    path.write_text(json.dumps(facts), encoding="utf-8", newline="\n")
    with pytest.raises(ValueError, match="its task is 'image-generation', which a SpeechTransformer does not support"):
        loading.load(tmp_path, "cpu", "torch")


def test_sizes_that_no_weights_have_are_refused(tmp_path):
    letters, sound = Characters(list("ab c")), SoundFeatures(FeatureSettings(mels=10))
    small = {"dim": 8, "heads": 2, "hidden": 8, "encoder_layers": 1, "decoder_layers": 1, "channels": 2}
    system = MODELS["speech-transformer"]
    model = system.model(system.config(vocab_size=len(letters), inputs=10, **small))
    loading.write_package(Package(model, "speech-recognition", {"sound": sound, "target": letters}, {}), tmp_path)
    path = tmp_path / "config.json"
    facts = json.loads(path.read_text("utf-8"))
    del facts["sha256"]
    for values, says in (
        ({"inputs": 0}, "no model can be built with these settings"),
        ({"attention_2d": 100_000}, "attention_2d is 100000, but there are only"),
    ):
        changed = {**facts, "model": {**facts["model"], **values}}
        path.write_text(json.dumps(changed), encoding="utf-8", newline="\n")
        with pytest.raises(ValueError, match=says):
            loading.load(tmp_path, "cpu", "torch")


def test_histories_of_endless_items_are_refused(tmp_path):
    facts = {**histories().write(tmp_path), "known": float("inf")}
    with pytest.raises(ValueError, match=r"histories\.safetensors is damaged"):
        Histories.read(tmp_path, facts, "histories")


def test_a_resumed_run_replaces_damaged_histories(tmp_path):
    first = histories()
    facts, path = first.write(tmp_path), tmp_path / "histories.safetensors"
    whole = path.read_bytes()
    for own in (first, histories()):
        path.write_bytes(whole[:-1] + b"x")
        assert own.write(tmp_path) == facts and path.read_bytes() == whole
    assert Histories.read(tmp_path, facts, "histories").names == first.names


def test_items_that_are_no_text_are_refused(tmp_path):
    facts = Items(["tea", "soap"]).write(tmp_path)
    assert Items.read(tmp_path, facts, "items").names == ["tea", "soap"]
    (tmp_path / "items.txt").write_bytes(b"tea\n\xff\n")
    with pytest.raises(ValueError, match=r"items\.txt is not UTF-8"):
        Items.read(tmp_path, {**facts, "sha256": sha256(tmp_path / "items.txt")}, "items")


def test_a_vocoder_of_frames_beyond_64_bits_is_refused(tmp_path):
    write_vocoder(tmp_path, model_in_dim=10**30)
    with pytest.raises(ValueError, match=r"config\.json: no model can be built with these settings"):
        hifi_gan.read(tmp_path)


@pytest.mark.parametrize("suffix", ["npy", "npy.xz"])
def test_stored_features_take_the_memory_of_their_file(tmp_path, suffix):
    path, pack = tmp_path / f"mfcc13_x256.{suffix}", lzma.compress if suffix.endswith("xz") else bytes
    for order in ("C", "F"):
        array, data = np.arange(39, dtype=np.int16).reshape(13, 3, order=order), io.BytesIO()
        np.save(data, array)
        path.write_bytes(pack(data.getvalue()))
        opened.cache_clear()
        np.testing.assert_array_equal(open_features(path).frames(0, 13), array / np.float32(256))
    path.write_bytes(pack(data.getvalue().replace(b"(13, 3), }        ", b"(9999999, 9999), }")))
    opened.cache_clear()
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"declares 99,989,990,001 values and has"):
        open_features(path)
    assert tracemalloc.get_traced_memory()[1] < 50_000_000
    tracemalloc.stop()


@pytest.mark.parametrize("suffix", ["npy", "npy.xz"])
def test_stored_features_are_not_read_into_memory(tmp_path, suffix):
    path, pack = tmp_path / f"mfcc_x4.{suffix}", partial(lzma.compress, preset=0) if suffix.endswith("xz") else bytes
    array, data = np.zeros((1_000_000, 8), np.int16), io.BytesIO()
    array[999_990] = 5
    np.save(data, array)
    for more, says in ((b"", ""), (bytes(9_000_000), "it declares 8,000,000 values and has more")):
        path.write_bytes(pack(data.getvalue() + more))
        opened.cache_clear()
        tracemalloc.start()
        if says:
            with pytest.raises(ValueError, match=says):
                open_features(path)
        else:
            assert open_features(path).frames(999_989, 2).tolist() == [[0.0] * 8, [1.25] * 8]
        assert tracemalloc.get_traced_memory()[1] < 8_000_000  # half of the array
        tracemalloc.stop()


def test_a_full_disk_is_no_damage(tmp_path, monkeypatch):
    path = tmp_path / "mfcc.npy.xz"
    with lzma.open(path, "wb") as file:
        np.save(file, np.zeros((9, 3)))

    def full():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with pytest.raises(
        ValueError, match=r"cannot be read \(No space left on device\); .* set TMPDIR to another folder"
    ):
        open_features(path)


def test_the_header_of_stored_features_takes_the_memory_of_their_file(tmp_path):
    path = tmp_path / "mfcc13_x256.npy"
    for data, says in (
        (
            b"\x93NUMPYtransformer",
            r"mfcc13_x256\.npy is damaged, .*\(its format has version 116\.114, and 1 to 3 are known",
        ),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\x7f{'descr': '<i2'", r"mfcc13_x256\.npy is damaged, .*\(EOF: reading array"),
    ):
        path.write_bytes(data)
        opened.cache_clear()
        tracemalloc.start()
        with pytest.raises(ValueError, match=says):
            open_features(path)
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
        tracemalloc.stop()


@pytest.mark.parametrize("part", [b"data", b"fmt "])
def test_a_recording_takes_the_memory_of_its_file(tmp_path, part):
    data = wav_bytes(np.zeros(800), 8000)
    at = data.index(part) + 4
    (tmp_path / "a.wav").write_bytes(data[:at] + b"\xff\xff\xff\x7f" + data[at + 4 :])
    tracemalloc.start()
    with open(tmp_path / "a.wav", "rb") as file, nullcontext() if part == b"data" else pytest.raises(ValueError):
        assert len(decode(file, "a.wav", Bounds(seconds=60.0)).samples) == 800
    assert tracemalloc.get_traced_memory()[1] < 50_000_000
    tracemalloc.stop()

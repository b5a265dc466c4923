"""Recordings and their texts: manifests, features in the cache, batches."""

import lzma
import os
import threading
from itertools import islice

import numpy as np
import pytest
import torch

from heed.audio.files import write_wav
from heed.data.audio import manifests
from heed.data.audio.batches import SpecAugment, Speech, SpeechBatches, collate
from heed.data.audio.config import AudioConfig
from heed.data.audio.prepare import _in_order, computed, features_of, prepare
from heed.data.audio.stored_features import open_features
from heed.vocabularies.sound import FeatureSettings, SoundFeatures
from heed.vocabularies.vocabulary import SpecialTokens

SPECIAL = SpecialTokens(pad=0, unknown=1, first=2, last=3)


def quiet(what, done):
    pass


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Six recordings of different lengths, in the forms of a table, LJSpeech and FSDD; and stored features."""
    made = tmp_path_factory.mktemp("recordings")
    (made / "wavs").mkdir()
    for i in range(6):
        tone = 0.4 * np.sin(np.arange(1600 + 900 * i) * 0.1 * (1 + i % 3))
        for name in (f"wavs/r{i}.wav", f"{i}_ann_{2 * i}.wav"):
            write_wav(made / name, tone, 8000)
    rows = [f"r{i}|Number {i}|number {['one', 'two', 'three', 'four', 'five', 'six'][i]}" for i in range(6)]
    (made / "metadata.csv").write_text("\n".join(rows) + "\n", "utf-8")
    (made / "table.tsv").write_text("".join(f"wavs/r{i}.wav\ttext  {i}\n" for i in range(6)) + "\n", "utf-8")
    stored = made / "stored"
    stored.mkdir()
    values = np.arange(13 * 50).reshape(13, 50)
    with lzma.open(stored / "mfcc13_int16_x256.npy.xz", "wb") as file:
        np.save(file, values.astype(np.int16))
    (stored / "index.tsv").write_text("train\ta\t0\t30\tYES\ntest\tb\t30\t20\tNO\n", "utf-8")
    return made


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HEED_CACHE", str(tmp_path / "cache"))


def test_a_table_ljspeech_fsdd_and_stored_features_are_read(folder):
    table = manifests.read(str(folder / "table.tsv"))
    assert [own.text for own in table] == [f"text {i}" for i in range(6)]
    assert table[0].path == folder / "wavs" / "r0.wav"
    found = manifests.read(str(folder / "metadata.csv"))
    assert found[3].text == "number four" and found[3].path.name == "r3.wav"
    assert manifests.read(str(folder)) == found
    for split, texts in (("train", ["three", "four", "five"]), ("test", ["zero", "one", "two"])):
        assert [own.text for own in manifests.read(str(folder), "fsdd", split)] == texts
    assert len(manifests.read(str(folder), "fsdd", "all")) == 6
    (own,) = manifests.read(str(folder / "stored"), split="test")
    assert (own.name, own.text, own.frames) == ("b", "NO", (30, 20))
    features = features_of(AudioConfig([str(folder / "stored")]), [own])
    assert features.settings.kind == "given" and len(features) == 13
    np.testing.assert_allclose(computed(own, features)[0], np.arange(650).reshape(13, 50).T[30:] / 256)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("wavs/r0.wav\thello\nwavs/none.wav\thi\n", r"1 of 2 recordings are missing: .*none.wav"),
        ("wavs/r0.wav hello\n", "line 1: the format is path, tab, text and,"),
        ("wavs/r0.wav\t \n", "line 1: the format is path, tab, text and,"),
        ("\n", "no recording has a text"),
    ],
)
def test_a_table_with_faults_is_refused(folder, tmp_path, text, words):
    (folder / "faulty.tsv").write_text(text, "utf-8")
    with pytest.raises(ValueError, match=words):
        manifests.read(str(folder / "faulty.tsv"))


def test_other_faults_are_refused(folder, tmp_path):
    with pytest.raises(ValueError, match="has neither metadata"):
        manifests.read(str(tmp_path))
    with pytest.raises(ValueError, match=r"data.split is 'dev'; .* has test, train and all"):
        manifests.read(str(folder / "stored"), split="dev")
    with pytest.raises(ValueError, match=r"data.split is 'dev'; .* has train, test and all"):
        manifests.read(str(folder), "fsdd", "dev")
    with pytest.raises(ValueError, match="mixes recordings and stored features"):
        both = manifests.read(str(folder)) + manifests.read(str(folder / "stored"))
        features_of(AudioConfig(["x"]), both)
    with pytest.raises(ValueError, match=r"data.rate is 10; it must be from 1,000"):
        AudioConfig(["x"], rate=10)
    for kind, name in (("fbank", "mels"), ("mfcc", "cepstra")):
        with pytest.raises(ValueError, match=rf"^data\.{name} is 2000; it must be from 1 to 1,024$"):
            AudioConfig(["x"], features=kind, **{name: 2000})
    with pytest.raises(ValueError, match=r"data\.audio is empty: give"):
        AudioConfig()
    with pytest.raises(ValueError, match=r"data.speeds is \[3.0\]"):
        AudioConfig(["x"], speeds=[3.0])


@pytest.fixture
def speech(folder, cache):
    utterances = manifests.read(str(folder / "table.tsv"))
    features = SoundFeatures(FeatureSettings(rate=8000, mels=10))
    key, corpus = prepare(utterances, features, quiet, speeds=[1.0, 1.1])
    return features, key, corpus, utterances


def test_features_are_computed_once_and_kept(speech, monkeypatch):
    features, key, corpus, utterances = speech
    assert len(corpus) == 12 and corpus.facts["recordings"] == 6
    for i, own in enumerate(utterances):
        for j, expected in enumerate(computed(own, features, [1.0, 1.1])):
            np.testing.assert_array_equal(corpus.frames(2 * i + j), expected)
    monkeypatch.setattr("heed.data.audio.prepare.computed", None)  # it is not called again
    again_key, again = prepare(utterances, features, quiet, speeds=[1.0, 1.1])
    assert again_key == key and again.folder == corpus.folder
    every = np.asarray(corpus.values, dtype=np.float64)
    np.testing.assert_allclose(corpus.moments[0], every.mean(axis=0))
    np.testing.assert_allclose(corpus.moments[1], every.std(axis=0), rtol=1e-6)


def test_damaged_features_are_computed_again(speech):
    features, _, corpus, utterances = speech
    expected, path, said = corpus.frames(0), corpus.folder / "features.f32", []
    damaged = bytearray(path.read_bytes())
    damaged[5] ^= 1
    path.write_bytes(damaged)
    _, again = prepare(utterances, features, lambda what, done: said.append((what, done)), speeds=[1.0, 1.1])
    np.testing.assert_array_equal(again.frames(0), expected)
    assert [done for what, done in said if what == "computing features"] == [0], "of few there is nothing more to tell"
    assert any("features.f32 has changed since it was written" in what and done is None for what, done in said)


def test_long_recordings_are_left_out_and_counted(folder, cache):
    utterances = manifests.read(str(folder / "table.tsv"))
    _, corpus = prepare(utterances, SoundFeatures(FeatureSettings(rate=8000, mels=10)), quiet, longest=0.5)
    assert corpus.facts["left_out"] == 3 and corpus.facts["recordings"] == len(corpus) == 3
    with pytest.raises(ValueError, match="all 6 recordings are longer than data\\.max_seconds"):
        prepare(utterances, SoundFeatures(FeatureSettings(rate=8000, mels=10)), quiet, longest=0.01)


@pytest.mark.parametrize("way", ["renamed", "in place"])
def test_stored_features_that_are_replaced_are_read_anew(tmp_path, way):
    """By the same process, which keeps the last file open."""
    path, new = tmp_path / "mfcc_x1.npy.xz", tmp_path / "new.npy.xz"
    for number, own in enumerate((path, new)):
        with lzma.open(own, "wb") as file:
            np.save(file, np.full((2, 9), number, np.int16))
    assert open_features(path) is open_features(path)
    assert open_features(path).frames(0, 9).sum() == 0
    if way == "renamed":
        os.replace(new, path)
    else:
        times = path.stat()
        path.write_bytes(new.read_bytes())
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns + 1))
    assert open_features(path).frames(0, 9).sum() == 18


def batches(speech, **more):
    features, _, corpus, _ = speech
    ids = [[4 + i % 3] * (1 + i % 2) for i in range(len(corpus))]
    options = {"budget": 120, "seed": 3, **more}
    return SpeechBatches(Speech(corpus, np.arange(len(corpus)), ids), features, SPECIAL, **options)


def test_batches_hold_each_recording_once_an_epoch_within_the_budget(speech):
    made = batches(speech)
    planned = made.plan(0)
    assert sorted(np.concatenate(planned).tolist()) == list(range(12))
    for (_, batch), rows in zip(made.start(), planned, strict=False):
        count, frames, size = batch.features.shape
        assert count == len(rows) and (count * frames <= 120 or count == 1) and size == 10
        for row, i in enumerate(rows):
            length = batch.frame_counts[row]
            right = made.features.normalized(made.corpus.frames(int(i)))
            np.testing.assert_allclose(batch.features[row, :length], right)
            assert not batch.features[row, length:].any()
            assert batch.target[row].tolist()[: len(made.texts[i]) + 1] == [2, *made.texts[i]]
        assert batch.labels.tolist() == [token for i in rows for token in made.texts[i]]
        assert batch.expected.tolist() == [token for i in rows for token in (*made.texts[i], 3)]


def test_batches_from_a_position_on_are_those_of_a_whole_run(speech):
    made = batches(speech, augment=SpecAugment(1, 0.3, 1, 5, 0.3))
    whole = list(islice(made.start(), 12))
    position = whole[6][0]
    for (one, batch), (other, again) in zip(whole[7:], made.start(position), strict=False):
        assert one == other
        torch.testing.assert_close(batch.features, again.features, rtol=0, atol=0)


def test_the_parts_of_two_processes_are_the_whole(speech):
    whole = batches(speech)
    for position, rows in enumerate(whole.plan(0)):
        parts = [batches(speech, share=(rank, 2)).make(rows, (0, position)) for rank in range(2)]
        assert sum(len(part.expected) for part in parts) == len(whole.make(rows, (0, position)).expected)
        assert sum(sum(part.label_counts) for part in parts) == sum(len(whole.texts[i]) for i in rows)


def test_masks_are_within_their_bounds():
    augment, random = SpecAugment(bands=1, band=0.5, stretches=1, stretch=6, share=0.2), np.random.default_rng(0)
    widest = longest = 0
    for _ in range(300):
        frames = np.ones((20, 8), dtype=np.float32)
        augment(frames, random)
        widest = max(widest, int((frames == 0).all(axis=0).sum()))
        longest = max(longest, int((frames == 0).all(axis=1).sum()))
    assert (widest, longest) == (4, 4)  # half of 8, a fifth of 20


def test_normalized_features_have_mean_0_and_deviation_1():
    frames = np.random.default_rng(0).normal(3, 2, (50, 4)).astype(np.float32)
    own = SoundFeatures(FeatureSettings("given", given=4)).normalized(frames)
    np.testing.assert_allclose(own.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(own.std(axis=0), 1, atol=1e-5)
    over = SoundFeatures(FeatureSettings("given", given=4, normalize="corpus"), [3.0] * 4, [2.0] * 4)
    np.testing.assert_allclose(over.normalized(frames), (frames - 3) / 2, rtol=1e-6)
    assert SoundFeatures.read(over.facts(), "here").facts() == over.facts()
    with pytest.raises(ValueError, match=r"here.mean must be a list of 4 numbers"):
        SoundFeatures.read({**over.facts(), "mean": [1.0]}, "here")


def test_texts_of_different_lengths_are_collated():
    frames = [np.ones((3, 2), dtype=np.float32), np.ones((2, 2), dtype=np.float32)]
    batch = collate(frames, [[5], [6, 7]], SPECIAL)
    assert batch.target.tolist() == [[2, 5, 0], [2, 6, 7]]
    assert batch.expected.tolist() == [5, 3, 6, 7, 3] and batch.positions.tolist() == [0, 1, 3, 4, 5]
    assert batch.labels.tolist() == [5, 6, 7] and batch.label_counts == [1, 2] and batch.frame_counts == [3, 2]


def test_the_first_recording_is_computed_before_threads_start(monkeypatch):
    """The first use of MKL's vector functions by two threads at once gives other values, in one of a hundred runs."""
    order, own = [], threading.get_ident()
    monkeypatch.setattr(
        "heed.data.audio.prepare.computed", lambda name, *_: order.append((name, threading.get_ident() == own))
    )
    found = [name for name, _ in _in_order([*"abcdef"], None, (1.0,))]
    assert found == [*"abcdef"] and order[0] == ("a", True)
    assert sorted(order[1:]) == [(name, False) for name in "bcdef"]
    assert [*_in_order([], None, (1.0,))] == []

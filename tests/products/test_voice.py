"""A voice: what must not matter to what is spoken, and the command."""

import numpy as np
import pytest

from heed.audio.files import read
from heed.cli.main import main
from heed.data.audio import manifests
from heed.loading import load, write_package
from heed.models.package import Package
from tests.service.http.test_audio import voice as made


@pytest.fixture(scope="module")
def voice():
    return made()


@pytest.fixture(scope="module")
def folder(voice, tmp_path_factory):
    path = tmp_path_factory.mktemp("voice")
    processors = {"sound": voice.sound, "text": voice.vocabulary, "speakers": voice.speakers}
    write_package(Package(voice.model, "speech-synthesis", processors, voice.facts), path)
    return path


def test_what_shares_a_batch_does_not_matter(voice):
    texts = ["hello.", "hello hello hello.", "안녕 hello"]
    together = voice.speak(texts)
    for text, own in zip(texts, together, strict=True):
        (alone,) = voice.speak([text])
        assert own.ended == alone.ended and len(own.frames) == len(alone.frames)
        np.testing.assert_allclose(own.frames, alone.frames, atol=1e-4)
    assert np.array_equal(voice.speak(["hello."])[0].sound.samples, voice.speak(["hello."])[0].sound.samples)
    assert not np.allclose(*(voice.speak(["hello."], who)[0].frames[:4] for who in ("ann", "bob")))


def test_attention_is_over_the_letters_of_the_text(voice):
    (own,) = voice.speak(["hello."])
    found = voice.attention("hello.", own.frames)
    assert found.shape == (len(own.frames) // 2, 7)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-5)


def test_a_folder_is_opened_as_the_voice_that_was_written(voice, folder):
    (one,), (other,) = voice.speak(["hello."], "bob"), load(folder, "cpu").speak(["hello."], "bob")
    np.testing.assert_array_equal(one.frames, other.frames)


def test_a_text_and_lines_are_spoken_into_files(folder, tmp_path, capsys):
    out = tmp_path / "a.wav"
    arguments = [
        "speak",
        str(folder),
        "hello.",
        "--out",
        str(out),
        "--picture",
        str(tmp_path / "a.png"),
        "--device",
        "cpu",
    ]
    assert main(arguments) == 0
    assert read(out).rate == 8000 and (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    (tmp_path / "lines.txt").write_text("hello.\n\n안녕 hello\n", "utf-8")
    assert main(["speak", str(folder), "--lines", str(tmp_path / "lines.txt"), "--out", str(tmp_path / "said")]) == 0
    assert [own.text for own in manifests.read(str(tmp_path / "said" / "manifest.tsv"))] == ["hello.", "안녕 hello"]
    assert "2 recordings in " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "nothing to speak: give a text, or --lines FILE"),
        (["hello.", "--speaker", "eve"], "'eve' is not one of the speakers 'ann', 'bob'"),
        (["#"], "text 1 has nothing the model can speak"),
        (["hello.", "--picture", "a.pdf"], "'a.pdf' must end in .png or .svg"),
        (["--lines", "x", "--picture", "a.png"], "--picture is for one text: leave out --lines"),
    ],
)
def test_what_cannot_be_spoken_is_said(folder, tmp_path, capsys, words, said):
    assert main(["speak", str(folder), *words, "--out", str(tmp_path / "a.wav"), "--device", "cpu"]) == 1
    assert said in capsys.readouterr().err

"""heed classify, embed and score of a file: what they say of all texts at once, also after they were killed."""

import os

import numpy as np
import pytest

from heed.cli import score_lines, translate
from heed.cli.main import main
from heed.loading import load
from heed.products import text_batches
from tests.bulk.killing import killed_and_resumed
from tests.convert.small import pairs

PAIRS = pairs()[:9]
TEXTS = [source for source, _ in PAIRS]


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(text_batches, "CHUNK", 4)
    monkeypatch.setattr(score_lines, "CHUNK", 4)


@pytest.fixture
def files(tmp_path):
    for name, texts in zip(("source", "target"), zip(*PAIRS, strict=True), strict=True):
        (tmp_path / name).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8", newline="\n")
    return tmp_path


def test_labels(classifier_folder, files, monkeypatch, capsys):
    words = ["classify", str(classifier_folder), "--scores", "--device", "cpu"]
    assert main([*words, *TEXTS]) == 0
    expected = capsys.readouterr().out
    assert main([*words, "--input", str(files / "source")]) == 0
    assert capsys.readouterr().out == expected
    killed_and_resumed([*words, "--input", str(files / "source"), "--out", str(files / "out")], monkeypatch)
    assert (files / "out").read_text("utf-8") == expected
    assert sorted(os.listdir(files)) == ["out", "source", "target"]


def test_vectors(encoder_folder, files, monkeypatch, capsys):
    words = ["embed", str(encoder_folder), "--device", "cpu"]
    assert main([*words, *TEXTS, "--out", str(files / "all.npy")]) == 0
    killed_and_resumed([*words, "--input", str(files / "source"), "--out", str(files / "out.npy")], monkeypatch)
    assert (files / "out.npy").read_bytes() == (files / "all.npy").read_bytes()
    vectors = np.load(files / "out.npy")
    assert np.array_equal(vectors, load(encoder_folder, "cpu", verb="embed").embed(TEXTS))
    assert "9 texts, vectors of " in capsys.readouterr().err


def test_scores_and_the_perplexity_of_all(translator_folder, files, monkeypatch, capsys):
    words = ["score", str(translator_folder), "--source", str(files / "source"), "--target", str(files / "target")]
    assert main([*words, "--device", "cpu"]) == 0
    expected, said = capsys.readouterr()
    found = load(translator_folder, "cpu", "torch").score(*map(list, zip(*PAIRS, strict=True)))
    assert [float(line) for line in expected.splitlines()] == pytest.approx([own.logp for own in found], abs=1e-3)
    killed_and_resumed([*words, "--device", "cpu", "--out", str(files / "out")], monkeypatch)
    assert (files / "out").read_text("utf-8") == expected
    assert capsys.readouterr().err.splitlines()[-1] == said.splitlines()[-1]
    assert said.startswith("9 pairs, ")


def test_an_evaluation_scores_what_heed_translate_gives(translator_folder, files, monkeypatch, capsys):
    monkeypatch.setattr(translate, "CHUNK", 4)
    words = [str(translator_folder), "--engine", "torch", "--device", "cpu"]
    assert main(["translate", *words, "--input", str(files / "source")]) == 0
    expected = capsys.readouterr().out
    both = ["--source", str(files / "source"), "--reference", str(files / "target")]
    assert main(["evaluate", *words, *both, "--out", str(files / "out")]) == 0
    assert (files / "out").read_text("utf-8") == expected
    direct = load(translator_folder, "cpu", "torch").translate(TEXTS)
    assert expected.splitlines() == [own.text for own in direct]


def test_a_text_too_long_is_told_by_its_own_number(classifier_folder, encoder_folder, files, capsys):
    (files / "source").write_text(
        "".join(f"{text}\n" for text in [*TEXTS, "한 " * 900]), encoding="utf-8", newline="\n"
    )
    for verb, folder, out in (("classify", classifier_folder, "out"), ("embed", encoder_folder, "out.npy")):
        words = [verb, str(folder), "--input", str(files / "source"), "--out", str(files / out), "--device", "cpu"]
        assert main(words) == 1
        assert capsys.readouterr().err.startswith("heed: text 10 has ")
        assert out not in os.listdir(files) and f"{out}.part" in os.listdir(files), "what was finished is kept"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["classify", "--resume", "text"], "it needs --input FILE, without --reference, and --out FILE"),
        (["embed", "--resume", "--out", "a.npy", "text"], "it needs --input FILE and --out FILE"),
        (
            ["score", "--resume", "--source", "source", "--target", "target"],
            "it needs --source FILE, --target FILE and --out FILE",
        ),
    ],
)
def test_resume_needs_files(
    classifier_folder, encoder_folder, translator_folder, files, capsys, monkeypatch, words, says
):
    monkeypatch.chdir(files)
    folder = {"classify": classifier_folder, "embed": encoder_folder, "score": translator_folder}[words[0]]
    assert main([words[0], str(folder), *words[1:], "--device", "cpu"]) == 1
    assert says in capsys.readouterr().err

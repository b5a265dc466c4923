"""heed report, and the report at the end of heed train."""

import os
import re
import shutil
from itertools import product
from pathlib import Path

import pytest

from heed.cli.main import main
from heed.runs import final_validation
from heed.runs.recipe import read
from heed.runs.report.collect import Options, collect, run_before, training_text
from tests.cli.conftest import sets

OVERLAP = ["--set", "filters.overlap=false"]  # one pair is in both, which the report tells
SMALL = ["subwords.size=300", "model.dim=16", "model.heads=2", "model.hidden=32", "model.encoder_layers=1",
         "model.decoder_layers=1", "training.threads=1", "training.steps=4", "training.valid_every=2",
         "training.log_every=1", "training.batch_tokens=200", "decoding.max_length=12"]  # fmt: skip
WORDS = {"der Hund": "the dog", "ein Kind": "a child", "das Meer": "the sea", "7 Häuser": "7 houses", "wir": "we"}
PAIRS = [
    (f"{a} und {b} sehen {c}.", f"{WORDS[a]} and {WORDS[b]} see {WORDS[c]}.") for a, b, c in product(WORDS, repeat=3)
]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of four steps, its data and its cache beside it."""
    root = tmp_path_factory.mktemp("report")
    for name, own in (("train", PAIRS[25:]), ("valid", PAIRS[:26])):
        for side, ending in enumerate(("de", "en")):
            (root / f"{name}.{ending}").write_text("".join(pair[side] + "\n" for pair in own), "utf-8")
    files = ["--source", "train.de", "--target", "train.en", "--valid-source", "valid.de", "--valid-target", "valid.en"]
    files = [word if word.startswith("--") else str(root / word) for word in files]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEED_CACHE", str(root / "cache"))
        assert main(["train", *files, "--out", str(root / "runs" / "now"), "--quiet", *sets(SMALL), *OVERLAP]) == 0
    return root / "runs" / "now"


@pytest.fixture(autouse=True)
def cache(run, monkeypatch):
    monkeypatch.setenv("HEED_CACHE", str(run.parent.parent / "cache"))


@pytest.fixture
def copy(run, tmp_path):
    """The same run elsewhere, to be changed."""
    return Path(shutil.copytree(run, tmp_path / "copy", ignore=shutil.ignore_patterns("checkpoints")))


def test_training_ends_with_a_report(run):
    page = (run / "report.html").read_text("utf-8")
    kept = final_validation.read(run)
    assert [row[:2] for row in kept.outputs] == PAIRS[:26]
    assert "What to try next" in page and "Every sentence" in page and "By word" in page
    assert f"{kept.scores['chrf']:.1f}" in re.search(r"<h3>chrF2</h3>.*?</p>", page)[0]
    says = "On the validation set, the model was trained on texts of 1 of 26 test pairs (1 source, 1 reference): scores"
    assert says in page and "(3.8% of the pairs)" in page and "<b>1</b><small>pairs with a side in the training" in page


def test_what_is_kept_is_what_the_model_says_now(copy):
    kept = collect(copy, Options(against=""))
    (copy / final_validation.FILE).unlink()
    anew = collect(copy, Options(against="", device="cpu"))
    assert anew.sentences == kept.sentences and anew.analysis == kept.analysis and anew.data == kept.data
    assert anew.final == pytest.approx(kept.final)


def test_the_run_before_is_found_and_compared(copy):
    before = Path(shutil.copytree(copy, copy.parent / "before"))
    os.utime(before / final_validation.FILE, (1, 1))
    outputs = final_validation.read(copy).outputs
    assert run_before(copy, outputs) == str(before) and run_before(before, outputs) is None
    assert run_before(copy, outputs[1:]) is None  # other sentences
    found = collect(copy, Options()).against
    assert found.name == "before" and found.comparison.lines == 26 and found.comparison.chrf.p_value == 1
    assert collect(copy, Options(against="")).against is None


def test_a_test_set_and_another_run(run, tmp_path, capsys):
    (tmp_path / "a.de").write_text("der Hund\nwir\n", "utf-8")
    (tmp_path / "a.en").write_text("the dog\nwe\n", "utf-8")
    pair = ["--source", str(tmp_path / "a.de"), "--reference", str(tmp_path / "a.en")]
    out = tmp_path / "deep" / "page.html"
    assert main(["report", str(run), *pair, "--against", str(run), "--out", str(out), "--threads", "1"]) == 0
    assert capsys.readouterr().out.strip() == str(out)
    page = out.read_text("utf-8")
    assert "Scores on the validation set" in page and "Scores on the test set" in page and "On the test set." in page
    assert "No clear difference from now" in page


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["nowhere"], "nowhere: no such folder"),
        (["RUN/model"], "is not a run: it has no recipe.toml; give a folder written by heed train"),
        (["RUN", "--source", "RUN/recipe.toml"], "give both --source FILE and --reference FILE"),
        (["RUN", "--source", "RUN/recipe.toml", "--reference", "RUN/log.jsonl"], "they must correspond line by line"),
        (["RUN", "--out", "RUN"], "is a folder: give the name of a file"),
        (["RUN", "--tokenize", "none-such"], "sacreBLEU supports"),
    ],
)
def test_errors_say_what_is_wrong(run, capsys, words, error):
    assert main(["report", *(word.replace("RUN", str(run)) for word in words)]) == 1
    assert error in " ".join(capsys.readouterr().err.split())


def test_without_its_training_text_a_report_says_so(copy):
    _, recipe = (copy / "recipe.toml").read_text("utf-8").split("\n", 1)  # without its hash
    (copy / "recipe.toml").write_text(recipe.replace("train.de", "gone.de"), "utf-8")
    found = collect(copy, Options())
    assert found.text is None and found.analysis.words == () and found.sets
    (note,) = found.notes
    assert note.startswith("The training text could not be read again (") and "gone.de: no such file" in note


def test_words_are_counted_in_what_was_trained_on(run):
    recipe = read(run / "recipe.toml", [], saved=True)
    prepared = recipe.task.prepare(recipe, None, lambda what, done: None)
    found = training_text(prepared, ["the dog never", "zzz sea"])
    trained = [word.strip(".") for _, text in PAIRS[25:] for word in text.split()]
    assert found.frequencies == {word: trained.count(word) for word in ("the", "dog", "never", "zzz", "sea")}
    assert (found.pairs, found.counted) == (100, 100)


def test_a_language_model_has_a_report_too_and_none_is_written_unasked(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("HEED_CACHE", str(tmp_path / "cache"))
    (tmp_path / "text").write_text("".join(f"the cat number {n} sat on mat {n % 7}\n" for n in range(300)), "utf-8")
    small = ["model.name=rnn-lm", "model.dim=8", "model.hidden=8", "subwords.kind=words", "training.threads=1",
             "training.steps=4", "training.valid_every=2", "training.log_every=1"]  # fmt: skip
    run = tmp_path / "language"
    assert main(["train", "--source", str(tmp_path / "text"), "--out", str(run), "--quiet", *sets(small)]) == 0
    assert not (run / "report.html").exists()
    assert main(["report", str(run)]) == 0
    page = (run / "report.html").read_text("utf-8")
    assert "Language model" in page and "Training curves" in page and "Where it goes wrong" not in page
    pair = ["--source", str(tmp_path / "text"), "--reference", str(tmp_path / "text")]
    assert main(["report", str(run), *pair]) == 1
    assert "was trained for language: --source and --reference are for translation" in capsys.readouterr().err


def test_no_report_leaves_it_out_and_says_where_it_is_otherwise(run, tmp_path, capsys):
    out = shutil.copytree(run, tmp_path / "again")
    (out / "report.html").unlink()
    assert main(["train", "--out", str(out), "--resume", "--no-report"]) == 0
    assert not (out / "report.html").exists() and "Report:" not in capsys.readouterr().err
    assert main(["train", "--out", str(out), "--resume"]) == 0
    assert f"Report: {out}/report.html" in capsys.readouterr().err.replace("\n", "")


def test_what_is_wrong_with_a_report_is_no_error_of_the_training(run, tmp_path, capsys):
    out = shutil.copytree(run, tmp_path / "again")
    (out / "report.html").unlink()
    (out / "report.html").mkdir()
    assert main(["train", "--out", str(out), "--resume"]) == 0
    assert "No report was written: " in capsys.readouterr().err

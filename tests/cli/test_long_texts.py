"""Texts longer than those of training: validation and `heed evaluate` read as much of them, and what is cut is counted."""

import json
from contextlib import redirect_stderr
from io import StringIO

import pytest

from heed.cli.main import main
from tests.cli.conftest import sets

WORDS = ["dog", "child", "sea", "house", "street", "tree", "book", "road"]
TINY = ["subwords.size=100", "model.dim=16", "model.heads=2", "model.hidden=32", "model.layers=1",
        "model.max_length=24", "training.threads=1", "training.steps=3", "training.valid_every=3",
        "training.batch_tokens=300", "filters.max_length=12"]  # fmt: skip
ROOM = 22  # subwords besides the two special tokens
CUT = f"3 of 12 texts were cut to {ROOM} subwords, the most that the model reads."


def texts(count, words):
    return [" ".join(WORDS[(7 * i + i // 3 + k * (1 + i % 3)) % 8] for k in range(words)) for i in range(count)]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Training texts of four words; test texts of up to 30, of which the model reads 22."""
    folder = tmp_path_factory.mktemp("files")
    test = [" ".join(text.split()[: (4, 18, 14, 30)[i % 4]]) for i, text in enumerate(texts(12, 30))]
    for name, own in {"train": texts(60, 4), "test": test}.items():
        turned = [" ".join(reversed(text.split())) for text in own]
        rows = {
            "text": own,
            "other": turned,
            "labels": ["wet" if i % 3 else "dry" for i in range(len(own))],
            "numbers": [f"{i % 5}.5" for i in range(len(own))],
        }
        for kind, lines in rows.items():
            (folder / f"{name}.{kind}").write_text("".join(f"{line}\n" for line in lines), "utf-8")
        pairs = zip(own, rows["other"], rows["numbers"], strict=True)
        (folder / f"{name}.tsv").write_text("".join("\t".join(row) + "\n" for row in pairs), "utf-8")
    return folder


TARGETS = {"classification": "labels", "regression": "numbers", "embedding": "other"}


@pytest.fixture(scope="module")
def run(files, tmp_path_factory):
    """A run of each task."""
    runs, cache = {}, tmp_path_factory.mktemp("cache")

    def make(task):
        if task not in runs:
            runs[task] = tmp_path_factory.mktemp(task) / "run"
            target = TARGETS[task]
            given = ["--source", str(files / "train.text"), "--target", str(files / f"train.{target}")]
            valid = [f"data.valid_source={files / 'test.text'}", f"data.valid_target={files / f'test.{target}'}"]
            own = [f"task.name={task}", "model.name=bert", *TINY, *valid]
            with pytest.MonkeyPatch.context() as patch, redirect_stderr(StringIO()) as said:
                patch.setenv("HEED_CACHE", str(cache))
                assert main(["train", *given, "--out", str(runs[task]), "--no-report", *sets(own)]) == 0
            assert "3 of 12 validation texts are too long for the model and are cut." in " ".join(
                said.getvalue().split()
            )
        return runs[task]

    return make


def evaluated(heed, folder, files, *more):
    target = files / f"test.{TARGETS[load_task(folder)]}"
    out = folder.parent / "scores.json"
    code, _, err = heed(
        "evaluate", folder, "--source", files / "test.text", "--reference", target, "--samples", 5, "--json", out, *more
    )
    return code, json.loads(out.read_text("utf-8")) if code == 0 else {}, err


def load_task(folder):
    return json.loads((folder / "model" / "config.json").read_text("utf-8"))["task"]["name"]


def validated(folder):
    rows = [json.loads(line) for line in (folder / "log.jsonl").read_text("utf-8").splitlines()]
    return [row for row in rows if row["kind"] == "valid"][-1]


@pytest.mark.parametrize("task", TARGETS)
def test_evaluate_gives_the_scores_of_validation_and_says_how_many_texts_it_cut(heed, run, files, task):
    folder = run(task)
    code, facts, err = evaluated(heed, folder, files)
    assert code == 0
    name = {"classification": "accuracy", "regression": "pearson", "embedding": "mrr"}[task]
    assert facts["scores"][name]["value"] == pytest.approx(validated(folder)[name], abs=1e-3)
    texts = 12 if task != "embedding" else 24  # both sides
    assert facts["cut"] == {str(folder): texts // 4}
    assert f"{folder}: {texts // 4} of {texts} texts were cut to {ROOM} subwords, the most that the model reads." in err
    code, _, err = evaluated(heed, folder, files, "--too-long", "refuse")
    assert code == 1 and err.endswith(
        f"text 4 has 30 subwords, and the model reads at most {ROOM}: shorten it, or allow truncation (too_long='cut', --too-long cut)"
    )
    assert evaluated(heed, folder, files, "--too-long", "cut")[0] == 0


def test_what_an_embedder_of_an_earlier_version_recorded_does_not_limit_it(run):
    from heed.loading import open_package
    from heed.products.embedder import Embedder

    package = open_package(run("embedding"))
    assert "max_source" not in package.facts
    rooms = []
    for facts in ({}, {"max_source": 6}, {"max_source": 6, "pretraining": {}}):
        own = package._replace(facts={**package.facts, **facts})
        rooms.append(Embedder.open([own], ["run"]).room)
    untrained = {name: own for name, own in package.facts.items() if name != "trained"} | {"max_source": 8}
    rooms.append(Embedder.open([package._replace(facts=untrained)], ["sentence-transformers"]).room)
    assert rooms == [ROOM, ROOM, 4, 6]  # stated limits hold: rows of pre-training, and sentence-transformers' own


@pytest.mark.parametrize("task", ["classification", "embedding"])
def test_classify_and_embed_say_how_many_texts_they_cut(heed, run, files, tmp_path, task):
    folder, out = run(task), tmp_path / ("v.npy" if task == "embedding" else "labels")
    verb = ["embed" if task == "embedding" else "classify", folder, "--device", "cpu"]
    source = files / "test.text"
    lines = source.read_text("utf-8").splitlines()
    code, _, err = heed(*verb, "--too-long", "cut", "--out", out, *lines)
    assert code == 0 and CUT in err
    code, _, err = heed(*verb, "--too-long", "cut", "--out", out, lines[0])
    assert code == 0 and "cut" not in err
    code, _, err = heed(*verb, "--too-long", "cut", "--input", source, "--out", out)
    assert code == 0 and CUT in err
    code, _, err = heed(*verb, "--input", source, "--out", tmp_path / f"other{out.suffix}")
    assert code == 1 and "text 4 has 30 subwords" in err


def test_pairs_and_search_say_how_many_texts_they_cut(heed, run, files, tmp_path):
    folder = run("embedding")
    for _ in range(2):  # the second time, the vectors of the file are cached
        code, _, err = heed("embed", folder, "--search", files / "test.text", "--too-long", "cut", "dog " * 25)
        assert code == 0 and f"4 of 13 texts were cut to {ROOM} subwords" in err
    code, out, err = heed("embed", folder, "--pairs", files / "test.tsv", "--too-long", "cut")
    assert code == 0 and len(out.splitlines()) == 12 and f"6 of 24 texts were cut to {ROOM} subwords" in err


def test_a_resumed_file_counts_what_was_cut_before(heed, run, files, tmp_path, monkeypatch):
    from heed.products import text_batches
    from heed.products.classifier import Classifier

    monkeypatch.setattr(text_batches, "CHUNK", 4)
    words = ["classify", run("classification"), "--input", files / "test.text", "--out", tmp_path / "out"]
    right, count = Classifier.outputs_of, []

    def stops(self, *given):
        count.append(1)
        if len(count) == 2:
            raise KeyboardInterrupt
        return right(self, *given)

    monkeypatch.setattr(Classifier, "outputs_of", stops)
    assert heed(*words, "--too-long", "cut")[0] != 0
    assert (tmp_path / "out.part").is_file()
    code, _, err = heed(*words, "--too-long", "cut", "--resume")
    assert code == 0 and CUT in err


@pytest.mark.parametrize("form", ["lines", "table", "named columns"])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_label_that_is_none_is_told_with_its_file_and_line(heed, run, files, tmp_path, task, form):
    known = {"classification": ["dry", "wet", "damp"], "regression": ["1", "2.5", "warm"]}[task]
    said = {
        "classification": "'damp' is not a label of this model; its labels are dry, wet",
        "regression": "'warm' is not a number",
    }[task]
    path, texts = tmp_path / "test", ["dog", "sea", "tree"]
    if form == "lines":
        (tmp_path / "text").write_text("dog\nsea\ntree\n", "utf-8")
        path.write_text("".join(f"{label}\n" for label in known), "utf-8")
        given, line = ["--source", tmp_path / "text", "--reference", path], 3
        code, out, err = heed("classify", run(task), "--reference", path, *texts)
        assert (code, out) == (1, "") and err == f"heed: {path}, line 3: {said}"
    else:
        named = form == "named columns"
        rows = ["text\tlabel"] * named + [f"{text}\t{label}" for text, label in zip(texts, known, strict=True)]
        path.write_text("".join(f"{row}\n" for row in rows), "utf-8")
        given, line = ["--tsv", path, "--columns", *(("text", "label") if named else (1, 2))], 3 + named
    code, out, err = heed("evaluate", run(task), *given)
    assert (code, out) == (1, "") and err == f"heed: {path}, line {line}: {said}"


@pytest.mark.parametrize(
    ("option", "says"),
    [
        (["--repair"], "--repair is for taggers: leave it out"),
        (["--window", "8"], "--window is for language models: use it with --text"),
        (["--stride", "2"], "--stride is for language models: use it with --text"),
    ],
)
@pytest.mark.parametrize("task", ["classification", "embedding"])
def test_options_for_other_models_are_refused(heed, run, files, task, option, says):
    given = ["--source", files / "test.text", "--reference", files / f"test.{TARGETS[task]}"]
    code, out, err = heed("evaluate", run(task), *given, *option)
    assert (code, out, err) == (1, "", f"heed: {says}")


def test_the_option_is_refused_where_it_means_nothing(heed, trained, files):
    code, _, err = heed(
        "evaluate", trained, "--source", files / "test.text", "--reference", files / "test.other", "--too-long", "cut"
    )
    assert code == 1
    assert err == "heed: --too-long is for classifiers, regression models and embedding models: leave it out"

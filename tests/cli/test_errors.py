"""Bad input gets one sentence that says what is wrong, where, and what to do; the exit code is not 0."""

import json
import shutil
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file

from heed.cli import suspicions
from heed.loading import load
from tests.cli.conftest import TINY, sets


@pytest.fixture
def files(tmp_path):
    """Two files that go together."""
    source, target = tmp_path / "a.ko", tmp_path / "a.en"
    source.write_text("나는 너를 사랑해.\n안녕.\n우리는 학교에 가.\n", "utf-8")
    target.write_text("I love you.\nHello.\nWe go to school.\n", "utf-8")
    return source, target


def train(heed, tmp_path, source, target, *more):
    return heed("train", "--source", source, "--target", target, "--out", tmp_path / "run", *more)


def test_a_missing_file(heed, tmp_path, files):
    code, _, err = train(heed, tmp_path, tmp_path / "nowhere.ko", files[1])
    assert code == 1
    assert err == f"heed: {tmp_path}/nowhere.ko: no such file"


def test_an_empty_file(heed, tmp_path, files):
    files[0].write_text("")
    code, _, err = train(heed, tmp_path, *files)
    assert code == 1
    assert f"{files[0]} is empty" in err


def test_different_line_counts(heed, tmp_path, files):
    files[1].write_text("I love you.\n")
    code, _, err = train(heed, tmp_path, *files)
    assert code == 1
    assert f"{files[1]} has 1 lines and {files[0]} has 3: each line must be the translation of the same line" in err


def test_not_utf8(heed, tmp_path, files):
    files[0].write_bytes("나는\n".encode() + "너를\n".encode("euc-kr") + b"a\n")
    code, _, err = train(heed, tmp_path, *files)
    assert code == 1
    assert f"{files[0]}, line 2 is not UTF-8" in err
    assert "convert the file first" in err


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("training.stepz=4", "training.stepz: no such setting; did you mean steps?"),
        ("trainin.steps=4", "trainin: no such setting; did you mean training?"),
        ("steps=4", "steps: no such setting; did you mean training.steps?"),
        ("dim=4", "dim: no such setting; did you mean model.dim?"),
        ("vocab_size=4", "vocab_size: no such setting; there are data, task,"),
        ("model.preset=tinyy", "'base-12-1' (did you mean 'tiny'?)"),
        ("model.name=transfomer", "(did you mean 'transformer'?)"),
        ("training.steps=many", "training.steps: 'many' is not an integer"),
        ("training.steps=4.5", "training.steps: 4.5 is not an integer"),
        ("model.norm=rms", "model.norm: 'rms' is none of 'post', 'pre'"),
        ("training=4", "training: 4 is a value; this is a section, [training]"),
        ("training.steps", "--set training.steps: write it as section.name=value, for example training.steps=4000"),
        ("training.steps=0", "training.steps is 0; it must be at least 1"),
    ],
)
def test_a_setting_that_cannot_be(heed, tmp_path, files, setting, says):
    code, _, err = train(heed, tmp_path, *files, "--set", setting)
    assert code == 1
    assert says in err
    assert not (tmp_path / "run").exists()


def test_dim_is_not_a_multiple_of_heads(heed, tmp_path):
    code, _, err = heed(
        "train", "recipes/phrasebook.toml", "--out", tmp_path / "run", *sets([*TINY, "model.dim=18", "model.heads=4"])
    )
    assert code == 1
    assert err.endswith("heed: dim (18) is not a multiple of heads (4)")


def test_a_recipe_that_is_not_toml(heed, tmp_path):
    (tmp_path / "r.toml").write_text("[data\n")
    code, _, err = heed("train", tmp_path / "r.toml", "--out", tmp_path / "run")
    assert code == 1
    assert f"{tmp_path}/r.toml is not valid TOML" in err


def test_nothing_to_train_on(heed, tmp_path):
    code, _, err = heed("train", "--out", tmp_path / "run")
    assert code == 1
    says = "nothing to train on: give --source and --target, or --tsv, or a recipe (heed recipes lists those built in)"
    assert err == f"heed: {says}"


def test_a_run_is_not_overwritten(heed, trained):
    before = (trained / "model" / "model.safetensors").read_bytes()
    code, _, err = heed("train", "recipes/phrasebook.toml", "--out", trained, *sets(TINY))
    assert code == 1
    assert f"{trained} already exists: continue with --resume, or choose another --out" in err
    assert (trained / "model" / "model.safetensors").read_bytes() == before


def test_a_run_that_goes_on_keeps_its_model(heed, trained):
    code, _, err = heed("train", "--out", trained, "--resume", "--set", "model.dim=32")
    assert code == 1
    assert "model.dim was 16 in" in err
    assert "a resumed run cannot change it" in err


def test_resume_needs_a_run(heed, tmp_path):
    code, _, err = heed("train", "--out", tmp_path / "none", "--resume")
    assert code == 1
    assert "is not a run that can be resumed: it has no recipe.toml" in err


def test_a_run_that_ended_before_its_recipe_was_written_begins_anew(heed, tmp_path):
    data = ["--set", "data.source=none.ko", "--set", "data.target=none.en"]
    code, _, err = heed("train", "--out", tmp_path / "begun", "--resume", *data)
    assert code == 1
    assert "none.ko: no such file" in err


@pytest.fixture
def model(trained, tmp_path):
    """A copy of the model, to be damaged."""
    return shutil.copytree(trained / "model", tmp_path / "model")


def test_a_folder_that_is_not_there(heed, tmp_path):
    assert heed("translate", tmp_path / "no", "안녕.")[::2] == (1, f"heed: {tmp_path}/no: no such folder")


def test_a_folder_that_was_misspelled_and_one_of_runs(heed, tmp_path):
    (tmp_path / "runs" / "demo").mkdir(parents=True)
    (tmp_path / "runs" / "demo" / "recipe.toml").write_text("")
    says = f"heed: {tmp_path}/runs/dmo: no such folder; did you mean {tmp_path}/runs/demo?"
    assert heed("translate", tmp_path / "runs" / "dmo", "안녕.")[::2] == (1, says)
    says = f"heed: {tmp_path}/runs is not a model folder, but contains some: give one of them, such as {tmp_path}/runs/demo"
    assert heed("translate", tmp_path / "runs", "안녕.")[::2] == (1, says)


def test_a_file_instead_of_a_folder(heed, tmp_path, files):
    says = f"heed: {files[0]} is a file: give a run, a model folder, or a name on the hub"
    assert heed("translate", files[0], "안녕.")[::2] == (1, says)
    code, _, err = heed("train", "--source", files[0], "--target", files[1], "--out", files[1])
    assert (code, err) == (1, f"heed: {files[1]} is a file: --out is the run folder")


def test_swapped_test_files_and_empty_translations_are_warned_of(heed, trained, tmp_path, files):
    korean, english = files
    says = f"Warning: the model translates ko to en, but by their names --source {english} is en and --reference {korean} is ko"
    code, _, err = heed("evaluate", trained, "--source", english, "--reference", korean)
    assert code == 0 and f"{says}: they may be swapped." in err
    assert "swapped" not in heed("evaluate", trained, "--source", korean, "--reference", english)[2]
    (tmp_path / "hyp").write_text("I love you.\n\n\n")
    assert "Warning: 2 of 3 translations are empty." in heed("evaluate", tmp_path / "hyp", "--reference", english)[2]
    lines = ["나는 너를 사랑해.", "", "안녕."]
    assert suspicions._empty(lines, ["I love you.", "", "Hello."]) is None
    assert suspicions._empty(lines, ["", "", ""]) == "2 of 2 translations are empty: the model may need more training."


def test_a_run_is_refused_before_its_corpus_is_read(heed, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "log.jsonl").write_text("")
    code, _, err = train(heed, tmp_path, tmp_path / "nowhere.ko", tmp_path / "nowhere.en")
    assert (code, err) == (1, f"heed: {tmp_path}/run already exists: continue with --resume, or choose another --out")


TRANSLATOR = "is a translator: it cannot {}; use heed translate, evaluate, score or look"
LANGUAGE = "is a language model: it cannot {}; use heed generate, evaluate, score or look"
CLASSIFIER = "is a classifier: it cannot {}; use heed classify or evaluate"


@pytest.mark.parametrize(
    ("command", "kind", "says"),
    [
        ("evaluate FOLDER --reference FILE", "language", LANGUAGE.format("translate") + " (heed evaluate with --text FILE)"),
        ("evaluate FOLDER --source FILE --reference FILE", "language",
         LANGUAGE.format("translate") + " (heed evaluate with --text FILE)"),
        ("evaluate FOLDER --reference FILE", "classifier",
         "is a classifier: give texts and labels with --tsv FILE, or with --source FILE and --reference FILE"),
        ("evaluate FILE --reference FILE --against FOLDER", "classifier",
         CLASSIFIER.format("translate") + " (heed evaluate with --tsv FILE)"),
        ("evaluate FOLDER --text FILE", "translator",
         TRANSLATOR.format("generate") + " (heed evaluate with --source FILE and --reference FILE)"),
        ("score FOLDER --source FILE", "language", LANGUAGE.format("translate") + " (heed score with --text FILE)"),
        ("score FOLDER --source FILE --target FILE", "classifier", CLASSIFIER.format("score")),
        ("score FOLDER --text FILE", "translator",
         TRANSLATOR.format("generate") + " (heed score with --source FILE and --target FILE)"),
        ("generate FOLDER", "translator", TRANSLATOR.format("generate")),
        ("generate FOLDER --prompt Hello", "classifier", CLASSIFIER.format("generate")),
        ("classify FOLDER Hello", "translator", TRANSLATOR.format("classify")),
        ("classify FOLDER Hello", "language", LANGUAGE.format("classify")),
        ("translate FOLDER Hello", "classifier", CLASSIFIER.format("translate")),
        ("translate FOLDER Hello", "language", LANGUAGE.format("translate")),
        ("summarize FOLDER FILE", "language", LANGUAGE.format("summarize")),
        ("look FOLDER Hello --out look.html", "classifier", CLASSIFIER.format("look")),
        ("distill FOLDER --source FILE --out run --quiet", "language", LANGUAGE.format("translate")),
        ("lab bottleneck FOLDER --source FILE --reference FILE --out lab", "language", LANGUAGE.format("translate")),
    ],
)  # fmt: skip
def test_a_folder_of_another_kind_says_what_it_is_and_which_verbs_it_has(
    heed, folders, tmp_path, monkeypatch, command, kind, says
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lines").write_text("Hello.\n")
    words = {"FOLDER": folders[kind], "ko-en=FOLDER": f"ko-en={folders[kind]}", "FILE": tmp_path / "lines"}
    code, out, err = heed(*(words.get(word, word) for word in command.split()))
    assert (code, out, err) == (1, "", f"heed: {folders[kind]} {says}")
    assert [path.name for path in tmp_path.iterdir() if path.name != "cache"] == ["lines"]


def test_a_folder_without_a_model(heed, tmp_path):
    code, _, err = heed("translate", tmp_path, "안녕.")
    assert code == 1
    assert err == f"heed: {tmp_path} is not a model folder: it has no config.json"


def test_a_model_without_weights(heed, model):
    (model / "model.safetensors").unlink()
    code, _, err = heed("translate", model, "안녕.")
    assert code == 1
    assert err == f"heed: {model} has no weights: model.safetensors is missing"


def test_a_weight_of_the_wrong_shape(heed, model):
    weights = load_file(model / "model.safetensors")
    weights["tokens.weight"] = torch.zeros(3, 16)
    save_file(weights, model / "model.safetensors")
    code, _, err = heed("translate", model, "안녕.")
    assert code == 1
    assert "tokens.weight has shape (3, 16), but according to config.json it should be (" in err


def test_a_weight_too_many_and_one_too_few(heed, model):
    weights = load_file(model / "model.safetensors")
    save_file({**weights, "adapter": torch.zeros(1)}, model / "model.safetensors")
    assert "holds adapter, which this model does not have" in heed("translate", model, "안녕.")[2]
    del weights["tokens.weight"]
    save_file(weights, model / "model.safetensors")
    assert "lacks tokens.weight" in heed("translate", model, "안녕.")[2]


@pytest.mark.parametrize("left", [5, 100, -7])
def test_a_truncated_file_of_weights(heed, model, left):
    path = model / "model.safetensors"
    path.write_bytes(path.read_bytes()[:left])
    code, _, err = heed("translate", model, "안녕.")
    assert code == 1
    assert f"{path} is damaged or truncated" in err


def test_a_config_with_an_unknown_setting(heed, model):
    facts = json.loads((model / "config.json").read_text())
    facts["model"]["layerz"] = 3
    del facts["sha256"]  # as somebody must who changes the file
    (model / "config.json").write_text(json.dumps(facts))
    code, _, err = heed("translate", model, "안녕.")
    assert code == 1
    assert "config.json: model.layerz: no such setting" in err


def test_a_sentence_longer_than_the_model_allows(heed, trained):
    text = "나는 학교에 가. " * 30
    code, out, _ = heed("translate", trained, text)
    assert code == 0
    assert len(out.splitlines()) == 1
    code, _, err = heed("translate", trained, text, "--too-long", "refuse")
    assert code == 1
    assert "text 1 has" in err
    most = load(trained).max_source
    assert f"subwords, and the model reads at most {most}: shorten it, or translate it in parts" in err


def test_a_search_that_cannot_be(heed, trained):
    assert (
        "a beam cannot return more than its size" in heed("translate", trained, "--beam", 2, "--nbest", 3, "안녕.")[2]
    )
    assert "temperature is 0.0; it must be above 0" in heed("translate", trained, "--temperature", 0, "안녕.")[2]


def test_a_picture_of_another_kind(heed, trained, tmp_path):
    code, _, err = heed("look", trained, "안녕.", "--out", tmp_path / "a.gif")
    assert code == 1
    assert ".html" in err and ".png" in err and ".svg" in err and ".json" in err


def test_references_of_another_length(heed, tmp_path):
    (tmp_path / "a").write_text("안녕.\n")
    (tmp_path / "b").write_text("Hello.\nThere.\n")
    code, _, err = heed("evaluate", tmp_path / "a", "--reference", tmp_path / "b")
    assert code == 1
    assert "has 1 sentences and references 1 has 2" in err


def test_nothing_is_evaluated_on_empty_lines(heed, tmp_path):
    (tmp_path / "a").write_text("안녕.\n")
    (tmp_path / "b").write_text(" \n")
    code, _, err = heed("evaluate", tmp_path / "a", "--reference", tmp_path / "b")
    assert code == 1
    assert "b has only empty lines: there is nothing to compare with" in err


def test_a_word_that_argparse_does_not_know(heed, trained, capsys):
    with pytest.raises(SystemExit) as error:
        heed("translate", trained, "--beams", "3", "안녕.")
    assert error.value.code == 2
    assert "--beams" in capsys.readouterr().err


def test_a_folder_in_which_another_process_trains_is_left_to_it(heed, trained):
    pytest.importorskip("fcntl")
    holds = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.lockf(f, fcntl.LOCK_EX); print('held', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", holds, str(trained / ".lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"held\n"
        code, _, err = heed("train", "--out", trained, "--resume", "--set", "training.steps=5")
    assert (code, f"{trained} is being trained by another process" in err) == (1, True)


def test_files_that_do_not_go_together_are_told_before_anything_is_translated(heed, tmp_path):
    for name, lines in (("a", 3), ("b", 2)):
        (tmp_path / name).write_text("나는 가.\n" * lines, "utf-8")
    code, _, err = heed("evaluate", "no-such-model", "--source", tmp_path / "a", "--reference", tmp_path / "b")
    assert code == 1
    assert err == f"heed: {tmp_path}/a has 3 lines and {tmp_path}/b 2: they must correspond line by line"


def test_going_on_from_nothing_is_told(heed, trained, tmp_path):
    shutil.copytree(trained, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    code, _, err = heed("train", "--out", tmp_path / "run", "--resume")
    assert (code, "No checkpoint to continue from: starting at step 1." in err) == (0, True)


def test_a_model_to_start_from_that_is_not_there_yet(heed, tmp_path, monkeypatch):
    (tmp_path / "first.toml").write_text("# Makes the model:\n#   heed train first.toml --out runs/base\n", "utf-8")
    (tmp_path / "second.toml").write_text('[task]\nname = "classification"\n[model]\nfolder = "runs/base"\n', "utf-8")
    monkeypatch.chdir(tmp_path)
    code, _, err = heed("train", "second.toml", "--source", "a", "--target", "b", "--out", "run")
    assert code == 1
    assert err == (
        "heed: model.folder is runs/base, which does not exist: make it first with: heed train first.toml --out "
        "runs/base, or start from another with --from"
    )
    (tmp_path / "first.toml").unlink()
    _, _, err = heed("train", "second.toml", "--source", "a", "--target", "b", "--out", "run")
    assert err.endswith("does not exist: give an existing run or model, or start from another with --from")


def test_an_interrupted_command_says_so_and_has_the_code_of_a_signal(heed, monkeypatch):
    def interrupted(args):
        raise KeyboardInterrupt

    monkeypatch.setattr("heed.cli.info.run", interrupted)
    assert heed("info", "x") == (130, "", "heed: interrupted")

"""A language model from one text file, by the commands that a user gives."""

import json
import random
import re
import shutil
from argparse import Namespace

import pytest
from safetensors.torch import load_file

from heed.cli import language
from heed.cli.main import main
from heed.data.contamination import is_long
from heed.runs.recipe import read

TINY = ["model.name=rnn-lm", "subwords.kind=words", "model.dim=8", "model.hidden=8", "training.threads=1", "training.steps=6",
        "training.valid_every=3", "training.batch_tokens=60", "task.window=10", "training.samples=1", "training.rate=0.01",
        "model.weight_dropout=0.2", "training.device=cpu"]  # fmt: skip
NAMES, VERBS = ["the cat", "a dog", "my sister", "고양이 한 마리"], ["sees", "likes", "finds"]


def text(lines: int, seed: int) -> str:
    chance = random.Random(seed)
    sentences = (f"{chance.choice(NAMES)} {chance.choice(VERBS)} {chance.choice(NAMES)} ." for _ in range(lines))
    return "".join(f"{sentence}\n" for sentence in sentences)


def sets(*settings: str) -> list[str]:
    return [word for setting in settings for word in ("--set", setting)]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    (folder / "train.txt").write_text(text(60, 1), "utf-8")
    (folder / "test.txt").write_text(text(20, 2) + "\nthe zebra\n", "utf-8")
    return folder


@pytest.fixture(scope="module")
def trained(files, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEED_CACHE", str(tmp_path_factory.mktemp("cache")))
        out = tmp_path_factory.mktemp("runs") / "lm"
        assert main(["train", "--source", str(files / "train.txt"), "--out", str(out), "--quiet", *sets(*TINY)]) == 0
    return out


def test_one_text_becomes_a_model_that_can_be_asked_everything(heed, trained, files, tmp_path):
    card = (trained / "model" / "README.md").read_text("utf-8")
    assert "# Language model" in card
    assert "| texts | 54 of 60; filtered out: none |" in card
    log = [json.loads(line) for line in (trained / "log.jsonl").read_text("utf-8").splitlines()]
    assert [line["perplexity"] > 1 for line in log if line["kind"] == "valid"] == [True, True]
    assert (trained / "samples" / "step-000006.txt").is_file()

    code, out, _ = heed("evaluate", trained, "--text", files / "test.txt", "--json", tmp_path / "e.json")
    found = json.loads((tmp_path / "e.json").read_text("utf-8"))["perplexity"]
    tokens = sum(len(line.split()) + 1 for line in (files / "test.txt").read_text("utf-8").splitlines())
    assert (code, found["tokens"], found["words"], found["unknown"]) == (0, tokens, tokens, 1)
    assert f"perplexity per word {found['per_token']:.2f}" in " ".join(out.split())
    assert f"tokens:{tokens}|unknown:1|line-ends:counted" in out
    assert "bits per byte" in out and "95 % intervals from 1,000 bootstrap samples of lines" in out
    for name, (low, high) in found["intervals"].items():
        assert low <= found[name] <= high, name

    words = ("evaluate", trained, "--text", files / "test.txt", "--samples", 20, "--json", tmp_path / "two.json")
    code, out, _ = heed(*words, "--against", shutil.copytree(trained / "model", tmp_path / "same"))
    compared = json.loads((tmp_path / "two.json").read_text("utf-8"))["differences"]
    same = {"value": 0.0, "p_value": 1.0}
    assert compared == {"per_token": same, "bits_per_character": same, "bits_per_byte": same}
    assert "difference" in out and "p = 1.0000" in out and "p of a paired bootstrap" in out

    code, out, _ = heed("generate", trained, "--prompt", "the cat", "--length", 9, "--seed", 3)
    assert (code, out) == heed("generate", trained, "--prompt", "the cat", "--length", 9, "--seed", 3)[:2]
    assert out.startswith("the cat ")
    code, out, err = heed(
        "generate", trained, "--prompt", "the zebra", "--count", 3, "--one-line", "--scores", "--out", tmp_path / "g"
    )
    assert (code, out, err) == (0, "", "The model does not know zebra.")
    lines = (tmp_path / "g").read_text("utf-8").splitlines()
    assert len(lines) == 3
    assert all(re.match(r"-\d+\.\d{4}\tthe zebra", line) for line in lines)
    assert heed("generate", trained, "--beam", 2, "--count", 2, "--length", 4)[0] == 0
    assert heed("generate", trained, "--greedy", "--length", 4)[0] == 0

    code, out, err = heed("score", trained, "--text", files / "test.txt", "--token-scores")
    assert (code, len(out.splitlines())) == (0, 22)
    assert out.splitlines()[-1].split("\t")[1].endswith("</s>:" + out.split(":")[-1].strip())
    assert "22 lines, each scored separately" in err

    for suffix in ("html", "svg", "json"):
        assert heed("look", trained, "the cat <sees> 고양이", "--out", tmp_path / f"l.{suffix}")[0] == 0
    assert "&lt;unk&gt;" in (tmp_path / "l.html").read_text("utf-8")
    places = json.loads((tmp_path / "l.json").read_text("utf-8"))["places"]
    assert [place["token"] for place in places] == ["▁the", "▁cat", "▁<unk>", "▁고양이", None]
    assert heed("info", trained)[0] == 0


def test_a_resumed_run_has_the_weights_of_one_that_never_stopped(heed, trained, files, tmp_path):
    start = ["train", "--source", files / "train.txt", "--out", tmp_path / "again", "--quiet", *sets(*TINY)]
    assert heed(*start, "--set", "training.steps=4")[0] == 0
    assert heed(*start, "--resume")[0] == 0
    for name in ("model", "training"):
        one, other = (
            load_file(run / "checkpoints" / "step-000006" / f"{name}.safetensors")
            for run in (trained, tmp_path / "again")
        )
        assert one.keys() == other.keys()
        assert all(one[key].equal(other[key]) for key in one)
    assert any(key.startswith("carried.") for key in one)


def test_training_goes_on_from_a_model_that_is_there(heed, trained, files, tmp_path):
    more = sets("task.name=language", *(s for s in TINY if s.startswith(("training", "task"))))
    start = ["train", "--from", trained, "--source", files / "test.txt", "--quiet", *more]
    assert heed(*start, "--out", tmp_path / "more")[0] == 0
    pair = ["--source", files / "test.txt", "--target", files / "test.txt"]
    code, _, err = heed("train", "--from", trained, *pair, "--out", tmp_path / "other")
    assert code == 1
    assert "is a language model: it cannot learn translation; set task.name to 'language', or start from" in err


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        (["task.window=0"], "task.window is 0; it must be at least 1"),
        (["task.bptt=10"], "task.bptt has moved: set task.window instead"),
        (
            ["training.batch_tokens=5"],
            "training.batch_tokens is 5; it must hold at least one window, and task.window is 10",
        ),
        (["data.target=train.txt"], "data.target is set, but language needs only plain text"),
        (["filters.max_length=20"], "filters are for pairs"),
        (["subwords.coverage=0.5"], "subwords.coverage is 0.5; it is not for subwords.kind = 'words'"),
        (
            ["subwords.kind=bpe", "subwords.lower=true"],
            "subwords.lower is True; it is only for subwords.kind = 'words'",
        ),
        (["subwords.sampling=0.1"], "subwords.sampling is 0.1, but it only works for translation"),
        (["model.heads=2"], "model.heads: rnn-lm has no such setting; there are cell, dim, hidden"),
        (["model.preset=base-6-2"], "model.preset: 'base-6-2' is none of 'auto', 'tiny', 'small', 'base', 'big'"),
        (["training.metric=bleu"], "training.metric is 'bleu'; language has loss"),
        (["training.r_drop=1.0"], "training.r_drop has moved: set task.r_drop instead"),
        (["task.r_drop=1.0"], "task.r_drop: language has no such setting; translation has"),
    ],
)
def test_settings_that_make_no_sense_are_refused(heed, files, tmp_path, settings, error):
    words = ["train", "--source", files / "train.txt", "--out", tmp_path / "out", *sets(*TINY, *settings)]
    code, _, err = heed(*words)
    assert code == 1
    assert error in err


def test_a_language_model_does_not_learn_to_translate(heed, files, tmp_path):
    pair = ["--source", files / "train.txt", "--target", files / "train.txt"]
    wrong = sets("model.name=rnn-lm", "task.name=translation")
    code, _, err = heed("train", *pair, "--out", tmp_path / "out", *wrong)
    assert code == 1
    assert (
        "task.name is 'translation', but a language model (rnn-lm) learns from plain text: set it to 'language'" in err
    )


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("", "is empty"),
        ("\n\n\n", "there is no text to train on: all 2 lines are empty"),
        ("one line alone", "has a single line"),
    ],
)
def test_texts_that_nothing_can_be_learned_from_are_refused(heed, tmp_path, content, error):
    (tmp_path / "text.txt").write_text(content)
    code, _, err = heed("train", "--source", tmp_path / "text.txt", "--out", tmp_path / "out", *sets(*TINY))
    assert code == 1
    assert error in err


def test_what_is_not_for_a_language_model_is_said(heed, trained, files):
    cases = {
        (
            "translate",
            trained,
            "the cat",
        ): "is a language model: it cannot translate; use heed generate, evaluate, score or look",
        ("evaluate", trained): "--reference FILE, or for a language model --text FILE",
        (
            "evaluate",
            trained,
            "--text",
            files / "test.txt",
            "--rouge",
        ): "--rouge is for translations: it cannot be combined with --text",
        ("score", trained): "--source FILE and --target FILE, or for a language model --text FILE",
        ("look", trained, "the cat", "--beam", "2", "--out", "x.html"): "--beam is for translation models",
        ("generate", trained, "--prompt", "zebra"): "the model knows no word of 'zebra'",
        ("generate", trained, "--greedy", "--top-k", "3"): "--top-k is for sampling",
        ("generate", trained, "--length", "0"): "length is 0",
        ("convert", trained, "--out", trained / "x"): "it cannot be exported",
    }
    for words, error in cases.items():
        code, _, err = heed(*words)
        assert (code, error in err) == (1, True), (words, err)


def test_a_language_model_goes_without_saying_what_it_learns():
    recipe = read(None, [("data.source", ["a.txt"]), ("model.name", "rnn-lm")])
    assert (recipe.task.name, recipe.task.settings.label_smoothing) == ("language", 0.0)
    said = read(None, [("data.source", ["a.txt"]), ("model.name", "rnn-lm"), ("task.label_smoothing", 0.2)])
    assert said.task.settings.label_smoothing == 0.2


def test_lines_that_were_trained_on_are_reported(heed, trained, files, tmp_path):
    """The planted ones, however they are spelled; short ones are no evidence."""
    lines = (files / "train.txt").read_text("utf-8").splitlines()[:54]
    long = list(filter(is_long, dict.fromkeys(lines)))[:2]
    assert len(long) == 2
    new = "nobody ever wrote this line before, or did they"
    (tmp_path / "test.txt").write_text("\n".join([*(line.upper() for line in long), "the cat", new]) + "\n", "utf-8")
    code, _, err = heed("evaluate", trained, "--text", tmp_path / "test.txt", "--json", tmp_path / "e.json")
    assert code == 0 and err.startswith(f"Warning: {trained} was trained on 2 of the 4 lines of this text (")
    found = json.loads((tmp_path / "e.json").read_text("utf-8"))["trained_on"][str(trained)]
    assert (found["lines"], found["total"], found["share"]) == (2, 4, 1.0)
    (tmp_path / "new.txt").write_text(f"{new}\nthe cat\n", "utf-8")
    assert heed("evaluate", trained, "--text", tmp_path / "new.txt")[2] == ""
    (trained / "trained-texts.safetensors").rename(tmp_path / "hashes")
    assert "Not known: whether" in heed("evaluate", trained, "--text", tmp_path / "new.txt")[2]
    (tmp_path / "hashes").rename(trained / "trained-texts.safetensors")


def test_a_masked_language_model_is_told_of_lines_it_was_trained_on(heed, files, tmp_path):
    tiny = ["model.name=bert", "task.name=masked", "task.length=16", "task.document=line", "subwords.size=120", "model.dim=8", "model.heads=1",
            "model.hidden=8", "model.layers=1", "training.steps=1", "training.valid_every=1", "training.batch_tokens=64", "training.threads=1"]  # fmt: skip
    given = [
        "--source",
        files / "train.txt",
        "--set",
        f"data.valid_source={files / 'test.txt'}",
        "--quiet",
        "--no-report",
    ]
    assert heed("train", "--out", tmp_path / "bert", *given, *sets(*tiny))[0] == 0
    long = next(filter(is_long, (files / "train.txt").read_text("utf-8").splitlines()))
    (tmp_path / "seen.txt").write_text(f"{long}\nthe cat\n", "utf-8")
    (tmp_path / "short.txt").write_text("the cat\nthe cat saw\n", "utf-8")
    code, _, err = heed("evaluate", tmp_path / "bert", "--text", tmp_path / "seen.txt", "--samples", 5)
    assert code == 0 and err.startswith(f"Warning: {tmp_path / 'bert'} was trained on 1 of the 2 lines of this text (")
    assert err.endswith(": scores on them say little about unseen text.")
    code, _, err = heed("evaluate", tmp_path / "bert", "--text", tmp_path / "short.txt", "--samples", 5)
    said = "no line has 20 letters and digits, and shorter ones repeat by chance"
    assert (code, err) == (0, f"Not known: whether this text was trained on ({said}).")


@pytest.mark.parametrize(("given", "name"), [({"code": "Books"}, "code"), ({"token_scores": True}, "token-scores")])
def test_all_codes_are_tried_or_one_is_given(given, name):
    args = Namespace(**{"code": None, "token_scores": False, **given})
    with pytest.raises(ValueError, match=f"--{name} cannot be combined with --codes, which tries them all"):
        language._attribute(args, None)


def test_more_plain_text_continues_the_task_of_a_model(heed, trained, files, tmp_path):
    base = tmp_path / "base"
    shutil.copytree(trained, base)
    rest = [own for own in TINY if not own.startswith(("model.", "subwords."))]
    words = [
        "train",
        "--from",
        base,
        "--source",
        files / "train.txt",
        "--out",
        tmp_path / "more",
        "--quiet",
        *sets(*rest),
    ]
    assert heed(*words) == (0, "", "")
    assert read(tmp_path / "more" / "recipe.toml", [], saved=True).task.name == "language"
    shutil.rmtree(base)
    assert heed(*words, "--resume") == (0, "", ""), "a resumed run does not need the model it started from"
    code, _, says = heed("train", "--from", trained, "--source", files / "train.txt", "--target", files / "train.txt", "--out", tmp_path / "pairs")  # fmt: skip
    assert code != 0 and "it cannot learn translation; set task.name to 'language'" in says

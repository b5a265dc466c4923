"""Language models of documents, of random windows and with control codes, by the commands that a user gives."""

import json
import random

import pytest
from safetensors.torch import load_file

from heed.cli.main import main

SMALL = """
[model]
name = "{model}"
dim = 16
heads = 2
hidden = 24
layers = 1
max_length = 16
dropout = {dropout}
{more}

[training]
steps = {steps}
valid_every = {every}
batch_tokens = {tokens}
rate = 0.02
warmup = 5
threads = 1
device = "cpu"
samples = 2
"""
CODED = """
[data]
[[data.corpora]]
source = ["{folder}/pets.txt"]
code = "Pets"
weight = 2.0

[[data.corpora]]
source = ["{folder}/food.txt"]
code = "Food"

[task]
name = "language"
reading = "{reading}"
window = 12

[subwords]
{subwords}
"""
PETS, FOOD = ["the cat", "a dog", "my bird"], ["the soup", "a cake", "my bread"]


def text(words: list[str], lines: int, seed: int) -> str:
    chance = random.Random(seed)
    sentences = [f"{chance.choice(words)} and {chance.choice(words)}" for _ in range(lines)]
    return "".join(f"{one}\n" + "\n" * (i % 3 == 2) for i, one in enumerate(sentences))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    for name, words in (("pets", PETS), ("food", FOOD)):
        (folder / f"{name}.txt").write_text(text(words, 60, 1), "utf-8")
        (folder / f"{name}.test").write_text(text(words, 6, 2), "utf-8")
    return folder


def recipe(files, name: str, model="ctrl", reading="documents", subwords="size = 60", **training) -> str:
    settings = {"steps": 80, "every": 40, "tokens": 240, "dropout": 0.0, "more": "init_std = 0.3", **training}
    content = CODED.format(folder=files, reading=reading, subwords=subwords) + SMALL.format(model=model, **settings)
    path = files / f"{name}.toml"
    path.write_text(content, "utf-8")
    return str(path)


@pytest.fixture(scope="module")
def trained(files, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEED_CACHE", str(tmp_path_factory.mktemp("cache")))
        out = tmp_path_factory.mktemp("runs") / "ctrl"
        assert main(["train", recipe(files, "ctrl"), "--out", str(out), "--quiet"]) == 0
    return out


def test_a_model_with_codes_knows_where_a_text_comes_from(heed, trained, files, tmp_path):
    losses = {}
    for name in ("pets", "food"):
        for code in ("Pets", "Food"):
            found = heed(
                "evaluate", trained, "--text", files / f"{name}.test", "--code", code, "--json", tmp_path / "e"
            )
            assert found[0] == 0 and f"context:window|window:12|stride:12|code:{code}" in found[1]
            losses[name, code] = json.loads((tmp_path / "e").read_text("utf-8"))["perplexity"]["nll"]
    assert losses["pets", "Pets"] < losses["pets", "Food"] and losses["food", "Food"] < losses["food", "Pets"]
    (tmp_path / "both").write_text("my bird and a dog\na cake and my bread\n", "utf-8")
    code, out, err = heed("score", trained, "--text", tmp_path / "both", "--codes")
    rows = [line.split("\t") for line in out.splitlines()]
    assert (code, rows[0]) == (0, ["code", "Pets", "Food"])
    assert [row[0] for row in rows[1:]] == ["Pets", "Food"]
    assert "2 lines: Pets 1, Food 1" in err
    for number, name in enumerate(("Pets", "Food"), 1):
        alone = heed("score", trained, "--text", tmp_path / "both", "--code", name)[1].splitlines()
        assert [float(line) for line in alone] == pytest.approx([float(row[number]) for row in rows[1:]], abs=1e-3)
    card = (trained / "model" / "README.md").read_text("utf-8")
    assert "weight 2, code Pets." in card and "code Food." in card
    (tmp_path / "both").write_text("my bird and a dog\nmy cat\n\na cake\nand my bread\n", "utf-8")
    code, out, err = heed("score", trained, "--text", tmp_path / "both", "--codes", "--document", "paragraph")
    assert (code, [line.split("\t")[0] for line in out.splitlines()]) == (0, ["code", "Pets", "Food"])
    assert "2 paragraphs: Pets 1, Food 1" in err


def test_perplexity_by_a_sliding_window_is_lower(heed, trained, files):
    found = [
        heed("evaluate", trained, "--text", files / "pets.test", *more)[1]
        for more in ([], ["--stride", 2], ["--document", "paragraph"])
    ]
    assert "window:12|stride:12|" in found[0] and "window:12|stride:2|" in found[1]
    assert "context:document|document:paragraph|window:12" in found[2]
    assert all("bits per character" in out and "bits per byte" in out for out in found)


@pytest.mark.parametrize(("reading", "model", "subwords"), [("documents", "ctrl", "size = 60"), ("random", "gpt2", 'kind = "characters"'), ("documents", "rnn-lm", 'kind = "bytes"')])  # fmt: skip
def test_a_resumed_run_has_the_weights_of_one_that_never_stopped(heed, files, tmp_path, reading, model, subwords):
    whole = recipe(files, "whole", model, reading, subwords, steps=6, every=3, dropout=0.1)
    if model == "rnn-lm":
        content = (files / "whole.toml").read_text("utf-8")
        for line in ("heads = 2", "max_length = 16", "init_std = 0.3"):
            content = content.replace(f"{line}\n", "")
        (files / "whole.toml").write_text(content, "utf-8")
    assert heed("train", whole, "--out", tmp_path / "whole", "--quiet")[0] == 0
    assert heed("train", whole, "--out", tmp_path / "again", "--quiet", "--set", "training.steps=4")[0] == 0
    assert heed("train", whole, "--out", tmp_path / "again", "--quiet", "--resume")[0] == 0
    for name in ("model", "training"):
        one, other = (
            load_file(tmp_path / run / "checkpoints" / "step-000006" / f"{name}.safetensors")
            for run in ("whole", "again")
        )
        assert one.keys() == other.keys() and all(one[key].equal(other[key]) for key in one)
    if "size" not in subwords:  # the lines are long enough to be shown
        assert "Pets: " in (tmp_path / "whole" / "samples" / "step-000006.txt").read_text("utf-8")


def test_what_is_read_is_said(heed, files, tmp_path):
    code, out, err = heed("train", recipe(files, "said", steps=1, every=1), "--out", tmp_path / "run")
    assert code == 0
    said = " ".join((out + err).split())
    assert "documents (paragraph) in" in said and "exceed the window of 12 and are split" in said
    assert "pets.txt: " in said and "tokens, weight 2, code Pets." in said


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        (
            ["task.reading=stream"],
            "has the weight 2, but a language model reads its text once: leave it out, or set task.reading",
        ),
        (["task.reading=random", "task.document=line"], "task.document is 'line', but task.reading is 'random'"),
        (["model.name=gpt2"], "the code Pets needs a vocabulary that supports codes"),
        (["task.window=20"], "task.window is 20, but the model has only 16 positions: lower it"),
        (["training.batch_tokens=5"], "training.batch_tokens is 5; it must hold at least one window"),
        (["subwords.kind=bytes"], "subwords.size is 60, but there are always 256 bytes: leave it out"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(heed, files, tmp_path, settings, error):
    changes = [word for setting in settings for word in ("--set", setting)]
    code, _, err = heed("train", recipe(files, "refused"), "--out", tmp_path / "run", "--quiet", *changes)
    assert code == 1 and error in " ".join(err.split())


def test_options_and_codes_that_mean_nothing_are_refused(heed, trained, files):
    text = files / "pets.test"
    for words, error in {
        ("score", trained, "--text", text, "--document", "paragraph"): "--document needs --codes",
        (
            "evaluate",
            trained,
            "--text",
            text,
            "--code",
            "Pet",
        ): "the model has no control code 'Pet'; did you mean Pets?",
        ("evaluate", trained, "--text", text, "--memory", 5): "memory is for models that have one (Transformer-XL)",
        ("evaluate", trained, "--source", text, "--stride", 5): "--stride is for language models: use it with --text",
        (
            "score",
            trained,
            "--text",
            text,
            "--codes",
            "--code",
            "Pets",
        ): "--code cannot be combined with --codes, which tries them all",
        (
            "score",
            trained,
            "--source",
            text,
            "--target",
            text,
            "--codes",
        ): "--codes is for language models: use it with --text",
    }.items():
        code, _, err = heed(*words)
        assert code == 1 and error in " ".join(err.split())

"""How long texts may be: those that are read whole, as long as the model has positions for, unless the recipe says otherwise."""

import dataclasses
import io
import json
import random
from types import SimpleNamespace

import pytest
from rich.console import Console

import heed
from heed.cli.main import main
from heed.data.filters import FilterReport
from heed.models.package import Package
from heed.runs.recipe import parse
from heed.runs.text_length import settled
from tests.contract.contract import train

LABELLED = {"data": {"tsv": ["a.tsv"]}, "task": {"name": "classification"}}
FILLER = list("abcdefghijklmnopqrst")


def base(positions):
    return Package(SimpleNamespace(config=SimpleNamespace(max_length=positions)), "masked", {}, {})


def limit(values, folder, base=None, resume=False):
    return settled(parse(values), base, folder, resume).filters.max_length


def test_a_text_may_fill_all_positions_of_a_new_model(tmp_path):
    for model, longest in (
        ({"name": "bigbird"}, 4095),
        ({"name": "bigbird", "max_length": 1024}, 1023),
        ({"name": "bert", "max_length": 128}, 127),  # fewer than the default for pairs
        ({"name": "gpt2"}, 255),  # of its smallest preset, since the data choose
        ({"name": "gpt2", "preset": "base"}, 1023),
    ):
        assert limit({**LABELLED, "model": model}, tmp_path) == longest


def test_a_text_may_fill_all_positions_of_the_model_that_a_run_starts_from(tmp_path):
    for task in ("classification", "regression", "multiple-choice", "embedding"):
        recipe = {**LABELLED, "task": {"name": task}, "model": {"folder": "runs/bigbird"}}
        if task == "multiple-choice":
            recipe["data"] = {"tsv": ["a.tsv"], "columns": ["question", "answers", "label"]}
        assert limit(recipe, tmp_path, base(4096)) == 4095
    translation = {"data": {"source": ["a"], "target": ["b"]}, "model": {"folder": "runs/en-de"}}
    assert limit(translation, tmp_path, base(4096)) == 256


def test_a_limit_that_is_set_or_that_a_run_began_with_stays(tmp_path):
    values = {**LABELLED, "model": {"name": "bigbird"}}
    assert limit({**values, "filters": {"max_length": 300}}, tmp_path) == 300
    began = parse(values)  # by a version with one limit for all
    (tmp_path / "recipe.toml").write_text(began.to_toml(), "utf-8")
    assert began.filters.max_length == 256
    assert limit(values, tmp_path, resume=True) == 256 and limit(values, tmp_path) == 4095


def documents(path, count, *, words=None, seed=1):
    """A table of texts of more than 512 words whose label repeats near the end, or of their first `words`."""
    rng, rows = random.Random(seed), ["text\tlabel"]
    for number in range(count):
        label = ("good", "bad")[number % 2]
        text = [*rng.choices(FILLER, k=rng.randint(515, 530)), *[label] * 12, *rng.choices(FILLER, k=3)]
        rows.append(f"{' '.join(text[:words])}\t{label}")
    path.write_text("\n".join(rows) + "\n", "utf-8")
    return [str(path)]


def long_recipe(folder, positions, words=None, steps=80):
    shape = {"dim": 16, "heads": 2, "hidden": 32, "layers": 1, "block": 8, "random_blocks": 1}
    return parse({
        "data": {"tsv": documents(folder / "train.tsv", 200, words=words), "columns": ["text", "label"],
                 "valid_tsv": documents(folder / "valid.tsv", 20, words=words, seed=2)},
        "task": {"name": "classification", "label_smoothing": 0.0}, "subwords": {"size": 60},
        "filters": {"duplicates": False, "overlap": False},
        "model": {"name": "bigbird", "max_length": positions, "init_positions": "sinusoids", "dropout": 0.0, "attention_dropout": 0.0, **shape},
        "training": {"steps": steps, "valid_every": steps, "batch_tokens": 4500, "schedule": "cosine", "rate": 0.02, "warmup": 5, "threads": 1, "device": "cpu", "samples": 1},
    })  # fmt: skip


def accuracy(run, table, capsys):
    words = ["--tsv", table, "--samples", "10", "--device", "cpu", "--json", str(run / "found.json")]
    assert main(["evaluate", str(run), *words]) == 0
    value = json.loads((run / "found.json").read_text("utf-8"))["scores"]["accuracy"]["value"]
    return value, capsys.readouterr().err


def test_long_documents_are_kept_and_read_to_their_end(tmp_path, capsys):
    said, test = io.StringIO(), documents(tmp_path / "test.tsv", 40, seed=3)[0]
    console = Console(file=said, width=1000)
    assert train(long_recipe(tmp_path, 640), tmp_path / "whole", console=console).how == "finished"
    assert "200 pairs to train on, of 200; filtered out: none" in said.getvalue()
    assert heed.load(tmp_path / "whole", "cpu").room > 512
    assert accuracy(tmp_path / "whole", test, capsys) == (100.0, "")
    cut = long_recipe(tmp_path, 128, words=100, steps=30)  # a model that sees the beginnings alone cannot learn it
    assert train(cut, tmp_path / "cut").how == "finished"
    value, warned = accuracy(tmp_path / "cut", test, capsys)
    assert value <= 75 and warned == (
        f"{tmp_path / 'cut'}: 40 of 40 texts were cut to 126 subwords, the most that the model reads.\n"
    )


def test_what_is_too_long_to_be_trained_on_is_told_with_a_way_out(tmp_path):
    with pytest.raises(ValueError, match=r"no training pair is left: of 200, .* longer than filters\.max_length"):
        train(long_recipe(tmp_path, 128), tmp_path / "run")
    task, report = long_recipe(tmp_path, 640).task, FilterReport(200, 150)
    report.taken["length"] = 50
    data = SimpleNamespace(train=SimpleNamespace(report=report, reports=[report], folder=tmp_path), valid=[])
    validation = SimpleNamespace(too_long=lambda most: 0, size=0)
    for limit, way in (
        (300, "raise it."),
        (639, "shorten them, or start from a model with more positions, such as BigBird."),
    ):
        recipe = long_recipe(tmp_path, 640)
        recipe = dataclasses.replace(recipe, filters=dataclasses.replace(recipe.filters, max_length=limit))
        assert task.notes(recipe, data, validation, 640) == [
            f"50 pairs are too long and are not trained on (filters.max_length is {limit}, the model has 640 "
            f"positions): {way}"
        ]

"""What bench/road.py asks of `heed train` is what recipes have. How good it is, no test asks."""

import argparse
import json
import sys
from pathlib import Path

import pytest
from bench import road

from heed.config import assignment
from heed.runs.recipe import read
from tests.helpers import config_for


@pytest.fixture
def args(tmp_path):
    for name in ("train", "val", "test_2016_flickr"):
        (tmp_path / f"{name}.de").write_text("ein Hund\n")
        (tmp_path / f"{name}.en.gz").write_bytes(b"")
    return argparse.Namespace(
        data=tmp_path, out=tmp_path / "out", steps=7, set=["model.dim=8"], device="cpu", phrasebook_steps=9
    )


def recipe(words):
    """The recipe that a command of `heed train` trains by."""
    at = words.index("train")
    settings = [assignment(words[i + 1]) for i, word in enumerate(words) if word == "--set"]
    return read(Path(words[at + 1]), settings)


@pytest.mark.parametrize("name", road.SYSTEMS)
def test_every_system_is_one_that_heed_can_train(args, name):
    (words,) = road.commands(args, [name]).values()
    own = recipe(words)
    config = config_for(own.model, 29_000)
    assert (own.training.steps, config.dim) == (7, 8)
    assert own.data.source == [str(args.data / "train.de")] and own.data.valid_target == [str(args.data / "val.en.gz")]
    attends = getattr(config, "attention", "on") != "off"
    assert attends == road.SYSTEMS[name].aligned
    for words in road.phrasebook_commands(args, [name]).values():
        own = recipe(words)
        assert (own.training.steps, own.data.phrasebook) == (9, None)
        assert own.data.target == [str(args.out / "phrasebook" / "train.en")]


def test_the_systems_differ_in_what_they_are_called_after():
    kinds = [(str(system.recipe), system.settings) for system in road.SYSTEMS.values()]
    assert len(set(kinds)) == len(kinds) and set(road.BOTTLENECK) <= set(road.SYSTEMS)


def test_data_that_is_not_there_is_said(tmp_path):
    with pytest.raises(
        ValueError, match=r"has no train\.de and no train\.de\.gz: --data wants the raw text of Multi30k"
    ):
        road.files(tmp_path)


def test_what_is_trained_is_not_trained_again_and_what_fails_says_where(tmp_path, capsys):
    done, bad = tmp_path / "runs" / "done", tmp_path / "runs" / "bad"
    done.mkdir(parents=True)
    (done / "took.json").write_text("{}")
    road.run_all({done: ["no such command"]}, parallel=2)
    assert capsys.readouterr().out == "runs/done: there already\n"
    with pytest.raises(ValueError, match=r"bad could not be trained: .*bad\.txt says why"):
        road.run_one(bad, [sys.executable, "-c", "raise SystemExit('no')"])
    assert (tmp_path / "runs" / "bad.txt").read_text() == "no\n"


def test_tables_and_pictures(args):
    args.out.mkdir()
    (args.out / "runs").mkdir()
    found = [
        {"name": name, "title": road.SYSTEMS[name].title, "bar": road.SYSTEMS[name].bar, "bleu": 30.0, "bleu_lowercase": 31.0,
         "bleu_greedy": 29.0, "chrf": 50.0, "signatures": ["a|b"], "weights": 5_000_000, "seconds": 90.0,
         "tokens_per_second": 1234.5, "curve": [[500, 10.0], [1000, 20.0]], "said": ["a dog", "two dogs run here"]}
        for name in ("lstm", "bahdanau")
    ]  # fmt: skip
    found[1] |= {"aer": 12.34, "precision": 90.0, "recall": 80.0, "phrasebook_bleu": 95.0}
    road.write(args, found, ["ein Hund", "zwei Hunde rennen hier"], ["a dog", "two dogs run here"])
    text = (args.out / "road.md").read_text("utf-8")
    assert "| LSTM, fixed vector | **30.00** | 31.00 | 29.00 | 13.76 | 50.00 | 5.0 M | 1.5 | 1,234 |  |" in text
    assert "| additive, look then step | 12.3 | 90.0 | 80.0 | 95.0 |" in text and "`a|b`" in text
    assert [own["name"] for own in json.loads((args.out / "road.json").read_text("utf-8"))] == ["lstm", "bahdanau"]
    assert (args.out / "runs" / "lstm.hyp").read_text() == "a dog\ntwo dogs run here\n"
    assert all((args.out / name).stat().st_size > 1000 for name in ("curves.png", "bottleneck.png"))

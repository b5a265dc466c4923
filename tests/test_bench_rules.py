"""What a rule is worth: which settings differ without it, and the interval of the difference."""

import argparse
import json

import pytest
from bench import rules
from sacrebleu.metrics import BLEU

from heed.runs import recipe
from heed.runs.defaults import RULES, Facts
from heed.runs.text_amount import Amount


def test_without_a_rule_its_own_settings_differ():
    by_title = {rule.title: rule.choose(Facts(Amount(1000, 3_000_000, 3_000_000, 750_000), gpu=True)) for rule in RULES}
    assert list(by_title) == list(rules.WITHOUT)
    for title, settings in rules.WITHOUT.items():
        assert set(settings) <= set(by_title[title]), title


@pytest.fixture
def corpus(tmp_path):
    """Two files and their validation files, for 4,000 characters."""
    for name, lines in {"train": 40, "valid": 3}.items():
        for side in ("en", "de"):
            text = "".join(f"{side} {name} {i} {'word ' * 9}\n" for i in range(lines))
            (tmp_path / f"{name}.{side}").write_text(text, encoding="utf-8", newline="\n")
    return ["own", *(str(tmp_path / name) for name in ("train.en", "train.de", "valid.en", "valid.de"))]


@pytest.fixture
def options(tmp_path, corpus, monkeypatch):
    monkeypatch.setattr("heed.runs.choosing.tokens_per_second", lambda *_: 1e9)
    (tmp_path / "out").mkdir()
    words = ["--corpus", *corpus, "--out", str(tmp_path / "out"), "--time", "60s", "--at-once", "3", "--device", "cpu"]
    return rules.parser().parse_args(words)


def test_each_rule_that_changed_something_has_a_run(options, capsys):
    jobs = {job.name: job for job in rules.jobs(options)}
    assert "20 s at most" in capsys.readouterr().out  # the rules know what share of the time a run has
    assert list(jobs) == ["own", "own-size", "own-regularization", "own-vocabulary", "own-batches", "own-learning-rate", "own-end", "own-weights", "own-beam", "own-search"]  # fmt: skip
    assert jobs["own-weights"].command[-4:] == ("--set", 'training.final="best"', "--set", "training.ema=0.0")
    assert jobs["own-search"].after == ("own",) and jobs["own"].share == pytest.approx(1 / 3)
    assert "60s" in jobs["own-end"].command
    rules.jobs(options)
    assert not capsys.readouterr().out  # chosen once


def test_runs_of_as_many_steps_read_the_same_data(options):
    options.steps, options.settings = 200, ["training.valid_every=50"]
    jobs = {job.name: " ".join(job.command) for job in rules.jobs(options)}
    chosen = recipe.read(options.out / "own.toml", []).training
    assert chosen.steps == 200 and chosen.time is None and "--time" not in jobs["own"]
    ratio = chosen.batch_tokens / 4096
    ends = (
        f"training.batch_tokens=4096 --set training.steps={200 * ratio:.0f} --set training.valid_every={50 * ratio:.0f}"
    )
    assert jobs["own-batches"].endswith(ends)
    assert "training.steps" not in jobs["own-size"]


def test_a_rule_that_chose_the_usual_settings_changes_nothing(tmp_path):
    text = "[data]\nphrasebook = 10\n[model]\ndropout = 0.1\n[training]\nrate = 0.001\nwarmup = 70\n"
    (tmp_path / "usual.toml").write_text(text, encoding="utf-8", newline="\n")
    assert rules.changes(tmp_path / "usual.toml", "regularization") == {}
    assert rules.changes(tmp_path / "usual.toml", "learning rate") == {"training.warmup": 1000}


GOOD = ["the cat sat on the mat", "a dog runs in the park now", "two men play chess at home"] * 5
BAD = ["the cat sat on a mat", "a dog runs in the dark now", "two men play at home"] * 5


def test_the_gain_is_the_difference_of_the_scores_and_lies_in_its_interval():
    value, low, high = rules.gain(GOOD, BAD, GOOD, 200)
    scores = [BLEU().corpus_score(own, [GOOD]).score for own in (GOOD, BAD)]
    assert value == pytest.approx(scores[0] - scores[1]) and low < value < high
    assert rules.gain(BAD, BAD, GOOD, 10) == [0.0, 0.0, 0.0]
    swapped = rules.gain(BAD, GOOD, GOOD, 200)
    assert swapped == pytest.approx([-value, -high, -low])


def test_a_run_that_has_not_ended_has_no_gain(options):
    rules.jobs(options)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            rules.final_validation, "read", lambda folder: argparse.Namespace(outputs=[("", own, own) for own in GOOD])
        )
        found = rules.results(options, {"own", "own-size"})["own"]
    assert (
        "gain" in found["rules"]["size"] and "gain" not in found["rules"]["end"] and found["bleu"] == pytest.approx(100)
    )


def test_the_table_has_a_dash_for_no_change_and_nothing_for_a_missing_run():
    found = {"a": {"bleu": 40.0, "rules": {"size": {"without": {}, "gain": [1.0, 0.5, 1.5]}, "end": {"without": {}}}}, "b": {"bleu": None, "rules": {}}}  # fmt: skip
    _, _, first, size, end = rules.table(json.loads(json.dumps(found)), ["size", "end"])
    assert first == "| as chosen | 40.00 |  |"
    assert size == "| size | +1.00 (+0.50 to +1.50) | – |" and end == "| end |  | – |"


def test_what_the_rules_are_told(tmp_path):
    made = argparse.Namespace(time="10m", at_once=4, told=None)
    assert rules.told(made) == 150 and rules.told(argparse.Namespace(time="10m", at_once=4, told="1h")) == 3600

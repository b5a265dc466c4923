"""Each piece of advice appears where its measurement calls for it, with the numbers, and nowhere else."""

import argparse
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from heed.cli import translate
from heed.cli.train import add, settings
from heed.data.contamination import Seen
from heed.data.filters import FilterReport
from heed.evaluation.analysis import Analysis, LengthGroup, WordGroup
from heed.evaluation.translation import Metric, Scores
from heed.runs.ending import can_extend
from heed.runs.recipe import parse, read
from heed.runs.report.advice import RULES, advise
from heed.runs.report.findings import Findings, SetScores, TrainingText
from heed.runs.report.log import TrainingLog
from heed.runs.validation_history import ValidationHistory
from heed.tasks.subwords import check_subwords
from heed.training.duration import seconds_of

FILES = {"source": ["a.en"], "target": ["a.de"], "valid_source": ["v.en"], "valid_target": ["v.de"]}
SCORES = Scores(Metric("BLEU", 30.0, "b"), Metric("chrF2", 50.0, "c"), Metric("TER", 55.0, "t"), 1000)
STEPS = [100.0 * at for at in range(1, 21)]


def recipe(**sections):
    return parse({"data": FILES} | sections)


def log(train=None, loss=None, chrf=None, rate=None) -> TrainingLog:
    """A run that has converged: the loss falls to 1.9 and stays near the validation loss."""
    train = train or [1.9 + 4 * 0.97**at for at in range(200)]
    loss, chrf = loss or [2.0] * 20, chrf or [40.0, *[50.0] * 10, 50.2, *[50.1] * 8]
    points = {name: list(zip(STEPS, values, strict=True)) for name, values in (("loss", loss), ("chrf", chrf))}
    rates = [(10.0 * at, (rate or (lambda at: 1e-3))(at)) for at in range(1, 201)]
    steps = [(10.0 * (at + 1), value) for at, value in enumerate(train)]
    return TrainingLog(steps, points, rates, [(10.0, 500.0)], 60.0, 3, True, "step 1,200")


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser()
    add(found)
    return found


def words(*counts) -> list[WordGroup]:
    starts = ((0, 0), (1, 5), (6, 20), (21, 100), (101, None))
    return [WordGroup(*ends, *own) for ends, own in zip(starts, counts, strict=True)]


HEALTHY = Analysis(
    1000,
    [LengthGroup(6, 10, 900, 31.0, 51.0), LengthGroup(21, 30, 100, 28.0, 48.0)],
    words((100, 20), (300, 180), (600, 400), (2000, 1500), (7000, 6000)),
    60, 55, 58, 1.0, 3, 3, 0,
)  # fmt: skip


def findings(**changes) -> Findings:
    """A run that needs no advice, but for the changes. `analysis` are changes too."""
    analysis = replace(HEALTHY, **changes.pop("analysis", {}))
    text, overlap = TrainingText(20_000, 20_000, {}), changes.pop("overlap", 0)
    seen = Seen(overlap, 0, overlap, 1000, 1.0)
    width = changes.pop("width", 1.2)
    found = Findings(
        Path("runs/x"), "Translator", recipe(), log(), {"name": "transformer", "dim": 128, "dropout": 0.1, "vocab_size": 4000}, {}, {},
        FilterReport(1000, 990, {"duplicate": 10}), [SetScores("validation set", SCORES, {"bleu": width}, 1)], [],
        analysis, text, seen,
    )  # fmt: skip
    return replace(found, **changes)


def names(found: Findings) -> list[str]:
    return [advice.name for advice in advise(found)]


def test_a_run_without_faults_gets_no_advice():
    assert advise(findings()) == []


def test_a_metric_that_was_best_early_says_nothing_while_the_validation_loss_still_falls():
    chrf = [40.0, 45.0, 52.0, *[48.0] * 17]
    assert names(findings(log=log(chrf=chrf))) == ["best early"]
    assert names(findings(log=log(chrf=chrf, loss=[2.3] * 3 + [2.0] * 17))) == []


RISING = [30.0 + at for at in range(20)]
TIMED = {"ended_by": "time", "cooldown_from": 1500}
CASES = {
    "out of time": (
        {"log": replace(log(chrf=RISING), **TIMED), "recipe": recipe(training={"time": "6m"})},
        {"log": replace(log(), **TIMED), "recipe": recipe(training={"time": "6m"})},
        ("its time, 6 min, was over", "chrF still rose by 1.00 per 100 steps: 40.00 at step 1,100, 44.00 at step 1,500", "--resume --time +6m"),
    ),
    "diverged": (
        {"log": log(train=[*[3.0] * 100, *[2.0] * 90, *[2.6] * 10], loss=[2.7] * 20)},
        {"log": log(train=[*[3.0] * 100, *[2.0] * 90, *[2.1] * 10])},
        ("2.00", "2.60", "training.rate=0.0005"),
    ),
    "still improving": (
        {"log": log(chrf=RISING)},
        {"log": log(chrf=[*RISING[:15], *[45.0] * 5])},
        ("44.00 at step 1,500", "49.00 at step 2,000", "heed train --out runs/x --resume --set training.steps=4000"),
    ),
    "more patience": (
        {"log": replace(log(loss=[2.2] * 11 + [2.1] * 3 + [2.0] * 6), ended_by="patience"), "recipe": recipe(training={"patience": 8})},
        {"log": replace(log(loss=[2.1] * 11 + [2.1] * 3 + [2.2] * 6), ended_by="patience"), "recipe": recipe(training={"patience": 8})},
        ("no better in 8 validations", "2.100 at step 1,200, 2.000 at step 2,000", "--resume --set training.patience=16"),
    ),
    "best early": (
        {"log": log(chrf=[40.0, 45.0, 52.0, *[48.0] * 17])},
        {"log": log(chrf=[40.0, 45.0, 50.2, *[50.1] * 17])},
        ("best at step 300 (52.00)", "48.00 at step 2,000", "training.patience=3"),
    ),
    "overfitted": (
        {"log": log(train=[1.0] * 200)},
        {"log": log(train=[1.75] * 200)},
        ("training loss was 1.00", "validation loss 2.00", "model.dropout=0.2", "R-Drop", "BPE-dropout"),
    ),
    "too small": (
        {"log": log(train=[*[4.0] * 50, *[2.4] * 150])},
        {"log": log(train=[*[4.0] * 50, *[1.9] * 150])},
        ("2.40, then 2.40", "validation loss (2.00)", "model.dim is 128"),
    ),
    "overlap": ({"overlap": 37}, {"overlap": 9}, ("37 of 1,000 test pairs", "3.7%")),
    "wide interval": ({"width": 4.2}, {"width": 1.9}, ("1,000 sentences", "30.0 ± 4.2")),
    "filtered": (
        {"filters": FilterReport(1000, 700, {"duplicate": 200, "empty": 100})},
        {"filters": FilterReport(1000, 910, {"duplicate": 90})},
        ("300 of 1,000", "30%", "200 for a duplicate pair", "filters.rejected="),
    ),
    "unseen words": (
        {"analysis": {"words": words((1000, 50), (300, 180), (600, 400), (2000, 1500), (7000, 6000))}},
        {"analysis": {"words": words((400, 20), (300, 180), (600, 400), (2000, 1500), (7000, 6000))}},
        ("9.2%", "5% of them"),
    ),
    "rare words": (
        {"analysis": {"words": words((100, 20), (300, 60), (600, 400), (2000, 1500), (7000, 5600))}},
        {"analysis": {"words": words((100, 20), (300, 130), (600, 400), (2000, 1500), (7000, 5600))}},
        ("1 to 5 times", "20%", "101 times or more, 80%", "4,000 subwords", "subwords.size=2000"),
    ),
    "too short": ({"analysis": {"length_ratio": 0.84}}, {"analysis": {"length_ratio": 0.96}}, ("0.84", "--length-penalty 1")),
    "too long": ({"analysis": {"length_ratio": 1.3}}, {"analysis": {"length_ratio": 1.04}}, ("1.30", "--length-penalty 0.2")),
    "loops": ({"analysis": {"loops": 40}}, {"analysis": {"loops": 9}}, ("40 of 1,000", "4.0%", "heed report runs/x --source FILE --reference FILE")),
    "copies": ({"analysis": {"copies": 25}}, {"analysis": {"copies": 9}}, ("25 of 1,000", "2.5%")),
    "empty": ({"analysis": {"empty": 12}}, {"analysis": {"empty": 9}}, ("12 of 1,000", "1.2%", "--min-length")),
    "numbers": (
        {"analysis": {"numbers_kept": 30}},
        {"analysis": {"numbers_kept": 8, "numbers_in_references": 9}},
        ("30 of the 60", "references have 58"),
    ),
    "long sources": (
        {"analysis": {"lengths": [LengthGroup(6, 10, 900, 31.0, 51.0), LengthGroup(21, 30, 50, 12.0, 30.5)]}},
        {"analysis": {"lengths": [LengthGroup(6, 10, 900, 31.0, 51.0), LengthGroup(21, 30, 5, 12.0, 30.5)]}},
        ("21 to 30 words", "30.5", "50.0"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_advice_appears_with_its_numbers_and_only_where_it_must(name):
    must, must_not, parts = CASES[name]
    (advice,) = advise(findings(**must))
    assert advice.name == name
    said = f"{advice.measured} {advice.action} {advice.command}"
    assert [part for part in parts if part not in said] == []
    assert name not in names(findings(**must_not))


def test_every_rule_has_a_case():
    assert len(RULES) == len(CASES) - 1  # "too short" and "too long" are one rule


def test_a_schedule_that_has_ended_is_not_resumed():
    (advice,) = advise(findings(log=log(chrf=RISING, rate=lambda at: 1e-3 * (1 - at / 200))))
    assert advice.name == "still improving" and "--resume" not in advice.command
    assert "decayed to 0 by then" in advice.action


@pytest.mark.parametrize(
    ("ended_by", "time", "command"),
    [
        ("steps", None, "--set training.steps=4000"),
        ("time", "1h", "--time +1h"),
        ("time", "5400s", "--time +1h30m"),
        ("time", "40s", "--time +5m"),
    ],
)
def test_a_run_that_has_cooled_down_is_extended(ended_by, time, command):
    """Its rate is zero at the end, but it goes on from before."""
    ended = replace(log(chrf=RISING, rate=lambda at: 1e-3 * (1 - at / 200)), ended_by=ended_by, cooldown_from=1500)
    (advice,) = advise(findings(log=ended, recipe=recipe(training={"time": time, "cooldown": 0.25})))
    name, words = (
        ("out of time", "per 100 steps:") if time else ("still improving", "when the learning rate began to decay:")
    )
    assert advice.name == name and advice.command == f"heed train --out runs/x --resume {command}"
    assert f"{words} 40.00 at step 1,100, 44.00 at step 1,500" in advice.measured
    args = parser().parse_args(shlex.split(advice.command)[2:])
    changed = read(None, [(f"data.{name}", value) for name, value in FILES.items()] + settings(args)).training
    record = ValidationHistory(ends_at=2000, cooldown_from=1500, ended_by=ended_by, budget=time and seconds_of(time))
    assert args.resume and can_extend(changed, record), "the command does what it is said to do"


def timed(steps: int, epochs: int = 1, **points) -> Findings:
    """A run of so many steps that its time ended, with faults in its outputs, and only these validations."""
    found = findings(recipe=recipe(training={"time": "40s"}), analysis={"loops": 400, "empty": 100}, width=5.0)
    valid = {name: [(float(step), value) for step, value in own.items()] for name, own in points.items()}
    train = [(20.0 * at, 8.0 - 0.1 * at) for at in range(1, steps // 20 + 1)]
    own = replace(
        found.log, epochs=epochs, train=train, rate=[], valid=valid, ended_by="time", cooldown_from=3 * steps // 4
    )
    return replace(found, log=own)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (timed(400, chrf={100: 18.7, 200: 23.1, 300: 25.3, 400: 40.0}, loss={100: 5.0}), "the chrF still rose by 2.20 per 100 steps: 23.10 at step 200, 25.30 at step 300"),
        (timed(400, chrf={100: 2.0, 200: 1.9, 400: 4.0}, loss={100: 5.2, 200: 4.4, 400: 4.0}), "the validation loss still fell by 0.800 per 100 steps: 5.200 at step 100, 4.400 at step 200"),
        (timed(400, chrf={400: 4.0}, loss={400: 4.0}), "the training loss still fell by 0.500 per 100 steps: 7.200 at step 180, 6.600 at step 300"),
        (timed(100, chrf={100: 4.0}, loss={100: 4.0}), "the training loss still fell by 0.500 per 100 steps: 7.800 at step 40, 7.700 at step 60"),
        (timed(20, chrf={20: 0.1}, loss={20: 8.0}), "it was in its first pass over the training text, at step 20"),
    ],
)  # fmt: skip
def test_a_run_that_ran_out_of_time_is_first_of_all_to_be_trained_longer(found, words):
    """By the metric, or what else was measured before the cool-down; its faulty outputs come after that."""
    first, *others = advise(found)
    assert first.name == "out of time" and {"loops", "empty", "wide interval"} <= {advice.name for advice in others}
    assert first.measured == f"The run ended because its time, 40 s, was over, while {words}."
    assert first.command == "heed train --out runs/x --resume --time +5m"


@pytest.mark.parametrize(
    "found",
    [
        timed(400, chrf={100: 23.1, 200: 25.3, 300: 25.2, 400: 40.0}, loss={100: 4.0, 200: 3.9, 300: 3.9}),
        timed(400, chrf={300: 25.30, 280: 25.2}, loss={280: 3.0, 300: 2.99}),
        timed(20, epochs=2, chrf={20: 4.0}, loss={20: 4.0}),
    ],
)
def test_a_run_whose_time_was_over_without_a_measured_gain_is_not_told_so(found):
    assert "out of time" not in names(found)


def test_what_a_cooldown_gains_is_no_reason_to_train_longer():
    gained = [*[50.0] * 14, 50.1, 52.0, 53.0, 54.0, 54.5, 55.0]
    assert names(findings(log=log(chrf=gained))) == ["still improving"]
    assert names(findings(log=replace(log(chrf=gained), ended_by="patience", cooldown_from=1500))) == []


def test_a_run_that_has_not_ended_is_resumed():
    (advice,) = advise(findings(log=replace(log(chrf=RISING), finished=False)))
    assert advice.command == "heed train --out runs/x --resume"


def test_a_metric_where_less_is_better_is_followed_downwards():
    falling = findings(recipe=recipe(training={"metric": "loss"}), log=log(loss=[4.0 - 0.1 * at for at in range(20)]))
    assert names(falling) == ["still improving"]
    assert "validation loss was best at the very end: 2.600 at step 1,500, 2.100" in advise(falling)[0].measured


def test_what_is_on_already_is_not_advised():
    careful = recipe(task={"r_drop": 5.0}, subwords={"sampling": 0.1})
    (advice,) = advise(findings(recipe=careful, log=log(train=[1.0] * 200)))
    assert advice.action == "Use more dropout (it is 0.1) or more data."


def test_outputs_that_are_long_because_they_loop_get_one_piece_of_advice():
    assert names(findings(analysis={"length_ratio": 2.1, "loops": 400})) == ["loops"]


LOOPS = {
    "validation, guards on": (False, {}, "Validation searches without guards", "heed report runs/x --source FILE"),
    "validation, guards off": (
        False,
        {"avoid_loops": False},
        "switch on the guard",
        "heed translate runs/x --avoid-loops",
    ),
    "test set, guards off": (
        False,
        {"avoid_loops": False},
        "switch on the guard",
        "heed translate runs/x --avoid-loops",
    ),
    "test set, guards on": (True, {}, "block repetitions, too", "heed translate runs/x --no-repeat 4"),
    "test set, all on": (True, {"no_repeat": 4}, "Train it longer, or on more data.", ""),
}


@pytest.mark.parametrize("name", LOOPS)
def test_advice_on_loops_names_what_is_not_on_yet(name):
    guarded, decoding, action, command = LOOPS[name]
    sets = [replace(findings().sets[0], name=name.partition(",")[0], guarded=guarded)]
    (advice,) = advise(findings(analysis={"loops": 40}, sets=sets, recipe=recipe(decoding=decoding)))
    assert action in advice.action and advice.command.startswith(command) and bool(command) == bool(advice.command)
    if advice.command.startswith("heed translate"):  # the command exists
        options = argparse.ArgumentParser()
        translate.add(options)
        options.parse_args(shlex.split(advice.command.partition(" <")[0])[2:])


RARE = {
    "subwords": ({}, {}, "Use BPE-dropout, a smaller vocabulary (it has 4,000 subwords) or more data.", "--set subwords.size=2000"),
    "sampled already": ({"subwords": {"sampling": 0.1}}, {}, "Use a smaller vocabulary (it has 4,000", "--set subwords.size=2000"),
    "small already": ({}, {"vocab_size": 1500}, "Use BPE-dropout or more data.", "--set subwords.sampling=0.1"),
    "given subwords": ({"subwords": {"source_model": "a.spm", "target_model": "a.spm"}}, {}, "Use BPE-dropout or more data.", "--set subwords.sampling=0.1"),
    "words": ({"subwords": {"kind": "words"}}, {}, "Use subwords instead of whole words or more data.", '--set subwords.kind="bpe"'),
    "another model's": ({"model": {"folder": "runs/base"}}, {}, "Use more data.", ""),
    "its family's": ({"model": {"name": "bart"}}, {}, "Use a smaller vocabulary (it has 4,000 subwords) or more data.", "--set subwords.size=2000"),
}  # fmt: skip


@pytest.mark.parametrize("name", RARE)
def test_advice_on_rare_words_changes_something_for_this_model(name):
    own, model, action, command = RARE[name]
    rare = {"words": words((100, 20), (300, 60), (600, 400), (2000, 1500), (7000, 5600))}
    given = findings(recipe=recipe(**own), analysis=rare)
    (advice,) = advise(replace(given, model={**given.model, **model}))
    assert advice.action.startswith(action) and advice.command == command
    if advice.command:  # the setting exists and applies to this model
        name, value = advice.command.removeprefix("--set subwords.").split("=")
        changed = recipe(**own | {"subwords": own.get("subwords", {}) | {name: eval(value)}})
        check_subwords(changed.task, changed)


def test_words_that_were_counted_in_a_part_of_the_text_are_said_to_be():
    rare = {"words": words((100, 20), (300, 60), (600, 400), (2000, 1500), (7000, 5600))}
    (advice,) = advise(findings(analysis=rare, text=TrainingText(800_000, 500_000, {})))
    assert "1 to 5 times in the first 500,000 of the 800,000 training pairs, 20%" in advice.measured


def test_greedy_outputs_are_said_to_be_greedy():
    short = findings(analysis={"length_ratio": 0.8})
    assert "greedy" in advise(short)[0].action
    beam = replace(short, sets=[replace(short.sets[0], beam=5)])
    assert "greedy" not in advise(beam)[0].action


def test_more_pairs_can_be_set_aside_where_no_validation_files_are_named():
    own = recipe(data={"source": ["a.en"], "target": ["a.de"], "holdout": 100})
    assert advise(findings(recipe=own, width=4.0))[0].command == "--set data.holdout=400"


def test_a_run_of_which_little_is_known_gets_no_advice():
    nothing = TrainingLog([], {}, [], [], 0.0, 0, False)
    bare = replace(findings(), log=nothing, filters=None, sets=[], analysis=None, text=None, model={})
    assert advise(bare) == []


def test_a_gain_of_less_than_one_per_cent_is_none():
    slow = [30.0, 40.0, *[50.0 + 0.01 * at for at in range(18)]]
    assert names(findings(log=log(chrf=slow))) == []
    assert names(findings(log=log(chrf=[*slow[:-1], 51.0]))) == ["still improving"]

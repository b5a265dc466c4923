"""What heed train chooses when nothing is set."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from heed.runs.defaults import (
    EPOCHS,
    GPU_EXAMPLE,
    LARGE,
    LEAST,
    MEDIUM,
    RULES,
    SMALL,
    TINY,
    TUNING_RULES,
    WORTH,
    Facts,
    budget,
    choose,
    summary,
)
from heed.runs.text_amount import Amount
from tests.test_docs import anchors

NOTHING: frozenset[str] = frozenset()


def text(pairs, characters, weight=1):
    """Letters of one corpus with this weight."""
    return Amount(pairs, characters, weight * characters, weight * characters / 4)


def chosen(facts, explicit=NOTHING):
    return {name: value for choice in choose(facts, explicit) for name, value in choice.settings.items()}


def size(settings):
    return tuple(settings[f"model.{n}"] for n in ("dim", "heads", "hidden", "encoder_layers", "decoder_layers"))


@pytest.mark.parametrize(
    ("characters", "expected"), [(300_000, SMALL), (3_800_000, MEDIUM), (11_000_000, LARGE), (2_000_000_000, LARGE)]
)
def test_the_size_grows_with_the_corpus(characters, expected):
    assert size(chosen(Facts(text(1000, characters), gpu=True))) == expected


def test_regularization_falls_with_the_corpus():
    rates = [chosen(Facts(text(1000, n), gpu=True)) for n in (3_000_000, 11_000_000, 900_000_000)]
    assert [found["task.r_drop"] for found in rates] == [5.0, 2.0, 0.0]
    assert [found["model.dropout"] for found in rates] == [0.3, 0.2, 0.1]
    assert [found["subwords.sampling"] for found in rates] == [0.1, 0.1, 0.0]


@pytest.mark.parametrize(
    ("characters", "expected"),
    [
        (799_999, 4000),
        (800_000, 8000),
        (4_999_999, 8000),
        (5_000_000, 16_000),
        (20_000_000, 16_000),
        (45_000_000, 24_000),
        (79_000_000, 32_000),
        (10**10, 32_000),
    ],
)
def test_the_vocabulary_grows_with_the_corpus(characters, expected):
    assert chosen(Facts(text(1000, characters), gpu=True))["subwords.size"] == expected
    assert chosen(Facts(text(1000, characters), gpu=False))["subwords.size"] == 4000


def test_above_five_million_characters_the_vocabulary_grows_without_jumps():
    sizes = [chosen(Facts(text(1000, n), gpu=True))["subwords.size"] for n in range(5_000_000, 100_000_000, 100_000)]
    assert {after - before for before, after in pairwise(sizes)} == {0, 1000}


def test_weights_count_where_an_epoch_is_meant_and_not_where_the_text_is():
    """Text that is read twice is no more text to learn from, but it makes an epoch twice as long."""
    once, often, seldom = (chosen(Facts(text(30_000, 4_900_000, weight), gpu=True)) for weight in (1, 8, 0.1))
    assert once["training.batch_tokens"] == seldom["training.batch_tokens"] == 8192
    assert {name for name in once if once[name] != often[name]} == {"training.batch_tokens"}
    assert often["training.batch_tokens"] == 16_384 and once == seldom
    long, longer = (chosen(Facts(text(10**6, 90_000_000, weight), gpu=True)) for weight in (1, 1.1))
    assert longer["training.steps"] > long["training.steps"] > 8000
    assert size(long) == size(longer) and long["subwords.size"] == longer["subwords.size"] == 32_000


def test_a_time_has_fewer_passes_over_a_corpus_that_is_read_more_often():
    facts = Facts(text(29_000, 3_800_000), gpu=True, seconds=600.0, speed=lambda wanted: 100_000.0)
    twice = replace(facts, text=text(29_000, 3_800_000, 2))
    assert facts.epochs(MEDIUM) == pytest.approx(2 * twice.epochs(MEDIUM), rel=1e-4)
    assert chosen(facts)["task.r_drop"] == 5.0 and chosen(twice)["task.r_drop"] == 0.0, "below 60 passes"
    slower = replace(facts, speed=lambda wanted: 25_000.0)
    assert size(chosen(slower)) == MEDIUM and size(chosen(replace(slower, text=twice.text))) == TINY


def test_fine_tuning_steps_and_batches_go_by_the_epoch():
    once, often = (chosen(Facts(text(1000, 500_000, weight), gpu=True, tuning=True)) for weight in (1, 3))
    assert (once["training.batch_tokens"], often["training.batch_tokens"]) == (1024, 2048)


def test_weights_are_told():
    facts = Facts(text(500, 3_800_000, 2), gpu=True)
    assert summary(facts, choose(facts, NOTHING))[0] == (
        "Chosen for 500 pairs (3.8 million characters, 7.6 with weights) on a GPU:"
    )


def test_a_smaller_size_has_nothing_more_of_anything():
    for larger, smaller in pairwise(EPOCHS):
        assert smaller != larger and all(few <= many for few, many in zip(smaller, larger, strict=True))
    assert all(width % heads == 0 for width, heads, *_ in EPOCHS)


@pytest.mark.parametrize(("passes", "expected"), [(1, LEAST), (8, TINY), (30, SMALL), (3000, MEDIUM)])
def test_in_a_time_the_size_is_what_sees_the_corpus_often_enough(passes, expected):
    """A model of half the width trains three times as fast."""
    tokens = Facts(text(29_000, 3_800_000), gpu=False).tokens

    def speed(wanted):
        return (
            passes
            * tokens
            / 0.85
            / 600
            * {512: 0.1, 256: 1.0, 128: 3.0}[wanted[0]]
            / {LEAST: 1, TINY: 3}.get(wanted, 1)
        )

    facts = Facts(text(29_000, 3_800_000), gpu=False, seconds=600.0, speed=speed)
    assert size(chosen(facts)) == expected
    assert facts.epochs(expected) >= EPOCHS[expected]


def test_a_short_time_has_a_short_warmup_and_few_validations():
    facts = Facts(text(29_000, 3_800_000), gpu=False, seconds=600.0, speed=lambda wanted: 3000.0)
    found = chosen(facts)
    steps = 0.85 * 600 * 3000 / 1024
    assert found["training.warmup"] == int(steps / 10) and found["training.valid_every"] == int(steps / 4)
    assert found["task.r_drop"] == 0.0, "it would take twice the time"


def test_on_a_cpu_no_size_is_measured_beyond_the_first_that_is_too_large():
    """A step of it takes seconds there; a GPU fits the largest in most cases."""
    asked = []

    def speed(wanted):
        asked.append(wanted)
        return 1000.0 * (128 / wanted[0]) ** 2

    facts = Facts(text(29_000, 3_800_000), gpu=False, seconds=600.0, speed=speed)
    assert size(chosen(facts)) == LEAST and set(asked) == {TINY, LEAST}
    asked.clear()
    size(chosen(replace(facts, gpu=True)))
    assert asked[0] == MEDIUM


@pytest.mark.parametrize(("seconds", "validations"), [(40, 1), (150, 1), (300, 2), (599, 3.99), (600, 4), (3600, 18)])
def test_a_short_budget_has_fewer_validations(seconds, validations):
    facts = Facts(text(29_000, 3_800_000), gpu=False, seconds=float(seconds), speed=lambda wanted: 2000.0)
    assert chosen(facts)["training.valid_every"] == int(0.85 * seconds * 2000 / 1024 / validations)


def test_steps_that_the_user_sets_decide_the_warmup_and_the_validations():
    few, many = (chosen(Facts(text(30_000, 4_000_000), gpu=True, steps=steps)) for steps in (800, 50_000))
    assert few["training.warmup"] == 80 and few["training.valid_every"] == 50
    assert many["training.warmup"] == 1000 and many["training.valid_every"] == 500
    tuned = chosen(Facts(text(30_000, 4_000_000), gpu=True, tuning=True, steps=200))
    assert tuned["training.warmup"] == 10 and tuned["training.valid_every"] == 20


def test_what_the_user_sets_is_never_touched():
    facts = Facts(text(29_000, 3_800_000), gpu=True)
    every = chosen(facts)
    for name in every:
        assert name not in chosen(facts, frozenset({name}))
    kept = chosen(facts, frozenset({"model.preset", "task.teacher", "subwords.kind", "training.final"}))
    assert not [
        name
        for name in kept
        if name.startswith(("model.", "task.r_drop", "subwords.", "training.final", "training.ema"))
    ]


def test_a_length_penalty_that_the_user_sets_is_not_tuned():
    found = chosen(Facts(text(29_000, 3_800_000), gpu=True), frozenset({"decoding.length_penalty"}))
    assert not [name for name in found if "length_penalty" in name]


def test_a_cpu_has_an_hour_unless_the_user_says_otherwise():
    assert budget(None, False, NOTHING) == "1h"
    assert budget("10m", False, NOTHING) == "10m"
    assert budget(None, True, NOTHING) is None
    assert budget(None, False, frozenset({"training.steps"})) is None


def test_what_was_chosen_is_told_with_its_reason():
    facts = Facts(text(29_000, 3_800_000), gpu=True)
    first, *lines, last = summary(facts, choose(facts, NOTHING))
    assert first == "Chosen for 29,000 pairs (3.8 million characters) on a GPU:"
    assert len(lines) == len(RULES) and all(rule.reason in line for rule, line in zip(RULES, lines, strict=True))
    assert "--set section.name=value overrides" in last
    assert summary(facts, []) == []


def test_on_a_cpu_it_says_what_a_gpu_would_get():
    """By the same rules, and only of what they choose: the user's own settings are the same everywhere."""
    facts = Facts(text(29_000, 3_800_000), gpu=False, seconds=3600.0, speed=lambda wanted: 2000.0)
    told, example = summary(facts, choose(facts, NOTHING))[-3:-1]
    assert told == (
        "  On a GPU, training while validation improves, it would be size: dim 512, heads 8, hidden 1024; "
        "regularization: dropout 0.3, r_drop 5.0, sampling 0.1; vocabulary: size 8000."
    )
    assert example.strip() == GPU_EXAMPLE
    assert size(chosen(Facts(text(29_000, 3_800_000), gpu=True))) == (512, 8, 1024, 4, 4), "which is what a GPU gets"
    own = frozenset({"model.preset", "task.r_drop", "subwords.size"})
    assert "would be regularization: sampling 0.1." in "".join(summary(facts, choose(facts, own)))
    every = {name for choice in choose(facts, NOTHING) for name in choice.settings}
    assert not any("GPU" in line for line in summary(facts, choose(facts, frozenset(every - {"training.rate"}))))


def test_the_example_of_a_gpu_is_in_the_measured_table():
    """BLEU 43.11 on the GPU, the mean of three seeds, and 38.13 in 25 minutes of two cores."""
    measured = (
        (Path(__file__).parents[2] / "docs" / "guides" / "defaults.md").read_text("utf-8").split("## Measured")[1]
    )
    assert "43.11" in measured and "38.13" in measured and "282 s" in measured
    assert "43.1 BLEU" in GPU_EXAMPLE and "38.1" in GPU_EXAMPLE


@pytest.mark.parametrize("rule", [*RULES, *TUNING_RULES], ids=lambda rule: f"{rule.title}: {rule.reason[:20]}")
def test_what_a_rule_was_measured_by_is_there(rule):
    """A heading or an anchor with a table or a figure below it; what was not measured is said not to be."""
    docs = Path(__file__).parents[2]
    for place in rule.measured:
        page, anchor = place.split("#")
        assert anchor in anchors(docs / page), place
    if rule in RULES:
        table = (docs / WORTH.split("#")[0]).read_text("utf-8").split("### What each rule is worth")[1]
        assert WORTH in rule.measured and f"\n| {rule.title} | " in table
    elif not rule.measured:
        said = (docs / "docs" / "guides" / "fine-tuning.md").read_text("utf-8").split("## What is chosen")[1]
        assert "values are common in the field" in said.split("\n## ")[0]


def tuned(characters, gpu=False, explicit=NOTHING):
    return chosen(Facts(text(1000, characters), gpu=gpu, seconds=3600.0, tuning=True), explicit)


def test_fine_tuning_is_slow_short_and_leaves_the_model_as_it_is():
    found = tuned(100_000)
    assert not [name for name in found if name.split(".")[0] != "training"], "no size, vocabulary, dropout or search"
    new = chosen(Facts(text(1000, 3_800_000), gpu=True))
    assert new["training.rate"] / 10 <= found["training.rate"] <= new["training.rate"] / 5
    assert found["training.warmup"] == 50 and found["training.patience"] and found["training.steps"] == 1000
    assert "training.rate" not in tuned(100_000, explicit=frozenset({"training.rate"}))


@pytest.mark.parametrize(
    ("characters", "gpu", "batch", "steps"),
    [
        (40_000, True, 1024, 1000),
        (1_000_000, True, 2048, 1220),
        (80_000_000, True, 8192, 20_000),
        (80_000_000, False, 1024, 20_000),
    ],
)
def test_fine_tuning_goes_by_the_amount_of_text(characters, gpu, batch, steps):
    found = tuned(characters, gpu)
    assert (found["training.batch_tokens"], found["training.steps"]) == (batch, steps)
    assert steps / found["training.valid_every"] >= 25 and found["training.warmup"] <= 200


def test_what_was_chosen_for_fine_tuning_is_told():
    facts = Facts(text(500, 40_000), gpu=False, tuning=True)
    first, *lines, _ = summary(facts, choose(facts, NOTHING))
    assert first == "Chosen for fine-tuning on 500 pairs (0.0 million characters) on a CPU:"
    assert len(lines) == len(TUNING_RULES) and not any("GPU" in line for line in lines)


def test_a_schedule_has_its_least_and_its_most():
    least, most = chosen(Facts(text(20, 2_000), gpu=True, steps=100)), chosen(Facts(text(10**8, 10**11), gpu=True))
    assert (least["training.warmup"], least["training.valid_every"]) == (50, 20)
    assert (most["training.warmup"], most["training.steps"], most["training.valid_every"]) == (1000, 100_000, 500)
    assert chosen(Facts(text(20, 2_000), gpu=True))["training.steps"] == 8000

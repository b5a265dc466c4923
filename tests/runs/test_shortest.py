"""A time budget that is too short for a useful model is told before the corpus is prepared."""

from dataclasses import replace

import pytest

from heed.runs.defaults import Facts
from heed.runs.shortest import STEPS, sentence
from heed.runs.text_amount import Amount

FACTS = Facts(Amount(29_000, 4_000_000, 4_000_000, 1_000_000), gpu=False, seconds=40.0, speed=lambda size: 4096.0)


def test_a_budget_that_is_too_short_is_told_with_one_that_is_not():
    """Steps of 1,024 tokens at 4,096 a second; the start 10 s, the corpus 8, validations of 6.1 s and half of it, the report 6."""
    assert STEPS == 500
    said = sentence(FACTS, started=10.0)
    assert said == (
        "40 s are too short for a useful model: here, 500 steps, after which a model begins to translate, take about "
        "2 min, and everything around them 35 s. Give at least --time 3m."
    )
    assert sentence(replace(FACTS, seconds=177.0), 10.0) and not sentence(replace(FACTS, seconds=179.0), 10.0)


@pytest.mark.parametrize(
    "changes", [{"seconds": None}, {"seconds": 600.0, "speed": lambda size: 1.0}, {"tuning": True}]
)
def test_long_budgets_and_trained_models_are_not_judged(changes):
    assert sentence(replace(FACTS, **changes), 1e6) == ""


def test_a_slow_start_and_slow_steps_need_more():
    slow = replace(FACTS, speed=lambda size: 2048.0)
    assert sentence(FACTS, 130.0).endswith("--time 6m.") and sentence(slow, 10.0).endswith("--time 6m.")
    assert sentence(replace(FACTS, gpu=True, speed=lambda size: 500_000.0), 10.0) == ""

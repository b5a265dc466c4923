"""The lab of schedules: what is trained, drawn and said."""

import math

import pytest
import torch

from heed.lab.experiments import schedule


@pytest.fixture(scope="module")
def small():
    return schedule.measure(layers=1, dim=8, steps=12, warmup=4, peak=0.02)


def test_the_rates_are_those_of_the_formulas(small):
    root = [0.02 * min(step / 4, math.sqrt(4 / step)) for step in range(1, 13)]
    fall = [0.01 * (1 + math.cos(math.pi * step / 12)) for step in range(1, 13)]
    assert small.rates["constant"] == [0.02] * 12
    assert small.rates["high, then low"] == pytest.approx(fall)
    assert small.rates["warm-up, inverse root"] == pytest.approx(root)
    assert small.rates["warm-up, cosine"][:4] == pytest.approx([0.005, 0.01, 0.015, 0.02])
    assert small.rates["warm-up, cosine"][-1] == pytest.approx(0)


def test_all_trainings_begin_alike_and_only_the_rate_differs(small):
    for courses in small.courses.values():
        assert len({own.loss[0] for own in courses.values()}) == 1
        assert len({own.gradient[0] for own in courses.values()}) == 1
        assert len({own.loss[-1] for own in courses.values()}) == 4
    assert small.courses == schedule.measure(layers=1, dim=8, steps=12, warmup=4, peak=0.02).courses


def test_the_task_is_to_write_backwards():
    source = torch.tensor([[1, 2, 3]])

    class Copies(torch.nn.Module):
        """Sure of the symbols in reverse, and given what stands before each."""

        def forward(self, given, before):
            assert given.tolist() == [[1, 2, 3]]
            assert before.tolist() == [[schedule.START, 3, 2]]
            return torch.nn.functional.one_hot(torch.tensor([[3, 2, 1]]), 17) * 50.0

    assert schedule._loss(Copies(), source).nll.item() == pytest.approx(0, abs=1e-6)


def test_what_is_stuck_is_named(small):
    fine = schedule.Course([1.0], [1.0], 1.0, True)
    stuck = schedule.Course([2.8], [1.0], 2.77, False)
    courses = {"post": {"constant": stuck, "warm-up, cosine": fine}, "pre": {"constant": fine, "warm-up, cosine": fine}}
    said = schedule.summary(schedule.Schedules(1, 8, 12, 4, 0.02, 0, math.log(16), small.rates, courses))
    assert said == (
        "At a peak of 0.02, 1 of 4 runs stay at the loss of guessing, 2.77: post-norm / constant; the others learn."
    )


def test_what_is_drawn_is_what_was_measured(small):
    panels = schedule.figure(small).axes
    for column, norm in enumerate(("post", "pre")):
        for row, what in enumerate(("loss", "gradient"), 1):
            drawn = [list(line.get_ydata()) for line in panels[2 * row + column].lines[:4]]
            assert drawn == [getattr(own, what) for own in small.courses[norm].values()]
    assert len(schedule.tables(small)[0].rows) == 8


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"dim": 6}, "dim is 6; it must be a multiple of 4"),
        ({"warmup": 0}, "warmup is 0; it must be at least 1"),
        ({"warmup": 30, "steps": 20}, "warmup is 30; it must be less than steps, 20"),
        ({"peak": 0.0}, "peak is 0.0; it must be above 0"),
    ],
)
def test_sizes_that_cannot_be_are_refused(settings, says):
    with pytest.raises(ValueError, match=says):
        schedule.measure(**settings)

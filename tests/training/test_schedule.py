"""Learning rates beside their formulas."""

import math

import pytest

from heed.training.config import TrainingConfig, make_schedule
from heed.training.schedule import constant, cosine, inverse_root, noam

STEPS = [1, 2, 10, 99, 100, 101, 400, 1000, 12_345]


@pytest.mark.parametrize("step", STEPS)
def test_noam_is_equation_3_of_the_paper(step):
    expected = 512**-0.5 * min(step**-0.5, step * 100**-1.5)
    assert noam(512, 100)(step) == pytest.approx(expected, rel=1e-12)
    assert noam(512, 100, 2.0)(step) == pytest.approx(2 * expected, rel=1e-12)


def test_noam_is_highest_at_the_end_of_the_warm_up():
    rates = [noam(512, 100)(step) for step in range(1, 1000)]
    assert rates.index(max(rates)) + 1 == 100
    assert max(rates) == pytest.approx((512 * 100) ** -0.5)


@pytest.mark.parametrize("step", STEPS)
def test_inverse_root_rises_in_a_line_and_falls_with_the_root(step):
    expected = 3e-4 * step / 100 if step <= 100 else 3e-4 * math.sqrt(100 / step)
    assert inverse_root(3e-4, 100)(step) == pytest.approx(expected, rel=1e-12)


def test_noam_is_an_inverse_root_with_its_peak_by_formula():
    for step in STEPS:
        assert noam(512, 100)(step) == pytest.approx(inverse_root((512 * 100) ** -0.5, 100)(step), rel=1e-12)


def test_cosine_falls_by_half_a_wave_to_nothing():
    rate = cosine(2.0, 100, 1100)
    assert [rate(step) for step in (1, 50, 100)] == pytest.approx([0.02, 1.0, 2.0])
    assert rate(350) == pytest.approx(2.0 * (1 + math.cos(math.pi / 4)) / 2)
    assert rate(600) == pytest.approx(1.0)
    assert rate(850) == pytest.approx(2.0 * (1 - math.cos(math.pi / 4)) / 2)
    assert rate(1100) == pytest.approx(0.0, abs=1e-15)
    assert rate(5000) == pytest.approx(0.0, abs=1e-15)


def test_cosine_may_end_above_zero():
    plain, rate = cosine(2.0, 100, 1100), cosine(2.0, 100, 1100, 0.5)
    for step in (1, 100, 350, 600, 1100, 5000):
        assert rate(step) == pytest.approx(plain(step) if step <= 100 else 0.5 + 1.5 * plain(step) / 2.0)
    made = make_schedule(TrainingConfig(schedule="cosine", rate=1e-3, minimum_rate=1e-4, warmup=100, steps=5000), 384)
    assert made(5000) == pytest.approx(1e-4)
    with pytest.raises(
        ValueError, match=r"minimum_rate is 0.1, but training.schedule is 'noam'; it only applies to 'cosine'"
    ):
        TrainingConfig(schedule="noam", minimum_rate=0.1)
    with pytest.raises(ValueError, match=r"minimum_rate is 0.1; it must be at most training.rate, 0.001"):
        TrainingConfig(schedule="cosine", minimum_rate=0.1)


def test_constant_rises_and_stays():
    assert [constant(2.0, 100)(step) for step in (1, 50, 100, 101, 10**6)] == [0.02, 1.0, 2.0, 2.0, 2.0]


def test_without_a_warm_up_the_first_step_has_the_peak():
    peaks = [inverse_root(2.0, 0)(1), cosine(2.0, 0, 10**9)(1), constant(2.0, 0)(1), noam(16, 0, 8.0)(1)]
    assert peaks == pytest.approx([2.0] * 4)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("noam", noam(64, 100, 2.0)),
        ("inverse-root", inverse_root(2.0, 100)),
        ("cosine", cosine(2.0, 100, 2000)),
        ("constant", constant(2.0, 100)),
    ],
)
def test_a_recipe_names_its_schedule(name, expected):
    schedule = make_schedule(TrainingConfig(schedule=name, rate=2.0, warmup=100, steps=2000), dim=64)
    assert [schedule(step) for step in STEPS] == [expected(step) for step in STEPS]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"steps": 0}, r"training\.steps is 0; it must be at least 1"),
        ({"accumulate": 0}, r"training\.accumulate is 0; it must be at least 1"),
        ({"checkpoint_every": 0}, r"training\.checkpoint_every is 0; it must be at least 1"),
        ({"final": "ema"}, r"training\.final is 'ema', but training\.ema is 0\.0; set it near 1"),
        ({"ema": 1.0}, r"training\.ema is 1\.0; it must be 0 \(off\) or a number below 1"),
        ({"threads": -3}, r"training\.threads is -3; it must be at least 1"),
        ({"rate": float("nan")}, r"training\.rate is nan; it must be 0 \(off\) or a number above 0"),
        ({"rate": -0.1}, r"training\.rate is -0\.1; it must be 0 \(off\) or a number above 0"),
        ({"clip": -1.0}, r"training\.clip is -1\.0; it must be 0 \(off\) or a number above 0"),
        ({"beta1": 2.0}, r"training\.beta1 is 2\.0; it must be at least 0 and below 1"),
        ({"threads": 99999}, r"training\.threads is 99999; it must be at most 1,024"),
        ({"warmup": -1}, r"training\.warmup is -1; it must be at least 0"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, says):
    with pytest.raises(ValueError, match=says):
        TrainingConfig(**settings)

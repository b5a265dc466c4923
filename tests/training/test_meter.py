"""Meter: loss and speed of a running run."""

import pytest
import torch

from heed.data.batching import DataPosition
from heed.training.loop import Progress
from heed.training.meter import Meter


def progress(nll=3.0, gradient_norm=1.0):
    return Progress(7, None, torch.tensor(nll), 2, torch.tensor(gradient_norm), 0.1)


def test_finite_numbers_pass():
    Meter(0, 10).check(progress())


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize(("name", "called"), [("nll", "loss"), ("gradient_norm", "gradient")])
def test_a_loss_or_a_gradient_that_is_not_finite_ends_the_run(name, called, bad):
    with pytest.raises(ValueError, match=f"the {called} became NaN at step 7: lower training.rate"):
        Meter(0, 10).check(progress(**{name: bad}))


def test_the_time_left_is_told_when_the_last_step_is_known():
    now = progress()._replace(position=DataPosition())
    facts = []
    for steps in (None, 21):
        meter = Meter(0, steps)
        meter.add(now)
        facts.append(meter.read(now))
    assert (facts[0]["steps"], facts[0]["seconds_left"]) == (None, None)
    assert facts[1]["steps"] == 21 and facts[1]["seconds_left"] == pytest.approx(2 * facts[1]["seconds"])


def test_a_loss_that_is_not_of_words_has_no_perplexity():
    now = progress()._replace(position=DataPosition())
    for words in (True, False):
        meter = Meter(0, 10, words)
        meter.add(now)
        facts = meter.read(now)
        assert ("perplexity" in facts) is words and facts["loss"] == 1.5

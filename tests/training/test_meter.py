"""Meter: loss and speed of a running run."""

import pytest
import torch

from heed.data.batching import DataPosition
from heed.training.loop import Progress
from heed.training.meter import Meter


def progress(nll=3.0, gradient_norm=1.0):
    return Progress(7, None, torch.tensor(nll), 2, torch.tensor(gradient_norm), 0.1)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize(("name", "called"), [("nll", "loss"), ("gradient_norm", "gradient")])
def test_a_loss_or_a_gradient_that_is_not_finite_ends_the_run(name, called, bad):
    with pytest.raises(ValueError, match=f"the {called} is no longer finite at step 7: lower training.rate"):
        Meter(0).check(progress(**{name: bad}))


def test_what_is_read_begins_anew_and_what_is_peeked_at_does_not():
    now = progress()._replace(position=DataPosition())
    meter = Meter(0)
    meter.add(now)
    meter.add(now._replace(nll=torch.tensor(5.0)))
    peeked, read = meter.peek(now, 21, 60.0), meter.read(now, 21, 60.0)
    assert peeked["loss"] == read["loss"] == 2.0
    assert (read["step"], read["steps"], read["seconds_left"]) == (7, 21, 60.0)
    assert read["tokens_per_second"] / read["steps_per_second"] == pytest.approx(4 / 7)
    meter.add(now)
    assert meter.read(now._replace(step=8))["loss"] == 1.5


def test_a_loss_that_is_not_of_words_has_no_perplexity():
    now = progress()._replace(position=DataPosition())
    for words in (True, False):
        meter = Meter(0, words)
        meter.add(now)
        facts = meter.read(now)
        assert ("perplexity" in facts) is words and facts["loss"] == 1.5


def test_each_part_of_a_loss_is_a_mean_over_what_it_is_of():
    now, meter = progress()._replace(position=DataPosition()), Meter(0)
    for total, count in ((6.0, 2), (1.0, 5)):
        meter.add(now._replace(parts={"ctc": (torch.tensor(total), count), "none": (0.0, 0)}))
    read = meter.read(now)
    assert (read["loss_ctc"], read["loss_none"]) == (1.0, 0.0)
    meter.add(now)
    assert "loss_ctc" not in meter.read(now)

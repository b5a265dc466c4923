"""What is measured of a run at work."""

import pytest
import torch

from heed.training.loop import Progress
from heed.training.meter import Meter


def progress(nll=3.0, gradient=1.0):
    return Progress(7, None, torch.tensor(nll), 2, torch.tensor(gradient), 0.1)


def test_what_is_a_number_goes_on():
    Meter(0, 10).check(progress())


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize(("name", "says"), [("surprise", "loss"), ("gradient", "gradient")])
def test_a_loss_or_a_gradient_that_is_no_number_ends_the_run(name, says, bad):
    with pytest.raises(ValueError, match=f"the {says} is not a number any more at step 7: lower training.rate"):
        Meter(0, 10).check(progress(**{name: bad}))

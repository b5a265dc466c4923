"""Numbers that no search can do anything with are refused by name, before a search begins."""

import math

import pytest
import torch

from heed.decoding.config import DecodingConfig, max_output_length
from heed.decoding.ranking import PENALTIES


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e-320, 1e-7, 1e6])
def test_a_temperature_is_a_number_that_can_be_divided_by(value):
    with pytest.raises(ValueError, match=rf"temperature is {value}; it must be above 0 .*, 1e-06 to 1000$"):
        DecodingConfig(temperature=value)


@pytest.mark.parametrize(("name", "most"), [("length_penalty", "10"), ("max_growth", "1,000")])
@pytest.mark.parametrize("value", [math.nan, math.inf, 1001.0, 1e300])
def test_powers_and_lengths_have_a_bound(name, most, value):
    with pytest.raises(ValueError) as error:
        DecodingConfig(**{name: value})
    assert str(error.value) == f"{name} is {value}; it must be a number of at most {most}"


@pytest.mark.parametrize("name", ["beam", "nbest", "min_length", "no_repeat", "top_k"])
def test_what_is_counted_has_a_bound(name):
    most = "1,000" if name == "beam" else "1,000,000"
    with pytest.raises(ValueError, match=rf"{name} is {2**70}; it must be a number of at most {most}$"):
        DecodingConfig(sample=True, **{name: 2**70})


def test_a_nucleus_is_a_number():
    with pytest.raises(ValueError, match="top_p is nan; it must be above 0 and at most 1"):
        DecodingConfig(top_p=math.nan)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_at_every_bound_there_are_still_numbers(penalty):
    config = DecodingConfig(length_penalty=10.0, max_growth=1000.0, temperature=1e-6)
    worth = torch.tensor(-100.0) / PENALTIES[penalty](1024, config.length_penalty)
    assert worth < 0 and worth.isfinite()
    assert max_output_length(config, 1024, 1024) == 1024
    assert (torch.tensor([-30.0, -1.0]) / config.temperature).log_softmax(dim=-1).exp().tolist() == [0.0, 1.0]

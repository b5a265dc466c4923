"""Sizes and rates that no model can have are refused by every config."""

from dataclasses import fields, make_dataclass

import pytest

from heed.config import dropout_fields
from heed.models import MODELS
from heed.models.encoder_decoder import LARGEST, MOST, check

SIZES = ("vocab_size", "items", "dim", "heads", "hidden", "layers", "encoder_layers", "decoder_layers", "max_length")


@pytest.mark.parametrize("model", MODELS)
def test_sizes_below_one_and_rates_outside_of_zero_to_one_are_refused(model):
    system = MODELS[model]
    known = {one.name for one in fields(system.config)}
    own = next(name for name in ("vocab_size", "items", "labels") if name in known)
    right = {own: 100, **system.presets["tiny"]}
    system.config(**right)
    for name in known & set(SIZES):
        with pytest.raises(ValueError, match=rf"^{name} is 0; it must be at least 1$"):
            system.config(**{**right, name: 0})
    for name in dropout_fields(system.config):
        for rate in (-0.1, 1.0):
            with pytest.raises(ValueError, match=rf"^{name} is {rate}; it must be at least 0 and below 1$"):
                system.config(**{**right, name: rate})


@pytest.mark.parametrize(("name", "most"), [*LARGEST.items(), ("window", MOST)])
def test_a_size_may_be_the_largest_and_no_larger(name, most):
    config = make_dataclass("Config", [(name, int)])
    check(config(most))
    with pytest.raises(ValueError, match=rf"^{name} is {most + 1}; it must be (at most|from 0 to) {most:,}$"):
        check(config(most + 1))

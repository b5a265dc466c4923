"""Output distributions of pixels in bits."""

import pytest
import torch

from heed.nn.pixel_outputs import Categorical, bits_per_dimension


def test_values_that_are_all_as_likely_take_eight_bits_each():
    layer = Categorical(4)
    torch.nn.init.zeros_(layer.out.weight), torch.nn.init.zeros_(layer.out.bias)
    nats = layer.nll(torch.randn(1, 12, 4), torch.randint(0, 256, (1, 12, 1))).item()
    assert bits_per_dimension(nats, 12) == pytest.approx(8)

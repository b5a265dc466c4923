"""Where gradients are written."""

import numpy as np
import torch
from torch import nn

from heed.kernels.gradient_buffers import claim, give, joined, neighbours


def test_who_asks_first_in_a_pass_gets_the_memory():
    layer = nn.Linear(4, 3)
    place = give(layer.weight, torch.zeros(3, 4))
    for _ in range(2):
        assert place.asked == 0
        assert claim(layer.weight) is place.memory
        assert claim(layer.weight) is None
        assert place.asked == 2
        place.clear()
    layer.weight.requires_grad_(False)
    assert claim(layer.weight) is None
    assert place.asked == 1
    assert claim(layer.bias) is None  # it has none


def test_what_is_written_at_a_neighbour_is_not_written_here():
    """Autograd keeps what `mm` has put in its place, and asks whether anyone wrote there since."""
    whole = torch.zeros(8)
    one, two = (give(nn.Parameter(torch.zeros(4)), part).memory for part in whole.split(4))
    before = one._version
    two.add_(1)
    assert one._version == before
    assert whole.sum() == 4


def test_neighbours_in_memory_are_one_matrix():
    whole = torch.arange(24.0)
    one, two, three = (part.view(2, 4) for part in whole.split(8))
    found = neighbours([one, two, three])
    assert found.shape == (6, 4)
    assert found.data_ptr() == whole.data_ptr()
    assert neighbours([one]).data_ptr() == one.data_ptr()
    for others in ([one, three], [two, one], [one, None], [one.T, two.T], [one, two.clone()]):
        assert neighbours(others) is None
    raw = np.zeros(8, dtype=np.float32)  # end to end by chance, of two owners
    assert neighbours([torch.from_numpy(raw[:4]), torch.from_numpy(raw[4:])]) is None


def test_others_are_copied_to_one_matrix():
    whole = torch.arange(24.0)
    one, two, three = (nn.Parameter(part.view(2, 4)) for part in whole.split(8))
    assert joined([one, two]).data_ptr() == whole.data_ptr()
    for parts in ([one, two], [one, three], [three, two, one]):
        assert torch.equal(joined(parts), torch.cat(parts))
        assert not joined(parts).requires_grad

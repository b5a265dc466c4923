"""Memory for gradients."""

import numpy as np
import torch
from torch import nn

from heed.kernels.gradient_buffers import adjacent_view, attach_buffer, claim_buffer, concatenated


def test_the_first_claim_in_a_pass_gets_the_memory():
    layer = nn.Linear(4, 3)
    buffer = attach_buffer(layer.weight, torch.zeros(3, 4))
    for _ in range(2):
        assert buffer.claims == 0
        assert claim_buffer(layer.weight) is buffer.memory
        assert claim_buffer(layer.weight) is None
        assert buffer.claims == 2
        buffer.clear()
    layer.weight.requires_grad_(False)
    assert claim_buffer(layer.weight) is None
    assert buffer.claims == 1
    assert claim_buffer(layer.bias) is None  # it has no buffer


def test_writing_to_an_adjacent_buffer_does_not_change_the_version():
    """Autograd keeps what `mm` wrote to a buffer, and checks that nobody wrote to it since."""
    whole = torch.zeros(8)
    one, two = (attach_buffer(nn.Parameter(torch.zeros(4)), part).memory for part in whole.split(4))
    before = one._version
    two.add_(1)
    assert one._version == before
    assert whole.sum() == 4


def test_adjacent_tensors_are_one_matrix():
    whole = torch.arange(24.0)
    one, two, three = (part.view(2, 4) for part in whole.split(8))
    found = adjacent_view([one, two, three])
    assert found.shape == (6, 4)
    assert found.data_ptr() == whole.data_ptr()
    assert adjacent_view([one]).data_ptr() == one.data_ptr()
    for others in ([one, three], [two, one], [one, None], [one.T, two.T], [one, two.clone()]):
        assert adjacent_view(others) is None
    raw = np.zeros(8, dtype=np.float32)  # adjacent by chance, in two storages
    assert adjacent_view([torch.from_numpy(raw[:4]), torch.from_numpy(raw[4:])]) is None


def test_other_tensors_are_copied_to_one_matrix():
    whole = torch.arange(24.0)
    one, two, three = (nn.Parameter(part.view(2, 4)) for part in whole.split(8))
    assert concatenated([one, two]).data_ptr() == whole.data_ptr()
    for parts in ([one, two], [one, three], [three, two, one]):
        assert torch.equal(concatenated(parts), torch.cat(parts))
        assert not concatenated(parts).requires_grad

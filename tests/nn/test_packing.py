"""Attention within packed sequences beside a loop over them."""

import math
from contextlib import nullcontext

import numpy as np
import pytest
import torch

from heed.data.packing import offsets_of
from heed.nn import packing
from heed.nn.packing import PackedMask, attend_packed


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("keys", [None, (2, 5, 1), (4, 4, 4)])
def test_each_sequence_attends_to_its_own_keys(keys, causal):
    """With other keys than queries, a causal query sees those up to its own place."""
    torch.manual_seed(0)
    queries = offsets_of(np.array([4, 3, 6]))
    mask = PackedMask(queries, queries if keys is None else offsets_of(np.array(keys)))
    q, k, v = (torch.randn(1, 2, int(side.starts[-1]), 3).double() for side in (queries, mask.keys, mask.keys))
    found = attend_packed(q, k, v, mask, causal)
    for n in range(3):
        rows, columns = (range(*side.starts[n : n + 2].tolist()) for side in mask)
        for place, row in enumerate(rows):
            seen = columns[: place + 1] if causal else columns
            weights = (k[0, :, seen] @ q[0, :, row, :, None] / math.sqrt(3)).softmax(dim=1)
            torch.testing.assert_close(found[0, :, row], (weights * v[0, :, seen]).sum(dim=1), rtol=0, atol=1e-12)


@pytest.mark.filterwarnings("error", "ignore:mkldnn_matmul failed")  # the latter on a CPU without bfloat16
@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad, torch.enable_grad])
def test_the_check_of_cudnn_has_gradients_in_any_mode(mode, monkeypatch):
    """Its answer is kept: classifying before training must not decide which attention trains."""
    monkeypatch.setattr(packing, "sdpa_kernel", lambda backends: nullcontext())  # the CPU has no cuDNN
    with mode():
        assert packing._cudnn_agrees.__wrapped__(torch.device("cpu"), 16, 5)

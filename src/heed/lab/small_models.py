"""Training of small models on a CPU, quickly."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def without_onednn() -> Iterator[None]:
    """Inside this block torch computes matrix products on the CPU without oneDNN.

    For each product oneDNN takes its time to prepare: on an ARM CPU 0.7 ms in place of 0.07 where matrices are as small as in
    the labs. Large ones gain from it.
    """
    before = torch.backends.mkldnn.enabled
    torch.backends.mkldnn.enabled = False
    try:
        yield
    finally:
        torch.backends.mkldnn.enabled = before

"""A GPU starts in another thread while the corpus is prepared."""

import threading

import pytest
import torch

from heed.runs import gpu_start
from heed.runs.gpu_start import starting


def test_a_gpu_starts_meanwhile_and_is_ready_afterwards(monkeypatch):
    prepared, ended = threading.Event(), []

    def start(device):
        assert prepared.wait(60), "the block runs at the same time"
        ended.append(device)

    monkeypatch.setattr(gpu_start, "_start", start)
    with starting(torch.device("cuda", 1)):
        prepared.set()
    assert ended == [torch.device("cuda", 1)]
    with pytest.raises(ValueError, match="no corpus"), starting(torch.device("cuda", 1)):
        raise ValueError("no corpus")
    assert len(ended) == 2
    with starting(torch.device("cpu")):
        pass
    assert len(ended) == 2


def test_a_gpu_that_does_not_start_is_left_to_training(monkeypatch):
    def fail(*of, **options):
        raise RuntimeError("out of memory")

    monkeypatch.setattr(torch.cuda, "device", fail)
    random = torch.get_rng_state()
    with starting(torch.device("cuda")):
        pass
    assert torch.equal(torch.get_rng_state(), random)

"""The optimizer of torch without the import of torch's compiler."""

import subprocess
import sys

import torch

from heed.training.adamw import AdamW

STEP = """
import sys
import torch
from heed.training.adamw import AdamW
weight = torch.nn.Parameter(torch.ones(3))
optimizer = AdamW([weight], lr=0.1, fused=True)
weight.sum().backward()
optimizer.step()
optimizer.load_state_dict(optimizer.state_dict())
optimizer.zero_grad()
assert weight[0] < 1
sys.exit("torch._dynamo" in sys.modules)
"""


def test_it_makes_the_steps_of_torchs_own():
    steps = []
    for kind in (AdamW, torch.optim.AdamW):
        weight = torch.nn.Parameter(torch.linspace(-1, 1, 7, dtype=torch.float64))
        optimizer = kind([weight], lr=0.1, betas=(0.8, 0.9), weight_decay=0.3, fused=True)
        for _ in range(5):
            optimizer.zero_grad()
            (weight**3).sum().backward()
            optimizer.step()
        assert weight.requires_grad and torch.is_grad_enabled()
        steps.append(weight.detach())
    assert torch.equal(*steps)


def test_it_does_not_import_the_compiler():
    assert subprocess.run([sys.executable, "-c", STEP]).returncode == 0

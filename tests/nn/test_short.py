"""The GPU's kernel for short sequences, run by Triton's interpreter: what plain attention gives, and its gradients."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("triton", reason="Triton comes with torch's GPU builds alone")

PROGRAM = """
import torch
from heed.data.packed import pack
from heed.nn.packing import Within, attend_within
from heed.nn.short import attend_short

chance = torch.Generator().manual_seed(0)
sizes = [(3, 5), (1, 1), (16, 17), (30, 2), (7, 31)]
packed = pack([[9] * (a - 1) for a, _ in sizes], [[9] * (b - 1) for _, b in sizes], slots=32)
for queries, keys, causal in ((packed.borders, packed.borders, True), (packed.valid, packed.valid, False),
                              (packed.borders, packed.valid, False)):
    parts = [torch.randn(len(b.places), 2, 16, generator=chance).requires_grad_() for b in (queries, keys, keys)]
    same = [part.detach().transpose(0, 1)[None].requires_grad_() for part in parts]
    empty = [torch.cat([b.starts, b.starts[-1:], b.starts[-1:]]) for b in (queries, keys)]  # sequences of nothing
    ours = attend_short(*parts, *empty, 32, 32, causal)
    plain = attend_within(*same, Within(queries, keys), causal)
    weight = torch.randn(ours.shape, generator=chance)
    (ours * weight).sum().backward()
    (plain[0].transpose(0, 1) * weight).sum().backward()
    torch.testing.assert_close(ours, plain[0].transpose(0, 1), rtol=0, atol=2e-6)
    for one, other in zip(parts, same, strict=True):
        torch.testing.assert_close(one.grad, other.grad[0].transpose(0, 1), rtol=0, atol=5e-6)
print("the same")
"""


def test_it_gives_what_attention_within_borders_gives():
    """In a process of its own: the interpreter must be chosen before Triton is imported."""
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True)
    assert done.stdout == "the same\n", done.stderr

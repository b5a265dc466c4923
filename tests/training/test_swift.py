"""Passes in bfloat16 over weights in float32."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("triton", reason="Triton comes with torch's GPU builds alone")

PROGRAM = """
import torch
from heed.data.packed import pack
from heed.models.transformer import Transformer, TransformerConfig
from heed.tasks.translation import Translation
from heed.training import loop
from heed.training.config import TrainingConfig, make_optimizer
from heed.training.swift import Swift

torch.manual_seed(0)
model = Transformer(TransformerConfig(vocab_size=20, dim=32, heads=2, hidden=40, encoder_layers=1, decoder_layers=1,
                                      max_length=40, dropout=0.0, norm="pre"))
model.encoder.norm.weight.requires_grad_(False)
batches = [pack([[5, 6, 7], [8, 9]], [[9, 8], [7]], slots=8), pack([[10, 11]], [[12, 13, 14]], slots=8)]
wanted = []
for chosen in ([0], [1], [0, 1]):
    model.zero_grad()
    for i in chosen:
        Translation(0.1)(model, batches[i]).total.backward()
    wanted.append([w.grad for w in model.parameters() if w.requires_grad])
model.zero_grad()
passes = Swift(model, Translation(0.1), torch.float32)  # the interpreter's products of bfloat16 are wrong
for chosen, due in zip(([0], [1], [0, 1]), wanted, strict=True):  # the last: gradients of two batches add up
    model.zero_grad()
    for i in chosen:
        loss = passes(batches[i])
    for weight, gradient in zip([w for w in model.parameters() if w.requires_grad], due, strict=True):
        assert weight.grad.dtype == torch.float32
        torch.testing.assert_close(weight.grad, gradient, rtol=1e-4, atol=1e-4)
assert model.encoder.norm.weight.grad is None
assert loss.count == 4 and loss.total.dtype == torch.float32

optimizer = make_optimizer(TrainingConfig(), [w for w in model.parameters() if w.requires_grad])
surprises = []
loop.train(model, ((i, batches[i % 2]) for i in range(99)), None, optimizer, lambda step: 3e-3, steps=range(1, 9), clip=1.0,
           passes=passes, after_step=[lambda p: surprises.append(float(p.surprise) / p.count)])
assert surprises[-1] < surprises[0] - 0.3, surprises  # it sees the weights that the optimizer has changed
print("the same")
"""

TOGETHER = """
import sys
import torch
import torch.multiprocessing as mp
from pathlib import Path
from heed.data.packed import pack
from heed.models.transformer import Transformer, TransformerConfig
from heed.tasks.translation import Translation
from heed.training import loop
from heed.training.config import TrainingConfig, make_optimizer
from heed.training.distributed import Alone, Replicated
from heed.training.swift import Swift

SIZES = dict(vocab_size=20, dim=32, heads=2, hidden=40, encoder_layers=1, decoder_layers=1, max_length=40, dropout=0.0)

def trained(workers, order, accumulate):
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(**SIZES))
    batches = [pack([[5, 6, 7], [8, 9]], [[9, 8], [7]], slots=8), pack([[10, 11]], [[12, 13, 14]], slots=8)]
    optimizer = make_optimizer(TrainingConfig(), model.parameters())
    passes = Swift(model, Translation(0.1), torch.float32)
    given = iter([(None, batches[i]) for i in order])
    loop.train(model, given, None, optimizer, lambda step: 1e-2, steps=[1, 2], accumulate=accumulate, clip=1.0,
               workers=workers, passes=passes)
    return {name: weight.detach().clone() for name, weight in model.named_parameters()}

def one(rank, folder):
    import torch.distributed as dist
    workers = Replicated(torch.device("cpu"), rank, 2, dist.FileStore(folder + "/store", 2))
    found = trained(workers, [rank] * 2, 1)
    if rank == 0:
        torch.save(found, folder + "/found")
    workers.close()

if __name__ == "__main__":
    mp.spawn(one, args=(sys.argv[1],), nprocs=2)
    found, alone = torch.load(sys.argv[1] + "/found"), trained(Alone(), [0, 1] * 2, 2)
    for name, weight in alone.items():
        if name.endswith("k.bias"):  # its gradient is rounding alone
            continue
        torch.testing.assert_close(found[name], weight, rtol=1e-5, atol=1e-5)
    print("the same")
"""


def test_two_processes_learn_what_one_learns_of_twice_the_batches(tmp_path):
    (tmp_path / "program.py").write_text(TOGETHER)
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(tmp_path / "program.py"), str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.stdout == "the same\n", done.stderr


def test_gradients_are_those_of_plain_passes():
    """In a process of its own: the interpreter must be chosen before Triton is imported."""
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True)
    assert done.stdout == "the same\n", done.stderr

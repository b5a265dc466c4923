"""Passes in bfloat16 over weights in float32."""

import os
import subprocess
import sys

import pytest

from tests.interpreted import assert_same

pytest.importorskip("triton", reason="Triton comes with torch's GPU builds alone")

BEGIN = """
from dataclasses import replace
import torch
from heed.data.packing import pack
from heed.kernels.fused_model import half_precision_copy
from heed.models.transformer import Transformer, TransformerConfig
from heed.training.loss import Loss
from heed.tasks.sequence_loss import RDrop, Distilled, CrossEntropy
from heed.training import loop
from heed.training.accelerated import cuda_graph_step
from heed.training.config import TrainingConfig, make_optimizer
from heed.training.accelerated.cuda_graph_step import CudaGraphStep

def small_model(**more):
    torch.manual_seed(0)
    config = dict(vocab_size=20, dim=16, heads=1, hidden=24, encoder_layers=1, decoder_layers=1, max_length=40, dropout=0.0)
    return Transformer(TransformerConfig(**{**config, **more}))
batches = [pack([[5, 6], [8]], [[9], [7]], slots=1), pack([[10, 11]], [[12, 13, 14]], slots=1)]
"""

GRADIENTS = """
fill = cuda_graph_step._fill_buffers
def counted(memory, found):
    copied.extend(tuple(own.shape) for own, new in zip(memory, found) if new is None or new.data_ptr() != own.data_ptr())
    fill(memory, found)
cuda_graph_step._fill_buffers = counted
def twice(model, batch):  # an output layer that is used twice: its gradients are added by autograd
    first, second = (CrossEntropy(0.1)(model, own) for own in (batch, batches[0]))
    return Loss(first.total + second.total, first.nll, batch.count)
for objective, shape, turns in ((CrossEntropy(0.1), dict(norm="post", tied="target", output_bias=True), [[0], [0, 1]]),
                                (twice, dict(norm="post", tied="all"), [[1]]),
                                (Distilled((small_model(dim=32, heads=2, norm="pre").eval(), small_model(dim=32, heads=2).eval()), 0.1, 0.4), dict(norm="post", tied="all"), [[0]]),
                                (RDrop(0.1, 3.0), dict(norm="pre", tied="all"), [[1]])):
    model = small_model(**shape)
    if shape["norm"] == "pre":
        model.encoder.norm.weight.requires_grad_(False)
        model.decoder.layers[0].attention.body.k.weight.requires_grad_(False)
    learned = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    wanted = []
    for chosen in turns:
        model.zero_grad()
        for i in chosen: objective(model, batches[i]).total.backward()
        wanted.append([weight.grad for weight in learned.values()])
    model.zero_grad()
    if isinstance(objective, Distilled): objective = replace(objective, teachers=tuple(half_precision_copy(own, torch.float32) for own in objective.teachers))
    passes = CudaGraphStep(model, objective, torch.float32)  # the interpreter's bfloat16 products are wrong
    for chosen, due in zip(turns, wanted, strict=True):  # the second: gradients of two batches add up
        model.zero_grad()
        for i in chosen:
            copied = []
            loss = passes(batches[i])
        found = passes.gradients
        assert found is passes.gradients and found.numel() == sum(weight.numel() for weight in learned.values())
        assert loss.count == batches[chosen[-1]].count and loss.total.dtype == torch.float32
        if len(chosen) == 1: torch.testing.assert_close(passes.squares, found.square().sum())
        for (name, weight), gradient in zip(learned.items(), due, strict=True):
            assert weight.grad.dtype == torch.float32
            torch.testing.assert_close(weight.grad, gradient, rtol=1e-4, atol=1e-4, msg=lambda text: name + text)
    # all were written to their buffers, except a table that is no output layer, what is used twice, and what has a frozen neighbour
    if objective is not twice:
        away = [(16, 16)] * 2 if shape["norm"] == "pre" else [(20,), (20, 16)] if shape["tied"] == "target" else []
        assert sorted(copied) == sorted(away), copied
assert model.encoder.norm.weight.grad is None

optimizer = make_optimizer(TrainingConfig(), [w for w in model.parameters() if w.requires_grad])
model.zero_grad()
losses = []
passes.objective = CrossEntropy(0.1)
loop.train(model, ((i, batches[1]) for i in range(99)), None, optimizer, lambda step: 1e-2, steps=range(1, 4), clip=1.0,
           forward_backward=passes, after_step=[lambda p: losses.append(float(p.nll) / p.count)])
assert losses[-1] < losses[0] - 0.3, losses  # it sees the weights that the optimizer and `step` have changed
print("the same")
"""

SEEDS = """
from heed.kernels import residual_norm
calls, randint = [], torch.randint
def counted(*args, **more):
    calls.append(args)
    return randint(*args, **more)
torch.randint = counted
model = small_model(dropout=0.2, hidden_dropout=0.1, attention_dropout=0.1, dim=16, heads=1)
passes, results = CudaGraphStep(model, CrossEntropy(0.1), torch.float32), []
for seed in (1, 2, 1):
    model.zero_grad()
    calls.clear()
    torch.manual_seed(seed)
    results.append((float(passes(batches[1]).total), passes.gradients.clone()))
    assert len(calls) == 1 and not residual_norm.DRAWN_SEEDS
assert results[0][0] == results[2][0] != results[1][0] and torch.equal(results[0][1], results[2][1])
with residual_norm.draw_seeds_at_once(torch.device("cpu"), count=2):
    seeds = [residual_norm.draw_seed(0.5, torch.device("cpu"))[0] for _ in range(4)]  # more than were drawn at once
assert len({tuple(seed[:2].tolist()) for seed in seeds}) == 4
print("the same")
"""

FAMILIES = """
import torch.nn.functional as F
from heed.models.bart import Bart, BartConfig
from heed.models.pegasus import Pegasus, PegasusConfig
sizes = dict(vocab_size=20, dim=16, heads=1, hidden=24, encoder_layers=1, decoder_layers=1, max_length=40, dropout=0.0)
normed, F_norm = [], F.layer_norm
for kind, config in ((Bart, BartConfig), (Pegasus, PegasusConfig)):
    torch.manual_seed(0)
    model = kind(config(**sizes, attention_dropout=0.0, hidden_dropout=0.0))
    CrossEntropy(0.1)(model, batches[1]).total.backward()
    wanted = {name: weight.grad for name, weight in model.named_parameters()}
    model.zero_grad()
    passes = CudaGraphStep(model, CrossEntropy(0.1), torch.float32)
    F.layer_norm = lambda *args, **more: normed.append(args) or F_norm(*args, **more)
    passes(batches[1])
    F.layer_norm = F_norm
    assert not normed, "on a GPU torch's norm takes no float32 weights for rounded rows"
    passes.gradients
    for name, weight in model.named_parameters():
        torch.testing.assert_close(weight.grad, wanted[name], rtol=1e-4, atol=1e-4, msg=lambda text: name + text)
print("the same")
"""

TOGETHER = """
import sys
import torch
import torch.multiprocessing as mp
from pathlib import Path
from heed.data.packing import pack
from heed.models.transformer import Transformer, TransformerConfig
from heed.tasks.sequence_loss import CrossEntropy
from heed.training import loop
from heed.training.config import TrainingConfig, make_optimizer
from heed.training.distributed import SingleProcess, Replicated
from heed.training.accelerated.cuda_graph_step import CudaGraphStep

SIZES = dict(vocab_size=20, dim=16, heads=1, hidden=24, encoder_layers=1, decoder_layers=1, max_length=40, dropout=0.0)

def trained(workers, order, accumulate):
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(**SIZES))
    batches = [pack([[5], [8]], [[9], []], slots=1), pack([[10, 11]], [[12, 13]], slots=1)]
    optimizer = make_optimizer(TrainingConfig(), model.parameters())
    passes = CudaGraphStep(model, CrossEntropy(0.1), torch.float32)
    given = iter([(None, batches[i]) for i in order])
    loop.train(model, given, None, optimizer, lambda step: 1e-2, steps=[1, 2], accumulate=accumulate, clip=1.0,
               workers=workers, forward_backward=passes)
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
    found, alone = torch.load(sys.argv[1] + "/found"), trained(SingleProcess(), [0, 1] * 2, 2)
    for name, weight in alone.items():
        if name.endswith("k.bias"):  # its gradient is only rounding error
            continue
        torch.testing.assert_close(found[name], weight, rtol=1e-5, atol=1e-5)
    print("the same")
"""


@pytest.mark.long
def test_two_processes_learn_what_one_learns_from_twice_the_batches(tmp_path):
    (tmp_path / "program.py").write_text(TOGETHER)
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(tmp_path / "program.py"), str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.stdout == "the same\n", done.stderr


@pytest.mark.parametrize("program", [GRADIENTS, SEEDS, FAMILIES], ids=["gradients", "seeds", "families"])
def test_passes_are_plain_passes(program):
    assert_same(BEGIN + program)

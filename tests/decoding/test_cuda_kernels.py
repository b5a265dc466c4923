"""The card's kernels, run by Triton's interpreter: step by step what the plain operations give."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("triton", reason="Triton comes with torch's GPU builds alone")

PROGRAM = """
import torch, warnings
from torch import nn
from heed.decoding.cuda import choice, kernels, weights
from heed.decoding.cuda.plain import Plain
from heed.decoding.cuda.buffers import Ground, Room, Rules, Size
from heed.decoding.cuda.step import remember, say
from heed.decoding.ranking import PENALTIES
from heed.models.bart import Bart, BartConfig
from heed.models.transformer import Transformer, TransformerConfig
from heed.kernels import decode

warnings.simplefilter("ignore")  # of numpy: minus infinity from itself, of beams that are dead
for module in (decode, choice):  # who waits for whom is no matter here, and each call takes the interpreter long
    module.follow = module.release = lambda ahead: None
SIZES = {"vocab_size": 70, "dim": 32, "heads": 2, "hidden": 40, "encoder_layers": 1, "decoder_layers": 1, "max_length": 40}
usual = Rules(2, 3, (0, 1), (), 0, False, False, 3, 3, 0.6, PENALTIES["wu"], "exact")

def near(one, other, name):
    gap = torch.where(one == other, 0, (one - other).abs())
    assert gap.max() < 2e-5, (name, gap.max())

def check(model, ops, rules, lengths, steps):
    ops.memory, ops.own = (16, 1, 1), (2, 1)  # so that short sources and short pasts have several pieces
    torch.manual_seed(3)
    model = model.eval().requires_grad_(False)
    for weight in model.parameters(): nn.init.normal_(weight, std=0.3)
    for part in model.modules():
        if isinstance(part, nn.LayerNorm): nn.init.normal_(part.weight, mean=1, std=0.2)
    read, rooms = weights.read(model, torch.float32), []
    size, tokens = Size(2, rules.beams, 32), torch.randint(4, 70, (sum(lengths) + 1,)).int()
    places = torch.cat([torch.arange(n) for n in [*lengths, 1]]).int()
    for own in (Plain(), ops):
        room = Room(read, size, Ground(read, size.rows * size.longest, len(tokens)))
        room.follow(rules)
        room.seat([0, lengths[0]][: len(lengths)], lengths, [steps, steps - 1][: len(lengths)])
        remember(read, own, tokens, places, max(lengths), room)
        rooms.append(room)
    one, other = rooms
    near(one.memory[: sum(lengths)], other.memory[: sum(lengths)], "memory")
    for _ in range(steps):
        assert one.remaining > 0
        for own, room in zip((Plain(), ops), rooms): say(read, own, room)
        for name in ("said", "done", "remaining"):
            assert torch.equal(getattr(one, name), getattr(other, name)), name
        near(one.found, other.found, "found")
        near(one.live, other.live, "live")
        alive = one.live > -torch.inf  # what the others say matters to nobody
        for name in ("token", "lineage"):
            assert torch.equal(getattr(one, name)[alive], getattr(other, name)[alive]), name
    assert one.remaining == 0
    same = torch.arange(steps) < one.found[:, 1, : rules.nbest].nan_to_num(neginf=0).reshape(-1, 1)
    near(Plain().trace(one, steps) * same, ops.trace(other, steps) * same, "trace")

pre, post = (TransformerConfig(**SIZES, norm=norm, tied="none") for norm in ("pre", "post"))
check(Transformer(pre), kernels.Many(), usual, [1, 17], 3)
check(Bart(BartConfig(**SIZES)), kernels.Some(), usual._replace(stop="heuristic", begin=(7,), renormalize=True), [3], 3)
check(Transformer(post), kernels.Few(), usual._replace(stop="first", nbest=1, beams=2, force_end=True), [2], 3)
check(Bart(BartConfig(**SIZES)), kernels.Few(), usual._replace(beams=1, nbest=1, stop="first", least=9), [1], 3)
print("the same")
"""


def test_kernels_give_what_plain_operations_give():
    """In a process of its own: the interpreter must be chosen before Triton is imported."""
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True)
    assert done.stdout == "the same\n", done.stderr

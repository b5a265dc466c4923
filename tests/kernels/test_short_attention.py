"""Attention within short sequences, run by Triton's interpreter: what plain attention gives, and its gradients."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("triton", reason="Triton comes with torch's GPU builds alone")

BEGIN = """
import dataclasses, itertools
import torch
from heed.kernels import short_attention
from heed.kernels.residual_norm import chance
from heed.kernels.short_attention import attend_short
draws = torch.Generator().manual_seed(0)
def draw(*shape): return torch.randn(*shape, generator=draws)
def begins(lengths): return torch.tensor([0, *itertools.accumulate(lengths)], dtype=torch.int32)
def split(x, width): return x.unflatten(1, (-1, width)).transpose(0, 1)

def plain(one, other, starts, width, causal, stays=None, grown=1.0):
    "Sentence by sentence, in float64; `stays` tells of (tile, row, column) what dropout keeps."
    q, k, v = (split(own, width) for own in short_attention._apart(one, other))
    found = []
    for i in range(len(starts[0]) - 1):
        a, b = (slice(*own[i : i + 2].tolist()) for own in starts)
        scores = q[:, a] @ k[:, b].mT * width**-0.5
        if causal: scores = scores.masked_fill(torch.ones(scores.shape[1:], dtype=torch.bool).triu(1), float("-inf"))
        p = scores.softmax(-1)
        if stays is not None: p = p * grown * stays[i * len(q) : (i + 1) * len(q), : p.shape[1], : p.shape[2]]
        found.append((p @ v[:, b]).transpose(0, 1).flatten(1))
    return torch.cat(found)

def made(lengths, width, heads, own):
    "Queries, keys and values of sentences of these lengths, as leaves; and where sentences begin."
    starts = tuple(map(begins, lengths))
    columns = heads * width
    if own: return draw(int(starts[0][-1]), 3 * columns).requires_grad_(), None, starts
    return draw(int(starts[0][-1]), columns).requires_grad_(), draw(int(starts[1][-1]), 2 * columns).requires_grad_(), starts

def check(lengths, width=16, heads=2, own=True, causal=False, longest=None):
    one, other, starts = made(lengths, width, heads, own)
    longest = longest or tuple(map(max, lengths))
    ours = attend_short(one, other, starts, longest, width=width, causal=causal)
    leaves, d = [one] if own else [one, other], draw(*ours.shape)
    found = torch.autograd.grad(ours, leaves, d)
    exact = [leaf.detach().double().requires_grad_() for leaf in leaves]
    wanted = plain(exact[0], None if own else exact[1], starts, width, causal)
    for a, b in zip((ours, *found), (wanted, *torch.autograd.grad(wanted, exact, d.double())), strict=True):
        torch.testing.assert_close(a.double(), b, rtol=1e-5, atol=1e-5)

def spied(way):
    "What the kernel of a way is launched with, from here on."
    kernel, told = getattr(short, way), []
    class Spy:
        def __getitem__(self, grid): return lambda *args, **named: (told.append((grid[0], named)), kernel[grid](*args, **named))
    setattr(short, way, Spy())
    return told
"""

PLAIN = """
back = spied("_backward")
MIXED = [128, 1, 0, 77], [70, 128, 5, 0]
check((MIXED[0], MIXED[0]))
check((MIXED[0], MIXED[0]), causal=True)
check(MIXED, own=False)
assert all(named["ENGINE"] for _, named in back), "nothing of these is amiss for the copy engine"
check(([30, 2], [100, 128]), own=False)  # sides that differ
check(([100, 128], [30, 9]), own=False, width=32)
for longest in (16, 17, 64): check(([longest, 0, 9],) * 2, width=32, causal=True)
check(([9, 16], [16, 4]), own=False, causal=True)
check(([5, 9, 2],) * 2, heads=3, causal=True)  # a number of heads that programs do not share evenly
check(([20, 31],) * 2, heads=1, width=64)
check(([4, 128],) * 2, heads=1, width=64)
assert [named["ENGINE"] for _, named in back[-2:]] == [False, False]  # rows of 256 bytes: two tiles at a time would be too many
check(([3, 0], [0, 0]), own=False, longest=(3, 0))  # no keys at all
check(([0, 0], [3, 1]), own=False, longest=(0, 3))
check(([70, 0], [0, 0]), own=False, longest=(70, 128))
assert not back[-1][1]["ENGINE"]  # a matrix without rows cannot be described
half = (torch.zeros(9, 128, dtype=torch.bfloat16),)  # and which tiles are large
for longest, width, kind in (((1, 32), 16, "small"), ((16, 64), 64, "small"), ((33, 17), 64, "middle"), ((32, 128), 64, "middle"),
                             ((16, 17), 128, "small"), ((32, 32), 128, "middle"), ((33, 65), 64, "large"), ((64, 64), 128, "elsewhere")):
    for way in ("forward", "back"): assert short_attention._setting(way, half, longest, width) is short_attention.SETTINGS[way, kind], (longest, width)
"""

SETTINGS = """
kinds = {"small": ([16, 0, 5], [1, 32, 0]), "middle": ([64, 3], [9, 64]), "large": ([128, 3], [65, 128])}
some = {"each": 2, "turned": True, "part": 64}, {"engine": True, "programs": 3, "stages": 2}
every = {"each": 4}, {"programs": 2, "stages": 2}, {"turned": True}, {"engine": True}, {"engine": True, "turned": True}
back, forward = spied("_backward"), spied("_forward")
for kind, own in [("small", own) for own in every] + [(kind, own) for kind in ("middle", "large") for own in some]:
    way = short_attention.Setting(warps=4, **own)
    short_attention.SETTINGS = {**short_attention.SETTINGS, ("forward", kind): way, ("back", kind): way}
    lengths = kinds[kind]
    check((lengths[0],) * 2, causal=True) if way.turned else check(lengths, own=False)
    for programs, named in (back[-1], forward[-1]):
        assert programs == (way.programs or -(-2 * len(lengths[0]) // way.each)), (programs, way)
        assert (named["TURNED"], named["STAGES"], named["num_warps"]) == (way.turned, way.stages, 4)
    assert back[-1][1]["ENGINE"] == way.engine and forward[-1][1]["PART"] == min(way.part, forward[-1][1]["QUERIES"])

short_attention.SETTINGS["back", "small"] = short_attention.Setting(warps=4, programs=1, stages=2, most=96, engine=True)
memory = torch.zeros(1 + 12 * 96)
for one, engine in ((memory[:-1].view(12, 96), True), (memory[1:].view(12, 96), False), (torch.zeros(12, 97)[:, :96], False)):
    starts, one = begins([12]), one.detach().requires_grad_()
    attend_short(one, None, (starts, starts), (12, 12), width=16).sum().backward()
    programs, named = back[-1]
    assert named["ENGINE"] == engine and (programs, named["STAGES"], named.get("maxnreg")) == ((1, 2, 96) if engine else (2, 1, None))
short_attention.engine = lambda x: False  # another card
check(kinds["large"], own=False)
for programs, named in (back[-1], forward[-1]):
    assert (programs, named["num_warps"], named["STAGES"], named.get("maxnreg")) == (4, 8, 1, None)
assert not back[-1][1]["ENGINE"] and forward[-1][1]["PART"] == 128
print("the same")
"""

DROPOUT = """
def stays(seed, share, tiles, queries, keys):
    "What the hash keeps of all tiles, by Python's own numbers."
    def mixed(place):
        h = (place ^ int(seed[0])) * 0x9E3779B1 % 2**32
        h = (h ^ (h >> 15) ^ int(seed[1])) * 0x85EBCA6B % 2**32
        h = (h ^ (h >> 13)) * 0xC2B2AE35 % 2**32
        return (h ^ (h >> 16)) >> 8
    return torch.tensor([mixed(place) >= share for place in range(tiles * queries * keys)]).view(tiles, queries, keys)

for lengths, own, causal, width in ((([16, 0, 9], [16, 0, 9]), True, True, 16), (([20, 3, 0], [40, 0, 60]), False, False, 32),
                                    (([9, 0], [3, 100]), False, False, 16), (([70, 1],) * 2, True, True, 16)):
    one, other, starts = made(lengths, width, 2, own)
    torch.manual_seed(3)
    seed, share, grown = chance(0.25, one.device)
    torch.manual_seed(3)
    longest = tuple(map(max, lengths))
    ours = attend_short(one, other, starts, longest, width=width, causal=causal, dropout=0.25)
    leaves, d = [one] if own else [one, other], draw(*ours.shape)
    found = torch.autograd.grad(ours, leaves, d)
    exact = [leaf.detach().double().requires_grad_() for leaf in leaves]
    keeps = stays(seed, share, 2 * len(lengths[0]), *short_attention._sides(longest))
    assert 0.7 < float(keeps.double().mean()) < 0.8
    wanted = plain(exact[0], None if own else exact[1], starts, width, causal, keeps, grown)
    for a, b in zip((ours, *found), (wanted, *torch.autograd.grad(wanted, exact, d.double())), strict=True):
        torch.testing.assert_close(a.double(), b, rtol=1e-5, atol=1e-5)
"""

NEIGHBOURS = """
# what stands in one sentence does not matter to another, be it by the copy engine or by addresses
for way in (short_attention.SETTINGS["back", "large"], short_attention.SETTINGS["back", "small"]):
    short_attention.SETTINGS["back", "small"] = way
    starts, d, one = begins([11, 6, 11]), draw(28, 16), draw(28, 48)
    changed = one.clone()
    changed[11:17] *= 100
    found = []
    for given in (one, changed):
        given = given.detach().requires_grad_()
        out = attend_short(given, None, (starts, starts), (11, 11), width=16)
        found.append((out, *torch.autograd.grad(out, given, d)))
        assert back[-1][1]["ENGINE"] == way.engine
    others = torch.cat([torch.arange(11), torch.arange(17, 28)])
    for a, b in zip(*found, strict=True): assert torch.equal(a[others], b[others]) and not torch.equal(a, b)
print("the same")
"""

PROGRAMS = {"plain": PLAIN + NEIGHBOURS, "dropout": DROPOUT + SETTINGS}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_short_attention_gives_what_plain_attention_gives(program):
    """In a process of its own: the interpreter must be chosen before Triton is imported."""
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", BEGIN + program], env=environment, capture_output=True, text=True)
    assert done.stdout == "the same\n", done.stderr

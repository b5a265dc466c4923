"""Attention within short sequences, run by Triton's interpreter: what plain attention gives, and its gradients."""

import pytest

from tests.interpreted import assert_same

pytest.importorskip("triton", reason="Triton comes with torch's GPU builds alone")

BEGIN = """
import dataclasses, itertools
import torch
from heed.kernels import short_attention
from heed.kernels.residual_norm import draw_seed
from heed.kernels.short_attention import attend_short
generator = torch.Generator().manual_seed(0)
def draw(*shape): return torch.randn(*shape, generator=generator)
def offsets(lengths): return torch.tensor([0, *itertools.accumulate(lengths)], dtype=torch.int32)
def split(x, head_dim): return x.unflatten(1, (-1, head_dim)).transpose(0, 1)

def plain(q_or_qkv, kv, starts, head_dim, causal, stays=None, keep_scale=1.0):
    "Sequence by sequence, in float64; `stays` is what dropout keeps of (tile, row, column)."
    q, k, v = (split(own, head_dim) for own in short_attention._split_qkv(q_or_qkv, kv))
    found = []
    for i in range(len(starts[0]) - 1):
        a, b = (slice(*own[i : i + 2].tolist()) for own in starts)
        scores = q[:, a] @ k[:, b].mT * head_dim**-0.5
        if causal: scores = scores.masked_fill(torch.ones(scores.shape[1:], dtype=torch.bool).triu(1), float("-inf"))
        p = scores.softmax(-1)
        if stays is not None: p = p * keep_scale * stays[i * len(q) : (i + 1) * len(q), : p.shape[1], : p.shape[2]]
        found.append((p @ v[:, b]).transpose(0, 1).flatten(1))
    return torch.cat(found)

def inputs(lengths, head_dim, heads, own):
    "Queries, keys and values of sentences of these lengths, as leaves; and their starts."
    starts = tuple(map(offsets, lengths))
    columns = heads * head_dim
    if own: return draw(int(starts[0][-1]), 3 * columns).requires_grad_(), None, starts
    return draw(int(starts[0][-1]), columns).requires_grad_(), draw(int(starts[1][-1]), 2 * columns).requires_grad_(), starts

def check(lengths, head_dim=16, heads=2, own=True, causal=False, longest=None):
    q_or_qkv, kv, starts = inputs(lengths, head_dim, heads, own)
    longest = longest or tuple(map(max, lengths))
    ours = attend_short(q_or_qkv, kv, starts, longest, head_dim=head_dim, causal=causal)
    leaves, d = [q_or_qkv] if own else [q_or_qkv, kv], draw(*ours.shape)
    found = torch.autograd.grad(ours, leaves, d)
    exact = [leaf.detach().double().requires_grad_() for leaf in leaves]
    wanted = plain(exact[0], None if own else exact[1], starts, head_dim, causal)
    for a, b in zip((ours, *found), (wanted, *torch.autograd.grad(wanted, exact, d.double())), strict=True):
        torch.testing.assert_close(a.double(), b, rtol=1e-5, atol=1e-5)

def spied(name):
    "The launches of a kernel from here on."
    kernel, launches = getattr(short_attention, name), []
    class Spy:
        def __getitem__(self, grid): return lambda *args, **named: (launches.append((grid[0], named)), kernel[grid](*args, **named))
    setattr(short_attention, name, Spy())
    return launches
"""

PLAIN = """
back = spied("_attention_backward")
MIXED = [128, 1, 0, 77], [70, 128, 5, 0]
check((MIXED[0], MIXED[0]))
check((MIXED[0], MIXED[0]), causal=True)
check(MIXED, own=False)
assert all(named["TMA"] for _, named in back), "TMA can load all of these"
check(([30, 2], [100, 128]), own=False)  # different numbers of queries and keys
check(([100, 128], [30, 9]), own=False, head_dim=32)
for longest in (16, 17, 64): check(([longest, 0, 9],) * 2, head_dim=32, causal=True)
check(([9, 16], [16, 4]), own=False, causal=True)
check(([5, 9, 2],) * 2, heads=3, causal=True)  # a number of heads that programs do not share evenly
check(([20, 31],) * 2, heads=1, head_dim=64)
check(([4, 128],) * 2, heads=1, head_dim=64)
assert [named["TMA"] for _, named in back[-2:]] == [False, False]  # rows of 256 bytes: two tiles would not fit
check(([3, 0], [0, 0]), own=False, longest=(3, 0))  # no keys at all
check(([0, 0], [3, 1]), own=False, longest=(0, 3))
check(([70, 0], [0, 0]), own=False, longest=(70, 128))
assert not back[-1][1]["TMA"]  # a matrix without rows cannot be described
half = (torch.zeros(9, 128, dtype=torch.bfloat16),)  # and the size classes
for longest, head_dim, kind in (((1, 32), 16, "small"), ((16, 64), 64, "small"), ((33, 17), 64, "middle"), ((32, 128), 64, "middle"),
                             ((16, 17), 128, "small"), ((32, 32), 128, "middle"), ((33, 65), 64, "large"), ((64, 64), 128, "fallback")):
    for direction in ("forward", "backward"): assert short_attention._launch_config(direction, half, longest, head_dim) is short_attention.LAUNCH_CONFIGS[direction, kind], (longest, head_dim)
"""

CONFIGS = """
kinds = {"small": ([16, 0, 5], [1, 32, 0]), "middle": ([64, 3], [9, 64]), "large": ([128, 3], [65, 128])}
some = {"tiles_per_program": 2, "heads_first": True, "block_q": 64}, {"tma": True, "programs_per_sm": 3, "stages": 2}
every = {"tiles_per_program": 4}, {"programs_per_sm": 2, "stages": 2}, {"heads_first": True}, {"tma": True}, {"tma": True, "heads_first": True}
back, forward = spied("_attention_backward"), spied("_attention_forward")
for kind, own in [("small", own) for own in every] + [(kind, own) for kind in ("middle", "large") for own in some]:
    config = short_attention.LaunchConfig(warps=4, **own)
    short_attention.LAUNCH_CONFIGS = {**short_attention.LAUNCH_CONFIGS, ("forward", kind): config, ("backward", kind): config}
    lengths = kinds[kind]
    check((lengths[0],) * 2, causal=True) if config.heads_first else check(lengths, own=False)
    for programs, named in (back[-1], forward[-1]):
        assert programs == (config.programs_per_sm or -(-2 * len(lengths[0]) // config.tiles_per_program)), (programs, config)
        assert (named["HEADS_FIRST"], named["STAGES"], named["num_warps"]) == (config.heads_first, config.stages, 4)
    assert back[-1][1]["TMA"] == config.tma and forward[-1][1]["BLOCK_Q"] == min(config.block_q, forward[-1][1]["QUERIES"])

short_attention.LAUNCH_CONFIGS["backward", "small"] = short_attention.LaunchConfig(warps=4, programs_per_sm=1, stages=2, max_registers=96, tma=True)
memory = torch.zeros(1 + 12 * 96)
for q_or_qkv, tma in ((memory[:-1].view(12, 96), True), (memory[1:].view(12, 96), False), (torch.zeros(12, 97)[:, :96], False)):
    starts, q_or_qkv = offsets([12]), q_or_qkv.detach().requires_grad_()
    attend_short(q_or_qkv, None, (starts, starts), (12, 12), head_dim=16).sum().backward()
    programs, named = back[-1]
    assert named["TMA"] == tma and (programs, named["STAGES"], named.get("maxnreg")) == ((1, 2, 96) if tma else (2, 1, None))
short_attention.has_tma = lambda x: False  # another GPU
check(kinds["large"], own=False)
for programs, named in (back[-1], forward[-1]):
    assert (programs, named["num_warps"], named["STAGES"], named.get("maxnreg")) == (4, 8, 1, None)
assert not back[-1][1]["TMA"] and forward[-1][1]["BLOCK_Q"] == 128
print("the same")
"""

DROPOUT = """
def stays(seed, threshold, tiles, queries, keys):
    "What the hash keeps of all tiles, by Python's integers."
    def mixed(place):
        h = (place ^ int(seed[0])) * 0x9E3779B1 % 2**32
        h = (h ^ (h >> 15) ^ int(seed[1])) * 0x85EBCA6B % 2**32
        h = (h ^ (h >> 13)) * 0xC2B2AE35 % 2**32
        return (h ^ (h >> 16)) >> 8
    return torch.tensor([mixed(place) >= threshold for place in range(tiles * queries * keys)]).view(tiles, queries, keys)

for lengths, own, causal, head_dim in ((([16, 0, 9], [16, 0, 9]), True, True, 16), (([20, 3, 0], [40, 0, 60]), False, False, 32),
                                    (([9, 0], [3, 100]), False, False, 16), (([70, 1],) * 2, True, True, 16)):
    q_or_qkv, kv, starts = inputs(lengths, head_dim, 2, own)
    torch.manual_seed(3)
    seed, threshold, keep_scale = draw_seed(0.25, q_or_qkv.device)
    torch.manual_seed(3)
    longest = tuple(map(max, lengths))
    ours = attend_short(q_or_qkv, kv, starts, longest, head_dim=head_dim, causal=causal, dropout=0.25)
    leaves, d = [q_or_qkv] if own else [q_or_qkv, kv], draw(*ours.shape)
    found = torch.autograd.grad(ours, leaves, d)
    exact = [leaf.detach().double().requires_grad_() for leaf in leaves]
    keeps = stays(seed, threshold, 2 * len(lengths[0]), *short_attention._tile_shape(longest))
    assert 0.7 < float(keeps.double().mean()) < 0.8
    wanted = plain(exact[0], None if own else exact[1], starts, head_dim, causal, keeps, keep_scale)
    for a, b in zip((ours, *found), (wanted, *torch.autograd.grad(wanted, exact, d.double())), strict=True):
        torch.testing.assert_close(a.double(), b, rtol=1e-5, atol=1e-5)
"""

NEIGHBOURS = """
# a sequence does not depend on its neighbours, loaded by TMA or by pointers
for config in (short_attention.LAUNCH_CONFIGS["backward", "large"], short_attention.LAUNCH_CONFIGS["backward", "small"]):
    short_attention.LAUNCH_CONFIGS["backward", "small"] = config
    starts, d, q_or_qkv = offsets([11, 6, 11]), draw(28, 16), draw(28, 48)
    changed = q_or_qkv.clone()
    changed[11:17] *= 100
    found = []
    for given in (q_or_qkv, changed):
        given = given.detach().requires_grad_()
        out = attend_short(given, None, (starts, starts), (11, 11), head_dim=16)
        found.append((out, *torch.autograd.grad(out, given, d)))
        assert back[-1][1]["TMA"] == config.tma
    others = torch.cat([torch.arange(11), torch.arange(17, 28)])
    for a, b in zip(*found, strict=True): assert torch.equal(a[others], b[others]) and not torch.equal(a, b)
print("the same")
"""

PROGRAMS = {"plain": PLAIN + NEIGHBOURS, "dropout": DROPOUT + CONFIGS}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_short_attention_gives_what_plain_attention_gives(program):
    assert_same(BEGIN + program)

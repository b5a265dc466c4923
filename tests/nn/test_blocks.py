"""Attention over blocks: the blocks are those of transformers, and it equals attention over everything under the same mask."""

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import BigBirdConfig
from transformers.models.big_bird.modeling_big_bird import BigBirdBlockSparseAttention

from heed.nn.attention import attend
from heed.nn.blocks import NONE, BlockMask, BlockPattern
from heed.nn.sparse import BlockSparseAttention

# positions of a block, random blocks, heads, positions of a text, positions of the model
SHAPES = [(4, 3, 2, 48, 64), (4, 3, 3, 100, 128), (2, 1, 3, 40, 64), (4, 0, 2, 24, 64), (64, 3, 2, 1344, 4096)]
AS_IN_THE_PAPER = [(64, 3, 2, 1024, 4096), (16, 2, 2, 1024, 1024), (64, 2, 2, 3072, 4096), (64, 3, 2, 4096, 4096)]


def their_random_blocks(size, random, heads, length, longest, seed):
    config = BigBirdConfig(
        hidden_size=heads, num_attention_heads=heads, block_size=size, num_random_blocks=random, max_position_embeddings=longest
    )  # fmt: skip
    attention = BigBirdBlockSparseAttention(config, seed=seed).train()
    state = np.random.get_state()
    np.random.seed(seed)
    try:
        if (size, random, heads, length, longest) in AS_IN_THE_PAPER:
            every = [
                attention._bigbird_block_rand_mask(longest, longest, size, size, random, last_idx=1024)
                for _ in range(heads)
            ]
            return np.stack(every)[:, : length // size - 2]
        plan = attention._get_rand_attn_plan(length, size, random)
        return np.stack(attention._bigbird_block_rand_mask_with_head(length, length, size, size, heads, *plan))
    finally:
        np.random.set_state(state)


@pytest.mark.parametrize("shape", SHAPES + AS_IN_THE_PAPER, ids=str)
def test_random_blocks_are_those_that_transformers_draws_in_training(shape):
    size, random, heads, length, longest = shape
    found = BlockPattern(size, random, heads, longest).drawn(length, 3)
    assert np.array_equal(found, their_random_blocks(*shape, seed=3))
    assert not random or not np.array_equal(found, BlockPattern(size, random, heads, longest).drawn(length, 4))


def test_a_block_sees_the_ends_its_neighbours_and_random_ones():
    pattern = BlockPattern(2, 1, 1, 64)
    [rows] = pattern.table(23, pattern.drawn(23, 0)).tolist()  # 12 blocks, the last not full
    assert [row[:5] for row in rows[:2]] == [[0, NONE, 1, 2, 11], [0, 1, 2, 3, 11]]
    assert rows[-1][:5] == [0, 9, 10, NONE, 11] and len(rows) == 10 and {len(row) for row in rows} == {6}
    assert all(row[5] not in {0, i, i + 1, i + 2, 11} for i, row in enumerate(rows))
    assert (pattern.first_again(23) == 0).all()


@pytest.mark.parametrize("random", ["drawn", "first_again"])
@pytest.mark.parametrize("external", [0, 3])
@pytest.mark.parametrize(("length", "padded"), [(61, True), (64, True), (61, False), (64, False)])
def test_it_equals_full_attention_under_the_same_mask_forward_and_backward(random, length, padded, external):
    pattern = BlockPattern(4, 2, 3, 128)
    table = pattern.table(length, pattern.drawn(length, 1) if random == "drawn" else pattern.first_again(length))
    torch.manual_seed(0)
    whole = length + external
    parts = [torch.randn(2, 3, whole, 5, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    valid = (torch.arange(length) < torch.tensor([[length], [30 if padded else length]]))[:, None, None]
    valid = torch.nn.functional.pad(valid, (0, external), value=True)
    mask = BlockMask(table, 4, valid if padded else None, external)
    bias = mask.bias(whole)
    assert (bias[..., length:] == 0).all() and (bias[..., length:, :] == 0).all()  # they see and are seen by all
    dense = attend(*parts, mask=valid, bias=bias.expand(2, -1, -1, -1))
    sparse, rows = attend(*parts, mask=mask), valid.transpose(2, 3)
    weight = torch.randn_like(dense) * rows
    torch.testing.assert_close(sparse, dense * rows, rtol=0, atol=1e-12)
    for one, other in zip(
        torch.autograd.grad((sparse * weight).sum(), parts), torch.autograd.grad((dense * weight).sum(), parts), strict=True
    ):  # fmt: skip
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


class Largest(TorchDispatchMode):
    """The largest tensor that any operation has made."""

    size = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        for one in made if isinstance(made, tuple | list) else (made,):
            self.size = max(self.size, one.numel() if isinstance(one, torch.Tensor) else 0)
        return made


def test_memory_grows_with_the_length_and_not_with_its_square():
    attention = BlockSparseAttention(8, BlockPattern(4, 1, 2, 4000), 0, fixed=True)
    largest = []
    for length in (1000, 2000, 3000):
        with Largest() as seen, torch.no_grad():
            attention(torch.zeros(1, length, 8))
        largest.append(seen.size)
    assert largest[2] - largest[1] == largest[1] - largest[0]  # each thousand positions take as much as those before
    assert largest[0] < 1000 * 1000


def test_random_blocks_are_drawn_in_training_and_afterwards_if_they_are_fixed():
    torch.manual_seed(0)
    x, pattern = torch.randn(1, 60, 6), BlockPattern(4, 2, 2, 64)
    plain, fixed = (BlockSparseAttention(6, pattern, 1, fixed=own) for own in (False, True))
    fixed.load_state_dict(plain.state_dict())
    assert torch.equal(plain.train()(x), fixed.train()(x)) and torch.equal(fixed.eval()(x), fixed.train()(x))
    assert not torch.allclose(plain.eval()(x), fixed(x))
    short = x[:, : pattern.full]
    assert torch.equal(plain(short), fixed(short))
    with pytest.raises(ValueError, match="a text has 60 tokens: block-sparse attention is for encoders"):
        plain(x, causal=True)

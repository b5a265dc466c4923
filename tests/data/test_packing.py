"""Packed batches: every sentence once, within the budget, of few shapes."""

from contextlib import closing
from functools import partial
from itertools import islice

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from heed.data.batching import Batches, DataPosition, plan_packed
from heed.data.packing import Packed, kernel_lengths, pack
from heed.data.prefetch import in_processes
from heed.vocabularies.sentencepiece import SPECIAL_TOKENS

LENGTHS = st.lists(st.tuples(st.integers(1, 300), st.integers(1, 300)), min_size=1, max_size=200)


@given(LENGTHS, st.integers(1, 2000), st.integers(0, 3), st.integers(0, 3))
def test_every_sentence_comes_once_and_the_budget_holds(lengths, budget, seed, epoch):
    source, target = np.array(lengths).T
    batches = plan_packed(source, target, budget, seed, epoch)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    for rows in batches:
        assert len(rows) == 1 or max(source[rows].sum(), target[rows].sum()) <= budget


@given(LENGTHS, st.integers(300, 2000))
def test_neighbours_need_tiles_of_one_size_and_batches_are_full(lengths, budget):
    source, target = np.array(lengths).T
    kinds = kernel_lengths(np.maximum(source, target))
    batches = sorted(plan_packed(source, target, budget, 1, 1), key=lambda rows: (kinds[rows].min(), kinds[rows].max()))
    assert (np.diff(kinds[np.concatenate(batches)]) >= 0).all()
    fuller = [max(side[rows].sum() for side in (source, target)) for rows in batches]
    assert sum(size + 300 <= budget for size in fuller) <= 1  # the last alone, of all in their order


def test_lengths_are_rounded_to_tiles():
    assert kernel_lengths(np.array([1, 16, 17, 32, 33, 64, 100, 128, 129, 256, 257])).tolist() == [
        16, 16, 32, 32, 64, 64, 128, 128, 256, 256, 384,
    ]  # fmt: skip


def test_of_no_sentences_there_are_no_batches():
    none = np.zeros(0, dtype=np.int64)
    assert plan_packed(none, none, 10, 0, 0) == []


def test_the_order_is_drawn_by_seed_and_epoch():
    lengths = np.random.default_rng(0).integers(1, 60, (2, 500))
    one = plan_packed(*lengths, 200, 1, 1)
    assert all(map(np.array_equal, one, plan_packed(*lengths, 200, 1, 1)))
    for other in (plan_packed(*lengths, 200, 2, 1), plan_packed(*lengths, 200, 1, 2)):
        assert not all(map(np.array_equal, one, other))


def test_other_processes_make_the_same_batches(made):
    batches = Batches(made, budget=64, seed=3, collate=partial(pack, slots=16), plan=plan_packed)
    with closing(in_processes(batches, DataPosition(), workers=2)) as others:
        for (place, one), (after, other) in zip(islice(batches.start(), 6), islice(others, 6), strict=True):
            assert place == after and isinstance(other, Packed)
            assert one.shape == other.shape and one.count == other.count
            assert all(torch.equal(a, b) for a, b in zip(one.tensors(), other.tensors(), strict=True))


def test_a_clone_shares_no_memory():
    one = pack([[5, 6], [7]], [[8], [9, 10]], (SPECIAL_TOKENS, SPECIAL_TOKENS), slots=8)
    other = one.clone()
    assert other.shape == one.shape and all(map(torch.equal, one.tensors(), other.tensors()))
    other.source.zero_()
    assert one.source.any()
    twice = one.twice()
    assert twice.valid.starts.tolist()[len(one.valid.starts) - 1 :] == (one.valid.starts + one.source.shape[1]).tolist()

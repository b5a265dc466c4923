"""Batches: every sentence once, within a budget, in an order that can be taken up anywhere."""

from collections import Counter
from contextlib import closing
from itertools import islice

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from heed.data.batches import Batch, Batches, Place, ahead, collate, elsewhere, plan
from heed.data.subwords import FIRST, LAST, PAD

LENGTHS = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), min_size=1, max_size=200)


def assert_same(one, other):
    return all(a is b or torch.equal(a, b) for a, b in zip(one, other, strict=True))


def assert_both(one, other):
    assert [place for place, _ in one] == [place for place, _ in other]
    assert all(assert_same(a, b) for (_, a), (_, b) in zip(one, other, strict=True))


@pytest.fixture(params=[0.0, 0.2], ids=["plain", "sampled"])
def batches(request, made, learned):
    return Batches(made, budget=128, seed=5, sampling=request.param, subwords=(learned, learned))


@given(LENGTHS, st.integers(1, 300), st.integers(0, 9), st.integers(0, 9))
def test_every_sentence_comes_once_and_the_budget_holds(lengths, budget, seed, epoch):
    source, target = np.array(lengths).T
    planned = plan(source, target, budget, seed, epoch)
    assert sorted(np.concatenate(planned).tolist()) == list(range(len(lengths)))
    for rows in planned:
        assert len(rows) == 1 or len(rows) * max(source[rows].max(), target[rows].max()) <= budget


def test_little_is_padding_where_lengths_are_as_in_real_text():
    random = np.random.default_rng(0)
    source = np.clip(random.lognormal(3.0, 0.5, 30_000), 1, 200).astype(int)
    target = np.clip(source * random.lognormal(0.05, 0.15, 30_000), 1, 200).astype(int)
    planned = plan(source, target, 4096, seed=1, epoch=0)
    slots = sum(len(rows) * (source[rows].max() + target[rows].max()) for rows in planned)
    assert 1 - (source.sum() + target.sum()) / slots < 0.07
    filled = [max(source[rows].max(), target[rows].max()) * len(rows) for rows in planned]
    assert np.mean(filled) > 0.9 * 4096


def test_the_order_is_drawn_by_seed_and_epoch():
    lengths = np.random.default_rng(0).integers(1, 30, (2, 500))

    def drawn(seed, epoch):
        return [rows.tolist() for rows in plan(*lengths, 100, seed, epoch)]

    assert drawn(1, 0) == drawn(1, 0)
    orders = [drawn(1, 0), drawn(1, 1), drawn(2, 0), drawn(2, 1)]
    for i, order in enumerate(orders):
        assert order not in orders[:i]
        assert {tuple(sorted(rows)) for rows in order} not in [{tuple(sorted(rows)) for rows in o} for o in orders[:i]]
    longest = [lengths[1, rows].max() for rows in orders[0]]
    assert longest != sorted(longest)


def test_an_epoch_holds_every_pair_once(made, learned, pairs):
    batches = Batches(made, budget=128, seed=5)
    seen, place = Counter(), None
    for place, batch in batches.start():
        for row in range(len(batch.source)):
            source = learned.decode(batch.source[row].tolist())
            seen[source, learned.decode(batch.target[row].tolist())] += 1
        assert max(batch.source.numel(), batch.target.numel()) <= 128
        if place.epoch == 1:
            break
    assert place == Place(1, 0)
    assert seen == Counter(pairs)


def test_what_comes_after_a_place_does_not_depend_on_what_came_before(batches):
    in_an_epoch = len(batches.plan(0))
    whole = list(islice(batches.start(), in_an_epoch + 8))
    for i in [*range(0, in_an_epoch, 3), in_an_epoch - 2, in_an_epoch - 1, in_an_epoch, in_an_epoch + 3]:
        assert_both(list(islice(batches.start(whole[i][0]), 4)), whole[i + 1 : i + 5])


def test_sampled_subwords_spell_the_same_text_in_another_way_each_time(made, learned):
    plain = Batches(made, budget=128, seed=5)
    sampled = Batches(made, budget=128, seed=5, sampling=0.2, subwords=(learned, learned))
    rows = np.arange(40)
    spelled = [batch.source.tolist() for batch in (sampled.make(rows, (0, i)) for i in range(3))]
    assert spelled[0] != spelled[1] != spelled[2] != spelled[0]
    for ids in spelled:
        assert [learned.decode(row) for row in ids] == [learned.decode(row) for row in plain.make(rows).source.tolist()]


def test_a_sampled_sentence_that_has_become_too_long_is_cut_as_always(made, learned):
    longest = int(made.source.lengths.max()) + 1
    sampled = Batches(made, budget=128, seed=5, sampling=0.9, subwords=(learned, learned), max_length=longest)
    rows = np.arange(len(made))
    assert sampled.make(rows).source.shape[1] <= longest
    free = Batches(made, budget=128, seed=5, sampling=0.9, subwords=(learned, learned))
    assert free.make(rows).source.shape[1] > longest


def test_another_thread_makes_the_same_batches(batches):
    expected = list(islice(batches.start(Place(0, 3)), 8))
    with closing(ahead(batches.start(Place(0, 3)), size=2)) as ready:
        assert_both(list(islice(ready, 8)), expected)


def test_another_process_makes_the_same_batches(made, learned):
    batches = Batches(made, budget=128, seed=5, sampling=0.2, subwords=(learned, learned))
    with closing(elsewhere(batches, Place(0, 3), size=2)) as ready:
        assert_both(list(islice(ready, 8)), list(islice(batches.start(Place(0, 3)), 8)))


def test_what_has_an_end_ends_in_another_thread_too():
    assert list(ahead(iter(range(50)), size=3)) == list(range(50))


def test_an_error_in_another_thread_reaches_who_waits():
    def items():
        yield 1
        raise ValueError("line 7 is damaged")

    ready = ahead(items())
    assert next(ready) == 1
    with pytest.raises(ValueError, match="line 7 is damaged"):
        next(ready)


def test_an_error_in_another_process_reaches_who_waits(made):
    without_subwords = Batches(made, budget=128, seed=5, sampling=0.2)
    with pytest.raises(TypeError, match="'NoneType' object is not subscriptable"):
        next(elsewhere(without_subwords, Place()))


def test_a_thread_whose_work_is_not_wanted_any_more_ends():
    made = []
    ready = ahead((made.append(i) or i for i in range(10**9)), size=2)
    next(ready)
    ready.close()
    count = len(made)
    assert count < 10
    assert len(made) == count


def test_a_batch_by_hand():
    batch = collate([[5, 6], [7]], [[8], [9, 10]])
    assert batch.source.tolist() == [[5, 6, LAST], [7, LAST, PAD]]
    assert batch.valid.tolist() == [[True, True, True], [True, True, False]]
    assert batch.target.tolist() == [[FIRST, 8, PAD], [FIRST, 9, 10]]
    assert batch.places.tolist() == [0, 1, 3, 4, 5]
    assert batch.expected.tolist() == [8, LAST, 9, 10, LAST]
    assert [part.dtype for part in batch[:5]] == [torch.int64, torch.bool, torch.int64, torch.int64, torch.int64]
    assert batch.to(torch.device("cpu")) is batch


def plain_collate(source, target):
    """The same in plain Python."""
    s, t = max(map(len, source)) + 1, max(map(len, target)) + 1
    sources = [[*row, LAST] + [PAD] * (s - len(row) - 1) for row in source]
    inputs = [[FIRST, *row] + [PAD] * (t - len(row) - 1) for row in target]
    places = [i * t + j for i, row in enumerate(target) for j in range(len(row) + 1)]
    expected = [token for row in target for token in [*row, LAST]]
    valid = [[token != PAD for token in row] for row in sources]
    return Batch(*map(torch.tensor, (sources, valid, inputs, places, expected)))


SENTENCE = st.lists(st.integers(4, 99), max_size=9)


@given(st.lists(st.tuples(SENTENCE, SENTENCE), min_size=1, max_size=9))
def test_collate_is_its_plain_definition(pairs):
    source, target = map(list, zip(*pairs, strict=True))
    assert assert_same(collate(source, target), plain_collate(source, target))
    as_stored = [[np.array(row, dtype=np.uint16) for row in side] for side in (source, target)]
    assert assert_same(collate(*as_stored), plain_collate(source, target))

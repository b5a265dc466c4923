"""Augmentations beside their definitions, and the batches of a log."""

from itertools import islice, pairwise

import numpy as np
import pytest

from heed.data.interactions import augment
from heed.data.interactions.batches import ItemBatches, MaskItems, cut, next_items
from heed.vocabularies.histories import Histories
from heed.vocabularies.ragged import as_ragged

MASK = 1000
ROWS = [list(range(10 * i, 10 * i + length)) for i, length in enumerate((1, 2, 3, 5, 8, 9, 10))]


def changed(augmentation, seed):
    found = augmentation(as_ragged(ROWS), np.random.default_rng(seed))
    return [row.tolist() for row in found]


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 1.0])
def test_a_crop_is_a_part_of_the_history_of_the_share_s_length(share):
    starts = set()
    for seed in range(120):
        for row, found in zip(ROWS, changed(augment.crop(share), seed), strict=True):
            assert len(found) == max(1, int(share * len(row)))
            first = row.index(found[0])
            assert found == row[first : first + len(found)]
            starts.add((len(row), first))
    for row in ROWS:  # each place occurs
        assert {first for size, first in starts if size == len(row)} == set(
            range(len(row) - max(1, int(share * len(row))) + 1)
        )


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 1.0])
def test_masks_replace_the_share_of_the_items_and_nothing_else(share):
    hidden = set()
    for seed in range(40):
        for row, found in zip(ROWS, changed(augment.mask(share, MASK), seed), strict=True):
            assert found.count(MASK) == int(share * len(row))
            assert all(new in (old, MASK) for old, new in zip(row, found, strict=True))
            hidden |= {old for old, new in zip(row, found, strict=True) if new == MASK}
    assert hidden == {item for row in ROWS for item in row if int(share * len(row))}


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 1.0])
def test_reordering_shuffles_one_part_of_the_share_s_length(share):
    moved = False
    for seed in range(20):
        for row, found in zip(ROWS, changed(augment.reorder(share), seed), strict=True):
            assert sorted(found) == row
            differ = [i for i, (old, new) in enumerate(zip(row, found, strict=True)) if old != new]
            assert not differ or differ[-1] - differ[0] < int(share * len(row))
            moved |= bool(differ)
    assert moved == (share > 0)


def test_two_views_are_each_one_of_the_ways_and_stay_with_their_history():
    ways = [augment.crop(0.5), augment.mask(0.5, MASK)]
    one, other = augment.two_views(as_ragged(ROWS), ways, np.random.default_rng(3))
    kinds = set()
    for row, *views in zip(ROWS, one, other, strict=True):
        for view in views:
            rest = set(view.tolist()) - {MASK}
            assert rest <= set(row)
            kinds.add("mask" if MASK in view else "crop" if len(view) < len(row) else "same")
    assert {"mask", "crop"} <= kinds and one.ids.tolist() != other.ids.tolist()


def histories(rows, known=200):
    lengths = np.array([len(row) for row in rows])
    none = np.full(len(rows), -1)
    arrays = {"items": np.concatenate(rows).astype(np.uint32), "offsets": np.concatenate([[0], lengths.cumsum()]),
              "train_end": lengths, "valid_at": none, "test_at": none}  # fmt: skip
    return Histories([str(i) for i in range(len(rows))], known, arrays)


def made(form=next_items, **options):
    settings = {"longest": 6, "budget": 12, "seed": 1, **options}
    return ItemBatches(histories(ROWS), form, **settings)


def examples(batch):
    """(history, item read, item expected) of each prediction of a batch."""
    starts = batch.offsets.starts.tolist()
    row = [next(i for i in range(len(starts)) if place < starts[i + 1]) for place in batch.places.tolist()]
    return list(zip(row, batch.items[0, batch.places].tolist(), batch.expected.tolist(), strict=True))


def test_every_item_of_an_epoch_is_predicted_from_the_one_before_it():
    batches = made(longest=100)
    found = [pair for rows in batches.plan(0) for _, *pair in examples(batches.make(rows, (0, 0)))]
    assert sorted(found) == sorted([old, new] for row in ROWS for old, new in pairwise(row))
    assert all(batches.lengths[rows].sum() <= 12 or len(rows) == 1 for rows in batches.plan(3))


def test_of_long_histories_the_last_items_are_read_or_all_in_parts():
    last = made()
    assert sorted(last.lengths.tolist()) == [2, 3, 5, 6, 6, 6]
    found = [pair for rows in last.plan(0) for _, *pair in examples(last.make(rows, (0, 0)))]
    assert [64, 65] in found and [60, 61] not in found  # of 60 to 69 the last six
    parts = made(windows=True)
    found = [pair for rows in parts.plan(0) for _, *pair in examples(parts.make(rows, (0, 0)))]
    assert sorted(found) == sorted([old, new] for row in ROWS for old, new in pairwise(row))
    users, starts, ends = cut(np.array([10]), 4, True, 0)
    assert list(zip(users.tolist(), starts.tolist(), ends.tolist(), strict=True)) == [(0, 6, 10), (0, 2, 6), (0, 0, 2)]


@pytest.mark.parametrize("form", [next_items, MaskItems(MASK, 0.4, 0.3)])
def test_batches_of_one_shape_hold_the_same_examples(form):
    plain, padded = ([own for _, own in islice(made(form, equal=equal).start(), 12)] for equal in (False, True))
    assert len({batch.shape for batch in padded}) == 1 and len({batch.shape for batch in plain}) > 4
    longest = made(form).longest
    for one, other in zip(plain, padded, strict=True):
        read, count, lengths = one.items.shape[1], len(one.offsets.starts), other.offsets.starts.diff()
        assert other.items[0, :read].tolist() == one.items[0].tolist()
        assert other.offsets.starts[:count].tolist() == one.offsets.starts.tolist()
        assert other.offsets.starts[-1] == other.items.shape[1] and lengths.min() >= 0 and lengths.max() <= longest
        assert other.count == one.count == len(one.places)
        assert (other.expected >= 0).tolist() == [i < one.count for i in range(len(other.expected))]
        assert examples(other)[: one.count] == examples(one)
        assert other.seen[:, : one.seen.shape[1]].tolist() == one.seen.tolist()
        assert (other.seen[0, one.seen.shape[1] :] >= count).all()  # of no history
        copied = other.clone()
        assert all(a.equal(b) and a is not b for a, b in zip(copied.tensors(), other.tensors(), strict=True))


@pytest.mark.parametrize("form", [next_items, MaskItems(MASK, 0.4, 0.3)])
def test_batches_depend_on_the_seed_and_the_position_alone(form):
    ways = [augment.crop(0.5), augment.reorder(0.5)] if form is next_items else []

    def batches(**options):
        return made(form, augmentations=ways, **options)

    whole = list(islice(batches().start(), 12))
    again = list(islice(batches().start(whole[4][0]), 7))
    for (position, one), (same, other) in zip(whole[5:], again, strict=True):
        assert (
            position == same
            and one.items.tolist() == other.items.tolist()
            and one.expected.tolist() == other.expected.tolist()
        )
        assert one.views is None or one.views.items.tolist() == other.views.items.tolist()
    assert [own.items.tolist() for _, own in whole] != [
        own.items.tolist() for _, own in islice(batches(seed=2).start(), 12)
    ]


def test_processes_share_the_histories_of_a_batch():
    whole, parts = made(longest=100), [made(longest=100, share=(rank, 3)) for rank in range(3)]
    for rows in whole.plan(0):
        found = [examples(part.make(rows, (0, 0))) for part in parts]
        assert sorted(p for own in found for _, *p in own) == sorted(p for _, *p in examples(whole.make(rows, (0, 0))))


def test_masked_items_are_hidden_and_expected():
    form, random = MaskItems(MASK, 0.4, 0.0), np.random.default_rng(0)
    inputs, places, expected = form(as_ragged(ROWS), random)
    assert (inputs.ids[places] == MASK).all() and expected.tolist() == as_ragged(ROWS).ids[places].tolist()
    counts = [row.tolist().count(MASK) for row in inputs]
    assert counts == [max(1, round(0.4 * len(row))) for row in ROWS]
    inputs, places, expected = MaskItems(MASK, 0.4, 1.0)(as_ragged(ROWS), random)
    assert expected.tolist() == [row[-1] for row in ROWS]

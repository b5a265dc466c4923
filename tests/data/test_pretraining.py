"""Batches with masked words: what they depend on, and their shapes."""

import pickle
from dataclasses import replace
from functools import cache
from itertools import islice

import numpy as np
import pytest
import torch

from heed.data.batching import DataPosition
from heed.data.pretraining import MaskedBatch, PairSettings, RowShape, masked_batches, training_batches
from heed.data.readers import Line
from heed.data.segments import read_text
from heed.data.streams import IGNORED
from tests.convert.encoders import vocabulary
from tests.data.mixed import training

SETTINGS = PairSettings(length=24)
KINDS = [{}, {"cut_sentences": True}, {"pair": "next"}, {"pair": "order", "whole_words": True}, {"spans": True}]


@cache
def text(kind):
    """Documents of five lines."""
    texts = [own for i, line in enumerate(training()[:80]) for own in ([line] if i % 5 else ["", line])]
    return read_text([Line(own, own, f"text:{i + 1}") for i, own in enumerate(texts)], vocabulary(kind), "paragraph")


def made(kind="wordpiece", rows=8, share=(0, 1), seed=1, **settings):
    return masked_batches(
        text(kind), vocabulary(kind), replace(SETTINGS, **settings), batch_tokens=24 * rows, seed=seed, share=share
    )


def alternating(rows=8, share=(0, 1), **settings):
    """Batches of rows of 24 and of 12 tokens in turn."""
    own = replace(SETTINGS, halvings=1, **settings)
    return training_batches(
        text("wordpiece"), vocabulary("wordpiece"), own, batch_tokens=24 * rows, seed=1, share=share
    )


def first(batches, number, position=None):
    return list(islice(batches.start(position or DataPosition()), number))


def equal(one, two):
    return all(torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("source", [made(**settings) for settings in KINDS] + [alternating()])
def test_batches_continue_from_any_position_and_in_other_processes(source):
    whole = first(source, 33)
    assert {after.epoch for after, _ in whole} >= {0, 1}
    for start in (3, 17, 30):
        again = first(pickle.loads(pickle.dumps(source)), 3, whole[start - 1][0])
        assert all(a == b and equal(x, y) for (a, x), (b, y) in zip(again, whole[start:], strict=False))
    turns = [list(islice(source.start(DataPosition(), worker, 3), 4)) for worker in range(3)]
    assert all(equal(turns[i % 3][i // 3][1], whole[i][1]) for i in range(12))


@pytest.mark.parametrize("settings", KINDS)
def test_processes_share_the_rows_of_a_batch(settings):
    sources = [made(**settings), *(made(share=(i, 2), **settings) for i in range(2))]
    for whole, *parts in zip(*(first(own, 30) for own in sources), strict=True):
        shares = [part for _, part in parts]
        assert torch.equal(whole[1].tokens, torch.cat([part.tokens for part in shares]))
        expected = torch.cat([part.expected for part in shares])
        assert torch.equal(whole[1].expected, expected) and whole[0] == parts[0][0]
        for name in ("count", "rows", "size"):
            assert getattr(whole[1], name) == sum(getattr(part, name) for part in shares)


@pytest.mark.parametrize("settings", KINDS)
def test_every_batch_has_one_shape_and_holds_each_row_once(settings):
    source = made(**settings)
    epoch, rows = list(source.one_epoch()), source.source.plan(1, 0)
    assert {(batch.tokens.shape, batch.positions.shape) for batch in epoch} == {((8, 24), (8 * source.predictions,))}
    assert sum(batch.rows for batch in epoch) == len(rows)
    for batch in epoch:
        hidden = batch.expected != IGNORED
        assert batch.count == hidden.sum() and len(set(batch.positions[hidden].tolist())) == batch.count
        special = source.shape.special
        restored = batch.filled(batch.expected)
        assert torch.equal(restored.flatten()[batch.positions[hidden]], batch.expected[hidden])
        changed = (restored != batch.tokens).flatten().nonzero()[:, 0]
        assert set(changed.tolist()) <= set(batch.positions[hidden].tolist())
        assert (restored != special.mask).all()
        valid = torch.ones_like(batch.tokens, dtype=torch.bool) if batch.valid is None else batch.valid
        assert torch.equal((restored != special.pad)[: batch.rows], valid[: batch.rows])
        assert (restored[: batch.rows, 0] == special.first).all() and batch.size == valid[: batch.rows].sum()
    full = [batch.valid is None for batch in epoch[:-1]]
    assert sum(full) >= len(full) - 1 if settings.get("cut_sentences") else not all(full)


@pytest.mark.parametrize("settings", [{}, {"cut_sentences": True}])
def test_lengths_take_turns_and_each_goes_through_all_its_rows(settings):
    mixed = alternating(**settings)
    kinds = [made(length=length, **settings) for length in (24, 12)]
    assert [kind.rows for kind in kinds] == [8, 16]
    number = 2 * max(kind.per_epoch for kind in kinds) + 3
    found = first(mixed, number)
    for turn, kind in enumerate(kinds):
        own = first(kind, number)
        for (_, batch), (_, expected) in zip(found[turn::2], own, strict=False):
            assert equal(batch, expected)
    sizes = {batch.tokens.shape for _, batch in found}
    assert sizes == {(8, 24), (16, 12)} and max(after.epoch for after, _ in found) >= 2
    assert [after for after, _ in found[: kinds[0].per_epoch]][-1] == DataPosition(1, 0)


def test_processes_share_the_rows_of_each_length():
    for whole, *parts in zip(*(first(alternating(share=own), 9) for own in ((0, 1), (0, 2), (1, 2))), strict=True):
        assert torch.equal(whole[1].tokens, torch.cat([part.tokens for _, part in parts]))
        assert {part[0] for part in parts} == {whole[0]}


def test_without_shorter_lengths_nothing_changes():
    one = training_batches(text("wordpiece"), vocabulary("wordpiece"), SETTINGS, batch_tokens=192, seed=1)
    for (_, batch), (_, expected) in zip(first(one, 5), first(made(), 5), strict=True):
        assert equal(batch, expected)


def test_static_masking_repeats_itself_and_dynamic_masking_does_not():
    for pair in ("none", "next"):
        rows = {}
        for dynamic in (True, False):
            source = made(pair=pair, dynamic=dynamic)
            epochs = [source.make(source.plan(e)[0], np.arange(8), e) for e in (0, 1)]
            rows[dynamic] = equal(*epochs)
            orders = [source.plan(e)[1] for e in (0, 1)]
            assert not np.array_equal(*orders)
        assert rows == {True: False, False: True}


def test_pairs_have_segments_where_the_vocabulary_has_them():
    [(_, batch)] = first(made(pair="next"), 1)
    last, ends = vocabulary("wordpiece").special.last, set()
    for row, segments in zip(batch.filled(batch.expected).tolist(), batch.segments.tolist(), strict=True):
        middle = row.index(last)
        end = row.index(last, middle + 1)
        assert segments == [0] * (middle + 1) + [1] * (end - middle) + [0] * (23 - end)
        ends.add(end)
    assert min(ends) < max(ends) == 23
    assert set(batch.labels.tolist()) <= {0, 1}
    [(_, other)] = first(made("roberta", pair="next"), 1)
    assert other.segments is None and other.labels is not None
    delimiter = list(vocabulary("roberta").special.delimiter)
    row = other.filled(other.expected)[0].tolist()
    assert any(row[i : i + 2] == delimiter for i in range(22))
    [(_, single)] = first(made(), 1)
    assert single.segments is None and single.labels is None


def test_settings_that_contradict_each_other_are_refused():
    with pytest.raises(ValueError, match=r"^task\.length is 4; it must be at least 8"):
        PairSettings(length=4)
    with pytest.raises(ValueError, match=r"^task\.cut_sentences is for single-segment rows, and task\.pair is 'next'"):
        PairSettings(pair="next", cut_sentences=True)
    with pytest.raises(ValueError, match=r"^task\.halvings is for single-segment rows, and task\.pair is 'order'"):
        PairSettings(pair="order", halvings=1)
    with pytest.raises(ValueError, match=r"^task\.halvings is -1; it must be at least 0"):
        PairSettings(halvings=-1)
    for length, halvings in ((24, 2), (36, 3), (36, 10**12), (50, 2)):  # 6 tokens, 4.5, none, and 12.5
        with pytest.raises(ValueError, match=rf"^task\.halvings is {halvings}, but rows of {length} tokens"):
            PairSettings(length=length, halvings=halvings)
    with pytest.raises(ValueError, match=r"^training\.batch_tokens is for 0 rows of 24 tokens; raise it to fit at"):
        made(rows=0)
    with pytest.raises(ValueError, match="at least one, and a multiple of 3, or lower"):
        made(share=(0, 3))
    assert RowShape(vocabulary("roberta").special, 24, paired=True).room == 20


def test_a_clone_of_a_batch_is_the_same_in_other_memory():
    tokens, places = torch.arange(6).view(2, 3), torch.tensor([1, 4])
    batch = MaskedBatch(tokens, None, torch.zeros_like(tokens), places, places + 7, None, 2, 2, 6)
    copied = batch.clone()
    assert [part is None for part in copied] == [part is None for part in batch] and copied[6:] == batch[6:]
    for one, other in zip(batch.tensors(), copied.tensors(), strict=True):
        assert torch.equal(one, other) and one.data_ptr() != other.data_ptr()

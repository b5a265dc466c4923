"""Batches: every sentence once, within a budget, in an order that can be resumed anywhere."""

import multiprocessing
import pickle
import queue
import shutil
import threading
from collections import Counter
from contextlib import closing
from itertools import islice
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from heed.data import prefetch
from heed.data.batching import (
    Batch,
    Batches,
    DataPosition,
    LabelledBatch,
    collate,
    plan,
    shard_mask,
)
from heed.data.gaps import Gaps
from heed.data.in_thread import in_thread
from heed.data.labelled import CollateTexts
from heed.data.noise import Denoise
from heed.data.packing import pack
from heed.data.prefetch import in_processes
from heed.models import MODELS
from heed.products.classifier import Classifier
from heed.tasks.gap_sentences import GapSentencesLoss
from heed.tasks.sequence_loss import CrossEntropy, RDrop
from heed.tasks.text_losses import LabelLoss, TextLoss
from heed.vocabularies.ragged import as_ragged
from heed.vocabularies.sentencepiece import FIRST, LAST, PAD, SPECIAL_TOKENS
from heed.vocabularies.vocabulary import SpecialTokens
from tests.start_methods import get_context

LENGTHS = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), min_size=1, max_size=200)


def same(one, other):
    pairs = list(zip(one, other, strict=True))
    return all(a is b or (a.dtype == b.dtype and torch.equal(a, b)) for a, b in pairs)


def assert_same_batches(one, other):
    assert [place for place, _ in one] == [place for place, _ in other]
    assert all(same(a, b) for (_, a), (_, b) in zip(one, other, strict=True))


@pytest.fixture(params=[0.0, 0.2], ids=["plain", "sampled"])
def batches(request, made, learned):
    return Batches(made, budget=128, seed=5, sampling=request.param, vocabularies=(learned, learned))


@given(LENGTHS, st.integers(1, 300), st.integers(0, 9), st.integers(0, 9))
def test_every_sentence_comes_once_and_the_budget_holds(lengths, budget, seed, epoch):
    source, target = np.array(lengths).T
    planned = plan(source, target, budget, seed, epoch)
    assert sorted(np.concatenate(planned).tolist()) == list(range(len(lengths)))
    for rows in planned:
        assert len(rows) == 1 or len(rows) * max(source[rows].max(), target[rows].max()) <= budget


def reference_plan(source, target, budget, seed, epoch):
    """The same plan, made sentence by sentence."""
    random = np.random.default_rng([seed, epoch])
    order = random.permutation(len(source))
    batches = []
    for row in sorted(order.tolist(), key=lambda i: (max(source[i], target[i]), source[i])):
        longest = max(source[row], target[row])
        if batches and longest * (len(batches[-1]) + 1) <= budget:
            batches[-1].append(row)
        else:
            batches.append([row])
    return [batches[i] for i in random.permutation(len(batches))]


@given(LENGTHS, st.sampled_from([1, 7, 60, 100, 1000]), st.integers(0, 9), st.sampled_from([0, 0, 0, 2**16]))
def test_a_plan_is_its_plain_definition(lengths, budget, seed, more):
    source, target = np.array(lengths).T + more
    budget = budget + more * 3
    found = [rows.tolist() for rows in plan(source, target, budget, seed, epoch=1)]
    assert found == reference_plan(source, target, budget, seed, 1)


def test_of_no_sentences_there_are_no_batches():
    nothing = np.zeros(0, dtype=np.int32)
    assert plan(nothing, nothing, 100, seed=1, epoch=0) == []


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
    assert place == DataPosition(1, 0)
    assert seen == Counter(pairs)


def test_what_comes_after_a_position_does_not_depend_on_what_came_before(batches):
    in_an_epoch = len(batches.plan(0))
    whole = list(islice(batches.start(), in_an_epoch + 8))
    for i in [*range(0, in_an_epoch, 3), in_an_epoch - 2, in_an_epoch - 1, in_an_epoch, in_an_epoch + 3]:
        assert_same_batches(list(islice(batches.start(whole[i][0]), 4)), whole[i + 1 : i + 5])


def test_sampled_subwords_spell_the_same_text_in_another_way_each_time(made, learned):
    plain = Batches(made, budget=128, seed=5)
    sampled = Batches(made, budget=128, seed=5, sampling=0.2, vocabularies=(learned, learned))
    rows = np.arange(40)
    spelled = [batch.source.tolist() for batch in (sampled.make(rows, (0, i)) for i in range(3))]
    assert spelled[0] != spelled[1] != spelled[2] != spelled[0]
    for ids in spelled:
        assert [learned.decode(row) for row in ids] == [learned.decode(row) for row in plain.make(rows).source.tolist()]


def test_a_sampled_sentence_that_has_become_too_long_is_segmented_as_usual(made, learned):
    longest = int(made.source.lengths.max()) + 1
    sampled = Batches(made, budget=128, seed=5, sampling=0.9, vocabularies=(learned, learned), max_length=longest)
    rows = np.arange(len(made))
    assert sampled.make(rows).source.shape[1] <= longest
    free = Batches(made, budget=128, seed=5, sampling=0.9, vocabularies=(learned, learned))
    assert free.make(rows).source.shape[1] > longest


def test_a_sampled_sentence_fills_the_positions_to_the_last(made, learned):
    """With its end token a sentence has one more token than ids: just `max_length` is allowed, one more is not."""
    rows, settings = np.arange(40), {"budget": 128, "seed": 5, "vocabularies": (learned, learned)}
    everyone = np.ones(len(rows), dtype=bool)
    free = list(Batches(made, sampling=0.5, **settings)._ids(0, rows, everyone, (0, 0)))
    plain = list(made.source.take(rows))
    for most in {len(ids) for ids in free}:
        found = Batches(made, sampling=0.5, max_length=most, **settings)._ids(0, rows, everyone, (0, 0))
        expected = [new if len(new) + 1 <= most else old for new, old in zip(free, plain, strict=True)]
        assert [ids.tolist() for ids in found] == [ids.tolist() for ids in expected]


def test_another_thread_makes_the_same_batches(batches):
    expected = list(islice(batches.start(DataPosition(0, 3)), 8))
    with closing(in_thread(batches.start(DataPosition(0, 3)), size=2)) as ready:
        assert_same_batches(list(islice(ready, 8)), expected)


def test_other_processes_make_the_same_batches_in_the_same_order(made, learned, monkeypatch):
    monkeypatch.setattr(multiprocessing, "get_context", get_context)  # new interpreters, as in any training
    batches = Batches(made, budget=128, seed=5, sampling=0.2, vocabularies=(learned, learned))
    near_the_end = DataPosition(0, len(batches.plan(0)) - 3)
    with closing(in_processes(batches, near_the_end, size=2, workers=2)) as ready:
        assert_same_batches(list(islice(ready, 11)), list(islice(batches.start(near_the_end), 11)))


def test_this_process_makes_batches_until_the_others_can(made, learned, monkeypatch):
    batches = Batches(made, budget=128, seed=5, sampling=0.2, vocabularies=(learned, learned))
    asked = []

    def has_imported(ready, process):
        asked.append(process)
        return len(asked) > 6 and prefetch._get(ready, process) == prefetch.IMPORTED

    monkeypatch.setattr(prefetch, "_has_imported", has_imported)
    with closing(in_processes(batches, DataPosition(0, 1), size=2, workers=2, meanwhile=True)) as ready:
        assert_same_batches(list(islice(ready, 11)), list(islice(batches.start(DataPosition(0, 1)), 11)))
    assert len(asked) == 8, "after four batches, two processes go on"


def test_a_process_that_dies_before_its_first_batch_is_an_error():
    def nothing(timeout=None):
        raise queue.Empty

    ready, living = SimpleNamespace(get=nothing, get_nowait=nothing), [True]
    process = SimpleNamespace(is_alive=lambda: living[0], exitcode=1)
    assert not prefetch._has_imported(ready, process)
    living[0] = False
    with pytest.raises(RuntimeError, match=r"the data loading process has died \(exit code 1\)"):
        prefetch._has_imported(ready, process)
    with pytest.raises(SystemExit):
        prefetch._received(ready, lambda: False)


def test_a_batch_of_any_kind_comes_whole_from_another_process():
    for batch in (collate([[5, 6], [7]], [[8], [9, 10]]), pack([[5, 6], [7]], [[8], [9, 10]], slots=16)):
        found = prefetch._tensors(pickle.loads(pickle.dumps(prefetch._arrays(batch))))
        assert type(found) is type(batch)
        assert repr(found) == repr(batch)


def test_workers_in_turn_make_what_one_worker_makes(batches):
    expected = list(islice(batches.start(DataPosition(0, 1)), 12))
    for workers in (2, 3, 5):
        for worker in range(workers):
            own = expected[worker::workers]
            assert_same_batches(list(islice(batches.start(DataPosition(0, 1), worker, workers), len(own))), own)


def test_a_process_that_dies_is_an_error(lines, build, tmp_path):
    batches = Batches(build(tmp_path / "corpus", lines[:20]), budget=128, seed=5)
    shutil.rmtree(tmp_path / "corpus")
    with pytest.raises(RuntimeError, match=r"the data loading process has died \(exit code 1\)"):
        next(in_processes(batches, DataPosition()))


def test_what_has_an_end_ends_in_another_thread_too():
    assert list(in_thread(iter(range(50)), size=3)) == list(range(50))


def test_an_error_in_another_thread_is_raised_in_this_one():
    def items():
        yield 1
        raise ValueError("line 7 is damaged")

    ready = in_thread(items())
    assert next(ready) == 1
    with pytest.raises(ValueError, match="line 7 is damaged"):
        next(ready)


def test_an_error_in_another_process_is_raised_in_this_one(made):
    without_subwords = Batches(made, budget=128, seed=5, sampling=0.2)
    with pytest.raises(TypeError, match="NoneType"):
        next(in_processes(without_subwords, DataPosition()))


def test_a_thread_ends_at_once_when_its_items_are_no_longer_wanted(monkeypatch):
    monkeypatch.setattr("heed.data.in_thread.POLL", 600.0)
    made, full = [], threading.Event()
    ready = in_thread((made.append(i) or (i == 3 and full.set()) or i for i in range(10**9)), size=2)
    next(ready)
    full.wait()  # one is taken, two are ready, the next one waits
    closer = threading.Thread(target=ready.close, daemon=True)
    closer.start()
    closer.join(60)
    assert not closer.is_alive()
    assert made == [0, 1, 2, 3]


def test_a_batch_by_hand():
    batch = collate([[5, 6], [7]], [[8], [9, 10]])
    assert batch.source.tolist() == [[5, 6, LAST], [7, LAST, PAD]]
    assert batch.valid.tolist() == [[True, True, True], [True, True, False]]
    assert batch.target.tolist() == [[FIRST, 8, PAD], [FIRST, 9, 10]]
    assert batch.positions.tolist() == [0, 1, 3, 4, 5]
    assert batch.expected.tolist() == [8, LAST, 9, 10, LAST]
    assert [part.dtype for part in batch[:5]] == [torch.int64, torch.bool, torch.int64, torch.int64, torch.int64]
    assert batch.to(torch.device("cpu")) is batch


def reference_collate(source, target):
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
    assert same(collate(source, target), reference_collate(source, target))
    as_stored = [[np.array(row, dtype=np.uint16) for row in side] for side in (source, target)]
    assert same(collate(*as_stored), reference_collate(source, target))
    joined = [as_ragged(side) for side in as_stored]
    assert same(collate(*joined), reference_collate(source, target))


# the share of a process in a batch

MASKED = SpecialTokens(PAD, 1, FIRST, LAST, mask=5, gap=6)


def noisy(made, learned, kind, share=(0, 1)):
    """Batches of `kind`, of which this process gets its share."""
    ends = np.array([piece.endswith(".") for piece in learned.pieces(range(len(learned)))])
    noise = {"denoised": Denoise(MASKED, ends), "gaps": Gaps(MASKED, ends, gap_share=0.5)}.get(kind)
    sampling = 0.3 if kind == "sampled" else 0.0
    return Batches(
        made,
        budget=300,
        seed=5,
        sampling=sampling,
        vocabularies=(learned, learned),
        noise=noise,
        share=share,
        max_length=33,
    )


def row_contents(batch):
    """The content of each row of a batch, without padding."""
    due = torch.full(batch.target.shape, -1).flatten()
    due[batch.positions] = batch.expected
    hidden = torch.full(batch.source.shape, -1).flatten()
    if batch.masked_positions is not None:
        hidden[batch.masked_positions] = batch.masked_tokens
    found = []
    for source, valid, target, expected, answers in zip(
        batch.source, batch.valid, batch.target, due.view_as(batch.target), hidden.view_as(batch.source), strict=True
    ):
        spoken = int((expected >= 0).sum())
        assert (target[spoken:] == PAD).all()
        assert (source[~valid] == PAD).all()
        found.append(
            tuple(tuple(p.tolist()) for p in (source[valid], target[:spoken], expected[:spoken], answers[valid]))
        )
    return found


@pytest.mark.parametrize("kind", ["plain", "sampled", "denoised", "gaps"])
@pytest.mark.parametrize("world", [1, 2, 3, 5])
def test_the_shares_of_a_batch_are_the_batch(made, learned, kind, world):
    whole = list(islice(noisy(made, learned, kind).start(DataPosition(1, 2)), 6))
    shares = [
        list(islice(noisy(made, learned, kind, (rank, world)).start(DataPosition(1, 2)), 6)) for rank in range(world)
    ]
    assert len({tuple(place for place, _ in own) for own in (whole, *shares)}) == 1
    for i, (_, batch) in enumerate(whole):
        parts = [row_contents(own[i][1]) for own in shares]
        assert Counter(row for part in parts for row in part) == Counter(row_contents(batch))
        assert max(map(len, parts)) - min(map(len, parts)) <= 1
        for part in parts:
            places = [row_contents(batch).index(row) for row in part]
            assert places == sorted(places)
    if world == 1:
        assert_same_batches(shares[0], whole)


def test_noised_texts_are_the_same_for_any_layout_of_a_batch(made, learned):
    noised, rows = noisy(made, learned, "denoised"), np.arange(20)
    padded = row_contents(noised.make(rows))
    noised.collate = lambda *parts: parts
    sources, targets, _ = noised.make(rows)
    assert [(*own, LAST) for own in sources] == [row[0] for row in padded]
    assert [(*own, LAST) for own in targets] == [row[2] for row in padded]


def test_the_noise_of_a_text_does_not_depend_on_what_shares_its_batch(made, learned):
    rows = np.arange(20)
    noised = noisy(made, learned, "denoised")
    assert row_contents(noised.make(rows, (0, 3)))[4:9] == row_contents(noised.make(rows[4:9], (0, 7)))
    assert row_contents(noised.make(rows, (0, 3))) != row_contents(noised.make(rows, (1, 3)))


@given(st.lists(st.integers(1, 120), min_size=1, max_size=100), st.integers(1, 9))
def test_a_batch_is_sharded_completely_and_evenly(tokens, world):
    dealt = [shard_mask(np.array(tokens), rank, world) for rank in range(world)]
    assert (sum(mine.astype(int) for mine in dealt) == 1).all()
    shares = [int(np.array(tokens)[mine].sum()) for mine in dealt]
    assert max(shares) - min(shares) <= max(tokens)


def test_a_share_that_is_none_is_refused(made):
    with pytest.raises(
        ValueError, match=r"share is \(2, 2\); it must be \(rank, world size\) with 0 <= rank < world size"
    ):
        Batches(made, budget=128, seed=5, share=(2, 2))


def tiny_model(name, **more):
    system = MODELS[name]
    sizes = {"dim": 16, "heads": 2, "hidden": 24, "encoder_layers": 2, "decoder_layers": 2, "max_length": 32}
    made = system.model(system.config(vocab_size=20, **sizes, **more)).double()
    for weight in made.parameters():
        nn.init.normal_(weight, std=0.2)
    return made


@pytest.mark.parametrize(
    ("objective", "name"),
    [
        (CrossEntropy(0.1), "transformer"),
        (CrossEntropy(), "bart"),
        (RDrop(), "transformer"),
        (GapSentencesLoss(), "pegasus"),
    ],
)
def test_an_empty_share_has_no_gradient(objective, name):
    batch, model = collate([], []), tiny_model(name)
    assert (batch.source.shape, batch.target.shape, len(batch.positions), len(batch.expected)) == ((1, 1), (1, 1), 0, 0)
    assert [part.dtype for part in batch[:5]] == [torch.int64, torch.bool, torch.int64, torch.int64, torch.int64]
    assert batch.valid.all()  # attention over nothing may be NaN, and is on some devices
    loss = objective(model.train(), batch)
    loss.total.backward()
    assert (loss.total.item(), loss.nll.item(), loss.count) == (0, 0, 0)
    assert all(weight.grad is not None and not weight.grad.any() for weight in model.parameters())


def test_an_empty_share_of_labels_has_no_gradient():
    batch, model = CollateTexts()([], [], (SPECIAL_TOKENS, SPECIAL_TOKENS)), tiny_model("bart", labels=3)
    assert isinstance(batch, LabelledBatch) and batch.labels.dtype == torch.int64
    loss = TextLoss(LabelLoss(0.1), Classifier.combine)(model.train(), batch)
    loss.total.backward()
    assert (loss.total.item(), loss.count) == (0, 0)
    assert all(weight.grad is None or not weight.grad.any() for weight in model.parameters())


def test_with_more_processes_than_rows_some_shares_are_empty(made):
    shares = [Batches(made, budget=128, seed=5, share=(rank, 4)).make(np.array([7, 3])) for rank in range(4)]
    assert [len(batch.expected) > 0 for batch in shares] == [True, True, False, False]
    assert same(shares[3], collate([], []))


@pytest.mark.parametrize("share", [(-1, 2), (2, 2), (0, 0)])
def test_a_share_that_no_process_has_is_refused(made, share):
    with pytest.raises(
        ValueError, match=r"share is \(.*\); it must be \(rank, world size\) with 0 <= rank < world size"
    ):
        Batches(made, budget=128, seed=5, share=share)

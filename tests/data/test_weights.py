"""Several corpora with weights: how often each pair is read, on any number of processes, from any position."""

from collections import Counter

import numpy as np
import pytest

from heed.data import corpus as corpora
from heed.data.batching import Batches, plan_packed
from heed.data.duplicates import Origin, find_skipped
from heed.data.filters import FiltersConfig
from heed.data.readers import Line
from heed.data.weights import rows_of_epoch
from heed.vocabularies import sentencepiece


@pytest.fixture(scope="module")
def tagged(pairs):
    texts = [text for pair in pairs for text in pair]
    return sentencepiece.learn(texts, sentencepiece.SubwordsConfig(), 400, [">>de<<", "<bt>"])


@pytest.fixture(scope="module")
def three(tmp_path_factory, pairs, tagged):
    """A corpus of three, of 100, 50 and 30 pairs; the last one has a tag."""
    sizes, lines = (100, 50, 30), []
    for number, size in enumerate(sizes):
        for source, target in pairs[len(lines) : len(lines) + size]:
            lines.append(Line(source, target, f"{number}", number))
    skip = np.zeros(len(lines), dtype=np.uint8)
    prefixes = [[], [], [tagged.tags["<bt>"]]]
    folder = tmp_path_factory.mktemp("three") / "corpus"
    return corpora.build(
        folder, lambda: lines, (tagged, tagged), FiltersConfig(), skip=skip, with_text=True, prefixes=prefixes
    )


def batches(three, weights=(2.0, 0.5, 1.5), **options):
    return Batches(three, budget=200, seed=3, weights=weights, **options)


@pytest.mark.parametrize("epoch", [0, 1, 7])
def test_a_weight_is_how_often_a_pair_is_read_in_an_epoch(three, epoch):
    counts = Counter(np.concatenate(batches(three).plan(epoch)).tolist())
    assert {counts[row] for row in range(100)} == {2}
    assert sum(counts[row] for row in range(100, 150)) == 25
    assert {counts[row] for row in range(100, 150)} == {0, 1}
    assert sum(counts[row] for row in range(150, 180)) == 45
    assert {counts[row] for row in range(150, 180)} == {1, 2}


def test_two_epochs_of_a_half_read_every_pair_once():
    both = [rows_of_epoch([50], [0.5], seed=1, epoch=epoch) for epoch in (4, 5)]
    assert sorted(np.concatenate(both).tolist()) == list(range(50))
    assert both[0].tolist() != rows_of_epoch([50], [0.5], seed=2, epoch=4).tolist(), "another seed, another half"
    assert len(rows_of_epoch([3, 0], [0.01, 5.0], seed=1, epoch=0)) == 1, "at least one pair; of none, none"


def test_equal_weights_are_the_batches_without_weights(three):
    plain, weighted = batches(three, ()).plan(2), batches(three, (1.0, 1.0, 1.0)).plan(2)
    assert [rows.tolist() for rows in plain] == [rows.tolist() for rows in weighted]


@pytest.mark.parametrize("options", [{}, {"sampling": 0.3}, {"plan": plan_packed}])
def test_from_the_middle_of_an_epoch_the_same_batches_follow(three, tagged, options):
    made = batches(three, vocabularies=(tagged, tagged), **options)
    whole = made.start((1, 0))
    first = [next(whole) for _ in range(len(made.plan(1)) + 3)]  # into the next epoch
    middle = made.start(first[4][0])
    for (position, batch), (again, other) in zip(first[5:], middle, strict=False):
        assert position == again
        assert batch.source.equal(other.source) and batch.expected.equal(other.expected)


@pytest.mark.parametrize("sampling", [0.0, 0.3])
def test_processes_share_a_batch_without_changing_its_rows(three, tagged, sampling):
    def rows(share):
        made = batches(three, sampling=sampling, vocabularies=(tagged, tagged), share=share)
        found = []
        for _, (_, batch) in zip(range(10), made.start((2, 3)), strict=False):
            found.append([own[valid].tolist() for own, valid in zip(batch.source, batch.valid, strict=True)])
        return found

    for whole, one, other in zip(rows((0, 1)), rows((0, 2)), rows((1, 2)), strict=True):
        assert sorted(whole) == sorted(one + other)


@pytest.mark.parametrize("sampling", [0.0, 0.3])
def test_the_sources_of_a_corpus_begin_with_its_tag_and_no_others(three, tagged, sampling):
    made = batches(three, sampling=sampling, vocabularies=(tagged, tagged))
    tag = tagged.tags["<bt>"]
    for number, rows in enumerate(made.plan(0)):
        batch = made.make(rows, (0, number))
        assert ((batch.source == tag).sum(dim=1) == 1).tolist() == (rows >= 150).tolist()
        assert ((batch.source[:, 0] == tag).tolist()) == (rows >= 150).tolist()
        assert not (batch.expected == tag).any()


def test_filters_are_counted_by_corpus(tmp_path, tagged):
    lines = [Line("a dog", "ein Hund", "", 0), Line("x", "x", "", 0), Line("a dog", "ein Hund", "", 1), Line("", "y", "", 1),
             Line("a cat", "eine Katze", "", 1)]  # fmt: skip
    skip = find_skipped(lines, FiltersConfig(), origins=[Origin(), Origin()])
    made = corpora.build(
        tmp_path / "corpus", lambda: lines, (tagged, tagged), FiltersConfig(), skip=skip, prefixes=[[], []]
    )
    assert [(r.read, r.kept, r.taken["same"], r.taken["duplicate"], r.taken["empty"]) for r in made.reports] == [
        (2, 1, 1, 0, 0),
        (3, 1, 0, 1, 1),
    ]
    assert (made.report.read, made.report.kept, made.counts) == (5, 2, [1, 1])


def test_pairs_are_held_out_of_every_direction_and_of_no_text_with_a_tag(pairs):
    lines = [Line(*pair, "", number) for number in range(3) for pair in pairs]
    lines += [Line(f"{source} {source}", target, "", 3) for source, target in pairs]
    origins = [Origin(0), Origin(1), Origin(1, genuine=False), Origin(1, genuine=False)]
    reasons = find_skipped(lines, FiltersConfig(), 20, 0.1, origins).reshape(4, -1)
    assert (reasons == 2).sum(axis=1).tolist() == [10, 10, 0, 0]
    assert (reasons == 1).sum(axis=1).tolist() == [0, 0, len(pairs), 0], "a tag makes no other pair of it"


def test_a_tag_is_a_token_that_no_text_spells(tagged):
    ids = tagged.encode([">>de<< <bt> the dog"])[0]
    assert not set(ids) & set(tagged.tags.values())
    assert tagged.decode(ids) == ">>de<< <bt> the dog", "in a text it is text"
    assert set(tagged.tags.values()) <= set(tagged.special.never)
    assert tagged.decode([tagged.tags["<bt>"], *ids]) == ">>de<< <bt> the dog"
    sampled = tagged.sample([">>de<< <bt> the dog"], 0.5, 1)[0]
    assert not set(sampled) & set(tagged.tags.values())


def test_what_is_read_twice_in_an_epoch_is_corrupted_in_two_ways(three):
    def draw(ids, generator):
        return ids, generator.integers(10, 300, 4)

    def drawn(share=(0, 1)):
        made = batches(three, noise=draw, share=share)
        found = [(rows, made.make(rows, (1, number))) for number, rows in enumerate(made.plan(1))]
        return Counter(tuple(row) for _, batch in found for row in batch.target[:, 1:].tolist())

    assert set(drawn().values()) == {1}, "no two of the same numbers"
    assert drawn() == drawn((0, 2)) + drawn((1, 2))

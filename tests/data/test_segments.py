"""Rows for pre-training: packed sentences, and pairs of segments of documents."""

import numpy as np
import pytest

from heed.data.segments import FullSentences, SegmentPairs, Segments, Text

LAST = 1


def text(documents, seed=0, most=30):
    """Documents of sentences; each token is a number of its own, so that it is known where it is from."""
    random, number, ids, starts = np.random.default_rng(seed), 10, [], []
    for _ in range(documents):
        starts.append(len(ids))
        for length in random.integers(1, most, random.integers(1, 12)):
            ids += [*range(number, number + length), LAST]
            number += length
        ids.append(LAST)  # a blank line
    return Text(np.array(ids), np.array(starts), LAST)


def document_of(own, token):
    """The number of the document of a token, which occurs once."""
    return int(np.searchsorted(own.documents, np.flatnonzero(own.ids == token)[0], side="right"))


def rows(source, epoch=0, seed=3):
    planned = source.plan(seed, epoch)
    return [source.make(row, (i,)) for i, row in enumerate(planned)]


@pytest.mark.parametrize("cut", [False, True])
def test_packed_rows_hold_every_token_once_and_an_end_token_between_documents(cut):
    own, room = text(60), 24
    found = [row.parts[0] for row in rows(FullSentences(Segments(own, room), room, cut))]
    joined = np.concatenate(found)
    assert (joined[joined != LAST] == own.ids[own.ids != LAST]).all()
    assert max(map(len, found)) <= room
    if cut:
        assert {len(row) for row in found[:-1]} == {room} and (joined == LAST).sum() == 59
    for row in found:
        (ends,) = np.nonzero(row == LAST)
        inner = [i for i in ends.tolist() if 0 < i < len(row) - 1]
        documents = [document_of(own, token) for token in row if token != LAST]
        assert len(set(documents)) == len(inner) + 1 or cut


def test_packed_rows_begin_with_sentences_and_are_as_full_as_they_can_be():
    own, room = text(40), 29
    segments = Segments(own, room)
    source = FullSentences(segments, room)
    found = rows(source)
    firsts, nexts = {own.ids[start] for start in segments.starts}, iter(found[1:])
    for row in found[:-1]:
        following = next(nexts).parts[0]
        length = segments.lengths[np.flatnonzero(own.ids[segments.starts] == following[0])[0]]
        other = document_of(own, following[0]) != document_of(own, row.parts[0][-1])
        assert row.parts[0][0] in firsts and len(row.parts[0]) + other + length > room
    starts = [token for row in found for token in row.parts[0][row.starts[0]].tolist()]
    assert set(starts) == firsts | {LAST}


def test_long_sentences_are_split_into_equal_parts_and_nothing_is_lost():
    own = Text(np.array([*range(10, 35), LAST, 40, 41, LAST]), np.array([0]), LAST)
    segments = Segments(own, 10)
    assert segments.lengths.tolist() == [8, 8, 9, 2] and (segments.split, segments.sentences) == (1, 2)
    assert [segments.ids(i).tolist() for i in range(4)] == [
        [*range(10, 18)],
        [*range(18, 26)],
        [*range(26, 35)],
        [40, 41],
    ]


def test_a_document_of_one_sentence_is_split_for_pairs_and_one_of_one_token_counted():
    own = Text(np.array([10, 11, 12, LAST, 20, LAST, 30, LAST, 31, LAST]), np.array([0, 4, 6]), LAST)
    segments = Segments(own, 10, paired=True)
    assert [segments.ids(i).tolist() for i in range(len(segments))] == [[10], [11, 12], [30], [31]]
    assert segments.too_short == 1 and segments.bounds() == [(0, 2), (2, 4)]


def pairs(kind, documents=2500, room=40, short=0.1, epoch=0):
    own = text(documents)
    source = SegmentPairs(Segments(own, room // 2, paired=True), room, kind, short)
    return own, source, source.plan(3, epoch)


def test_the_second_text_follows_the_first_or_is_of_another_document_half_of_the_time():
    _, source, planned = pairs("next")
    replaced = planned[:, 4] == 1
    assert len(planned) > 5000 and abs(replaced.mean() - 0.5) < 5 * 0.5 / np.sqrt(len(planned))
    documents = source.segments.documents
    assert (planned[~replaced, 1] == planned[~replaced, 2]).all()
    assert (documents[planned[replaced, 0]] != documents[planned[replaced, 2]]).all()
    assert (documents[planned[:, 2]] == documents[planned[:, 3] - 1]).all()
    assert (documents[planned[:, 0]] == documents[planned[:, 1] - 1]).all()
    # every segment is read in the place where it stands, some of them twice
    seen = np.zeros(len(source.segments), dtype=bool)
    for first, middle, start, end, label in planned.tolist():
        seen[first : middle if label else end] = True
        assert first < middle and start < end
    assert seen.all()


def test_another_document_is_another_one_if_there_are_two():
    _, source, _ = pairs("next", documents=2, room=12)
    documents = source.segments.documents
    for epoch in range(20):
        planned = source.plan(3, epoch)
        assert ((documents[planned[:, 0]] != documents[planned[:, 2]]) == planned[:, 4]).all()


def test_two_texts_are_swapped_half_of_the_time():
    _, _, planned = pairs("order")
    swapped = planned[:, 4] == 1
    assert len(planned) > 3000 and abs(swapped.mean() - 0.5) < 5 * 0.5 / np.sqrt(len(planned))
    assert (planned[~swapped, 1] == planned[~swapped, 2]).all() and (planned[swapped, 3] == planned[swapped, 0]).all()


def test_pairs_are_gathered_to_the_length_and_cut_to_it():
    _, source, planned = pairs("order", documents=400, short=0.0)
    cut, total = source.tokens_cut(planned)
    found = [source.make(row, (i,)) for i, row in enumerate(planned)]
    sizes = np.array([sum(map(len, row.parts)) for row in found])
    assert sizes.max() == 40 and sizes.sum() == total - cut and (sizes == 40).mean() > 0.5
    for row in found:
        assert all(len(part) and (np.diff(part) == 1).all() for part in row.parts)  # the inside of a text stays whole
        one, two = (part[0] for part in row.parts)
        assert (one > two) == bool(row.label)


def test_a_share_of_the_pairs_is_short():
    lengths = {}
    for short in (0.0, 0.5):
        own = Text(np.tile([*range(10, 14), LAST], 5000), np.array([0, 12_500]), LAST)
        source = SegmentPairs(Segments(own, 20, paired=True), 40, "order", short)
        planned = source.plan(1, 0)
        lengths[short] = 4 * (planned[:, [1, 3]] - planned[:, [0, 2]]).sum(axis=1)
    assert (lengths[0.0] == 40).mean() > 0.99
    count, few = len(lengths[0.5]), (lengths[0.5] < 40).mean()
    assert abs(few - 0.5 * 35 / 39) < 5 * 0.5 / np.sqrt(count)  # of targets from 2 to 40, those above 36 are full


def test_pairs_depend_on_the_seed_and_the_epoch_alone():
    _, source, planned = pairs("next", documents=50)
    assert (source.plan(3, 0) == planned).all()
    assert not np.array_equal(source.plan(3, 1), planned) and not np.array_equal(source.plan(4, 0), planned)


def test_a_text_without_pairs_is_refused():
    one = text(1)
    with pytest.raises(
        ValueError,
        match=r"task\.pair is 'next', but the text is a single document, and negative pairs come from other documents",
    ):
        SegmentPairs(Segments(one, 10, paired=True), 20, "next")
    with pytest.raises(ValueError, match=r"task\.pair is 'order', but no document has two words: use another text"):
        SegmentPairs(Segments(Text(np.array([7, LAST]), np.array([0]), LAST), 10, paired=True), 20, "order")

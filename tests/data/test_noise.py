import pickle
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.data.noise import (
    Denoise,
    delete_tokens,
    infill,
    mask_tokens,
    permute_sentences,
    rotate,
    sentence_ends,
    sentences,
)
from heed.vocabularies.vocabulary import SpecialTokens

PAD, UNKNOWN, FIRST, LAST, MASK, GAP, STOP, TAG = range(8)
SPECIAL_TOKENS = SpecialTokens(pad=PAD, unknown=UNKNOWN, first=FIRST, last=LAST, before=(FIRST,), mask=MASK, gap=GAP)
SIZE = 60
ENDS = np.arange(SIZE) == STOP
CORRUPTIONS = {
    "mask": lambda tokens, generator: mask_tokens(tokens, generator, MASK, 0.4, [TAG]),
    "delete": lambda tokens, generator: delete_tokens(tokens, generator, 0.4, [TAG, MASK]),
    "infill": lambda tokens, generator: infill(tokens, generator, MASK, 0.4, [TAG]),
    "permute": lambda tokens, generator: permute_sentences(tokens, generator, ENDS, [TAG, MASK]),
    "rotate": lambda tokens, generator: rotate(tokens, generator, [TAG, MASK]),
    "all": lambda tokens, generator: Denoise(SPECIAL_TOKENS, ENDS, (TAG,), 0.3, 0.2, 0.2, 0.5, 0.5)(tokens, generator)[
        0
    ],
}

texts = st.lists(st.integers(STOP, 12) | st.just(MASK), max_size=30)
seeds = st.integers(0, 2**32)
shares = st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.9, 1.0])
unhurried = settings(deadline=None, max_examples=60)
each = pytest.mark.parametrize("corrupt", CORRUPTIONS.values(), ids=CORRUPTIONS)


def chance(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def near(count: int, total: int, share: float) -> bool:
    """Whether a count is within five standard deviations of what is expected of independent draws."""
    return abs(count - share * total) <= 5 * (total * share * (1 - share)) ** 0.5


def spans(source: np.ndarray, length: int) -> list[int]:
    """How many of 0, 1, 2, ... `length` - 1 each mask stands for, in a text of these in order with masks at -1."""
    padded = [-1, *(None if token == MASK else token - 10 for token in source.tolist()), length]
    return [
        after - before - 1
        for (before, masked), (_, after) in pairwise(pairwise(padded))
        if masked is None and None not in (before, after)
    ]


# what holds for every corruption


@each
@unhurried
@given(tokens=texts, seed=seeds)
def test_the_input_is_never_changed_and_what_comes_back_is_new(corrupt, tokens, seed):
    given_list, given_array = list(tokens), np.array(tokens, dtype=np.int64)
    made = corrupt(given_array, chance(seed))
    made += 1
    assert given_array.tolist() == tokens
    corrupt(given_list, chance(seed))
    assert given_list == tokens


@each
@unhurried
@given(tokens=texts, seed=seeds)
def test_a_list_and_an_array_of_any_kind_give_the_same(corrupt, tokens, seed):
    made = [corrupt(given, chance(seed)) for given in (tokens, np.array(tokens, np.uint16), np.array(tokens, np.int32))]
    assert all(one.dtype == np.int64 and one.tolist() == made[0].tolist() for one in made)


@each
@unhurried
@given(tokens=texts, seed=seeds)
def test_what_is_kept_stays_in_its_number(corrupt, tokens, seed):
    made = corrupt(tokens, chance(seed)).tolist()
    assert made.count(TAG) == tokens.count(TAG)
    assert made.count(MASK) >= tokens.count(MASK)
    assert set(made) <= {*tokens, MASK}
    assert len(made) <= len(tokens)


@each
def test_a_seed_gives_the_same_and_another_seed_something_else(corrupt):
    tokens = [token for word in range(10, 50) for token in (word, STOP)]
    once, again, other = (corrupt(tokens, chance(seed)).tolist() for seed in (1, 1, 2))
    assert once == again != other


@each
def test_nothing_can_be_done_to_nothing(corrupt):
    made = corrupt([], chance())
    assert made.shape == (0,) and made.dtype == np.int64


@each
def test_a_text_of_kept_ids_stays_as_it_is(corrupt):
    for seed in range(20):
        assert corrupt([TAG] * 5, chance(seed)).tolist() == [TAG] * 5


def test_a_kept_id_stays_in_its_place_when_the_rest_moves():
    tokens = [TAG, 10, STOP, 11, 12, STOP, TAG, 13]
    for seed in range(50):
        for made in (permute_sentences(tokens, chance(seed), ENDS, [TAG]), rotate(tokens, chance(seed), [TAG])):
            assert np.flatnonzero(made == TAG).tolist() == [0, 6]
            assert sorted(made.tolist()) == sorted(tokens)


# one after the other


@pytest.mark.parametrize("share", [0.0, 0.15, 0.5, 1.0])
def test_masking_hides_its_share_and_moves_nothing(share):
    tokens = chance(9).integers(10, SIZE, 20_000)
    made = mask_tokens(tokens, chance(), MASK, share)
    masked = made == MASK
    assert near(int(masked.sum()), len(tokens), share)
    assert (made[~masked] == tokens[~masked]).all()


@pytest.mark.parametrize("share", [0.0, 0.15, 0.5, 1.0])
def test_deletion_leaves_out_its_share_and_keeps_the_order(share):
    tokens = np.arange(20_000)
    made = delete_tokens(tokens, chance(), share)
    assert near(len(tokens) - len(made), len(tokens), share)
    assert (np.diff(made) > 0).all()


def test_masking_and_deletion_fall_on_every_place_alike():
    count = np.zeros((2, 10))
    draws = chance()
    for _ in range(2_000):
        count[0] += mask_tokens(np.arange(10, 20), draws, MASK, 0.3) == MASK
        count[1][delete_tokens(np.arange(10), draws, 0.7)] += 1
    assert all(near(int(one), 2_000, 0.3) for one in count.flat)


@pytest.mark.parametrize("share", [0.05, 0.3, 0.6])
def test_infilling_covers_its_share_with_one_mask_a_span(share):
    made = infill(np.arange(10, 20_010), chance(), MASK, share)
    found = spans(made, 20_000)
    assert abs(sum(found) - share * 20_000) < 1
    assert len(found) == (made == MASK).sum()
    assert (np.diff(made[made != MASK]) > 0).all()


def test_lengths_of_spans_are_those_of_poisson():
    found = Counter()
    for seed in range(20):
        found.update(spans(infill(np.arange(10, 6_010), chance(seed), MASK, 0.3), 6_000))
    total = sum(found.values())
    share = np.exp(-3) * np.cumprod([1.0, 3, 3 / 2, 1, 3 / 4, 3 / 5, 3 / 6, 3 / 7])
    mean = sum(length * count for length, count in found.items()) / total
    assert total > 11_000
    assert abs(mean - 3) < 5 * (3 / total) ** 0.5 + 0.01  # one span in six hundred is cut
    assert all(near(found[length], total, share[length]) for length in range(8)), found


def test_the_mean_length_of_spans_can_be_chosen():
    found = spans(infill(np.arange(10, 6_010), chance(), MASK, 0.3, mean=8.0), 6_000)
    assert abs(np.mean(found) - 8) < 1


def test_a_span_of_no_tokens_inserts_a_mask():
    made = infill(np.arange(10, 6_010), chance(), MASK, 0.3).tolist()
    inserted = [i for i, token in enumerate(made[1:-1], 1) if token == MASK and made[i + 1] - made[i - 1] == 1]
    assert 20 < len(inserted) < 50  # e^-3 of some 600


@unhurried
@given(length=st.integers(1, 40), share=shares, seed=seeds)
def test_short_texts_are_covered_to_the_token_above_or_below(length, share, seed):
    made = infill(np.arange(10, 10 + length), chance(seed), MASK, share)
    left = int((made != MASK).sum())
    assert abs(length - left - share * length) < 1
    assert len(made) <= length
    assert not ((made[1:] == MASK) & (made[:-1] == MASK)).any()
    assert (np.diff(made[made != MASK]) > 0).all()


def test_inserts_never_make_a_text_longer():
    draws, lengths = chance(), Counter()
    for _ in range(1_000):
        lengths[len(infill(np.arange(10, 22), draws, MASK, 0.1))] += 1  # one token, or two
    assert max(lengths) == 12 and min(lengths) == 11


def test_short_texts_are_covered_by_their_share_on_average():
    draws = chance()
    left = sum(int((infill(np.arange(10, 17), draws, MASK, 0.3) != MASK).sum()) for _ in range(2_000))
    assert near(7 * 2_000 - left, 7 * 2_000, 0.3)


def test_places_are_covered_alike_but_for_the_ends_which_fewer_spans_can_reach():
    draws, count = chance(), np.zeros(20)
    for _ in range(2_000):
        count += ~np.isin(np.arange(10, 30), infill(np.arange(10, 30), draws, MASK, 0.3))
    assert abs(count.mean() / 2_000 - 0.3) < 0.01
    assert count.min() > 200 and abs(count[:10].sum() / count[10:].sum() - 1) < 0.1
    assert count[4:-4].max() / count[4:-4].min() < 1.3


@unhurried
@given(tokens=texts, share=shares, seed=seeds)
def test_infilling_neither_covers_nor_touches_a_mask_or_a_kept_id(tokens, share, seed):
    named = [token if token in (MASK, TAG) else 100 + i for i, token in enumerate(tokens)]  # so that all words differ
    made = infill(named, chance(seed), MASK, share, [TAG]).tolist()
    words = [token for token in made if token >= 100]
    assert words == sorted(words) and set(words) <= set(named)
    assert [[i for i in run if i in words] for run in _runs(named, TAG)] == [
        [i for i in run if i >= 100] for run in _runs(made, TAG)
    ]
    beside = [sum(one == other == MASK for one, other in pairwise(text)) for text in (named, made)]
    assert beside[0] == beside[1]
    for run in _runs(named, MASK, TAG):
        assert sum(token not in words for token in run) < share * len(run) + 1


def _runs(tokens: list[int], *walls: int) -> list[list[int]]:
    """What stands between the walls."""
    runs = [[]]
    for token in tokens:
        if token in walls:
            runs.append([])
        else:
            runs[-1].append(token)
    return runs


def test_masks_already_there_are_told_from_new_ones():
    tokens = [MASK, 10, 11, 12, MASK, 13, 14, 15, TAG, 16]
    for seed in range(200):
        made = infill(tokens, chance(seed), MASK, 0.5, [TAG])
        middle = made[np.flatnonzero(made == MASK)[0] : np.flatnonzero(made == TAG)[0]].tolist()
        assert made[0] == MASK and made[1] == 10  # nothing new beside it
        assert 12 in middle and 13 in middle
        assert np.flatnonzero(made == TAG).size == 1


def test_a_token_between_two_masks_has_to_stay():
    assert infill([MASK, 10, MASK], chance(), MASK, 1.0).tolist() == [MASK, 10, MASK]


def test_all_of_a_text_becomes_one_mask():
    for seed in range(20):
        assert infill(np.arange(10, 40), chance(seed), MASK, 1.0).tolist() == [MASK]
        assert infill([10], chance(seed), MASK, 1.0).tolist() == [MASK]


def test_sentences_end_after_their_stops():
    tokens = [10, 11, STOP, 12, STOP, STOP, 13]
    assert [part.tolist() for part in sentences(tokens, ENDS)] == [[10, 11, STOP], [12, STOP, STOP], [13]]


@pytest.mark.parametrize(
    ("tokens", "count"), [([], 0), ([10], 1), ([STOP], 1), ([10, 11], 1), ([STOP] * 4, 1), ([STOP, 10, STOP], 2)]
)
def test_how_many_sentences_there_are(tokens, count):
    assert len(sentences(tokens, ENDS)) == count


@unhurried
@given(tokens=texts)
def test_sentences_side_by_side_are_the_text(tokens):
    parts = sentences(tokens, ENDS)
    assert [token for part in parts for token in part.tolist()] == tokens
    assert all(len(part) for part in parts)
    assert all(part[-1] == STOP for part in parts[:-1])
    assert all(part[0] != STOP for part in parts[1:])


def test_pieces_that_end_a_sentence_are_told_by_their_last_sign():
    pieces = [".", "▁.", '."', "!", "?", "...", "요.", "。", ".)", "a", "▁", "", ",", '"', "'", "3.5", ".com", "Mr"]
    assert sentence_ends(pieces).tolist() == [True] * 9 + [False] * 9


@unhurried
@given(tokens=texts, seed=seeds)
def test_permutation_keeps_every_sentence_whole(tokens, seed):
    ended = [*tokens, STOP]
    before, after = (
        Counter(tuple(part.tolist()) for part in sentences(text, ENDS))
        for text in (ended, permute_sentences(ended, chance(seed), ENDS))
    )
    if ended[0] != STOP:  # a text that begins with a stop may lend it to the sentence before
        assert before == after
    assert sorted(permute_sentences(ended, chance(seed), ENDS).tolist()) == sorted(ended)


def test_a_last_sentence_without_its_stop_is_moved_too():
    found = {tuple(permute_sentences([10, STOP, 11], chance(seed), ENDS).tolist()) for seed in range(20)}
    assert found == {(10, STOP, 11), (11, 10, STOP)}


def test_every_order_of_sentences_comes_as_often():
    found, draws = Counter(), chance()
    for _ in range(2_000):
        found[tuple(permute_sentences([10, STOP, 11, STOP, 12, STOP], draws, ENDS).tolist())] += 1
    assert len(found) == 6 and all(near(count, 2_000, 1 / 6) for count in found.values())


@pytest.mark.parametrize("tokens", [[10], [10, 11, 12], [STOP, STOP, STOP]])
def test_one_sentence_cannot_be_permuted(tokens):
    assert permute_sentences(tokens, chance(), ENDS).tolist() == tokens


@unhurried
@given(tokens=texts.filter(len), seed=seeds)
def test_rotation_keeps_the_cycle(tokens, seed):
    made = rotate(tokens, chance(seed)).tolist()
    assert made in [tokens[i:] + tokens[:i] for i in range(len(tokens))]


def test_every_token_comes_first_as_often():
    draws = chance()
    found = Counter(int(rotate(np.arange(10, 18), draws)[0]) for _ in range(2_000))
    assert len(found) == 8 and all(near(count, 2_000, 1 / 8) for count in found.values())


# together


@unhurried
@given(tokens=texts, seed=seeds)
def test_the_target_is_the_text(tokens, seed):
    given_array = np.array(tokens, dtype=np.int64)
    source, target = Denoise(SPECIAL_TOKENS, ENDS, (TAG,), 0.3, 0.2, 0.2, 0.5, 0.5)(given_array, chance(seed))
    assert target.tolist() == tokens
    source += 1
    target += 1
    assert given_array.tolist() == tokens


@unhurried
@given(tokens=texts, seed=seeds)
def test_one_corruption_alone_is_that_corruption(tokens, seed):
    off = {"infill": 0.0, "permute": 0.0}
    draws = chance(seed)
    draws.random(2)  # whether to permute, whether to rotate
    for made, function in (
        (Denoise(SPECIAL_TOKENS, ENDS, **off, mask=0.4), lambda d: mask_tokens(tokens, d, MASK, 0.4)),
        (Denoise(SPECIAL_TOKENS, ENDS, **off, delete=0.4), lambda d: delete_tokens(tokens, d, 0.4, [MASK])),
        (Denoise(SPECIAL_TOKENS, ENDS, infill=0.4, permute=0.0), lambda d: infill(tokens, d, MASK, 0.4)),
    ):
        twin = chance(seed)
        twin.bit_generator.state = draws.bit_generator.state
        assert made(tokens, chance(seed))[0].tolist() == function(twin).tolist()


def test_without_any_corruption_the_source_is_the_target():
    source, target = Denoise(SPECIAL_TOKENS, ENDS, infill=0.0, permute=0.0)(np.arange(10, 50), chance())
    assert source.tolist() == target.tolist() == list(range(10, 50))


def test_the_shares_are_of_the_whole_text_even_together():
    noise = Denoise(SPECIAL_TOKENS, np.zeros(30_010, bool), infill=0.3, mask=0.2, delete=0.25, permute=0.0)
    source, target = noise(np.arange(10, 30_010), chance())
    kept = np.isin(target, source)
    assert near(int(kept.sum()), 30_000, 0.25)
    masks = int((source == MASK).sum())
    assert abs(masks - (0.2 + 0.3 / 3) * 30_000) < 400


def test_all_of_a_text_may_go():
    whole = np.arange(10, 40)
    assert Denoise(SPECIAL_TOKENS, ENDS, infill=0.0, delete=1.0)(whole, chance())[0].tolist() == []
    assert set(Denoise(SPECIAL_TOKENS, ENDS, infill=0.5, mask=0.5)(whole, chance())[0].tolist()) == {MASK}


def test_permute_and_rotate_are_probabilities_of_a_text():
    tokens = [*range(10, 20), STOP, *range(20, 30), STOP]
    for setting in ("permute", "rotate"):
        noise = Denoise(SPECIAL_TOKENS, ENDS, **({"infill": 0.0, "permute": 0.0} | {setting: 0.5}))
        draws = chance()
        moved = sum(noise(tokens, draws)[0].tolist() != tokens for _ in range(1_000))
        assert near(moved, 1_000, 0.25 if setting == "permute" else 0.5 * 21 / 22)


def test_special_tokens_are_never_touched():
    own = [PAD, FIRST, LAST, GAP]
    noise = Denoise(SPECIAL_TOKENS, ENDS, infill=0.4, mask=0.3, delete=0.3, rotate=1.0)
    for seed in range(50):
        made = noise([FIRST, 10, 11, GAP, 12, LAST, PAD], chance(seed))[0].tolist()
        assert [token for token in made if token in own] == [FIRST, GAP, LAST, PAD]


def test_the_words_that_are_unknown_are_words():
    assert mask_tokens([UNKNOWN], chance(), MASK, 1.0).tolist() == [MASK]
    assert Denoise(SPECIAL_TOKENS, ENDS, infill=1.0)([UNKNOWN], chance())[0].tolist() == [MASK]


def test_it_can_be_sent_to_another_process():
    noise = Denoise(SPECIAL_TOKENS, ENDS, rotate=0.5)
    twin = pickle.loads(pickle.dumps(noise))
    tokens = [*range(10, 20), STOP, *range(20, 30), STOP]
    assert twin(tokens, chance(3))[0].tolist() == noise(tokens, chance(3))[0].tolist()


def test_the_defaults_are_those_of_bart():
    noise = Denoise(SPECIAL_TOKENS, ENDS)
    assert (noise.infill, noise.permute, noise.mask, noise.delete, noise.rotate) == (0.3, 1.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"infill": 1.2}, r"task.infill is 1.2; it must be from 0 to 1"),
        ({"mask": -0.1}, r"task.mask is -0.1; it must be from 0 to 1"),
        ({"delete": float("nan")}, r"task.delete is nan; it must be from 0 to 1"),
        ({"permute": 2.0}, r"task.permute is 2.0; it must be from 0 to 1"),
        ({"rotate": -1.0}, r"task.rotate is -1.0; it must be from 0 to 1"),
        (
            {"infill": 0.5, "mask": 0.4, "delete": 0.2},
            r"task.infill is 0.5, task.mask is 0.4, task.delete is 0.2; together they must be at most 1",
        ),
        (
            {"special": SPECIAL_TOKENS._replace(mask=None)},
            r"task.infill is 0.3 .* the vocabulary has no mask; set both to 0",
        ),
    ],
)
def test_settings_that_make_no_sense_are_refused_by_name(change, words):
    with pytest.raises(ValueError, match=words):
        Denoise(**({"special": SPECIAL_TOKENS, "ends": ENDS} | change))


def test_shares_that_fill_the_whole_are_not_refused_for_their_rounding():
    noise = Denoise(SPECIAL_TOKENS, ENDS, infill=0.1, mask=0.7, delete=0.2)
    assert set(noise(np.arange(10, 40), chance())[0].tolist()) <= {MASK, *range(10, 40)}


def test_without_a_mask_a_text_can_still_be_deleted_and_moved():
    noise = Denoise(SPECIAL_TOKENS._replace(mask=None), ENDS, infill=0.0, delete=0.5, rotate=1.0)
    assert len(noise(np.arange(10, 40), chance())[0]) < 30

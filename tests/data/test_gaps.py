import pickle
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.data.gaps import CHOICES, Gaps, mask_words, principal, sequential
from heed.data.noise import sentences
from heed.data.overlap import bag_counts, overlap, overlap_of_counts
from heed.vocabularies.vocabulary import SpecialTokens

PAD, UNKNOWN, FIRST, LAST, MASK, GAP, STOP, TAG = range(8)
SPECIAL_TOKENS = SpecialTokens(pad=PAD, unknown=UNKNOWN, first=FIRST, last=LAST, mask=MASK, gap=GAP)
SIZE = 200
ENDS = np.arange(SIZE) == STOP
WORDS = ~np.isin(np.arange(SIZE), [PAD, FIRST, LAST, MASK, GAP, TAG])

texts = st.lists(st.integers(STOP, 14), max_size=40)
bags = st.lists(st.integers(0, 5), max_size=12)
seeds = st.integers(0, 2**32)
unhurried = settings(deadline=None, max_examples=50)


def chance(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def document(*parts: list[int]) -> list[int]:
    """Sentences of these words, each with its stop."""
    return [token for part in parts for token in (*part, STOP)]


def f1(predicted: list[int], reference: list[int]) -> float:
    """ROUGE-1 as its definition has it: shared words, each as often as in both."""
    shared = sum((Counter(predicted) & Counter(reference)).values())
    precision, recall = shared / max(len(predicted), 1), shared / max(len(reference), 1)
    return 2 * precision * recall / (precision + recall) if shared else 0.0


def rest(parts: list[np.ndarray], *removed: int) -> list[int]:
    return [token for i, part in enumerate(parts) if i not in removed for token in part.tolist()]


@unhurried
@given(one=bags, other=bags)
def test_the_overlap_of_bags_is_that_of_the_definition(one, other):
    found = overlap_of_counts(*bag_counts([one, other]))
    assert found.f1 == pytest.approx(f1(one, other))
    assert found.precision == overlap_of_counts(*bag_counts([other, one])).recall
    shared = sum((Counter(one) & Counter(other)).values())
    assert found == pytest.approx(overlap(shared, len(one), len(other)))


def test_bags_of_words_and_of_pairs_are_counted_alike():
    assert bag_counts([["b", "a", "b"], [], ["c"]]).tolist() == [[2, 1, 0], [0, 0, 0], [0, 0, 1]]
    assert bag_counts([[("a", "b")], [("b", "a")]]).tolist() == [[1, 0], [0, 1]]
    assert bag_counts([]).shape == (0, 0)


@unhurried
@given(tokens=texts.filter(len), seed=seeds)
def test_principal_sentences_come_in_the_order_of_their_score(tokens, seed):
    parts = sentences(tokens, ENDS)
    score = [f1(part.tolist(), rest(parts, i)) for i, part in enumerate(parts)]
    order = list(principal(parts, chance(seed)))
    assert sorted(order) == list(range(len(parts)))
    ranked = [score[i] for i in order]
    assert all(a >= b - 1e-12 for a, b in pairwise(ranked))


@unhurried
@given(tokens=texts.filter(len), seed=seeds)
def test_the_sequential_choice_is_the_best_at_every_step(tokens, seed):
    parts = sentences(tokens, ENDS)
    order = list(sequential(parts, chance(seed)))
    assert sorted(order) == list(range(len(parts)))
    for n, chosen in enumerate(order):
        score = {}
        for i in set(range(len(parts))) - {*order[:n]}:
            said = [token for j in sorted({*order[:n], i}) for token in parts[j].tolist()]
            score[i] = f1(said, rest(parts, *order[:n], i))
        assert score[chosen] == pytest.approx(max(score.values()))


def test_the_sentence_with_the_largest_overlap_is_the_gap():
    tokens = document([20, 21], [30, 31], [20, 30, 40], [40, 41])
    made = Gaps(SPECIAL_TOKENS, ENDS, word_share=0.0)(tokens, chance())
    assert made.source.tolist() == [20, 21, STOP, 30, 31, STOP, GAP, 40, 41, STOP]
    assert made.target.tolist() == [20, 30, 40, STOP]
    assert made.positions.tolist() == made.expected.tolist() == []


def test_sentences_are_ranked_by_f1():
    parts = sentences(document([20, 21, 22], [20, 21, *range(50, 70)], [22, 23]), ENDS)
    table = bag_counts([part.tolist() for part in parts])
    found = overlap_of_counts(table, table.sum(0) - table)
    assert [score.argmax() for score in found] == [0, 1, 0]
    assert next(principal(parts, chance())) == 0


def test_the_two_ways_to_choose_differ_where_sentences_say_the_same():
    same = [20, 21, 22, 23, 24, 25, 26]
    parts = sentences(document(same, same, [*same, 27], [30, 31, 32], [30, 33, 34], [31, 35]), ENDS)
    assert list(principal(parts, chance()))[:2] != list(sequential(parts, chance()))[:2]


def test_lead_takes_the_first_and_random_any():
    tokens = document(*[[i] for i in range(20, 30)])
    lead = Gaps(SPECIAL_TOKENS, ENDS, choice="lead", word_share=0.0)(tokens, chance())
    assert lead.source.tolist()[:5] == [GAP, GAP, GAP, 23, STOP]
    assert lead.target.tolist() == [20, STOP, 21, STOP, 22, STOP]
    draws, found = chance(), Counter()
    drawn = Gaps(SPECIAL_TOKENS, ENDS, choice="random", word_share=0.0)
    for _ in range(1_000):
        chosen = [token for token in drawn(tokens, draws).target.tolist() if token != STOP]
        assert chosen == sorted(chosen) and len(chosen) == 3
        found.update(chosen)
    assert len(found) == 10
    assert all(abs(count - 300) < 5 * (1_000 * 0.3 * 0.7) ** 0.5 for count in found.values())


@pytest.mark.parametrize("choice", CHOICES)
@unhurried
@given(tokens=texts, seed=seeds, share=st.sampled_from([0.0, 0.15, 0.3, 0.5, 1.0]))
def test_source_and_target_together_are_the_text(choice, tokens, seed, share):
    given_array = np.array(tokens, dtype=np.int64)
    made = Gaps(SPECIAL_TOKENS, ENDS, (TAG,), choice, share, word_share=0.5)(given_array, chance(seed))
    source = made.source.copy()
    source[made.positions] = made.expected  # undo the masking
    parts, removed = sentences(tokens, ENDS), iter(sentences(made.target, ENDS))
    if GAP in source:
        restored = []
        for token in source.tolist():
            restored += next(removed).tolist() if token == GAP else [token]
        assert restored == tokens and not list(removed)
        count = source.tolist().count(GAP)
        assert 1 <= count <= max(1, int(share * len(parts) + 0.5)) and count < len(parts)
        assert TAG not in made.target
    else:
        assert len(parts) <= 1 or sum(TAG not in part for part in parts) == 0
        assert source.tolist() == made.target.tolist() == tokens
    assert given_array.tolist() == tokens


@pytest.mark.parametrize(
    ("sentences_of_it", "gaps"), [(2, 1), (3, 1), (4, 1), (5, 2), (6, 2), (8, 2), (9, 3), (10, 3), (100, 30)]
)
def test_the_share_of_gaps_is_rounded(sentences_of_it, gaps):
    tokens = document(*[[20 + i] for i in range(sentences_of_it)])
    assert Gaps(SPECIAL_TOKENS, ENDS)(tokens, chance()).source.tolist().count(GAP) == gaps


def test_at_least_one_sentence_goes_and_at_least_one_stays():
    tokens = document([20], [21], [22])
    assert Gaps(SPECIAL_TOKENS, ENDS, gap_share=0.0, word_share=0.0)(tokens, chance()).source.tolist().count(GAP) == 1
    assert Gaps(SPECIAL_TOKENS, ENDS, gap_share=1.0, word_share=0.0)(tokens, chance()).source.tolist().count(GAP) == 2


@pytest.mark.parametrize("tokens", [[20], [STOP], [20, 21, 22], [20, 21, STOP], [STOP, STOP]])
def test_one_sentence_has_no_gap_and_is_the_target(tokens):
    made = Gaps(SPECIAL_TOKENS, ENDS, word_share=1.0, masked=1.0, swapped=0.0)(tokens, chance())
    assert made.source.tolist() == [MASK] * len(tokens)
    assert made.target.tolist() == made.expected.tolist() == tokens


def test_an_empty_text_gives_empty_arrays():
    made = Gaps(SPECIAL_TOKENS, ENDS)([], chance())
    assert all(part.shape == (0,) and part.dtype == np.int64 for part in made)


def test_a_sentence_with_a_kept_id_is_never_removed():
    tokens = document([TAG, 20, 30], [20, 21], [30, 31])
    for choice in CHOICES:
        made = Gaps(SPECIAL_TOKENS, ENDS, (TAG,), choice, 1.0, word_share=0.0)(tokens, chance())
        assert made.source.tolist() == [TAG, 20, 30, STOP, GAP, GAP]


def test_words_are_masked_at_berts_rates():
    tokens = chance(5).integers(20, SIZE, 40_000)
    source, positions, expected = mask_words(tokens, chance(), MASK, WORDS, (0.15, 0.8, 0.1))
    assert abs(len(positions) - 6_000) < 5 * (40_000 * 0.15 * 0.85) ** 0.5
    assert (expected == tokens[positions]).all() and (np.diff(positions) > 0).all()
    untouched = np.ones(len(tokens), bool)
    untouched[positions] = False
    assert (source[untouched] == tokens[untouched]).all()
    masked, same = (source[positions] == MASK).mean(), (source[positions] == expected).mean()
    assert abs(masked - 0.8) < 5 * (0.16 / 6_000) ** 0.5
    assert abs(same - 0.1) < 5 * (0.09 / 6_000) ** 0.5
    said = source[positions][source[positions] != MASK]
    assert WORDS[said].all() and len(set(said.tolist())) > 150


def test_a_random_word_is_every_other_word_equally_often_and_never_the_same():
    few = np.zeros(SIZE, bool)
    few[20:24] = True
    tokens = np.repeat(np.arange(20, 24), 3_000)
    source, positions, _ = mask_words(tokens, chance(), MASK, few, (1.0, 0.0, 1.0))
    counts = np.array([[(source[tokens == was] == now).sum() for now in range(20, 24)] for was in range(20, 24)])
    assert len(positions) == len(tokens) and (np.diag(counts) == 0).all()
    assert (abs(counts[~np.eye(4, dtype=bool)] - 1_000) < 5 * (3_000 * 2 / 9) ** 0.5).all()
    alone = np.arange(SIZE) == 20  # one word alone has no other to become
    assert mask_words([20, 20], chance(), MASK, alone, (1.0, 0.0, 1.0))[0].tolist() == [20, 20]


@unhurried
@given(tokens=st.lists(st.integers(0, 14), max_size=30), seed=seeds)
def test_only_words_are_masked(tokens, seed):
    source, positions, expected = mask_words(tokens, chance(seed), MASK, WORDS, (1.0, 0.5, 0.5))
    assert positions.tolist() == [i for i, token in enumerate(tokens) if WORDS[token]]
    assert expected.tolist() == [token for token in tokens if WORDS[token]]
    kept = [i for i, token in enumerate(tokens) if not WORDS[token]]
    assert [source[i] for i in kept] == [tokens[i] for i in kept]


def test_a_gap_is_never_masked():
    tokens = document(*[[i, i + 1] for i in range(20, 40, 2)])
    for seed in range(20):
        made = Gaps(SPECIAL_TOKENS, ENDS, word_share=1.0)(tokens, chance(seed))
        assert made.source.tolist().count(GAP) == 3
        assert len(made.positions) == len(made.source) - 3


@pytest.mark.parametrize("choice", CHOICES)
def test_a_seed_gives_the_same_and_another_seed_something_else(choice):
    tokens = document(*[[i, i + 1, i + 2] for i in range(20, 120)])
    once, again, other = (Gaps(SPECIAL_TOKENS, ENDS, choice=choice)(tokens, chance(seed)) for seed in (1, 1, 2))
    assert all((a == b).all() for a, b in zip(once, again, strict=True))
    assert once.positions.tolist() != other.positions.tolist()


def test_it_can_be_sent_to_another_process():
    gaps, tokens = Gaps(SPECIAL_TOKENS, ENDS), document(*[[i, i + 1] for i in range(20, 60)])
    once = gaps(tokens, chance())
    twin = pickle.loads(pickle.dumps(gaps))(tokens, chance())
    assert all((a == b).all() for a, b in zip(once, twin, strict=True))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"choice": "best"}, "task.choice is 'best'; it must be one of principal, sequential, random, lead"),
        ({"gap_share": 1.5}, "task.gap_share is 1.5; it must be from 0 to 1"),
        ({"word_share": -0.1}, "task.word_share is -0.1; it must be from 0 to 1"),
        ({"masked": 0.9, "swapped": 0.2}, "task.masked is 0.9, task.swapped is 0.2; together they must be at most 1"),
        ({"special": SPECIAL_TOKENS._replace(gap=None)}, "the vocabulary has no token for a removed sentence"),
        (
            {"special": SPECIAL_TOKENS._replace(mask=None)},
            "task.word_share is 0.15, but the vocabulary has no mask; set it to 0",
        ),
    ],
)
def test_settings_that_make_no_sense_are_refused_by_name(change, words):
    with pytest.raises(ValueError, match=words):
        Gaps(**({"special": SPECIAL_TOKENS, "ends": ENDS} | change))


def test_without_a_mask_there_are_still_gaps():
    gaps = Gaps(SPECIAL_TOKENS._replace(mask=None), ENDS, word_share=0.0)
    assert GAP in gaps(document([20], [21]), chance()).source

"""Terms that must be said, in a search over five tokens: all sequences can be tried."""

import itertools
import random
from collections import Counter

import pytest
import torch

from heed.decoding import limits
from heed.decoding.beam import beam_search
from heed.decoding.constraints import Constraints
from heed.decoding.ranking import PENALTIES, STOPPING
from heed.decoding.terms import Automaton, Letters, Way
from tests.decoding.conftest import Counting
from tests.decoding.test_beam import FIRST, LAST, NO_LIMIT, VOCAB, every

WIDE = 4**3 * 5
NONE = Letters(torch.zeros(VOCAB, dtype=torch.bool), torch.zeros(VOCAB, dtype=torch.bool))


def term(*ways):
    return tuple(Way(way) for way in ways)


def search(model, texts, longest, terms, letters=NONE, rules=(), instead=None, **options):
    made = Constraints(terms, letters, longest, LAST, instead=instead)
    parts = {"first": FIRST, "last": LAST, "rules": [*rules, made.rule], "pick": made.pick} | options
    return beam_search(model, model.start(*texts), torch.tensor(longest), **parts)


def says(tokens, terms, letters=NONE, said=None):
    """Whether all terms can be found in these tokens, none on top of another: tried in every way."""
    said = said or tokens
    if not terms:
        return True
    begin, end = (part.tolist() for part in letters)
    for way in terms[0]:
        size = len(way.tokens)
        for place in range(len(tokens) - size + 1):
            free = tuple(tokens[place : place + size]) == way.tokens
            free &= not (way.apart and (place == 0 or end[said[place - 1]]))
            free &= not (way.whole and place + size < len(tokens) and begin[said[place + size]])
            free &= not (way.first and place)
            rest = [None if place <= i < place + size else token for i, token in enumerate(tokens)]
            if free and says(rest, terms[1:], letters, said):
                return True
    return False


TERMS = {
    "one token": [[term((2,))]] * 3,
    "two tokens": [[term((2, 3))], [term((3, 3))], [term((1, 2))]],
    "one of two ways": [[term((3, 3), (1, 2, 1))], [term((3,), (2, 2))], [term((2, 2), (1, 1))]],
    "a shared beginning": [[term((2, 1)), term((2, 3))], [term((1,)), term((1, 1))], [term((2,)), term((2, 2))]],
    "twice the same": [[term((2,)), term((2,))], [term((3, 1)), term((3, 1))], [term((1, 1)), term((1, 1))]],
    "begun in vain": [[term((1, 1, 2))], [term((3, 3, 1))], [term((2, 2, 3))]],
    "none, one, two": [[], [term((2, 2))], [term((1,)), term((3,))]],
}


@pytest.mark.parametrize(("name", "alpha"), list(zip(TERMS, itertools.cycle([0.0, 0.6, 2.0]), strict=False)))
def test_a_wide_beam_finds_the_best_of_all_that_say_the_terms(model, texts, name, alpha):
    longest, terms = [4, 4, 4], TERMS[name]
    found = search(model, texts, longest, terms, beams=WIDE, nbest=3, alpha=alpha)
    for row in range(3):
        ordered = every(model, texts, row, longest[row], alpha)
        best = [(score, tokens) for score, tokens in ordered if says(tokens, terms[row])][:3]
        assert not terms[row] or [tokens for _, tokens in best] != [tokens for _, tokens in ordered[:3]]
        assert [h.tokens for h in found[row]] == [tokens for _, tokens in best]
        assert [h.score for h in found[row]] == pytest.approx([score for score, _ in best], abs=1e-10)


LETTERS = Letters(torch.tensor([False, False, True, True, False]), torch.tensor([False, True, False, True, False]))
PLACED = [
    [(Way((0, 1)), Way((2,), apart=True))],
    [(Way((3,), whole=True),), (Way((3,), whole=True),)],
    [(Way((0, 3)), Way((2,), first=True, whole=True))],
]


def test_where_a_term_may_stand_is_minded(model, texts):
    found = search(model, texts, [4, 4, 4], PLACED, LETTERS, beams=4**3 * 5, nbest=5)
    minded = []
    for row in range(3):
        ordered = [tokens for _, tokens in every(model, texts, row, 4, 0.6)]
        best = [tokens for tokens in ordered if says(tokens, PLACED[row], LETTERS)][:5]
        anywhere = [tuple(Way(way.tokens) for way in own) for own in PLACED[row]]
        minded.append(best != [tokens for tokens in ordered if says(tokens, anywhere)][:5])
        assert [h.tokens for h in found[row]] == best
    assert sum(minded) > 1


def in_place(model, texts, row, longest, way, other):
    """All sequences that say a way, and not before it the token in whose place it may stand, as (score, tokens).

    The way counts for as much as that token would have, if that is more and there was room to say both.
    """
    found, size = [], len(way)
    for score, tokens in every(model, texts, row, longest, 0.6):
        start = next((i for i in range(len(tokens)) if tuple(tokens[i : i + size]) == way), None)
        if start is not None and other not in tokens[: start + size]:
            found.append((score, tokens, start))
    source, valid = (part[row : row + 1].expand(len(found), -1) for part in texts)
    said = torch.tensor([[FIRST, *tokens, *[0] * (longest - len(tokens))] for _, tokens, _ in found])
    logp = model(source, said, valid).log_softmax(-1)
    ordered = []
    for (score, tokens, start), own in zip(found, logp, strict=True):
        real = sum(own[i, tokens[i]].item() for i in range(start, start + size))
        there = own[start, other].item() if start + 1 + size <= longest else real
        ordered.append((score + max(0.0, there - real) / ((5 + len(tokens)) / 6) ** 0.6, tokens))
    return sorted(ordered, reverse=True)


@pytest.mark.parametrize(("way", "other"), [((2,), 1), ((1, 1), 3), ((3, 1), 2)])
def test_a_term_is_as_likely_as_what_it_stands_in_the_place_of(model, texts, way, other):
    terms, instead = [[term(way)]] * 3, [{way[0]: frozenset([other])}, {}, {way[0]: frozenset([other])}]
    found = search(model, texts, [4, 4, 4], terms, beams=WIDE, nbest=3, instead=instead)
    plain = search(model, texts, [4, 4, 4], terms, beams=WIDE, nbest=3)
    assert found[1] == plain[1]
    for row in (0, 2):
        best = in_place(model, texts, row, 4, way, other)[:3]
        assert [h.tokens for h in found[row]] == [tokens for _, tokens in best]
        assert [h.score for h in found[row]] == pytest.approx([score for score, _ in best], abs=1e-10)
        for h in found[row]:
            assert h.score == pytest.approx(sum(h.scores) / ((5 + len(h.tokens)) / 6) ** 0.6, abs=1e-10)


def test_a_forced_beginning_may_hold_what_a_term_stands_in_the_place_of(model, texts):
    made = Constraints([[term((2,))]] * 3, NONE, [6] * 3, LAST, forced=[[1, 1]] * 3, instead=[{2: frozenset([1])}] * 3)
    options = {"first": FIRST, "last": LAST, "rules": [made.rule, limits.prefix([[1, 1]] * 3)], "pick": made.pick}
    for own in beam_search(model, model.start(*texts), torch.tensor([6] * 3), **options):
        assert own[0].tokens[:2] == [1, 1]
        assert 2 in own[0].tokens


def test_an_automaton_reads_every_sequence_as_trying_all_ways_does():
    chance = random.Random(1)
    for terms, letters in [
        *((own, NONE) for rows in TERMS.values() for own in rows),
        *((own, LETTERS) for own in PLACED),
    ]:
        automaton = Automaton(terms, letters)
        for _ in range(40):
            tokens = chance.choices(range(VOCAB), k=5)
            assert (not automaton.missing(tokens)) == says(tokens, terms, letters), (terms, tokens)


def test_terms_of_the_same_tokens_are_read_in_a_few_ways_alone():
    """All ways to share out n tokens among such terms would be too many to follow."""
    own = [term((1,) * size) for size in range(1, 11)]
    automaton = Automaton(own, NONE)
    numbers = [automaton.walk([1] * said) for said in range(60)]
    assert max(len(automaton.standings[number].readings) for number in numbers) < 150
    assert automaton.left[0] == 55
    assert [automaton.left[number] for number in numbers] == [max(0, 55 - said) for said in range(60)]
    chain = [*(term((k,)) for k in range(20)), *(term((k, k + 1)) for k in range(19))]
    wide = Letters(torch.zeros(21, dtype=torch.bool), torch.zeros(21, dtype=torch.bool))
    automaton, number = Automaton(chain, wide), 0
    for token in [*range(20)] * 3:
        number = automaton.step(number, token)
        assert len(automaton.standings[number].readings) < 150
    assert automaton.left[number] == 0


def test_many_terms_with_one_beginning_are_all_said(model, texts):
    own = [term((1, 1, 1, k)) for k in (0, 2)] + [term((1, 1, k)) for k in (0, 2, 3)]
    found = search(model, texts, [19, 17, 18], [own] * 3, beams=4, nbest=2)
    for hypotheses in found:
        for h in hypotheses:
            assert says(h.tokens, own)


def test_what_is_missing_is_told():
    terms = [term((1, 2)), term((3,)), term((3,)), term((4, 4))]
    assert Automaton(terms, NONE).missing([3, 1, 2, 0]) == Counter({term((3,)): 1, term((4, 4)): 1})


@pytest.mark.parametrize("beams", [1, 4])
@pytest.mark.parametrize("name", TERMS)
def test_every_answer_of_a_narrow_beam_says_its_terms(model, texts, name, beams):
    longest, terms = [9, 4, 7], TERMS[name]
    found = search(model, texts, longest, terms, beams=beams, nbest=beams)
    for row, hypotheses in enumerate(found):
        assert hypotheses
        for tokens, _, scores in hypotheses:
            assert says(tokens, terms[row])
            assert LAST not in tokens[:-1]
            assert len(tokens) == len(scores) <= longest[row]


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("stop", STOPPING)
def test_a_batch_gives_what_its_sentences_give_alone(model, texts, penalty, stop):
    longest, terms = [9, 7, 8], TERMS["none, one, two"]
    options = {"beams": 4, "nbest": 4, "penalty": PENALTIES[penalty], "stop": STOPPING[stop]}
    together = search(model, texts, longest, terms, **options)
    for row in range(3):
        size = int(texts[1][row].sum())
        alone = search(
            model,
            [part[row : row + 1, :size] for part in texts],
            longest[row : row + 1],
            terms[row : row + 1],
            **options,
        )
        assert [h.tokens for h in together[row]] == [h.tokens for h in alone[0]]
        assert [h.score for h in together[row]] == pytest.approx([h.score for h in alone[0]], abs=1e-10)


def test_without_terms_it_is_the_plain_search_to_the_bit(model, texts):
    longest, rules = [9, 7, 8], [limits.no_repeat(2)]
    plain = beam_search(
        model, model.start(*texts), torch.tensor(longest), first=FIRST, last=LAST, beams=4, nbest=4, rules=rules
    )
    assert search(model, texts, longest, [[], [], []], rules=rules, beams=4, nbest=4) == plain
    some = search(model, texts, longest, [[], [term((2,))], []], rules=rules, beams=4, nbest=4)
    assert [some[0], some[2]] == [plain[0], plain[2]]


def test_terms_that_are_there_anyway_change_nothing(model, texts):
    plain = search(model, texts, [8, 8, 8], [[], [], []], beams=60, nbest=1)
    said = [[term((own[0].tokens[1],))] if len(own[0].tokens) > 2 else [] for own in plain]
    assert any(said)
    assert [own[0].tokens for own in search(model, texts, [8, 8, 8], said, beams=60)] == [
        own[0].tokens for own in plain
    ]


def test_where_there_is_no_room_the_longest_is_left_out(model, texts):
    terms = [term((1, 2)), term((3,)), term((2, 1, 1))]
    found = search(model, texts, [2, 3, 6], [terms] * 3, beams=4, nbest=4)
    for hypotheses, own in zip(found, ([terms[1]], terms[:2], terms), strict=True):
        assert hypotheses
        for h in hypotheses:
            assert says(h.tokens, own)
    assert not any(Automaton(terms, NONE).missing(found[2][0].tokens))
    assert Automaton(terms, NONE).missing(found[1][0].tokens) == {terms[2]: 1}


def test_the_last_place_is_the_end_marks_where_it_must_be(model, texts):
    longest, terms = [3, 3, 3], [[term((1, 2))]] * 3
    made = Constraints(terms, NONE, longest, LAST, force_end=True)
    rules = [made.rule, limits.ends(torch.tensor(longest), LAST)]
    found = search(model, texts, longest, terms, beams=3, rules=rules, pick=made.pick)
    assert [own[0].tokens for own in found] == [[1, 2, LAST]] * 3


def test_a_forced_beginning_counts_and_takes_room(model, texts):
    longest, terms, forced = [5, 4, 5], [[term((1, 2))]] * 3, [[3, 1, 2], [2, 2, 2], [3, 3]]
    made = Constraints(terms, NONE, longest, LAST, forced=forced)
    rules = [made.rule, limits.prefix(forced)]
    options = {"first": FIRST, "last": LAST, "rules": rules, "pick": made.pick}
    found = beam_search(model, model.start(*texts), torch.tensor(longest), **options)
    for own, start in zip(found, forced, strict=True):
        assert own[0].tokens[: len(start)] == start
    assert [says(own[0].tokens, terms[0]) for own in found] == [True, False, True]


def test_what_says_a_term_is_free_of_other_rules(model, texts):
    rules = [limits.no_repeat(1), limits.never([0])]
    terms = [[term((1, 1))], [term((2, 3)), term((3, 2))], []]
    for own, wanted in zip(search(model, texts, [7, 7, 7], terms, rules=rules, beams=4), terms, strict=True):
        assert says(own[0].tokens, wanted)
        assert 0 not in own[0].tokens


def test_no_end_is_allowed_before_all_is_said():
    made = Constraints([[term((1, 2))], []], NONE, [9, 9], LAST)
    banned = torch.zeros(3, VOCAB, dtype=torch.bool)
    made.rule(banned, torch.tensor([[3, 1], [1, 2], [3, 1]]), torch.tensor([0, 0, 1]))
    assert banned.nonzero().tolist() == [[0, LAST]]


def test_tokens_before_a_text_are_none_of_it():
    own = [(Way((2,), first=True), Way((0, 2)))]
    assert Automaton(own, NONE).missing([1, 2])
    assert not Automaton(own, NONE, silent=[1]).missing([1, 2])


def test_sentences_that_are_done_leave_the_batch(model, texts):
    counting = Counting(model)
    search(counting, texts, [2, 6, 4], TERMS["one token"], beams=3, nbest=NO_LIMIT)
    assert counting.rows == [9, 9, 6, 6, 3, 3]


@pytest.mark.parametrize("row", range(3))
def test_a_usual_beam_comes_near_the_best(model, texts, row):
    """Of sequences that say two terms, ten beams find one of the best few of some hundreds."""
    terms = [term((2, 3)), term((1,))]
    own = [part[row : row + 1] for part in texts]
    found = search(model, own, [5], [terms], beams=10)[0][0]
    ordered = [tokens for _, tokens in every(model, texts, row, 5, 0.6) if says(tokens, terms)]
    assert len(ordered) > 100
    assert ordered.index(found.tokens) < 3

"""Required terms in a search over five tokens, where all sequences can be enumerated."""

import itertools
import random
from collections import Counter

import pytest
import torch

from heed.decoding import limits
from heed.decoding.beam import beam_search
from heed.decoding.constraints import Constraints
from heed.decoding.ranking import PENALTIES, STOPPING
from heed.decoding.terms import Automaton, TokenEdges, Variant
from tests.decoding.conftest import Counting
from tests.decoding.test_beam import FIRST, LAST, NO_LIMIT, VOCAB, exhaustive

WIDE = 4**3 * 5
NONE = TokenEdges(torch.zeros(VOCAB, dtype=torch.bool), torch.zeros(VOCAB, dtype=torch.bool))


def term(*variants):
    return tuple(Variant(tokens) for tokens in variants)


def search(model, texts, longest, terms, edges=NONE, rules=(), replaced=None, **options):
    made = Constraints(terms, edges, longest, LAST, replaced=replaced)
    parts = {"first": FIRST, "last": LAST, "rules": [*rules, made.rule], "pick": made.pick} | options
    return beam_search(model, model.start(*texts), torch.tensor(longest), **parts)


def contains(tokens, terms, edges=NONE, said=None):
    """Whether all terms can be found in these tokens, without overlap: tried exhaustively."""
    said = said or tokens
    if not terms:
        return True
    begin, end = (part.tolist() for part in edges)
    for variant in terms[0]:
        size = len(variant.tokens)
        for place in range(len(tokens) - size + 1):
            free = tuple(tokens[place : place + size]) == variant.tokens
            free &= not (variant.inside and (place == 0 or end[said[place - 1]]))
            free &= not (variant.whole and place + size < len(tokens) and begin[said[place + size]])
            free &= not (variant.initial and place)
            rest = [None if place <= i < place + size else token for i, token in enumerate(tokens)]
            if free and contains(rest, terms[1:], edges, said):
                return True
    return False


TERMS = {
    "one token": [[term((2,))]] * 3,
    "two tokens": [[term((2, 3))], [term((3, 3))], [term((1, 2))]],
    "one of two variants": [[term((3, 3), (1, 2, 1))], [term((3,), (2, 2))], [term((2, 2), (1, 1))]],
    "a shared beginning": [[term((2, 1)), term((2, 3))], [term((1,)), term((1, 1))], [term((2,)), term((2, 2))]],
    "twice the same": [[term((2,)), term((2,))], [term((3, 1)), term((3, 1))], [term((1, 1)), term((1, 1))]],
    "begun and abandoned": [[term((1, 1, 2))], [term((3, 3, 1))], [term((2, 2, 3))]],
    "none, one, two": [[], [term((2, 2))], [term((1,)), term((3,))]],
}


@pytest.mark.parametrize(("name", "alpha"), list(zip(TERMS, itertools.cycle([0.0, 0.6, 2.0]), strict=False)))
def test_a_wide_beam_finds_the_best_of_all_that_contain_the_terms(model, texts, name, alpha):
    longest, terms = [4, 4, 4], TERMS[name]
    found = search(model, texts, longest, terms, beams=WIDE, nbest=3, alpha=alpha)
    for row in range(3):
        ordered = exhaustive(model, texts, row, longest[row], alpha)
        best = [(score, tokens) for score, tokens in ordered if contains(tokens, terms[row])][:3]
        assert not terms[row] or [tokens for _, tokens in best] != [tokens for _, tokens in ordered[:3]]
        assert [h.tokens for h in found[row]] == [tokens for _, tokens in best]
        assert [h.score for h in found[row]] == pytest.approx([score for score, _ in best], abs=1e-10)


EDGES = TokenEdges(torch.tensor([False, False, True, True, False]), torch.tensor([False, True, False, True, False]))
PLACED = [
    [(Variant((0, 1)), Variant((2,), inside=True))],
    [(Variant((3,), whole=True),), (Variant((3,), whole=True),)],
    [(Variant((0, 3)), Variant((2,), initial=True, whole=True))],
]


def test_a_term_stands_only_where_it_may(model, texts):
    found = search(model, texts, [4, 4, 4], PLACED, EDGES, beams=4**3 * 5, nbest=5)
    matters = []
    for row in range(3):
        ordered = [tokens for _, tokens in exhaustive(model, texts, row, 4, 0.6)]
        best = [tokens for tokens in ordered if contains(tokens, PLACED[row], EDGES)][:5]
        anywhere = [tuple(Variant(variant.tokens) for variant in own) for own in PLACED[row]]
        matters.append(best != [tokens for tokens in ordered if contains(tokens, anywhere)][:5])
        assert [h.tokens for h in found[row]] == best
    assert sum(matters) > 1


def in_place(model, texts, row, longest, way, other):
    """All sequences that say a way, and not before it the token in whose place it may stand, as (score, tokens).

    The way counts for as much as that token would have, if that is more and there was room to say both.
    """
    found, size = [], len(way)
    for score, tokens in exhaustive(model, texts, row, longest, 0.6):
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
def test_a_term_is_as_likely_as_what_it_replaces(model, texts, way, other):
    terms, replaced = [[term(way)]] * 3, [{way[0]: frozenset([other])}, {}, {way[0]: frozenset([other])}]
    found = search(model, texts, [4, 4, 4], terms, beams=WIDE, nbest=3, replaced=replaced)
    plain = search(model, texts, [4, 4, 4], terms, beams=WIDE, nbest=3)
    assert found[1] == plain[1]
    for row in (0, 2):
        best = in_place(model, texts, row, 4, way, other)[:3]
        assert [h.tokens for h in found[row]] == [tokens for _, tokens in best]
        assert [h.score for h in found[row]] == pytest.approx([score for score, _ in best], abs=1e-10)
        for h in found[row]:
            assert h.score == pytest.approx(sum(h.scores) / ((5 + len(h.tokens)) / 6) ** 0.6, abs=1e-10)


def test_a_forced_prefix_may_contain_what_a_term_replaces(model, texts):
    made = Constraints([[term((2,))]] * 3, NONE, [6] * 3, LAST, forced=[[1, 1]] * 3, replaced=[{2: frozenset([1])}] * 3)
    options = {"first": FIRST, "last": LAST, "rules": [made.rule, limits.force_prefix([[1, 1]] * 3)], "pick": made.pick}
    for own in beam_search(model, model.start(*texts), torch.tensor([6] * 3), **options):
        assert own[0].tokens[:2] == [1, 1]
        assert 2 in own[0].tokens


def test_an_automaton_parses_every_sequence_as_exhaustive_search_does():
    chance = random.Random(1)
    for terms, edges in [
        *((own, NONE) for rows in TERMS.values() for own in rows),
        *((own, EDGES) for own in PLACED),
    ]:
        automaton = Automaton(terms, edges)
        for _ in range(40):
            tokens = chance.choices(range(VOCAB), k=5)
            assert (not automaton.missing_terms(tokens)) == contains(tokens, terms, edges), (terms, tokens)


def test_terms_of_the_same_tokens_have_a_bounded_number_of_parses():
    """All ways to divide n tokens among such terms would be too many to track."""
    own = [term((1,) * size) for size in range(1, 11)]
    automaton = Automaton(own, NONE)
    numbers = [automaton.run([1] * said) for said in range(60)]
    assert max(len(automaton.states[number].parses) for number in numbers) < 150
    assert automaton.remaining[0] == 55
    assert [automaton.remaining[number] for number in numbers] == [max(0, 55 - said) for said in range(60)]
    chain = [*(term((k,)) for k in range(20)), *(term((k, k + 1)) for k in range(19))]
    wide = TokenEdges(torch.zeros(21, dtype=torch.bool), torch.zeros(21, dtype=torch.bool))
    automaton, number = Automaton(chain, wide), 0
    for token in [*range(20)] * 3:
        number = automaton.step(number, token)
        assert len(automaton.states[number].parses) < 150
    assert automaton.remaining[number] == 0


def test_many_terms_with_one_beginning_are_all_met(model, texts):
    own = [term((1, 1, 1, k)) for k in (0, 2)] + [term((1, 1, k)) for k in (0, 2, 3)]
    found = search(model, texts, [19, 17, 18], [own] * 3, beams=4, nbest=2)
    for hypotheses in found:
        for h in hypotheses:
            assert contains(h.tokens, own)


def test_missing_terms_are_counted():
    terms = [term((1, 2)), term((3,)), term((3,)), term((4, 4))]
    assert Automaton(terms, NONE).missing_terms([3, 1, 2, 0]) == Counter({term((3,)): 1, term((4, 4)): 1})


@pytest.mark.parametrize("beams", [1, 4])
@pytest.mark.parametrize("name", TERMS)
def test_every_result_of_a_narrow_beam_contains_its_terms(model, texts, name, beams):
    longest, terms = [9, 4, 7], TERMS[name]
    found = search(model, texts, longest, terms, beams=beams, nbest=beams)
    for row, hypotheses in enumerate(found):
        assert hypotheses
        for tokens, _, scores in hypotheses:
            assert contains(tokens, terms[row])
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
    longest, rules = [9, 7, 8], [limits.no_repeat_ngram(2)]
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


def test_where_there_is_no_room_the_longest_term_is_dropped(model, texts):
    terms = [term((1, 2)), term((3,)), term((2, 1, 1))]
    found = search(model, texts, [2, 3, 6], [terms] * 3, beams=4, nbest=4)
    for hypotheses, own in zip(found, ([terms[1]], terms[:2], terms), strict=True):
        assert hypotheses
        for h in hypotheses:
            assert contains(h.tokens, own)
    assert not any(Automaton(terms, NONE).missing_terms(found[2][0].tokens))
    assert Automaton(terms, NONE).missing_terms(found[1][0].tokens) == {terms[2]: 1}


def test_the_last_position_is_reserved_for_a_forced_end(model, texts):
    longest, terms = [3, 3, 3], [[term((1, 2))]] * 3
    made = Constraints(terms, NONE, longest, LAST, force_end=True)
    rules = [made.rule, limits.force_end(torch.tensor(longest), LAST)]
    found = search(model, texts, longest, terms, beams=3, rules=rules, pick=made.pick)
    assert [own[0].tokens for own in found] == [[1, 2, LAST]] * 3


def test_a_forced_prefix_counts_and_takes_room(model, texts):
    longest, terms, forced = [5, 4, 5], [[term((1, 2))]] * 3, [[3, 1, 2], [2, 2, 2], [3, 3]]
    made = Constraints(terms, NONE, longest, LAST, forced=forced)
    rules = [made.rule, limits.force_prefix(forced)]
    options = {"first": FIRST, "last": LAST, "rules": rules, "pick": made.pick}
    found = beam_search(model, model.start(*texts), torch.tensor(longest), **options)
    for own, start in zip(found, forced, strict=True):
        assert own[0].tokens[: len(start)] == start
    assert [contains(own[0].tokens, terms[0]) for own in found] == [True, False, True]


def test_the_tokens_of_a_term_are_free_of_other_rules(model, texts):
    rules = [limits.no_repeat_ngram(1), limits.BanTokens([0])]
    terms = [[term((1, 1))], [term((2, 3)), term((3, 2))], []]
    for own, wanted in zip(search(model, texts, [7, 7, 7], terms, rules=rules, beams=4), terms, strict=True):
        assert contains(own[0].tokens, wanted)
        assert 0 not in own[0].tokens


def test_no_end_is_allowed_before_all_terms_are_met():
    made = Constraints([[term((1, 2))], []], NONE, [9, 9], LAST)
    banned = torch.zeros(3, VOCAB, dtype=torch.bool)
    made.rule(banned, torch.tensor([[3, 1], [1, 2], [3, 1]]), torch.tensor([0, 0, 1]))
    assert banned.nonzero().tolist() == [[0, LAST]]


def test_tokens_before_a_text_do_not_count():
    own = [(Variant((2,), initial=True), Variant((0, 2)))]
    assert Automaton(own, NONE).missing_terms([1, 2])
    assert not Automaton(own, NONE, silent=[1]).missing_terms([1, 2])


def test_sentences_that_are_done_leave_the_batch(model, texts):
    counting = Counting(model)
    search(counting, texts, [2, 6, 4], TERMS["one token"], beams=3, nbest=NO_LIMIT)
    assert counting.rows == [9, 9, 6, 6, 3, 3]


@pytest.mark.parametrize("row", range(3))
def test_a_usual_beam_comes_close_to_the_best(model, texts, row):
    """Of sequences that contain two terms, ten beams find one of the best few of some hundreds."""
    terms = [term((2, 3)), term((1,))]
    own = [part[row : row + 1] for part in texts]
    found = search(model, own, [5], [terms], beams=10)[0][0]
    ordered = [tokens for _, tokens in exhaustive(model, texts, row, 5, 0.6) if contains(tokens, terms)]
    assert len(ordered) > 100
    assert ordered.index(found.tokens) < 3

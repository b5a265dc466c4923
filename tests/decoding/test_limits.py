"""Each rule beside its definition in plain words."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.decoding import limits

VOCAB = 4


def banned_by(rule, said, before=()):
    """What a rule bans for each of some rows of one length, as sets; `before` is banned already."""
    table = torch.zeros(len(said), VOCAB, dtype=torch.bool)
    table[:, list(before)] = True
    rule(table, torch.tensor(said, dtype=torch.long).reshape(len(said), -1), torch.arange(len(said)))
    return [set(row.nonzero().flatten().tolist()) for row in table]


def rows(longest=9):
    """A few sequences of the same length."""
    return st.integers(0, longest).flatmap(
        lambda n: st.lists(st.lists(st.integers(0, VOCAB - 1), min_size=n, max_size=n), min_size=1, max_size=3)
    )


@settings(max_examples=50, deadline=None)
@given(rows(), st.sets(st.integers(0, VOCAB - 1)))
def test_never_is_at_no_time(said, tokens):
    assert banned_by(limits.never(sorted(tokens)), said) == [tokens] * len(said)


@settings(max_examples=50, deadline=None)
@given(rows(), st.integers(0, 9))
def test_no_end_before_so_many_tokens(said, length):
    early = {3} if len(said[0]) < length else set()
    assert banned_by(limits.at_least(length, 3), said) == [early] * len(said)


def repeats(words, n):
    runs = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
    return len(runs) > 1 and runs[-1] in runs[:-1]


@settings(max_examples=50, deadline=None)
@given(rows(), st.integers(1, 4))
def test_no_run_of_n_comes_twice(said, n):
    expected = [{token for token in range(VOCAB) if repeats([*words, token], n)} for words in said]
    assert banned_by(limits.no_repeat(n), said) == expected


@settings(max_examples=50, deadline=None)
@given(rows(), st.data())
def test_a_prefix_leaves_one_token_until_it_is_said_whatever_is_banned(said, data):
    forced = [data.draw(st.lists(st.integers(0, VOCAB - 1), max_size=9)) for _ in said]
    before = data.draw(st.sets(st.integers(0, VOCAB - 1)))
    place = len(said[0])
    expected = [set(range(VOCAB)) - {own[place]} if place < len(own) else before for own in forced]
    assert banned_by(limits.prefix(forced), said, before) == expected


def test_a_rule_is_told_which_sentence_a_row_is_of():
    table = torch.zeros(3, VOCAB, dtype=torch.bool)
    limits.prefix([[0], [1], []])(table, torch.zeros(3, 0, dtype=torch.long), torch.tensor([1, 1, 2]))
    assert [row.nonzero().flatten().tolist() for row in table] == [[0, 2, 3], [0, 2, 3], []]


@settings(max_examples=50, deadline=None)
@given(rows(), st.lists(st.lists(st.integers(0, VOCAB - 1), min_size=1, max_size=3), max_size=4))
def test_a_run_that_is_never_said_is_not_ended(said, runs):
    expected = [{run[-1] for run in runs if [*words, run[-1]][-len(run) :] == run} for words in said]
    assert banned_by(limits.never_runs(runs), said) == expected


@settings(max_examples=50, deadline=None)
@given(rows(), st.lists(st.integers(0, VOCAB - 1), max_size=9), st.sets(st.integers(0, VOCAB - 1)))
def test_every_row_begins_alike_whatever_is_banned(said, tokens, before):
    place = len(said[0])
    expected = set(range(VOCAB)) - {tokens[place]} if place < len(tokens) else before
    assert banned_by(limits.begins(tokens), said, before) == [expected] * len(said)


@settings(max_examples=50, deadline=None)
@given(rows(), st.data(), st.sets(st.integers(0, VOCAB - 1)))
def test_a_row_ends_where_its_sentence_has_room_for_one_more(said, data, before):
    longest = [data.draw(st.integers(1, 12)) for _ in said]
    expected = [{0, 1, 2} if len(words) + 1 >= most else before for words, most in zip(said, longest, strict=True)]
    assert banned_by(limits.ends(torch.tensor(longest), 3), said, before) == expected


SAID = torch.tensor([[0, 1], [2, 0]])
LOGITS = torch.tensor([[0.1, 0.7, -1.0, 2.0], [3.0, 0.2, 0.5, -0.3]], dtype=torch.double)


def ruled(*rules, renormalize=False):
    return limits.ruled(LOGITS, SAID, torch.arange(2), rules, renormalize)


def test_what_is_banned_keeps_its_share_unless_the_rest_is_renormalized():
    p = LOGITS.softmax(dim=-1)
    p[:, 2] = 0
    torch.testing.assert_close(ruled(limits.never([2])).exp(), p, rtol=0, atol=1e-10)
    shared = p / p.sum(dim=-1, keepdim=True)
    torch.testing.assert_close(ruled(limits.never([2]), renormalize=True).exp(), shared, rtol=0, atol=1e-10)


@pytest.mark.parametrize("renormalize", [False, True])
def test_what_must_be_said_costs_nothing_and_a_prefix_costs_what_the_model_says(renormalize):
    assert ruled(limits.never([1]), limits.begins([3, 3, 1])).exp().tolist() == [[0, 1, 0, 0]] * 2
    ends = ruled(limits.ends(torch.tensor([3, 4]), 3), renormalize=renormalize)
    assert ends[0].exp().tolist() == [0, 0, 0, 1]
    torch.testing.assert_close(ends[1], LOGITS.log_softmax(dim=-1)[1], rtol=0, atol=1e-10)
    prefix = ruled(limits.prefix([[3, 3, 1]] * 2))
    torch.testing.assert_close(prefix[:, 1], LOGITS.log_softmax(dim=-1)[:, 1], rtol=0, atol=1e-10)


@pytest.mark.parametrize("renormalize", [False, True])
def test_where_all_is_banned_nothing_is_likely(renormalize):
    assert ruled(limits.never(range(VOCAB)), renormalize=renormalize).eq(-torch.inf).all()


def test_no_rules_change_nothing():
    torch.testing.assert_close(ruled(renormalize=True), LOGITS.log_softmax(dim=-1), rtol=0, atol=0)

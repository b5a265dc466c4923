"""Each rule against its definition in plain Python."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.decoding import limits

VOCAB = 4


def banned_by(rule, tokens_so_far, before=()):
    """What a rule bans for each of some rows of one length, as sets; `before` is banned already."""
    table = torch.zeros(len(tokens_so_far), VOCAB, dtype=torch.bool)
    table[:, list(before)] = True
    rule(
        table,
        torch.tensor(tokens_so_far, dtype=torch.long).reshape(len(tokens_so_far), -1),
        torch.arange(len(tokens_so_far)),
    )
    return [set(row.nonzero().flatten().tolist()) for row in table]


def rows(longest=9):
    """A few sequences of the same length."""
    return st.integers(0, longest).flatmap(
        lambda n: st.lists(st.lists(st.integers(0, VOCAB - 1), min_size=n, max_size=n), min_size=1, max_size=3)
    )


@settings(max_examples=50, deadline=None)
@given(rows(), st.sets(st.integers(0, VOCAB - 1)))
def test_banned_tokens_are_banned_everywhere(tokens_so_far, tokens):
    assert banned_by(limits.BanTokens(sorted(tokens)), tokens_so_far) == [tokens] * len(tokens_so_far)


@settings(max_examples=50, deadline=None)
@given(rows(), st.integers(0, 9))
def test_no_end_before_the_minimal_length(tokens_so_far, length):
    early = {3} if len(tokens_so_far[0]) < length else set()
    assert banned_by(limits.min_length(length, 3), tokens_so_far) == [early] * len(tokens_so_far)


def repeats(words, n):
    runs = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
    return len(runs) > 1 and runs[-1] in runs[:-1]


@settings(max_examples=50, deadline=None)
@given(rows(), st.integers(1, 4))
def test_no_ngram_is_repeated(tokens_so_far, n):
    expected = [{token for token in range(VOCAB) if repeats([*words, token], n)} for words in tokens_so_far]
    assert banned_by(limits.no_repeat_ngram(n), tokens_so_far) == expected


@settings(max_examples=50, deadline=None)
@given(rows(), st.data())
def test_a_prefix_leaves_one_token_until_it_is_said_whatever_is_banned(tokens_so_far, data):
    forced = [data.draw(st.lists(st.integers(0, VOCAB - 1), max_size=9)) for _ in tokens_so_far]
    before = data.draw(st.sets(st.integers(0, VOCAB - 1)))
    place = len(tokens_so_far[0])
    expected = [set(range(VOCAB)) - {own[place]} if place < len(own) else before for own in forced]
    assert banned_by(limits.force_prefix(forced), tokens_so_far, before) == expected


def test_a_rule_is_told_which_sentence_a_row_is_of():
    table = torch.zeros(3, VOCAB, dtype=torch.bool)
    limits.force_prefix([[0], [1], []])(table, torch.zeros(3, 0, dtype=torch.long), torch.tensor([1, 1, 2]))
    assert [row.nonzero().flatten().tolist() for row in table] == [[0, 2, 3], [0, 2, 3], []]


@settings(max_examples=50, deadline=None)
@given(rows(), st.lists(st.integers(0, VOCAB - 1), max_size=9), st.sets(st.integers(0, VOCAB - 1)))
def test_every_row_begins_alike_whatever_is_banned(tokens_so_far, tokens, before):
    place = len(tokens_so_far[0])
    expected = set(range(VOCAB)) - {tokens[place]} if place < len(tokens) else before
    assert banned_by(limits.force_begin(tokens), tokens_so_far, before) == [expected] * len(tokens_so_far)


@settings(max_examples=50, deadline=None)
@given(rows(), st.data(), st.sets(st.integers(0, VOCAB - 1)))
def test_a_row_ends_where_its_sentence_has_room_for_one_more(tokens_so_far, data, before):
    longest = [data.draw(st.integers(1, 12)) for _ in tokens_so_far]
    expected = [
        {0, 1, 2} if len(words) + 1 >= most else before for words, most in zip(tokens_so_far, longest, strict=True)
    ]
    assert banned_by(limits.force_end(torch.tensor(longest), 3), tokens_so_far, before) == expected
    assert banned_by(limits.end_at_limit(torch.tensor(longest), 3), tokens_so_far, before) == expected


TOKENS = torch.tensor([[0, 1], [2, 0]])
LOGITS = torch.tensor([[0.1, 0.7, -1.0, 2.0], [3.0, 0.2, 0.5, -0.3]], dtype=torch.double)


def log_probs(*rules, renormalize=False):
    return limits.apply_rules(LOGITS, TOKENS, torch.arange(2), rules, renormalize)


def test_what_is_banned_keeps_its_share_unless_the_rest_is_renormalized():
    p = LOGITS.softmax(dim=-1)
    p[:, 2] = 0
    torch.testing.assert_close(log_probs(limits.BanTokens([2])).exp(), p, rtol=0, atol=1e-10)
    shared = p / p.sum(dim=-1, keepdim=True)
    torch.testing.assert_close(log_probs(limits.BanTokens([2]), renormalize=True).exp(), shared, rtol=0, atol=1e-10)


@pytest.mark.parametrize("renormalize", [False, True])
def test_forced_tokens_cost_nothing_and_a_prefix_has_the_models_cost(renormalize):
    assert log_probs(limits.BanTokens([1]), limits.force_begin([3, 3, 1])).exp().tolist() == [[0, 1, 0, 0]] * 2
    ends = log_probs(limits.force_end(torch.tensor([3, 4]), 3), renormalize=renormalize)
    assert ends[0].exp().tolist() == [0, 0, 0, 1]
    torch.testing.assert_close(ends[1], LOGITS.log_softmax(dim=-1)[1], rtol=0, atol=1e-10)
    both = log_probs(limits.force_begin([3, 3, 1]), limits.force_end(torch.tensor([9, 9]), 3)).exp()
    assert both.tolist() == [[0, 1, 0, 0]] * 2, "one of several rules is enough"
    prefix = log_probs(limits.force_prefix([[3, 3, 1]] * 2))
    torch.testing.assert_close(prefix[:, 1], LOGITS.log_softmax(dim=-1)[:, 1], rtol=0, atol=1e-10)


def test_an_end_at_the_limit_has_the_models_cost():
    ends = log_probs(limits.end_at_limit(torch.tensor([3, 4]), 3))
    expected = LOGITS.log_softmax(dim=-1)
    torch.testing.assert_close(ends[:, 3], expected[:, 3], rtol=0, atol=1e-10)
    assert ends[0, :3].eq(-torch.inf).all()
    torch.testing.assert_close(ends[1], expected[1], rtol=0, atol=1e-10)


@pytest.mark.parametrize("renormalize", [False, True])
def test_where_all_is_banned_nothing_is_likely(renormalize):
    assert log_probs(limits.BanTokens(range(VOCAB)), renormalize=renormalize).eq(-torch.inf).all()


def test_no_rules_change_nothing():
    torch.testing.assert_close(log_probs(renormalize=True), LOGITS.log_softmax(dim=-1), rtol=0, atol=0)

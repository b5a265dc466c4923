"""Each rule beside its definition in plain words."""

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

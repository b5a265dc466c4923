"""Loops: the vectorised check and the rule against a definition in plain Python."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.decoding import loops
from heed.decoding.beam import beam_search
from heed.decoding.loop_rule import no_loops
from heed.decoding.loops import TokenKinds, allowed_repeats, find_loops, source_repeats, token_kinds

PIECES = ["▁go", "co", "-", "a", "0"]
KINDS = token_kinds(PIECES, 6)
VOCAB = 6


@given(st.lists(st.lists(st.integers(0, 9), max_size=12), max_size=6))
def test_which_sequences_have_a_frequent_token(sequences):
    often = [row for row, own in enumerate(sequences) if any(own.count(i) > loops.WITH_LETTERS for i in own)]
    assert loops._with_frequent(sequences) == often


def completes(tokens, source=(1, 1), kinds=KINDS):
    """Whether the last token completes a loop."""
    for period in range(1, loops.MAX_PERIOD + 1):
        unit = tokens[-period:]
        count = allowed_repeats(period, any(kinds.letters[token] for token in unit), source) + 1
        if tokens[-count * period :] == unit * count:
            return True
    begin = max([i for i, token in enumerate(tokens) if kinds.starts[token]], default=0)
    own = tokens[begin:].count(tokens[-1])
    return bool(kinds.syllables[tokens[-1]]) and own > allowed_repeats(1, True, source)


def has_loop(tokens, source=(1, 1), kinds=KINDS):
    return any(completes(tokens[:end], source, kinds) for end in range(1, len(tokens) + 1))


def sequences():
    """Sequences that tend to repeat themselves."""
    unit = st.lists(st.integers(0, VOCAB - 1), min_size=1, max_size=5)
    parts = st.lists(st.tuples(unit, st.integers(1, 14)), max_size=4)
    return parts.map(lambda own: [token for unit, count in own for token in unit * count][:60])


repeats = st.tuples(st.integers(1, 6), st.integers(1, 6))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(sequences(), repeats), max_size=5))
def test_loops_are_found_as_the_definition_says(rows):
    tokens, sources = [row[0] for row in rows], [row[1] for row in rows]
    assert find_loops(tokens, KINDS).tolist() == [has_loop(own) for own in tokens]
    assert find_loops(tokens, KINDS, sources).tolist() == [has_loop(*row) for row in rows]


@settings(max_examples=60, deadline=None)
@given(sequences(), st.tuples(repeats, repeats))
def test_the_rule_bans_what_would_complete_a_loop(tokens, sources):
    table = torch.zeros(2, VOCAB, dtype=torch.bool)
    no_loops(KINDS, sources)(table, torch.tensor([tokens, tokens], dtype=torch.long), torch.tensor([1, 0]))
    for row, source in zip(table, reversed(sources), strict=True):
        assert row.tolist() == [completes([*tokens, token], source) for token in range(VOCAB)]


def test_what_tokens_are():
    assert KINDS.letters.tolist() == [True, True, False, True, False, False]
    assert KINDS.starts.tolist() == [True, False, False, False, True, False]
    assert KINDS.syllables.tolist() == [True, True, False, False, False, False]
    assert not token_kinds(["<0xAB>", "▁한국"], 2).syllables.any()
    assert token_kinds(["<0xAB>", "▁한국"], 2).letters.tolist() == [False, True]


@pytest.mark.parametrize(
    ("text", "numbers", "words"),
    [
        ("He saw a dog.", 1, 1),
        ("Ha! Ha, ha.", 1, 3),
        ("hahahaha", 1, 4),
        ("1000000 dollars", 6, 2),
        ("| - - - - - |", 5, 1),
        ("아주 아주 아주 좋아요", 1, 3),
        ("", 1, 1),
        ("-", 1, 1),
        ("--", 2, 1),
        ("하하", 1, 2),
    ],
)
def test_how_often_a_source_repeats_itself(text, numbers, words):
    assert source_repeats(text) == (numbers, words)


def loop(pieces, source=""):
    names = list(dict.fromkeys(pieces))
    kinds = token_kinds(names, len(names))
    return bool(find_loops([[names.index(piece) for piece in pieces]], kinds, [source_repeats(source)])[0])


def test_what_is_a_loop_and_what_is_not():
    assert loop(["▁rosa", "▁M", "in", "in", "in", "in", "en"], "pink thing")
    assert loop(["▁Porta", "-", "Co", "-", "Fl", "-", "Co", "-", "Co"], "Portakabin")
    assert loop(["▁ein", "▁Mann", "▁mit"] * 3, "a man with a hat")
    assert not loop(["▁ein", "▁Mann", "▁mit"] * 3, "a man with a man with a man with")
    assert not loop(["▁sehr", "▁sehr", "▁gut"], "excellent")
    assert not loop(["▁ha"] * 3, "Ha ha ha!")
    assert loop(["▁ha"] * 9, "Ha ha ha!")
    assert not loop(["▁1", *"000000000000"], "a trillion")
    assert not loop(["▁-"] * 30, "-" * 30)
    assert not loop(["▁os", ".", "path", ".", "join", "(", "os", ".", "path", ".", "dirname", "(", "path", ")"], "see")


class Looper:
    """A model that loves to say token 1 again, and ends when it cannot."""

    def step(self, tokens, state):
        odds = torch.tensor([0.005, 0.9, 0.02, 0.01, 0.005, 0.06])
        return odds.log().expand(len(tokens), -1)


class NoState:
    def reorder(self, rows):
        pass


def test_a_model_that_loves_to_loop_ends():
    options = {"first": 0, "last": 5, "beams": 3, "alpha": 1.0}
    free = beam_search(Looper(), NoState(), torch.tensor([30]), **options)[0][0]
    assert free.tokens == [1] * 30
    rules = [no_loops(KINDS, [(1, 1)])]
    found = beam_search(Looper(), NoState(), torch.tensor([30]), rules=rules, **options)[0][0]
    assert found.tokens == [1, 1, 5]


def test_no_tokens_no_loops():
    empty = TokenKinds(*(np.zeros(3, dtype=bool) for _ in range(3)))
    assert find_loops([], empty).tolist() == [] and find_loops([[], [1]], empty).tolist() == [False, False]

"""What heads do, measured on maps whose answer is known."""

import json

import numpy as np
import pytest

from heed.lab.attention import to_json
from heed.lab.head_roles import NAMED_FROM, cross_roles, is_special, self_roles, words_of

TOKENS = ["▁a", "b", "▁c", "▁d", ".", "</s>"]
SIZE = len(TOKENS)


def only(cells):
    """One layer of one head that puts everything on `cells`, or is uniform in rows without any."""
    rows = np.where(cells.any(axis=1, keepdims=True), cells, 1.0)
    return (rows / rows.sum(axis=1, keepdims=True))[None, None]


def column(place, rows=SIZE):
    cells = np.zeros((rows, SIZE))
    cells[:, place] = 1
    return cells


@pytest.mark.parametrize(
    ("role", "cells"),
    [
        ("previous", np.eye(SIZE, k=-1)),
        ("next", np.eye(SIZE, k=1)),
        ("same", np.eye(SIZE)),
        ("start", column(0)),
        ("end", column(SIZE - 1)),
    ],
)
def test_a_head_that_does_one_thing_is_named_by_it(role, cells):
    assert self_roles(only(cells), TOKENS, causal=False) == [[{"role": role, "share": 1.0}]]


def test_a_head_that_looks_everywhere_has_no_role():
    found = self_roles(np.full((2, 3, SIZE, SIZE), 1 / SIZE), TOKENS, causal=False)
    assert [len(heads) for heads in found] == [3, 3]
    assert all(head["role"] is None and head["share"] == pytest.approx(1 / SIZE, abs=1e-4) for head in found[0])


def test_the_role_is_said_from_the_threshold_on():
    for share, named in ((NAMED_FROM + 0.01, "previous"), (NAMED_FROM - 0.01, None)):
        own = (share - 1 / SIZE) / (1 - 1 / SIZE)  # a uniform head gives the previous token its part as well
        mixed = own * only(np.eye(SIZE, k=-1)) + (1 - own) / SIZE
        found = self_roles(mixed, TOKENS, causal=False)[0][0]
        assert found == {"role": named, "share": pytest.approx(share, abs=1e-3)}


def test_rows_of_a_decoder_that_have_no_choice_do_not_count():
    """The first two rows can hardly look anywhere else; the rest are uniform over what they see."""
    uniform = np.tril(np.ones((SIZE, SIZE))) / np.arange(1, SIZE + 1)[:, None]
    found = self_roles(uniform[None, None], ["<s>", *TOKENS[:-1]], causal=True)[0][0]
    assert found["role"] is None
    assert found["share"] == pytest.approx(np.mean([1 / 3, 1 / 4, 1 / 5, 1 / 6]), abs=1e-4)


def test_a_cross_head_that_follows_the_alignment():
    target, words = ["▁x", "▁y", "z", "</s>"], [(2, 0), (0, 1)]
    cells = np.zeros((4, SIZE))
    cells[0, 3] = 1  # ▁x is aligned with ▁d.
    cells[1:3, :2] = 1  # ▁yz with ▁ab
    found = cross_roles(only(cells), TOKENS, target, words)
    assert found == [[{"role": "aligned", "share": 1.0, "aligned": 1.0}]]
    away = cross_roles(only(column(SIZE - 1, 4)), TOKENS, target, words)
    assert away == [[{"role": "end", "share": 1.0, "aligned": 0.0}]]
    assert cross_roles(only(cells), TOKENS, target, [])[0][0]["aligned"] == 0.0, "without an alignment"


def test_words_and_marks():
    assert words_of(["<s>", "▁a", "b", "▁c", "</s>"]).tolist() == [-1, 0, 0, 1, -1]
    assert words_of([">>de<<", "a", "<0xEA>"]).tolist() == [0, 0, 0]
    assert is_special("[SEP]") and is_special("</s>") and not is_special("<0x41>") and not is_special("<")


def test_a_sentence_of_two_tokens_says_nothing():
    assert self_roles(only(np.eye(2)), ["▁a", "</s>"], causal=False) == [[{"role": None, "share": 0.0}]]


def test_a_model_without_attention_has_no_heads():
    assert self_roles(np.zeros((0, 0, SIZE, SIZE)), TOKENS, causal=True) == []
    assert cross_roles(np.zeros((0, 0, 2, SIZE)), TOKENS, ["▁x", "</s>"], []) == []


def test_a_look_has_the_roles_of_all_its_heads(look):
    data = json.loads(to_json(look))
    assert {part: np.shape(data["roles"][part]) for part in data["roles"]} == {
        part: getattr(look, part).shape[:2] for part in ("encoder", "decoder", "cross")
    }
    assert all("aligned" in head for heads in data["roles"]["cross"] for head in heads)

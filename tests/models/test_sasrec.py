"""SASRec and BERT4Rec beside plain torch, and what must not matter to them."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from heed.data.packing import offsets_of
from heed.models.bert4rec import BERT4Rec, BERT4RecConfig
from heed.models.sasrec import SASRec, SASRecConfig

ITEMS, DIM, HEADS, HIDDEN = 23, 12, 3, 20
SIZES = {"items": ITEMS, "dim": DIM, "heads": HEADS, "hidden": HIDDEN, "layers": 2, "max_length": 9}
KINDS = ["pre", "post", "paper", "bert4rec"]


def build(kind: str, seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    model = BERT4Rec(BERT4RecConfig(**SIZES)) if kind == "bert4rec" else SASRec(SASRecConfig(**SIZES, norm=kind))
    for weight in model.parameters():
        nn.init.normal_(weight, 0.0, 0.2)
    return model.double().eval()


def plain(model: nn.Module, kind: str, items: torch.Tensor) -> torch.Tensor:
    """The states of one history, written out with torch's own functions."""
    w = dict(model.named_parameters())
    eps = model.config.norm_eps

    def norm(x, name):
        return F.layer_norm(x, (DIM,), w[f"{name}.weight"], w[f"{name}.bias"], eps)

    def linear(x, name):
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    def attention(query, memory, name):
        q, k, v = (linear(x, f"{name}.{part}").view(-1, HEADS, DIM // HEADS).transpose(0, 1)
                   for part, x in (("q", query), ("k", memory), ("v", memory)))  # fmt: skip
        scores = q @ k.mT / math.sqrt(DIM // HEADS)
        if kind != "bert4rec":
            scores = scores.masked_fill(torch.ones(len(query), len(query)).triu(1).bool(), -math.inf)
        return linear((scores.softmax(-1) @ v).transpose(0, 1).reshape(len(query), DIM), f"{name}.out")

    def mlp(x, name):
        return linear(F.gelu(linear(x, f"{name}.up")), f"{name}.down")

    x = (
        w["items.weight"][items] * (math.sqrt(DIM) if kind == "paper" else 1)
        + w["positions.places.weight"][: len(items)]
    )
    x = norm(x, "norm") if kind in ("post", "bert4rec") else x
    for i in range(2):
        a, m = f"stack.layers.{i}.attention", f"stack.layers.{i}.mlp"
        if kind == "pre":
            y = norm(x, f"{a}.norm")
            x = x + attention(y, y, f"{a}.body")
            x = x + mlp(norm(x, f"{m}.norm"), f"{m}.body")
        elif kind == "paper":  # of the authors' code: Q = norm(x), keys and values x, and what is added to is normed
            y = norm(x, f"{a}.norm")
            x = norm(y + attention(y, x, f"{a}.body"), f"{m}.norm")
            x = x + mlp(x, f"{m}.body")
        else:
            x = norm(x + attention(x, x, f"{a}.body"), f"{a}.norm")
            x = norm(x + mlp(x, f"{m}.body"), f"{m}.norm")
    if kind in ("pre", "paper"):
        x = norm(x, "stack.norm")
    return norm(F.gelu(linear(x, "head.out")), "head.norm") if kind == "bert4rec" else x


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_what_plain_torch_computes(kind):
    model = build(kind)
    items = torch.tensor([4, 22, 7, 7, 0, 13])
    states = model.item_states(items[None])[0]
    torch.testing.assert_close(states, plain(model, kind, items), rtol=1e-10, atol=1e-10)
    scores = states @ model.items.weight[:ITEMS].T + (model.bias if kind == "bert4rec" else 0)
    torch.testing.assert_close(model.item_scores(states), scores, rtol=1e-10, atol=1e-10)
    assert model.item_scores(states).shape == (6, ITEMS)  # a masked item is never recommended


@pytest.mark.parametrize("kind", KINDS)
def test_packed_padded_and_alone_are_the_same(kind):
    model, random = build(kind), np.random.default_rng(1)
    rows = [torch.from_numpy(random.integers(0, ITEMS, length)) for length in (5, 1, 9, 3)]
    alone = [model.item_states(row[None])[0] for row in rows]
    packed = model.item_states(torch.cat(rows)[None], offsets_of(np.array([5, 1, 9, 3])))[0]
    torch.testing.assert_close(packed, torch.cat(alone), rtol=1e-10, atol=1e-10)
    valid = torch.arange(9) < torch.tensor([[5], [1], [9], [3]])
    for filler in (0, ITEMS):  # what stands at padding does not matter
        padded = torch.full((4, 9), filler)
        padded[valid] = torch.cat(rows)
        torch.testing.assert_close(model.item_states(padded, valid)[valid], torch.cat(alone), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_the_future_changes_nothing_in_a_causal_model(kind):
    model, items = build(kind), torch.tensor([[3, 5, 8, 1, 9]])
    changed = items.clone()
    changed[0, 3:] = torch.tensor([20, 21])
    one, other, short = (model.item_states(own)[0, :3] for own in (items, changed, items[:, :3]))
    assert torch.allclose(one, other, atol=1e-12) == (kind != "bert4rec")
    assert torch.allclose(one, short, atol=1e-12) == (kind != "bert4rec")


def test_a_history_beyond_the_positions_is_refused():
    with pytest.raises(ValueError, match="a history has 10 items, but the model has 9 positions"):
        build("post").item_states(torch.zeros(1, 10, dtype=torch.int64))

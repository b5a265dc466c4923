"""Encoders between heed and transformers: equal numbers for every head, from the embeddings to the loss, and weights to the bit."""

import json
import warnings
from contextlib import contextmanager
from functools import cache

import pytest
import torch
import torch.nn.functional as F
import transformers

from heed.convert import huggingface
from heed.loading import open_package
from heed.models.bigbird import BigBird
from heed.models.encoder_heads import HEADS
from heed.nn.attention import record
from heed.vocabularies import files
from tests.convert.encoders import CASES, all_states, draw, key_counts, package

FULL, LONG = 20, 61  # lengths: full attention in every model, sparse attention in BigBird
IGNORED = -100


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A model of ours in float64, that of transformers from the folder of ours, and the folder: by case, each made once."""

    @cache
    def make(case):
        own, folder = package(*case), tmp_path_factory.mktemp("-".join(case)) / "out"
        huggingface.write(own, folder)
        assert json.loads((folder / "config.json").read_text())["architectures"] == [CASES[case]]
        return own._replace(model=own.model.double()), theirs(folder, CASES[case]), folder

    return make


@pytest.fixture(params=CASES, ids="-".join)
def pair(request, made):
    return made(request.param)


def theirs(folder, name):
    kind = getattr(transformers, name)
    return kind.from_pretrained(folder, dtype=torch.float64, attn_implementation="eager").eval()


def close(one, other):
    torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


def batch(own, head, length, padded):
    """Tokens, where they are not padding, and segments, as the head of a model takes them."""
    special, shape = own.processors["text"].special, (3, 2, length) if head == "choice" else (3, length)
    tokens, segments = draw(*shape), (torch.arange(length) > 6).long().expand(shape)
    lengths = torch.tensor([length, length - 9, 11])[(slice(None), *[None] * (len(shape) - 1))]
    valid = (torch.arange(length) < lengths if padded else torch.ones(1, dtype=torch.bool)).expand(shape)
    tokens[..., 0], tokens[..., 6] = special.before[0], special.last
    if own.model.config.segments == 1:
        segments = torch.zeros_like(segments)
    return tokens.masked_fill(~valid, special.pad), valid, segments


def targets(own, head, tokens, valid):
    """The labels of a loss, as transformers takes them."""
    count = {"classification": 3, "tokens": 5, "pair": 2, "choice": 2, "replaced": 2}.get(head, 400)
    drawn = draw(*tokens.shape, seed=3) % count
    if head in ("classification", "pair", "choice"):
        return {"labels": drawn.flatten(1)[:, 0]}
    if head == "answer":
        return {"start_positions": torch.tensor([8, 7, 9]), "end_positions": torch.tensor([9, 9, 10])}
    if head == "replaced":
        return {"labels": drawn}
    labels = {"labels": drawn.masked_fill(~valid | (drawn % 3 == 0 if head != "causal" else ~valid), IGNORED)}
    order = "sentence_order_label" if type(own.model).__name__ == "Albert" else "next_sentence_label"
    return labels | ({order: torch.tensor([0, 1, 1])} if head == "pretraining" else {})


def outputs(model, head, tokens, valid, segments):
    """What a model of ours predicts, by the names of transformers."""
    inputs = (tokens, valid, segments)
    if head == "none":
        states = model.encode_text(*inputs)
        pooled = {} if model.pooler is None else {"pooler_output": model.pooler(states)}
        return {"last_hidden_state": states, **pooled}
    if head == "pretraining":
        states = model.encode_text(*inputs)
        order = "sop_logits" if type(model).__name__ == "Albert" else "seq_relationship_logits"
        return {"prediction_logits": model.project(model.word_states(states)), order: model.classify_pair(states)}
    if head == "pair":
        return {"logits": model.classify_pair(model.encode_text(*inputs))}
    if head == "answer":
        found = model.find_answer(*inputs)
        return {"start_logits": found[..., 0], "end_logits": found[..., 1]}
    method = {
        "masked": "predict_words", "causal": "predict_words", "classification": "classify_text", "tokens": "classify_tokens",
        "choice": "choose", "replaced": "detect_replaced",
    }[head]  # fmt: skip
    return {"logits": getattr(model, method)(*inputs)}


def loss(head, found, valid, labels):
    """The loss of our predictions, as transformers defines it."""
    if head == "none":
        return None
    if head == "answer":
        return (F.cross_entropy(found["start_logits"], labels["start_positions"])
                + F.cross_entropy(found["end_logits"], labels["end_positions"])) / 2  # fmt: skip
    if head == "replaced":
        return F.binary_cross_entropy_with_logits(found["logits"][valid], labels["labels"][valid].double())
    words = found.get("prediction_logits", found.get("logits"))
    goal = labels["labels"]
    if head == "causal":
        words, goal = words[:, :-1], goal[:, 1:]
    first = F.cross_entropy(words.flatten(0, -2), goal.flatten(), ignore_index=IGNORED)
    if head == "pretraining":
        [pairs] = [own for name, own in found.items() if name != "prediction_logits"]
        [order] = [own for name, own in labels.items() if name != "labels"]
        first = first + F.cross_entropy(pairs, order)
    return first


@pytest.mark.parametrize("padded", [False, True], ids=["whole", "padded"])
def test_predictions_losses_states_and_attentions_are_theirs(pair, padded, monkeypatch):
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)  # they have some losses in single precision
    own, other, _ = pair
    sparse = type(own.model) is BigBird and own.model.config.head != "causal"  # theirs would see what comes later
    for length in (LONG, FULL) if sparse else (FULL,):
        check_model(own, other, length, padded)


def check_model(own, other, length, padded):
    head = own.model.config.head
    tokens, valid, segments = batch(own, head, length, padded)
    labels = {} if head == "none" else targets(own, head, tokens, valid)
    if type(own.model) is BigBird:
        other.base_model.set_attention_type("block_sparse")  # a short text has switched it off for good
        if length == FULL:
            other(tokens, attention_mask=valid.long())  # switches it off, with modules whose outputs are not collected
    with torch.inference_mode(), attentions(other) as their_maps:
        expected = other(
            tokens, attention_mask=valid.long(), token_type_ids=segments, output_hidden_states=True, **labels
        )
        with all_states(own.model) as states:
            found = outputs(own.model, head, tokens, valid, segments)
        with record(own.model) as maps:
            outputs(own.model, head, tokens, valid, segments)
    others = {name for name, value in expected.items() if value is not None}
    assert found.keys() == others - {"loss", "past_key_values", "hidden_states"}
    for name, value in found.items():
        at = valid if value.shape[: valid.ndim] == valid.shape else ...
        close(value[at], expected[name][at])
    if head != "none":
        assert expected.loss.dtype is torch.float64
        close(loss(head, found, valid, labels), expected.loss)
    valid = valid.flatten(0, -2)  # each choice is a text
    assert len(maps) == len(states) - 1 == own.model.config.layers
    for mine, their in zip(states, expected.hidden_states, strict=True):
        close(mine[valid], their[:, :length][valid])
    counts = sparse_counts(own.model.config, length) if length == LONG else 1
    for mine, their in zip(maps, their_maps, strict=True):
        their = counts * their[:, :, :length, :length]  # they show one weight of a block that counts several times
        close(mine.transpose(1, 2)[valid], their.transpose(1, 2)[valid])


@contextmanager
def attentions(model):
    """Within this block, collect what the attentions of a model of transformers show."""
    maps = []
    own = [part for name, part in model.named_modules() if name.endswith((".self", "albert_layers.0.attention"))]
    hooks = [part.register_forward_hook(lambda *call: maps.append(call[-1][1])) for part in own]
    try:
        yield maps
    finally:
        for hook in hooks:
            hook.remove()


def sparse_counts(config, length):
    """How often each key counts: outside of training the first block stands for each random one."""
    first = torch.zeros(config.heads, -(-length // config.block) - 2, config.random_blocks, dtype=torch.long)
    return key_counts(first, config.block)[:, :length, :length]


@pytest.mark.parametrize("writer", ["heed", "transformers"])
def test_a_folder_is_read_to_the_bit(pair, writer, tmp_path):
    own, other, folder = pair
    if writer == "transformers":
        other.save_pretrained(tmp_path)
        files.write(tmp_path, own.processors["text"].files)
        folder = tmp_path
    back = open_package(folder)
    assert (back.model.config, type(back.model)) == (own.model.config, type(own.model))
    weights = own.model.state_dict()
    assert all(torch.equal(weight.double(), weights[name]) for name, weight in back.model.state_dict().items())
    assert back.processors["text"].key() == own.processors["text"].key()
    if "labels" in own.processors:
        assert back.processors["labels"].names == own.processors["labels"].names


@pytest.mark.parametrize("pair", list({case[1]: case for case in CASES}.values()), indirect=True, ids="-".join)
def test_the_code_on_the_card_runs(pair, monkeypatch, capsys):
    _, other, folder = pair
    text = (folder / "README.md").read_text("utf-8")
    monkeypatch.chdir(folder)
    assert f"as a {type(other).__name__}." in text
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of transformers about itself
        exec(text.split("```python\n")[1].split("```")[0], {})
    assert capsys.readouterr().out.strip()


def test_every_head_is_tested():
    assert {head for _, head in CASES} == {*HEADS} - {"joint"}

"""BigBird's sparse attention beside that of transformers: the blocks of training and of evaluation, and what is not there."""

import pytest
import torch
import transformers
from transformers.models.big_bird.modeling_big_bird import BigBirdBlockSparseAttention

from heed.convert import huggingface
from heed.nn.attention import record
from tests.convert.encoders import all_states, draw, key_counts, package

SPARSE = {"dropout": 0.0, "attention_dropout": 0.0}


def both(tmp_path, **changes):
    own = package("bigbird", "none", **SPARSE, **changes)
    huggingface.write(own, tmp_path / "out")
    theirs = transformers.BigBirdModel.from_pretrained(tmp_path / "out", dtype=torch.float64)
    return own.model.double(), theirs


@pytest.fixture
def drawn(monkeypatch):
    """The random blocks of transformers, layer by layer."""
    found, usual = [], BigBirdBlockSparseAttention._create_rand_mask_from_inputs

    def create(one, other, random, *rest):
        found.append(random[0])
        return usual(one, other, random, *rest)

    monkeypatch.setattr(BigBirdBlockSparseAttention, "_create_rand_mask_from_inputs", staticmethod(create))
    return found


def compare(ours, theirs, length, drawn, padded=True):
    """States and attentions of all layers. Of a block that counts several times, transformers shows one weight and we their sum."""
    tokens = draw(2, length)
    valid = torch.arange(length) < torch.tensor([[length], [length - 20 if padded else length]])
    with torch.no_grad():
        expected = theirs(
            tokens.masked_fill(~valid, 0),
            attention_mask=valid.long(),
            output_attentions=True,
            output_hidden_states=True,
        )
        with record(ours) as maps:
            ours.encode_text(tokens, valid)
        with all_states(ours) as states:
            ours.encode_text(tokens, valid)
    for mine, other in zip(states, expected.hidden_states, strict=True):
        torch.testing.assert_close(mine[valid], other[:, :length][valid], rtol=0, atol=1e-10)
    counts = [key_counts(random, ours.config.block)[:, :length, :length] for random in drawn] or [1] * len(maps)
    for mine, other, count in zip(maps, expected.attentions, counts, strict=True):
        other = count * other[:, :, :length, :length]
        torch.testing.assert_close(mine.transpose(1, 2)[valid], other.transpose(1, 2)[valid], rtol=0, atol=1e-10)
    return counts


@pytest.mark.parametrize("mode", ["train", "eval"])
@pytest.mark.parametrize("length", [61, 64])
def test_states_and_attentions_are_theirs(tmp_path, drawn, length, mode):
    ours, theirs = both(tmp_path)
    for padded in (True, False):
        drawn.clear()
        counts = compare(getattr(ours, mode)(), getattr(theirs, mode)(), length, drawn, padded)
        assert all((count[:, 4:-4, :4] == (1 if mode == "train" else 3)).all() for count in counts)


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_the_random_blocks_of_the_papers_lengths_are_theirs(tmp_path, drawn, mode):
    ours, theirs = both(tmp_path, block=64, random_blocks=3, max_length=1024, layers=1)
    [counts] = compare(getattr(ours, mode)(), getattr(theirs, mode)(), 1024, drawn)
    assert counts.max() == (
        2 if mode == "train" else 4
    )  # in training some blocks near the end are drawn that are seen anyway


def test_full_attention_can_be_chosen_and_is_theirs(tmp_path, drawn):
    ours, theirs = both(tmp_path, sparse=False)
    for padded in (True, False):
        compare(ours.eval(), theirs.eval(), 64, drawn, padded)
    assert not drawn


def test_what_transformers_does_not_have_is_not_written(tmp_path):
    with pytest.raises(ValueError, match="fixed_random is true, but transformers uses random blocks only in training"):
        huggingface.write(package("bigbird", "none", fixed_random=True), tmp_path / "out")
    with pytest.raises(ValueError, match="but transformers has no global tokens outside of the text"):
        huggingface.write(package("bigbird", "none", global_tokens=2), tmp_path / "out")


def test_an_answer_is_looked_for_after_the_question():
    own = package("bigbird", "answer")
    tokens = draw(2, 12)
    with pytest.raises(ValueError, match=r"a text has no separator \(id \d+\) after the question"):
        own.model.find_answer(tokens)
    tokens[:, 5] = own.processors["text"].special.last
    best = own.model.find_answer(tokens).max(dim=2).values
    assert (best[:, 1:6] < -1e5).all() and (best[:, 6:] > -1e5).all() and (best[:, 0] > -1e5).all()

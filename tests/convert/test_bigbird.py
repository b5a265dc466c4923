"""BigBird's sparse attention beside that of transformers: the blocks of training and of evaluation, and what is not there."""

import pytest
import torch
import transformers

from heed.convert import huggingface
from heed.nn.attention import record
from tests.convert.encoders import draw, package

SPARSE = {"dropout": 0.0, "attention_dropout": 0.0}


def both(tmp_path, **changes):
    own = package("bigbird", "none", **SPARSE, **changes)
    huggingface.write(own, tmp_path / "out")
    theirs = transformers.BigBirdModel.from_pretrained(tmp_path / "out", dtype=torch.float64)
    return own.model.double(), theirs


def compare(ours, theirs, length, padded=True):
    tokens = draw(2, length)
    valid = torch.arange(length) < torch.tensor([[length], [length - 20 if padded else length]])
    with torch.no_grad():
        expected = theirs(tokens.masked_fill(~valid, 0), attention_mask=valid.long(), output_attentions=True)
        with record(ours) as maps:
            ours.encode_text(tokens, valid)
        found = ours.encode_text(tokens, valid)
    torch.testing.assert_close(found[valid], expected.last_hidden_state[valid], rtol=0, atol=1e-10)
    return [own[:, :, :, : tokens.shape[1]].transpose(1, 2)[valid] for own in maps], [
        own[:, :, :length, :length].transpose(1, 2)[valid] for own in expected.attentions
    ]


@pytest.mark.parametrize("length", [61, 64])
def test_states_and_attentions_in_training_are_theirs(tmp_path, length):
    ours, theirs = both(tmp_path)
    for mine, other in zip(*compare(ours.train(), theirs.train(), length), strict=True):
        torch.testing.assert_close(mine, other, rtol=0, atol=1e-10)


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_the_random_blocks_of_the_papers_lengths_are_theirs(tmp_path, mode):
    ours, theirs = both(tmp_path, block=64, random_blocks=3, max_length=1024, layers=1)
    (mine,), (other,) = compare(getattr(ours, mode)(), getattr(theirs, mode)(), 1024)
    torch.testing.assert_close(mine.sum(-1), torch.ones_like(mine.sum(-1)), rtol=0, atol=1e-10)
    assert (mine > other - 1e-10).all(), (
        "of a block that is drawn twice, transformers shows one weight and we their sum"
    )


def test_outside_of_training_the_first_block_counts_once_more_for_each_random_one(tmp_path):
    """Transformers shows the weight of one of the copies, and we their sum."""
    ours, theirs = both(tmp_path)
    for mine, other in zip(*compare(ours.eval(), theirs.eval(), 64, padded=False), strict=True):
        mine, other = (part.unflatten(0, (2, 64))[:, 4:-4] for part in (mine, other))
        torch.testing.assert_close(mine[..., :4], 3 * other[..., :4], rtol=0, atol=1e-10)
        torch.testing.assert_close(mine[..., 4:], other[..., 4:], rtol=0, atol=1e-10)


def test_full_attention_can_be_chosen_and_is_theirs(tmp_path):
    ours, theirs = both(tmp_path, sparse=False)
    for mine, other in zip(*compare(ours.eval(), theirs.eval(), 64), strict=True):
        torch.testing.assert_close(mine, other, rtol=0, atol=1e-10)


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

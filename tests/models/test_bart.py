"""What BART alone has. That it computes what Hugging Face's does is in tests/convert."""

import dataclasses

import pytest
import torch

from heed.models.bart import Bart, BartConfig

SMALL = {
    "vocab_size": 31,
    "dim": 16,
    "heads": 2,
    "hidden": 24,
    "encoder_layers": 2,
    "decoder_layers": 1,
    "max_length": 12,
}
CONFIG = BartConfig(**SMALL)
LABELLED = BartConfig(**SMALL, labels=4, first=2, last=2, init_std=0.3)


def test_two_rows_stand_before_the_first_place_and_are_never_read():
    model = Bart(CONFIG)
    model(torch.randint(3, 31, (1, 12)), torch.randint(3, 31, (1, 12))).sum().backward()
    for side in (model.positions, model.source_positions):
        assert side.places.weight.shape == (14, 16)
        assert (side.places.weight.grad[:2] == 0).all()
        assert (side.places.weight.grad[2:] != 0).any(dim=1).all()


def test_each_side_has_positions_and_a_norm_of_its_own():
    model = Bart(CONFIG).eval()
    source, target = torch.tensor([[4, 5]]), torch.tensor([[4, 5]])
    memory, seen = model.encode(source), model(source, target)
    model.norm.weight.data.mul_(2.0)
    model.positions.places.weight.data.add_(torch.randn(14, 16))
    assert torch.equal(model.encode(source), memory)
    assert not torch.allclose(model(source, target), seen)
    model.source_norm.weight.data.mul_(2.0)
    assert not torch.allclose(model.encode(source), memory)


def test_embeddings_are_normed():
    model = Bart(dataclasses.replace(CONFIG, scaled=True)).eval()
    x = model._embed(model.tokens, torch.tensor([[5, 6]]), model.positions(3, 2), model.norm)
    raw = model.tokens.weight[[5, 6]] * 4 + model.positions.places.weight[5:7]
    torch.testing.assert_close(x[0], model.norm(raw))
    torch.testing.assert_close(x.mean(dim=-1), torch.zeros(1, 2), atol=1e-6, rtol=0)


def test_the_bias_of_a_checkpoint_is_kept_and_not_learned():
    model = Bart(CONFIG)
    assert "bias" in model.state_dict()
    assert "bias" not in dict(model.named_parameters())


def test_a_classifier_has_bart_and_a_head_in_place_of_the_bias():
    bart, classifier = set(Bart(CONFIG).state_dict()), set(Bart(LABELLED).state_dict())
    assert bart - classifier == {"bias"}
    assert classifier - bart == {"head.dense.weight", "head.dense.bias", "head.out.weight", "head.out.bias"}


@torch.no_grad()
def test_what_shares_a_batch_with_a_text_does_not_change_its_label():
    torch.manual_seed(0)
    model = Bart(LABELLED).double().eval()
    texts = [[0, 5, 6, 2], [0, 7, 8, 9, 10, 11, 2], [0, 2]]
    source = torch.tensor([text + [1] * (7 - len(text)) for text in texts])
    valid = torch.tensor([[True] * len(text) + [False] * (7 - len(text)) for text in texts])
    together = model.classify_text(source, valid)
    assert together.shape == (3, 4)
    for row, text in zip(together, texts, strict=True):
        torch.testing.assert_close(model.classify_text(torch.tensor([text]))[0], row, rtol=0, atol=1e-10)


@torch.no_grad()
def test_texts_with_different_numbers_of_end_tokens_share_a_batch():
    torch.manual_seed(0)
    model = Bart(LABELLED).double().eval()
    source = torch.tensor([[0, 5, 2, 2, 6, 2], [0, 5, 6, 7, 8, 2]])
    for i in range(2):
        torch.testing.assert_close(
            model.classify_text(source)[i], model.classify_text(source[i : i + 1])[0], rtol=0, atol=1e-10
        )


@torch.no_grad()
def test_an_end_mark_in_the_padding_is_none():
    torch.manual_seed(0)
    model = Bart(LABELLED).double().eval()
    source, valid = torch.tensor([[0, 5, 2, 2, 2]]), torch.tensor([[True, True, True, False, False]])
    torch.testing.assert_close(
        model.classify_text(source, valid), model.classify_text(source[:, :3]), rtol=0, atol=1e-10
    )


def test_a_text_without_an_end_mark_is_told():
    with pytest.raises(ValueError, match=r"a text has no end token \(id 2\), whose state is classified"):
        Bart(LABELLED).classify_text(torch.tensor([[0, 5, 2], [0, 5, 6]]))

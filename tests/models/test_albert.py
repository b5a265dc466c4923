"""ALBERT: its sizes are those that were published, and impossible ones are refused."""

import pytest
import torch

from heed.models.albert import Albert, AlbertConfig

SIZES = {"vocab_size": 9, "dim": 4, "heads": 2, "hidden": 4, "layers": 2, "embedding": 3}


def test_the_default_is_albert_base_2():
    config = AlbertConfig(vocab_size=30_000, head="none")
    assert (config.layers, config.dim, config.heads, config.hidden, config.embedding) == (12, 768, 12, 3072, 128)
    assert sum(weight.numel() for weight in Albert(config).parameters()) == 11_683_584


def test_the_order_of_two_sentences_is_one_of_two():
    model = Albert(AlbertConfig(**SIZES, head="pretraining")).eval()
    assert model.classify_pair(model.encode_text(torch.tensor([[1, 2, 3], [4, 5, 6]]))).shape == (2, 2)


def test_a_model_with_labels_is_a_classifier_unless_it_labels_tokens():
    assert AlbertConfig(**SIZES, labels=3).head == "classification"
    assert AlbertConfig(**SIZES, labels=3, head="tokens").head == "tokens"
    for more, words in (
        ({"embedding": 0}, "embedding is 0; it must be at least 1"),
        ({"head": "tail"}, "the head is 'tail'; there are"),
        ({"head": "classification"}, "the head is 'classification', but there are no labels"),
        ({"groups": 0}, "groups is 0; it must be at least 1"),
        ({"groups": 3}, "groups is 3, but there are 2 layers: lower it"),
    ):
        with pytest.raises(ValueError, match=words):
            AlbertConfig(**{**SIZES, **more})

"""The words that an ELECTRA believes replaced."""

import pytest
import torch

from heed.loading import load, write_package
from heed.products.replaced_detector import ReplacedDetector
from tests.convert.encoders import draw, package
from tests.products.test_token_products import clear

TEXTS = ["the dog, (who) sees a red-house.", "she never finds the street, 나는 책을.", "x"]


def discriminator(head):
    """An ELECTRA that believes half of all tokens replaced."""
    own = clear(package("electra", head))
    own.model.head["replaced"].out.bias -= own.model.detect_replaced(draw(4, 20)).median()
    return own


@pytest.mark.parametrize("head", ["joint", "replaced"])
def test_a_word_is_replaced_if_one_of_its_subwords_is(head):
    own = discriminator(head)
    detector, vocabulary = ReplacedDetector.open([own], ["electra"]), own.processors["text"]
    marked = set()
    for text, found in zip(TEXTS, detector.tag(TEXTS), strict=True):
        [pieces] = vocabulary.encode_aligned([text])
        ids = [vocabulary.special.first, *pieces.ids, vocabulary.special.last]
        each = own.model.detect_replaced(torch.tensor([ids])).sigmoid()[0, 1:-1].tolist()
        for word in found.words:
            inside = (p for p, span in zip(each, pieces.spans, strict=True) if word.start <= span[0] < word.end)
            p = max(inside)
            marked.add(p > 0.5)
            assert (word.label, word.probability) == (
                "S-REPLACED" if p > 0.5 else "O",
                pytest.approx(max(p, 1 - p), abs=1e-4),
            )
        words = [(word.start, word.end) for word in found.words if word.label != "O"]
        assert [(one.start, one.end) for one in found.entities] == words, "each word by itself"
    assert marked == {True, False}


def test_a_folder_is_asked_by_heed_tag_and_a_model_without_the_head_is_refused(tmp_path):
    write_package(package("electra", "joint")._replace(task="replaced-tokens"), tmp_path)
    assert isinstance(load(tmp_path, "cpu", verb="tag"), ReplacedDetector)
    with pytest.raises(
        ValueError, match=r"a has no replaced-token detection head \(its head is 'masked'\): it cannot tag"
    ):
        ReplacedDetector.open([package("electra", "masked")], ["a"])

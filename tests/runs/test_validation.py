"""Validation of a model that has fewer places than some validation texts have subwords."""

import pytest
import torch
from heed.runs.validation import Translating

from heed.data.readers import Line
from heed.data.synthetic import phrasebook
from heed.models.transformer import Transformer, TransformerConfig
from heed.vocabularies.sentencepiece import SubwordsConfig, learn


@pytest.fixture(scope="module")
def lines():
    pairs = list(phrasebook.pairs("train", 30))
    long = [Line(" ".join(p.source for p in pairs[:3]), " ".join(p.target for p in pairs[:3]), "long")]
    return [*long, *(Line(pair.source, pair.target, str(i)) for i, pair in enumerate(pairs))]


def test_texts_that_are_too_long_do_not_count(lines):
    own = learn([text for line in lines for text in line[:2]], SubwordsConfig(), 500)
    torch.manual_seed(1)
    model = Transformer(TransformerConfig(len(own), dim=8, heads=2, hidden=8, max_length=20)).eval()
    all_of_them, short = (Translating(some, (own, own), budget=100, samples=1) for some in (lines, lines[1:]))
    assert all_of_them.too_long(20) == 1 + short.too_long(20)
    assert all_of_them.loss(model) == short.loss(model)
    assert all_of_them.alignment_rows(model) == short.alignment_rows(model)

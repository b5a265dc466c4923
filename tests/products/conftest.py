"""A small translator that knows nothing but says different things, in float64."""

import pytest
import torch
from torch import nn

from heed.decoding.config import DecodingConfig
from heed.models.transformer import Transformer, TransformerConfig
from heed.products.translator.translator import Translator
from heed.vocabularies.sentencepiece import BYTES, LAST, SubwordsConfig, learn
from tests import fixed_pairs

MOST = 64


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Models this small only lose time by sharing their work."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def pairs():
    return list(fixed_pairs.pairs("train", 200))


@pytest.fixture(scope="session")
def vocabulary(pairs):
    return learn([text for pair in pairs for text in (pair.source, pair.target)], SubwordsConfig(), 600)


def drawn(vocabulary, seed, max_length=MOST):
    """A model that cares about its past and its source, writes several words, and ends now and then."""
    torch.manual_seed(seed)
    config = TransformerConfig(
        vocab_size=len(vocabulary), dim=32, heads=2, hidden=48, encoder_layers=1, decoder_layers=2, max_length=max_length,
        norm="pre", tied="none", output_bias=True,
    )  # fmt: skip
    model = Transformer(config).double().eval().requires_grad_(False)
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.3)
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            nn.init.ones_(module.weight)
    for layer in model.decoder.layers:
        layer.attention.body.out.weight *= 2
    model.bias[LAST] += 4
    model.bias[[i for i, piece in enumerate(vocabulary.pieces(range(len(vocabulary)))) if piece.startswith("▁")]] += 1
    model.bias[LAST + 1 : LAST + 1 + BYTES] -= 20  # bytes in any order are no text
    return model


@pytest.fixture(scope="session")
def make(vocabulary):
    """Makes translators: the same seed, the same weights."""

    def make(*seeds, max_length=MOST, **options):
        models = [drawn(vocabulary, seed, max_length) for seed in seeds]
        return Translator(models, (vocabulary, vocabulary), decoding=DecodingConfig(beam=3, max_length=8), **options)

    return make


@pytest.fixture(scope="session")
def texts(pairs):
    return [pair.source for pair in pairs[:5]]


@pytest.fixture(scope="session")
def translator(make, texts):
    made = make(16, max_source=48)
    found = made.translate(texts)
    assert len({t.text for t in found}) == len(texts)
    assert len({len(t.tokens) for t in found}) > 3
    assert {t.tokens[-1] == "</s>" for t in found} == {True, False}
    return made

"""A recurrent translator is looked into as any other, as far as there is something to see."""

import numpy as np
import pytest
import torch
from torch import nn

from heed.decoding.config import DecodingConfig
from heed.models.seq2seq import Seq2Seq, Seq2SeqConfig
from heed.products.translator.attention_trace import AlignmentRows, choose_rows
from heed.products.translator.translator import Translator


@pytest.fixture(scope="module")
def recurrent(vocabulary):
    """Makes translators that know nothing."""

    def make(attention):
        torch.manual_seed(0)
        sizes = {"dim": 8, "hidden": 12, "decoder_layers": 2, "max_length": 64}
        model = (
            Seq2Seq(Seq2SeqConfig(len(vocabulary), attention=attention, **sizes)).double().eval().requires_grad_(False)
        )
        for weight in model.parameters():
            nn.init.normal_(weight, std=0.4)
        return Translator([model], (vocabulary, vocabulary), decoding=DecodingConfig(beam=3, max_length=8))

    return make


def test_its_attention_is_one_layer_of_one_head(recurrent, texts):
    found = recurrent("additive").translate(texts[0])
    s, t = len(found.source_tokens), len(found.tokens)
    shapes = {name: maps.shape for name, maps in found.attentions.items()}
    assert shapes == {"encoder": (0, 0, s, s), "decoder": (0, 0, t, t), "cross": (1, 1, t, s)}
    np.testing.assert_allclose(found.attentions["cross"].sum(-1), 1, atol=1e-6)


def test_words_are_aligned_by_the_one_attention_there_is(recurrent, pairs):
    """Also where nothing says in which of the decoder's layers."""
    translator, pair = recurrent("additive"), pairs[0]
    links = translator.align_pairs([pair.source], [pair.target])[0]
    assert translator.alignment_rows == AlignmentRows(1, after=False) and len(links) == len(pair.target.split())
    look = translator.look(pair.source, pair.target)
    assert look.alignment == links
    assert (look.states["encoder"].shape, look.states["decoder"].shape) == (
        (len(look.source), 12),
        (len(look.target), 12),
    )


def test_without_attention_nothing_is_aligned(recurrent, pairs):
    translator, pair = recurrent("off"), pairs[0]
    ids = translator.encode_pairs([pair.source], [pair.target])
    assert choose_rows(translator.model, ids, (translator.source, translator.target)) == AlignmentRows(0, after=False)
    assert translator.look(pair.source, pair.target).alignment == []
    with pytest.raises(ValueError, match="no attention to its source"):
        translator.align_pairs([pair.source], [pair.target])


def test_what_shares_a_batch_does_not_matter(recurrent, texts):
    translator = recurrent("dot")
    together, alone = translator.translate(texts), [translator.translate(text) for text in texts]
    assert [t.text for t in together] == [t.text for t in alone]
    for one, other in zip(together, alone, strict=True):
        assert one.token_scores == pytest.approx(other.token_scores, abs=1e-10)

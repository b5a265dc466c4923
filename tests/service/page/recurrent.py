"""A recurrent translator that knows nothing but says different things."""

import torch
from torch import nn

from heed.decoding.config import DecodingConfig
from heed.models.seq2seq import Seq2Seq, Seq2SeqConfig
from heed.products.translator.translator import Translator
from heed.vocabularies.sentencepiece import BYTES, LAST


def recurrent(vocabulary, attention="additive"):
    torch.manual_seed(3)
    config = Seq2SeqConfig(len(vocabulary), attention=attention, dim=8, hidden=12, max_length=64)
    model = Seq2Seq(config).double().eval().requires_grad_(False)
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.8)
    model.bias[LAST] += 1
    model.bias[[i for i, piece in enumerate(vocabulary.pieces(range(len(vocabulary)))) if piece.startswith("▁")]] += 1
    model.bias[LAST + 1 : LAST + 1 + BYTES] -= 20  # bytes in any order are no text
    return Translator([model], (vocabulary, vocabulary), decoding=DecodingConfig(beam=3, max_length=8), max_source=48)

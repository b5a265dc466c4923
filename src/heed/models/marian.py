"""Marian (Junczys-Dowmunt et al., 2018): the Transformer of the OPUS-MT translators."""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

from heed.config import from_data
from heed.models.encoder_decoder import ACTIVATIONS, EncoderDecoder, check, layer, source_size
from heed.models.system import System
from heed.models.transformer import PRESETS
from heed.nn import init
from heed.nn.positions import SinusoidalHalves
from heed.nn.transformer import PostNorm, Stack


@dataclass(frozen=True)
class MarianConfig:
    vocab_size: int = from_data()
    source_vocab_size: int | None = from_data(None)
    dim: int = 512  # width of embeddings and layers
    heads: int = 8  # attention heads per layer
    hidden: int = 2048  # width of the feed-forward network
    encoder_layers: int = 6
    decoder_layers: int = 6
    max_length: int = 512  # maximum text length in tokens, including special tokens
    activation: Literal["swish", "relu", "gelu"] = "swish"  # activation of the feed-forward network
    scaled: bool = True  # embeddings are multiplied by √dim
    tied: Literal["all", "target", "none"] = "all"  # which embeddings share a matrix: source, target and output
    dropout: float = 0.1  # dropout of embeddings and sublayer outputs
    attention_dropout: float = 0.0  # dropout of attention weights
    hidden_dropout: float = 0.0  # dropout inside the feed-forward network
    init_std: float = 0.02  # standard deviation of the initial weights

    def __post_init__(self):
        check(self)


class Marian(EncoderDecoder):
    """Norms after each sublayer, sinusoids in halves, an output bias."""

    capabilities = ("packed", "fused", "cuda_search", "ctranslate2")

    def __init__(self, config: MarianConfig):
        super().__init__(config)
        c = config
        sources = source_size(c)
        self.tokens = nn.Embedding(c.vocab_size, c.dim)
        self.source_tokens = None if c.tied == "all" else nn.Embedding(sources, c.dim)
        self.output = nn.Linear(c.dim, c.vocab_size, bias=False) if c.tied == "none" else None
        self.bias = nn.Parameter(torch.zeros(c.vocab_size))
        self.positions = SinusoidalHalves(c.max_length, c.dim)
        self.source_positions = self.norm = self.source_norm = None  # positions for both sides, embeddings as they are
        self.scale = math.sqrt(c.dim) if c.scaled else 1.0
        self.dropout = nn.Dropout(c.dropout)
        activation = ACTIVATIONS[c.activation]
        self.encoder = Stack([layer(c, PostNorm, activation) for _ in range(c.encoder_layers)])
        self.decoder = Stack([layer(c, PostNorm, activation, cross=True) for _ in range(c.decoder_layers)])
        init.normal(self, c.init_std)


SYSTEM = System(Marian, MarianConfig, PRESETS, "Marian", vocabulary="marian")

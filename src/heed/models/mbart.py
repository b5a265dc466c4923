"""mBART-50 (Tang et al., 2020): a multilingual BART, trained to translate between 50 languages."""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

from heed.config import from_data
from heed.models.encoder_decoder import ACTIVATIONS, EncoderDecoder, check, layer
from heed.models.system import System
from heed.models.transformer import PRESETS
from heed.nn import init
from heed.nn.positions import Learned
from heed.nn.transformer import PreNorm, Stack


@dataclass(frozen=True)
class MBartConfig:
    """mBART-large-50."""

    vocab_size: int = from_data()
    dim: int = 1024  # width of embeddings and layers
    heads: int = 16  # attention heads per layer
    hidden: int = 4096  # width of the feed-forward network
    encoder_layers: int = 12
    decoder_layers: int = 12
    max_length: int = 1024  # maximum text length in tokens, including special tokens
    activation: Literal["swish", "relu", "gelu"] = "gelu"  # activation of the feed-forward network
    scaled: bool = True  # embeddings are multiplied by √dim
    dropout: float = 0.1  # dropout of embeddings and sublayer outputs
    attention_dropout: float = 0.0  # dropout of attention weights
    hidden_dropout: float = 0.0  # dropout inside the feed-forward network
    init_std: float = 0.02  # standard deviation of the initial weights

    def __post_init__(self):
        check(self)


class MBart(EncoderDecoder):
    """Norms on the embeddings, before each sublayer and after the last layer; learned positions on each side, one matrix for all tokens."""

    capabilities = ("packed", "fused", "ctranslate2")  # the search on the GPU has no norm before a pre-norm

    def __init__(self, config: MBartConfig):
        super().__init__(config)
        c = config
        self.tokens = nn.Embedding(c.vocab_size, c.dim)
        self.source_tokens = self.output = None
        self.register_buffer("bias", torch.zeros(c.vocab_size))  # mBART learns none; a checkpoint may hold one
        self.positions, self.source_positions = (Learned(c.max_length, c.dim, offset=2) for _ in range(2))
        self.norm, self.source_norm = (nn.LayerNorm(c.dim) for _ in range(2))
        self.scale = math.sqrt(c.dim) if c.scaled else 1.0
        self.dropout = nn.Dropout(c.dropout)
        activation = ACTIVATIONS[c.activation]
        self.encoder = Stack([layer(c, PreNorm, activation) for _ in range(c.encoder_layers)], norm=nn.LayerNorm(c.dim))
        self.decoder = Stack(
            [layer(c, PreNorm, activation, cross=True) for _ in range(c.decoder_layers)], norm=nn.LayerNorm(c.dim)
        )
        init.normal(self, c.init_std)


SYSTEM = System(MBart, MBartConfig, PRESETS, "mBART-50", vocabulary="mbart50")

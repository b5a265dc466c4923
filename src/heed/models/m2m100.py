"""M2M-100 (Fan et al., 2020) and NLLB-200 (NLLB team, 2022): one Transformer between every two of 100 or 200 languages."""

import math
from dataclasses import dataclass
from typing import Literal

from torch import nn

from heed.config import from_data
from heed.models.encoder_decoder import ACTIVATIONS, EncoderDecoder, check, layer
from heed.models.system import System
from heed.models.transformer import PRESETS
from heed.nn import init
from heed.nn.positions import SinusoidalFairseq
from heed.nn.transformer import PreNorm, Stack


@dataclass(frozen=True)
class M2M100Config:
    """M2M-100 with 418 million weights, and NLLB-200-distilled-600M."""

    vocab_size: int = from_data()
    dim: int = 1024  # width of embeddings and layers
    heads: int = 16  # attention heads per layer
    hidden: int = 4096  # width of the feed-forward network
    encoder_layers: int = 12
    decoder_layers: int = 12
    max_length: int = 1024  # maximum text length in tokens, including special tokens
    activation: Literal["swish", "relu", "gelu"] = "relu"  # activation of the feed-forward network
    scaled: bool = True  # embeddings are multiplied by √dim
    dropout: float = 0.1  # dropout of embeddings and sublayer outputs
    attention_dropout: float = 0.1  # dropout of attention weights
    hidden_dropout: float = 0.0  # dropout inside the feed-forward network
    init_std: float = 0.02  # standard deviation of the initial weights

    def __post_init__(self):
        check(self)


class M2M100(EncoderDecoder):
    """Norms before each sublayer and after the last layer, sinusoids from position 2 on, one matrix for all tokens and no bias."""

    capabilities = ("packed", "fused", "cuda_search", "ctranslate2")

    def __init__(self, config: M2M100Config):
        super().__init__(config)
        c = config
        self.tokens = nn.Embedding(c.vocab_size, c.dim)
        self.source_tokens = self.output = self.bias = None
        self.positions = SinusoidalFairseq(c.max_length, c.dim)
        self.source_positions = self.norm = self.source_norm = None  # positions for both sides, embeddings as they are
        self.scale = math.sqrt(c.dim) if c.scaled else 1.0
        self.dropout = nn.Dropout(c.dropout)
        activation = ACTIVATIONS[c.activation]
        self.encoder = Stack([layer(c, PreNorm, activation) for _ in range(c.encoder_layers)], norm=nn.LayerNorm(c.dim))
        self.decoder = Stack(
            [layer(c, PreNorm, activation, cross=True) for _ in range(c.decoder_layers)], norm=nn.LayerNorm(c.dim)
        )
        init.normal(self, c.init_std)


SYSTEM = System(M2M100, M2M100Config, PRESETS, "M2M-100", vocabulary="m2m100")

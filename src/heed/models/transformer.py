"""The Transformer (Vaswani et al., 2017): an encoder reads the source, a decoder writes the target."""

import math
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import nn

from heed.config import from_data
from heed.models.encoder_decoder import EncoderDecoder, check, layer, source_size
from heed.models.system import System
from heed.nn import init
from heed.nn.local import Convolution, WindowedAttention
from heed.nn.positions import Learned, NoPositions, Sinusoidal
from heed.nn.transformer import Layer, PostNorm, PreNorm, Stack


@dataclass(frozen=True)
class TransformerConfig:
    vocab_size: int = from_data()
    source_vocab_size: int | None = from_data(None)
    dim: int = 512  # width of embeddings and layers
    heads: int = 8  # attention heads per layer
    hidden: int = 2048  # width of the feed-forward network
    encoder_layers: int = 6
    decoder_layers: int = 6
    max_length: int = 1024  # maximum text length in tokens, including special tokens
    dropout: float = 0.1  # dropout of embeddings and sublayer outputs
    attention_dropout: float = 0.0  # dropout of attention weights
    hidden_dropout: float = 0.0  # dropout inside the feed-forward network
    norm: Literal["post", "pre"] = "post"  # layer norm after each sublayer (the paper), or before it
    positions: Literal["sinusoidal", "learned", "none"] = "sinusoidal"  # position embeddings
    tied: Literal["all", "target", "none"] = "all"  # which embeddings share a matrix: source, target and output
    output_bias: bool = False  # output bias, one per token
    norm_eps: float = 1e-5  # epsilon of layer norm
    encoder: Literal["attention", "restricted", "convolution"] = (
        "attention"  # encoder sublayer: full attention, windowed attention, or convolution
    )
    window: int = 7  # window of "restricted" attention, in tokens (odd)
    kernel: int = 3  # kernel size of "convolution" (odd)

    def __post_init__(self):
        check(self)
        for name in ("window", "kernel"):
            if getattr(self, name) < 1 or getattr(self, name) % 2 == 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be odd, so that the window is symmetric")


PRESETS = {
    "tiny": {"dim": 128, "heads": 4, "hidden": 512, "encoder_layers": 4, "decoder_layers": 4, "dropout": 0.3},
    "small": {"dim": 256, "heads": 4, "hidden": 1024, "encoder_layers": 6, "decoder_layers": 6, "dropout": 0.2},
    "base": {"dim": 512, "heads": 8, "hidden": 2048, "encoder_layers": 6, "decoder_layers": 6, "dropout": 0.1},
    "big": {"dim": 1024, "heads": 16, "hidden": 4096, "encoder_layers": 6, "decoder_layers": 6, "dropout": 0.3},
    # for students (heed distill): the encoder runs once and in parallel, the decoder step by step, so encoder layers are cheaper
    "tiny-6-2": {"dim": 128, "heads": 4, "hidden": 512, "encoder_layers": 6, "decoder_layers": 2, "dropout": 0.3},
    "tiny-12-1": {"dim": 128, "heads": 4, "hidden": 512, "encoder_layers": 12, "decoder_layers": 1, "dropout": 0.3},
    "small-6-2": {"dim": 256, "heads": 4, "hidden": 1024, "encoder_layers": 6, "decoder_layers": 2, "dropout": 0.2},
    "small-12-1": {"dim": 256, "heads": 4, "hidden": 1024, "encoder_layers": 12, "decoder_layers": 1, "dropout": 0.2},
    "base-6-2": {"dim": 512, "heads": 8, "hidden": 2048, "encoder_layers": 6, "decoder_layers": 2, "dropout": 0.1},
    "base-12-1": {"dim": 512, "heads": 8, "hidden": 2048, "encoder_layers": 12, "decoder_layers": 1, "dropout": 0.1},
}


POSITIONS = {"sinusoidal": Sinusoidal, "learned": Learned, "none": NoPositions}


class Transformer(EncoderDecoder):
    """Source and target tokens in, the logits of each next target token out."""

    capabilities = ("packed", "fused", "cuda_search", "ctranslate2")

    def __init__(self, config: TransformerConfig):
        super().__init__(config)
        c = config
        sources = source_size(c)
        self.tokens = nn.Embedding(c.vocab_size, c.dim)
        self.source_tokens = None if c.tied == "all" else nn.Embedding(sources, c.dim)
        self.output = nn.Linear(c.dim, c.vocab_size, bias=False) if c.tied == "none" else None
        self.bias = nn.Parameter(torch.zeros(c.vocab_size)) if c.output_bias else None
        self.positions = POSITIONS[c.positions](c.max_length, c.dim)
        self.source_positions = self.norm = self.source_norm = None  # positions for both sides, embeddings as they are
        self.scale = math.sqrt(c.dim)
        self.dropout = nn.Dropout(c.dropout)
        self.encoder = Stack([_layer(c, own=_neighbours(c)) for _ in range(c.encoder_layers)], norm=_last_norm(c))
        self.decoder = Stack([_layer(c, cross=True) for _ in range(c.decoder_layers)], norm=_last_norm(c))
        init.vaswani(self, c.dim)


def _layer(c: TransformerConfig, cross: bool = False, own: nn.Module | None = None) -> Layer:
    around = PostNorm if c.norm == "post" else PreNorm
    return layer(c, around, F.relu, cross=cross, norm_eps=c.norm_eps, own=own)


def _neighbours(c: TransformerConfig) -> nn.Module | None:
    """The local layer of an encoder without full attention; None if it has full attention."""
    if c.encoder == "restricted":
        return WindowedAttention(c.dim, c.heads, c.window, dropout=c.attention_dropout)
    return Convolution(c.dim, c.kernel) if c.encoder == "convolution" else None


def _last_norm(c: TransformerConfig) -> nn.LayerNorm | None:
    """With pre-norm the residual sum itself is never normed, so the stack has a final norm."""
    return nn.LayerNorm(c.dim, eps=c.norm_eps) if c.norm == "pre" else None


# pre-norm by default: it learns with any schedule
SYSTEM = System(Transformer, TransformerConfig, PRESETS, "Transformer", defaults={"norm": "pre"}, has_rules=True)

"""BART (Lewis et al., 2020): a Transformer pre-trained to restore corrupted text; it generates text, or classifies it."""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heed.config import from_data
from heed.models.encoder_decoder import ACTIVATIONS, EncoderDecoder, check, layer
from heed.models.heads import Classification
from heed.models.system import System
from heed.models.transformer import PRESETS
from heed.nn import init
from heed.nn.positions import Learned
from heed.nn.transformer import PostNorm, Stack


@dataclass(frozen=True)
class BartConfig:
    """BART-base. With `labels` it is a classifier: `first` starts its decoder, and the state at `last` is
    classified.
    """

    vocab_size: int = from_data()
    dim: int = 768  # width of embeddings and layers
    heads: int = 12  # attention heads per layer
    hidden: int = 3072  # width of the feed-forward network
    encoder_layers: int = 6
    decoder_layers: int = 6
    max_length: int = 1024  # maximum text length in tokens, including special tokens
    activation: Literal["swish", "relu", "gelu"] = "gelu"  # activation of the feed-forward network
    scaled: bool = False  # embeddings are multiplied by √dim
    dropout: float = 0.1  # dropout of embeddings and sublayer outputs
    attention_dropout: float = 0.0  # dropout of attention weights
    hidden_dropout: float = 0.0  # dropout inside the feed-forward network
    init_std: float = 0.02  # standard deviation of the initial weights
    labels: int = from_data()
    first: int = from_data(2)
    last: int = from_data(2)
    classifier_dropout: float = 0.0  # dropout in the classification head

    def __post_init__(self):
        check(self)


class Bart(EncoderDecoder):
    """Norms after each sublayer and on the embeddings, learned positions on each side, one matrix for all tokens."""

    capabilities = ("packed", "fused", "cuda_search", "ctranslate2")
    HEAD = ("head.", "bias")  # what a task replaces: the head of a classifier, or the output bias of a generator

    def __init__(self, config: BartConfig):
        super().__init__(config)
        c = config
        self.tokens = nn.Embedding(c.vocab_size, c.dim)
        self.source_tokens = self.output = None
        self.positions, self.source_positions = (Learned(c.max_length, c.dim, offset=2) for _ in range(2))
        self.norm, self.source_norm = (nn.LayerNorm(c.dim) for _ in range(2))
        self.scale = math.sqrt(c.dim) if c.scaled else 1.0
        self.dropout = nn.Dropout(c.dropout)
        activation = ACTIVATIONS[c.activation]
        self.encoder = Stack([layer(c, PostNorm, activation) for _ in range(c.encoder_layers)])
        self.decoder = Stack([layer(c, PostNorm, activation, cross=True) for _ in range(c.decoder_layers)])
        if c.labels:
            self.head = Classification(c.dim, c.labels, c.classifier_dropout)
        else:
            self.register_buffer("bias", torch.zeros(c.vocab_size))  # BART learns none; a checkpoint may hold one
        init.normal(self, c.init_std)

    def classify_text(
        self, tokens: Int[Tensor, "b s"], valid: Bool[Tensor, "b s"] | None = None
    ) -> Float[Tensor, "b labels"]:
        """Encoder and decoder both read the text; the decoder's last state is classified."""
        first = tokens.new_full((len(tokens), 1), self.config.first)
        states = self.decode(torch.cat([first, tokens[:, :-1]], dim=1), self.encode(tokens, valid), valid)
        ends = tokens == self.config.last if valid is None else (tokens == self.config.last) & valid
        if not ends.any(dim=1).all():
            raise ValueError(f"a text has no end token (id {self.config.last}), whose state is classified")
        end = ends.long().cumsum(dim=1).argmax(dim=1)  # of the last one
        return self.head(states[torch.arange(len(tokens), device=tokens.device), end])


SYSTEM = System(Bart, BartConfig, PRESETS, "BART", vocabulary="bart")

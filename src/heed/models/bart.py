"""BART (Lewis et al., 2020): a Transformer that learned to repair damaged text; it writes, or it classifies."""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heed.models.encoder_decoder import ACTIVATIONS, EncoderDecoder, check, layer
from heed.models.heads import Classification
from heed.nn import init
from heed.nn.positions import Learned
from heed.nn.transformer import PostNorm, Stack


@dataclass(frozen=True)
class BartConfig:
    """The base one of the paper. `scaled`: embeddings are multiplied by √dim."""

    vocab_size: int
    dim: int = 768
    heads: int = 12
    hidden: int = 3072
    encoder_layers: int = 6
    decoder_layers: int = 6
    max_length: int = 1024
    activation: Literal["swish", "relu", "gelu"] = "gelu"
    scaled: bool = False
    dropout: float = 0.1
    attention_dropout: float = 0.0
    hidden_dropout: float = 0.0
    init_std: float = 0.02

    def __post_init__(self):
        check(self)


@dataclass(frozen=True)
class BartClassifierConfig(BartConfig):
    """`first` is the id that the decoder is given first, `last` the id that ends a text."""

    labels: int = 3
    first: int = 2
    last: int = 2
    classifier_dropout: float = 0.0


class _Body(EncoderDecoder):
    """Norms after each sublayer and on the embeddings, learned positions on each side, one matrix for all tokens."""

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


class Bart(_Body):
    """Source and target tokens in, the scores of each next target token out."""

    capabilities = ("packed", "fused", "cuda_search", "ctranslate2")

    def __init__(self, config: BartConfig):
        super().__init__(config)
        self.register_buffer("bias", torch.zeros(config.vocab_size))  # BART learns none; a checkpoint may hold one
        init.normal(self, config.init_std)


class BartClassifier(_Body):
    """Source tokens in, the scores of the labels out: the decoder reads the source too, and its end is classified."""

    capabilities = ()

    def __init__(self, config: BartClassifierConfig):
        super().__init__(config)
        self.head = Classification(config.dim, config.labels, config.classifier_dropout)
        init.normal(self, config.init_std)

    def forward(
        self, source: Int[Tensor, "b s"], valid: Bool[Tensor, "b s"] | None = None
    ) -> Float[Tensor, "b labels"]:
        first = source.new_full((len(source), 1), self.config.first)
        states = self.decode(torch.cat([first, source[:, :-1]], dim=1), self.encode(source, valid), valid)
        ends = source == self.config.last if valid is None else (source == self.config.last) & valid
        if not ends.any(dim=1).all():
            raise ValueError(f"a text has no end mark (id {self.config.last}): the state there is what is classified")
        place = ends.long().cumsum(dim=1).argmax(dim=1)  # of the last one
        return self.head(states[torch.arange(len(source), device=source.device), place])

"""The Transformer (Vaswani et al., 2017): an encoder reads the source, a decoder writes the target."""

import math
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heed.nn import init, masks
from heed.nn.attention import Attention
from heed.nn.cache import Reading, StackCache
from heed.nn.positions import Learned, Sinusoidal
from heed.nn.transformer import MLP, Layer, PostNorm, PreNorm, Stack


@dataclass(frozen=True)
class TransformerConfig:
    """`tied`: one matrix for source, target and output ("all"), for target and output ("target"), or none."""

    vocab_size: int
    source_vocab_size: int | None = None
    dim: int = 512
    heads: int = 8
    hidden: int = 2048
    encoder_layers: int = 6
    decoder_layers: int = 6
    max_length: int = 1024
    dropout: float = 0.1
    attention_dropout: float = 0.0
    hidden_dropout: float = 0.0
    norm: Literal["post", "pre"] = "post"
    positions: Literal["sinusoidal", "learned"] = "sinusoidal"
    tied: Literal["all", "target", "none"] = "all"
    output_bias: bool = False
    norm_eps: float = 1e-5

    def __post_init__(self):
        for name in ("vocab_size", "dim", "heads", "hidden", "encoder_layers", "decoder_layers", "max_length"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")
        for name in ("dropout", "attention_dropout", "hidden_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 0 and below 1")


SIZES = {
    "tiny": {"dim": 128, "heads": 4, "hidden": 512, "encoder_layers": 4, "decoder_layers": 4, "dropout": 0.3},
    "small": {"dim": 256, "heads": 4, "hidden": 1024, "encoder_layers": 6, "decoder_layers": 6, "dropout": 0.2},
    "base": {"dim": 512, "heads": 8, "hidden": 2048, "encoder_layers": 6, "decoder_layers": 6, "dropout": 0.1},
    "big": {"dim": 1024, "heads": 16, "hidden": 4096, "encoder_layers": 6, "decoder_layers": 6, "dropout": 0.3},
}


class Transformer(nn.Module):
    """Source and target tokens in, the scores of each next target token out."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        c = self.config = config
        sources = c.source_vocab_size or c.vocab_size
        if c.tied == "all" and sources != c.vocab_size:
            raise ValueError(
                f"tied is 'all', but the source has {sources} subwords and the target {c.vocab_size}: "
                "use one joint vocabulary, or tied = 'target'"
            )
        self.tokens = nn.Embedding(c.vocab_size, c.dim)
        self.source_tokens = None if c.tied == "all" else nn.Embedding(sources, c.dim)
        self.output = nn.Linear(c.dim, c.vocab_size, bias=False) if c.tied == "none" else None
        self.bias = nn.Parameter(torch.zeros(c.vocab_size)) if c.output_bias else None
        places = Sinusoidal if c.positions == "sinusoidal" else Learned
        self.positions = places(c.max_length, c.dim)
        self.dropout = nn.Dropout(c.dropout)
        self.encoder = Stack([_layer(c) for _ in range(c.encoder_layers)], norm=_last_norm(c))
        self.decoder = Stack([_layer(c, cross=True) for _ in range(c.decoder_layers)], norm=_last_norm(c))
        init.vaswani(self, c.dim)

    def forward(
        self,
        source: Int[Tensor, "b s"],
        target: Int[Tensor, "b t"],
        valid: Bool[Tensor, "b s"] | None = None,
    ) -> Float[Tensor, "b t vocab"]:
        return self.project(self.read(target, self.encode(source, valid), valid))

    def encode(self, source: Int[Tensor, "b s"], valid: Bool[Tensor, "b s"] | None = None) -> Float[Tensor, "b s dim"]:
        """The memory: what the encoder makes of the source."""
        tokens = self.source_tokens or self.tokens
        return self.encoder(self._embed(tokens, source), mask=masks.of_keys(valid))

    def read(
        self,
        target: Int[Tensor, "b t"],
        memory: Float[Tensor, "b s dim"],
        valid: Bool[Tensor, "b s"] | None = None,
        cache: StackCache | None = None,
    ) -> Float[Tensor, "b t dim"]:
        """The last layer of the decoder at each target token, from which the next is told."""
        x = self._embed(self.tokens, target, start=cache.length if cache else 0)
        return self.decoder(x, memory, causal=True, memory_mask=masks.of_keys(valid), cache=cache)

    def project(self, x: Float[Tensor, "*rows dim"]) -> Float[Tensor, "*rows vocab"]:
        weight = self.tokens.weight if self.output is None else self.output.weight
        return F.linear(x, weight, self.bias)

    def start(self, source: Int[Tensor, "b s"], valid: Bool[Tensor, "b s"] | None = None) -> Reading:
        return Reading(self.encode(source, valid), valid, StackCache(self.config.decoder_layers))

    def step(self, tokens: Int[Tensor, " b"], state: Reading) -> Float[Tensor, "b vocab"]:
        return self.project(self.read(tokens[:, None], state.memory, state.valid, state.cache)[:, 0])

    def _embed(self, table: nn.Embedding, tokens: Int[Tensor, "b t"], start: int = 0) -> Float[Tensor, "b t dim"]:
        places = self.positions(start, tokens.shape[1])
        return self.dropout(table(tokens) * math.sqrt(self.config.dim) + places)


def _layer(c: TransformerConfig, cross: bool = False) -> Layer:
    around = PostNorm if c.norm == "post" else PreNorm

    def attention() -> nn.Module:
        body = Attention(c.dim, c.heads, dropout=c.attention_dropout)
        return around(body, nn.LayerNorm(c.dim, eps=c.norm_eps), c.dropout)

    mlp = MLP(c.dim, c.hidden, F.relu, c.hidden_dropout)
    return Layer(
        attention=attention(),
        cross=attention() if cross else None,
        mlp=around(mlp, nn.LayerNorm(c.dim, eps=c.norm_eps), c.dropout),
    )


def _last_norm(c: TransformerConfig) -> nn.LayerNorm | None:
    """With the norms inside the residuals nothing has normed the sum: one more at the end."""
    return nn.LayerNorm(c.dim, eps=c.norm_eps) if c.norm == "pre" else None

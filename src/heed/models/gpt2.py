"""GPT-2 (Radford et al., 2019): a Transformer decoder that predicts each next token of a text."""

import math
from dataclasses import dataclass, field
from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from heed.config import from_data
from heed.models.encoder_decoder import check
from heed.models.system import System
from heed.nn import init
from heed.nn.attention import Attention
from heed.nn.cache import StackCache
from heed.nn.positions import Learned
from heed.nn.transformer import MLP, Layer, PreNorm, Stack

PRESETS = {
    "tiny": {"dim": 128, "heads": 4, "hidden": 512, "layers": 4, "max_length": 256},
    "small": {"dim": 384, "heads": 6, "hidden": 1536, "layers": 6, "max_length": 512},
    "base": {"dim": 768, "heads": 12, "hidden": 3072, "layers": 12},  # the published sizes begin here
    "medium": {"dim": 1024, "heads": 16, "hidden": 4096, "layers": 24},
    "large": {"dim": 1280, "heads": 20, "hidden": 5120, "layers": 36},
    "xl": {"dim": 1600, "heads": 25, "hidden": 6400, "layers": 48},
}


@dataclass(frozen=True)
class GPT2Config:
    vocab_size: int = from_data()
    dim: int = 768  # width of embeddings and layers
    heads: int = 12  # of each attention
    hidden: int = 3072  # width of the feed-forward network
    layers: int = 12
    max_length: int = 1024  # positions: the longest text that is read at once
    dropout: float = 0.1  # of embeddings and of what each sublayer adds
    attention_dropout: float = 0.1  # of attention weights
    norm_eps: float = 1e-5  # of layer norm
    init_std: float = 0.02  # standard deviation of the initial weights

    def __post_init__(self):
        check(self)


@dataclass
class GPT2State:
    """The keys and values of what was read. The next window of a text is read by itself: its positions begin at 0."""

    cache: StackCache
    layers: list = field(default_factory=list)  # nothing that a checkpoint would need

    def detach(self) -> "GPT2State":
        return GPT2State(StackCache(len(self.cache)))

    def reorder(self, rows: Tensor) -> None:
        self.cache.reorder(rows)


class GPT2(nn.Module):
    """Norms before each sublayer and after the last, learned positions, one matrix for input and output."""

    def __init__(self, config: GPT2Config):
        super().__init__()
        c = self.config = config
        self.tokens = nn.Embedding(c.vocab_size, c.dim)
        self.positions = Learned(c.max_length, c.dim)
        self.dropout = nn.Dropout(c.dropout)
        self.stack = Stack([_layer(c) for _ in range(c.layers)], norm=nn.LayerNorm(c.dim, eps=c.norm_eps))
        init.normal(self, c.init_std)
        with torch.no_grad():  # what each layer adds to the residual stream is scaled by its depth
            for layer in self.stack.layers:
                for out in (layer.attention.body.out, layer.mlp.body.down):
                    out.weight /= math.sqrt(2 * c.layers)

    def hidden_states(self, tokens: Int[Tensor, "b t"], state: GPT2State | None = None) -> Float[Tensor, "b t dim"]:
        """The last hidden state at each token; `state` then covers these tokens too."""
        cache = None if state is None or self.training else state.cache
        start, length = cache.length if cache else 0, tokens.shape[1]
        if start + length > self.config.max_length:
            raise ValueError(
                f"a text has {start + length} tokens, but the model has {self.config.max_length} positions"
            )
        x = self.dropout(self.tokens(tokens) + self.positions(start, length))
        return self.stack(x, causal=True, cache=cache)

    def project(self, x: Float[Tensor, "*rows dim"]) -> Float[Tensor, "*rows vocab"]:
        return F.linear(x, self.tokens.weight)

    def output_weights(self) -> tuple[Tensor, None]:
        return self.tokens.weight, None

    def start(self, rows: int) -> GPT2State:
        return GPT2State(StackCache(self.config.layers))

    def step(self, tokens: Int[Tensor, " b"], state: GPT2State) -> Float[Tensor, "b vocab"]:
        return self.project(self.hidden_states(tokens[:, None], state)[:, 0])


def _layer(c: GPT2Config) -> Layer:
    def within(body: nn.Module) -> PreNorm:
        return PreNorm(body, nn.LayerNorm(c.dim, eps=c.norm_eps), c.dropout)

    attention = Attention(c.dim, c.heads, dropout=c.attention_dropout)
    return Layer(attention=within(attention), mlp=within(MLP(c.dim, c.hidden, partial(F.gelu, approximate="tanh"))))


SYSTEM = System(
    GPT2,
    GPT2Config,
    PRESETS,
    "GPT-2",
    vocabulary="gpt2",
    task="language",
    growth=((5_000_000, "tiny"), (100_000_000, "small")),
)

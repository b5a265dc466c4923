"""SASRec (Kang and McAuley, 2018): a causal Transformer over the items of a history predicts the next."""

import math
from dataclasses import dataclass
from typing import Any, Literal

import torch.nn.functional as F
from torch import Tensor, nn

from heed.config import from_data
from heed.models.encoder_decoder import check
from heed.models.item_encoder import ItemEncoder
from heed.models.system import System
from heed.nn import init
from heed.nn.attention import Attention
from heed.nn.positions import Learned
from heed.nn.transformer import MLP, Layer, PostNorm, PreNorm, Stack

ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu}
PRESETS = {
    "tiny": {"dim": 64, "heads": 2, "hidden": 64, "layers": 2},
    "small": {"dim": 128, "heads": 4, "hidden": 256, "layers": 2},
    "base": {"dim": 256, "heads": 4, "hidden": 1024, "layers": 3, "max_length": 200},
    "paper": {"dim": 50, "heads": 1, "hidden": 50, "layers": 2, "norm": "paper"},
}


@dataclass(frozen=True)
class SASRecConfig:
    items: int = from_data()
    dim: int = 64  # width of items and layers
    heads: int = 2  # attention heads per layer
    hidden: int = 64  # width of the feed-forward network
    layers: int = 2
    max_length: int = 50  # maximum history length; only the most recent items are read
    dropout: float = 0.5  # dropout of embeddings and sublayer outputs
    attention_dropout: float = 0.5  # dropout of attention weights
    activation: Literal["relu", "gelu"] = "gelu"  # activation of the feed-forward network; the paper uses "relu"
    norm: Literal["pre", "post", "paper"] = (
        "post"  # "pre": the paper's equation; "paper": its code, where residuals go around norms
    )
    norm_eps: float = 1e-8  # epsilon of layer norm
    init_std: float = 0.02  # standard deviation of the initial weights

    def __post_init__(self):
        check(self)


class NormedInput(nn.Module):
    """norm(x) + body(norm(x)): the feed-forward network in SASRec's code."""

    def __init__(self, body: nn.Module, norm: nn.Module, dropout: float = 0.0):
        super().__init__()
        self.body, self.norm, self.dropout = body, norm, nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(x)
        return x + self.dropout(self.body(x))


class NormedQueries(NormedInput):
    """norm(x) + attention of norm(x) over x: only queries are normed, as in SASRec's code."""

    def forward(self, x: Tensor, *, mask: Any = None, causal: bool = False, cache: None = None) -> Tensor:
        queries = self.norm(x)
        return queries + self.dropout(self.body(queries, x, mask=mask, causal=causal))


NORMS = {"pre": (PreNorm, PreNorm), "post": (PostNorm, PostNorm), "paper": (NormedQueries, NormedInput)}


class SASRec(ItemEncoder):
    """Learned positions, and one matrix for input and predicted items."""

    def __init__(self, config: SASRecConfig):
        super().__init__(config)
        c = config
        self.items = nn.Embedding(c.items + 1, c.dim)  # the last is a masked item, for CL4SRec
        self.positions = Learned(c.max_length, c.dim)
        self.dropout = nn.Dropout(c.dropout)
        if c.norm == "post":
            self.norm = nn.LayerNorm(c.dim, eps=c.norm_eps)
        if c.norm == "paper":
            self.scale = math.sqrt(c.dim)
        last = None if c.norm == "post" else nn.LayerNorm(c.dim, eps=c.norm_eps)
        self.stack = Stack([layer(c, *NORMS[c.norm], c.activation) for _ in range(c.layers)], last)
        init.normal(self, c.init_std)


def layer(c: Any, around_attention: type, around_mlp: type, activation: str) -> Layer:
    """Self-attention and a feed-forward network, each with its norm."""
    attention = Attention(c.dim, c.heads, dropout=c.attention_dropout)
    mlp = MLP(c.dim, c.hidden, ACTIVATIONS[activation], c.dropout)
    norms = [nn.LayerNorm(c.dim, eps=c.norm_eps) for _ in range(2)]
    return Layer(around_attention(attention, norms[0], c.dropout), around_mlp(mlp, norms[1], c.dropout))


SYSTEM = System(
    SASRec,
    SASRecConfig,
    PRESETS,
    "SASRec",
    task="recommendation",
    growth=((100_000, "tiny"), (10_000_000, "small")),
)

"""BERT4Rec (Sun et al., 2019): a bidirectional Transformer reads a history and predicts masked items."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from heed.config import from_data
from heed.models.encoder_decoder import check
from heed.models.item_encoder import ItemEncoder
from heed.models.sasrec import ACTIVATIONS, layer
from heed.models.system import System
from heed.nn import init
from heed.nn.positions import Learned
from heed.nn.transformer import PostNorm, Stack

PRESETS = {
    "tiny": {"dim": 64, "heads": 2, "hidden": 256, "layers": 2},  # the published size
    "small": {"dim": 128, "heads": 4, "hidden": 512, "layers": 2},
    "base": {"dim": 256, "heads": 4, "hidden": 1024, "layers": 3, "max_length": 200},
}


@dataclass(frozen=True)
class BERT4RecConfig:
    items: int = from_data()
    dim: int = 64  # width of items and layers
    heads: int = 2  # attention heads per layer
    hidden: int = 256  # width of the feed-forward network
    layers: int = 2
    max_length: int = 50  # maximum history length, including the mask at the end; only the most recent items are read
    dropout: float = 0.1  # dropout of embeddings and sublayer outputs
    attention_dropout: float = 0.1  # dropout of attention weights
    norm_eps: float = 1e-12  # epsilon of layer norm
    init_std: float = 0.02  # standard deviation of the initial weights

    def __post_init__(self):
        check(self)


class Prediction(nn.Module):
    """A layer before the item scores, like that of BERT before its words."""

    def __init__(self, c: Any):
        super().__init__()
        self.out, self.norm = nn.Linear(c.dim, c.dim), nn.LayerNorm(c.dim, eps=c.norm_eps)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(ACTIVATIONS["gelu"](self.out(x)))


class BERT4Rec(ItemEncoder):
    """Norms after each sublayer, a bias for each item."""

    fills_masks = True

    def __init__(self, config: BERT4RecConfig):
        super().__init__(config)
        c = config
        self.items = nn.Embedding(c.items + 1, c.dim)  # the last is a masked item
        self.positions = Learned(c.max_length, c.dim)
        self.norm, self.dropout = nn.LayerNorm(c.dim, eps=c.norm_eps), nn.Dropout(c.dropout)
        self.stack = Stack([layer(c, PostNorm, PostNorm, "gelu") for _ in range(c.layers)])
        self.head, self.bias = Prediction(c), nn.Parameter(torch.zeros(c.items))
        init.normal(self, c.init_std)


SYSTEM = System(
    BERT4Rec,
    BERT4RecConfig,
    PRESETS,
    "BERT4Rec",
    task="recommendation",
    growth=((100_000, "tiny"), (10_000_000, "small")),
)

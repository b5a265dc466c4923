"""ALBERT (Lan et al., 2020): a BERT with shared layer weights and factorized embeddings, pre-trained on masked words
and sentence order.
"""

from dataclasses import dataclass
from typing import Literal

from torch import nn

from heed.config import from_data
from heed.models.encoder import ACTIVATIONS, Encoder, layer, usual_parts
from heed.models.encoder_heads import PooledText, settle
from heed.models.system import System
from heed.nn.positions import Learned
from heed.nn.transformer import SharedStack

PRESETS = {
    "tiny": {"dim": 128, "heads": 2, "hidden": 512, "layers": 2, "embedding": 64},
    "small": {"dim": 256, "heads": 4, "hidden": 1024, "layers": 6},
    "base": {"dim": 768, "heads": 12, "hidden": 3072, "layers": 12},  # the published sizes begin here
    "large": {"dim": 1024, "heads": 16, "hidden": 4096, "layers": 24},
    "xlarge": {"dim": 2048, "heads": 16, "hidden": 8192, "layers": 24},
    "xxlarge": {"dim": 4096, "heads": 64, "hidden": 16384, "layers": 12},
}


@dataclass(frozen=True)
class AlbertConfig:
    """ALBERT-base, version 2. `head` is what it predicts; with `labels` it is a classifier, of tokens if `head` says
    so.
    """

    vocab_size: int = from_data()
    embedding: int = 128  # width of embeddings
    dim: int = 768  # width of layers
    heads: int = 12  # attention heads per layer
    hidden: int = 3072  # width of the feed-forward network
    layers: int = 12
    groups: int = 1  # number of groups of layers that share weights; equal to layers: no sharing
    group_layers: int = 1  # distinct layers within a group; together they count as one of `layers`
    max_length: int = 512  # maximum length of a text or pair in tokens, including special tokens
    segments: int = 2  # number of segment types
    activation: Literal["gelu", "gelu_tanh", "relu"] = "gelu_tanh"  # activation of the feed-forward network
    dropout: float = 0.0  # dropout of embeddings and sublayer outputs
    attention_dropout: float = 0.0  # dropout of attention weights
    classifier_dropout: float = 0.1  # dropout in the classification head
    norm_eps: float = 1e-12  # epsilon of layer norm
    init_std: float = 0.02  # standard deviation of the initial weights
    init_positions: Literal["normal", "sinusoids"] = "normal"  # what learned positions start as
    init_keys: Literal["normal", "queries"] = (
        "normal"  # queries: keys start equal to queries, so similar and near tokens attend to each other
    )
    head: str = from_data("masked")
    labels: int = from_data()

    def __post_init__(self):
        settle(self)
        for name in ("groups", "group_layers"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.groups > self.layers:
            raise ValueError(f"groups is {self.groups}, but there are {self.layers} layers: lower it")


class Albert(Encoder):
    """Like BERT, but embeddings are narrow and projected up, and the layers of a group share one set of weights."""

    capabilities = ("packed", "fused")
    POOLED = frozenset({"none", "pretraining", "pair", "classification", "choice"})

    def __init__(self, config: AlbertConfig):
        super().__init__(config)
        c, activation = config, ACTIVATIONS[config.activation]
        self.tokens = nn.Embedding(c.vocab_size, c.embedding)
        self.positions = Learned(c.max_length, c.embedding)
        self.segments = nn.Embedding(c.segments, c.embedding)
        self.norm = nn.LayerNorm(c.embedding, eps=c.norm_eps)
        self.dropout = nn.Dropout(c.dropout)
        self.widen = nn.Linear(c.embedding, c.dim)
        self.stack = SharedStack([[layer(c) for _ in range(c.group_layers)] for _ in range(c.groups)], c.layers)
        order = lambda: PooledText(c.dim, 2, c.classifier_dropout)  # noqa: E731
        self.add_head({**usual_parts(c, activation, c.embedding), "pair": order})
        self.initialize()


SYSTEM = System(
    Albert,
    AlbertConfig,
    PRESETS,
    "ALBERT",
    vocabulary="albert",
    task="classification",
    growth=((100_000, "tiny"), (10_000_000, "small")),
)

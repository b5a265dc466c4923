"""RoBERTa (Liu et al., 2019): a BERT with byte-level BPE and a single segment, pre-trained longer and on masked words
only.
"""

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from heed.config import from_data
from heed.models.bert import PRESETS
from heed.models.encoder import Encoder, layer, usual_parts
from heed.models.encoder_heads import FirstToken, settle
from heed.models.system import System
from heed.nn.packing import SequenceOffsets
from heed.nn.positions import Learned
from heed.nn.transformer import Stack


@dataclass(frozen=True)
class RobertaConfig:
    """RoBERTa-base. `head` is what it predicts; with `labels` it is a classifier, of tokens if `head` says so, else of texts."""

    vocab_size: int = from_data()
    dim: int = 768  # width of embeddings and layers
    heads: int = 12  # attention heads per layer
    hidden: int = 3072  # width of the feed-forward network
    layers: int = 12
    max_length: int = 512  # maximum length of a text or pair in tokens, including special tokens
    segments: int = 1  # number of segment types
    activation: Literal["gelu", "gelu_tanh", "relu"] = "gelu"  # activation of the feed-forward network
    dropout: float = 0.1  # dropout of embeddings and sublayer outputs
    attention_dropout: float = 0.1  # dropout of attention weights
    classifier_dropout: float | None = None  # dropout in the classification head (default: dropout)
    norm_eps: float = 1e-5  # epsilon of layer norm
    init_std: float = 0.02  # standard deviation of the initial weights
    init_positions: Literal["normal", "sinusoids"] = "normal"  # what learned positions start as
    init_keys: Literal["normal", "queries"] = (
        "normal"  # queries: keys start equal to queries, so similar and near tokens attend to each other
    )
    pad: int = from_data(1)
    head: str = from_data("masked")
    labels: int = from_data()

    def __post_init__(self):
        settle(self)


class Roberta(Encoder):
    """Like BERT, but positions count from the padding id, and the classification head has its own matrix instead of a
    pooler.
    """

    capabilities = ("packed", "fused", "ctranslate2")
    POOLED = frozenset({"none", "pretraining", "pair", "choice"})

    def __init__(self, config: RobertaConfig):
        super().__init__(config)
        c = config
        self.tokens = nn.Embedding(c.vocab_size, c.dim)
        self.positions = Learned(c.max_length, c.dim, offset=c.pad + 1)
        self.segments = nn.Embedding(c.segments, c.dim)
        self.norm = nn.LayerNorm(c.dim, eps=c.norm_eps)
        self.dropout = nn.Dropout(c.dropout)
        self.stack = Stack([layer(c) for _ in range(c.layers)])
        rate = c.dropout if c.classifier_dropout is None else c.classifier_dropout
        self.add_head(
            {
                **usual_parts(c, F.gelu),
                "text": lambda: FirstToken(c.dim, c.labels, torch.tanh, rate, first_dropout=rate),
            }
        )
        self.initialize()

    def position_vectors(
        self, tokens: Int[Tensor, "b t"], offsets: SequenceOffsets | None = None
    ) -> Float[Tensor, "*b t width"]:
        """Padding is not counted, even if a text spells it; it has the vector before the first position."""
        known = tokens != self.config.pad
        count = known.cumsum(dim=1)
        if offsets is not None:  # from the start of each text on
            start = torch.arange(tokens.shape[1], device=tokens.device) - offsets.positions
            count = count - (count - known.long())[:, start]
        at = count * known - 1
        return self.positions.at(at.flatten()).unflatten(0, at.shape)


SYSTEM = System(
    Roberta,
    RobertaConfig,
    PRESETS,
    "RoBERTa",
    vocabulary="roberta",
    task="classification",
    growth=((100_000, "tiny"), (10_000_000, "small")),
)

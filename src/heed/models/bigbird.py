"""BigBird (Zaheer et al., 2020): a BERT for long texts with block-sparse attention: global, window and random
blocks. Global tokens are those of the first and the last block (the paper's ITC), and `global_tokens` others (ETC).
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from heed.config import from_data
from heed.models.encoder import ACTIVATIONS, Encoder, Tokens, Valid, layer, usual_parts
from heed.models.encoder_heads import DeepAnswer, FirstToken, settle
from heed.models.system import System
from heed.nn.blocks import BlockPattern
from heed.nn.packing import SequenceOffsets
from heed.nn.positions import Learned
from heed.nn.sparse import BlockSparseAttention
from heed.nn.transformer import Layer, Stack

PRESETS = {
    "tiny": {"dim": 128, "heads": 2, "hidden": 512, "layers": 2, "block": 16},
    "small": {"dim": 256, "heads": 4, "hidden": 1024, "layers": 6, "block": 32},
    "base": {"dim": 768, "heads": 12, "hidden": 3072, "layers": 12},  # the published sizes begin here
    "large": {"dim": 1024, "heads": 16, "hidden": 4096, "layers": 24},
}
QUESTION = 1e6  # subtracted from the logits of tokens of the question: no answer begins or ends there


@dataclass(frozen=True)
class BigBirdConfig:
    """BigBird-base. `head` is what it predicts; with `labels` it is a classifier, of tokens if `head` says so, else of texts."""

    vocab_size: int = from_data()
    dim: int = 768  # width of embeddings and layers
    heads: int = 12  # attention heads per layer
    hidden: int = 3072  # width of the feed-forward network
    layers: int = 12
    max_length: int = 4096  # maximum length of a text or pair in tokens, including special tokens
    segments: int = 2  # number of segment types
    sparse: bool = True  # block-sparse attention for texts longer than (5 + 2 * random_blocks) * block tokens
    block: int = 64  # block size in tokens
    random_blocks: int = 3  # random blocks per block, besides the first, the last, itself and its neighbours
    global_tokens: int = 0  # additional learned tokens that all positions attend to, and that attend to all (the paper's ETC); transformers has none
    fixed_random: bool = False  # use the random blocks at inference too; transformers uses the first block instead
    scaled: bool = False  # embeddings are multiplied by √dim
    activation: Literal["gelu", "gelu_tanh", "relu"] = "gelu_tanh"  # activation of the feed-forward network
    dropout: float = 0.1  # dropout of embeddings and sublayer outputs
    attention_dropout: float = 0.1  # dropout of attention weights
    classifier_dropout: float | None = None  # dropout in the classification head (default: dropout)
    norm_eps: float = 1e-12  # epsilon of layer norm
    init_std: float = 0.02  # standard deviation of the initial weights
    init_positions: Literal["normal", "sinusoids"] = "normal"  # what learned positions start as
    init_keys: Literal["normal", "queries"] = (
        "normal"  # queries: keys start equal to queries, so similar and near tokens attend to each other
    )
    separator: int = from_data(66)
    head: str = from_data("masked")
    labels: int = from_data()

    def __post_init__(self):
        settle(self)
        if self.block < 1 or self.random_blocks < 0:
            raise ValueError(
                f"block is {self.block} and random_blocks {self.random_blocks}; they must be at least 1 and 0"
            )
        if self.global_tokens and self.head == "causal":
            raise ValueError(
                f"global_tokens is {self.global_tokens}, but in a causal model they would reveal the next words: set it to 0"
            )


class BigBird(Encoder):
    """Like BERT, with attention over blocks. Answers are searched after the question, which ends at the separator."""

    capabilities = ("packed",)
    POOLED = frozenset({"none", "masked", "causal", "pretraining", "pair", "classification", "tokens", "choice"})

    def __init__(self, config: BigBirdConfig):
        super().__init__(config)
        c, activation = config, ACTIVATIONS[config.activation]
        self.tokens = nn.Embedding(c.vocab_size, c.dim)
        self.scale = math.sqrt(c.dim) if c.scaled else 1.0
        self.positions = Learned(c.max_length, c.dim)
        self.segments = nn.Embedding(c.segments, c.dim)
        self.norm = nn.LayerNorm(c.dim, eps=c.norm_eps)
        self.dropout = nn.Dropout(c.dropout)
        self.global_tokens = nn.Embedding(c.global_tokens, c.dim) if c.global_tokens else None
        self.stack = Stack([_layer(c, number) for number in range(c.layers)])
        rate = c.dropout if c.classifier_dropout is None else c.classifier_dropout
        self.add_head(
            {
                **usual_parts(c, activation),
                "text": lambda: FirstToken(c.dim, c.labels, activation, rate, first_dropout=rate),
                "answer": lambda: DeepAnswer(c.dim, c.hidden, activation, c.dropout, c.norm_eps),
            }
        )
        self.initialize()

    def packs(self, longest: int) -> bool:
        """Whether attention is full, without tokens outside of the text."""
        c = self.config
        full = not c.sparse or longest <= self.stack.layers[0].attention.body.pattern.full
        return super().packs(longest) and full and not c.global_tokens

    def run_layers(self, x: Float[Tensor, "b t dim"], valid: Valid) -> Float[Tensor, "b t dim"]:
        if self.global_tokens is None:
            return super().run_layers(x, valid)
        if isinstance(valid, SequenceOffsets):
            raise ValueError("a BigBird with global_tokens needs one text per row: texts cannot be packed")
        extra = self.normalize(self.global_tokens.weight.expand(len(x), -1, -1))
        valid = None if valid is None else F.pad(valid, (0, extra.shape[1]), value=True)
        return super().run_layers(torch.cat([x, extra], dim=1), valid)[:, : x.shape[1]]

    def normalize(self, x: Float[Tensor, "b t dim"]) -> Float[Tensor, "b t dim"]:
        return self.norm(self.dropout(x))

    def find_answer(
        self,
        tokens: Tokens,
        valid: Valid = None,
        segments: Tokens | None = None,
    ) -> Float[Tensor, "b t 2"]:
        ends = tokens == self.config.separator
        before = ends.cumsum(dim=1) - ends.long()
        if isinstance(valid, SequenceOffsets):
            first = torch.arange(tokens.shape[1], device=tokens.device) - valid.positions
            before = before - before[:, first]
        elif not ends.any(dim=1).all():
            raise ValueError(f"a text has no separator (id {self.config.separator}) after the question")
        question = before == 0  # up to the first separator
        segments = (~question).long() if segments is None else segments
        places = (
            valid.positions
            if isinstance(valid, SequenceOffsets)
            else torch.arange(tokens.shape[1], device=tokens.device)
        )
        question = question & (places > 0)  # the answer lies at the first token if there is none
        return super().find_answer(tokens, valid, segments) - question[..., None] * QUESTION


def _layer(c: BigBirdConfig, number: int) -> Layer:
    if not c.sparse:
        return layer(c)
    pattern = BlockPattern(c.block, c.random_blocks, c.heads, c.max_length)
    options = {"fixed": c.fixed_random, "dropout": c.attention_dropout, "external": c.global_tokens}
    return layer(c, BlockSparseAttention(c.dim, pattern, number, **options))


SYSTEM = System(
    BigBird,
    BigBirdConfig,
    PRESETS,
    "BigBird",
    vocabulary="bigbird",
    task="classification",
    growth=((100_000, "tiny"), (10_000_000, "small")),
)

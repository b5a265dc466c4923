"""Transformer-XL (Dai et al., 2019): a language model with relative attention over the hidden states of the previous
text.
"""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from heed.config import from_data
from heed.models.encoder_decoder import check
from heed.models.system import System
from heed.nn import init, masks
from heed.nn.adaptive import AdaptiveVocabulary
from heed.nn.attention import Attention
from heed.nn.cache import join_left_padded
from heed.nn.dropout import embedding_dropout, word_dropout
from heed.nn.relative import RelativePositions
from heed.nn.transformer import MLP, Layer, PostNorm, Stack

PRESETS = {
    "tiny": {"dim": 128, "heads": 4, "hidden": 512, "layers": 4, "memory": 64},
    "small": {"dim": 256, "heads": 8, "hidden": 1024, "layers": 8, "memory": 128},
    "base": {"dim": 410, "heads": 10, "hidden": 2100, "layers": 16, "memory": 150},  # the published sizes begin here
    "large": {"dim": 1024, "heads": 16, "hidden": 4096, "layers": 18, "memory": 384},
}


@dataclass(frozen=True)
class TransformerXLConfig:
    vocab_size: int = from_data()
    dim: int = 410  # width of embeddings and layers
    heads: int = 10  # attention heads per layer
    hidden: int = 2100  # width of the feed-forward network
    layers: int = 16
    memory: int = 150  # memory length: earlier tokens whose hidden states are attended to
    evaluation_memory: int | None = None  # memory length for evaluation and generation (default: memory)
    same_length: bool = False  # every token attends to exactly `memory` tokens; otherwise also to its own window
    farthest: int = 0  # clamp relative distances to this; 0 is no limit
    cutoffs: list[int] = field(
        default_factory=list
    )  # adaptive softmax: the first token id of each tail cluster; empty: a plain softmax
    divisor: int = 1  # adaptive softmax: each cluster's embeddings are this many times narrower than the previous one's
    dropout: float = 0.1  # dropout of embeddings, sublayer outputs, the feed-forward network and the output
    attention_dropout: float = 0.0  # dropout of attention weights
    word_dropout: float = 0.0  # dropout of whole words, for small corpora
    input_dropout: float | None = None  # dropout of embeddings, one mask for all positions (default: as dropout)
    output_dropout: float | None = None  # dropout of the last hidden states, in the same way (default: as dropout)
    norm_eps: float = 1e-5  # epsilon of layer norm
    init_std: float = 0.02  # standard deviation of the initial weights

    def __post_init__(self):
        check(self)
        c, ends = self, [0, *self.cutoffs, self.vocab_size]
        for name, least in {
            "memory": 1 if c.same_length else 0,
            "evaluation_memory": 1,
            "farthest": 0,
            "divisor": 1,
        }.items():
            if getattr(c, name) is not None and getattr(c, name) < least:
                raise ValueError(f"{name} is {getattr(c, name)}; it must be at least {least}")
        if any(end <= start for start, end in pairwise(ends)):
            raise ValueError(
                f"cutoffs are {c.cutoffs}; they must increase, and lie between 0 and the {c.vocab_size} tokens"
            )
        if c.dim // c.divisor ** len(c.cutoffs) < 1:
            raise ValueError(
                f"divisor is {c.divisor}: with {len(c.cutoffs)} cutoffs nothing remains of the dim of {c.dim}"
            )

    @property
    def max_length(self) -> int:
        """Unlimited: positions are relative."""
        return sys.maxsize


@dataclass
class Memory:
    """The most recent hidden states of each layer, (b, tokens, dim) each, for at most `length` tokens."""

    layers: list[tuple[Tensor, ...]]
    length: int
    padding: Tensor | None = None  # of each row, how many of the first states are none of its own

    @property
    def segment(self) -> int | None:
        """How many tokens of a long text are read at once: as many as the memory holds."""
        return self.length or None

    def detach(self) -> "Memory":
        return Memory([(own.detach(),) for (own,) in self.layers], self.length, self.padding)

    def reorder(self, rows: Tensor) -> None:
        self.layers = [(own.index_select(0, rows),) for (own,) in self.layers]
        self.padding = None if self.padding is None else self.padding.index_select(0, rows)

    @staticmethod
    def join(states: Sequence["Memory"], rows: Sequence[int]) -> "Memory":
        """One memory for texts of different lengths; memory i has `rows[i]` rows."""
        joined = Memory([], states[0].length)
        for parts in zip(*(state.layers for state in states), strict=True):
            own, joined.padding = join_left_padded([part for (part,) in parts], rows, 1)
            joined.layers.append((own,))
        return joined

    def update(self, i: int, states: Float[Tensor, "b k dim"]) -> None:
        self.layers[i] = (states[:, max(0, states.shape[1] - self.length) :].detach(),)


class TransformerXL(nn.Module):
    """Norms after each sublayer, relative attention over memory and window, and adaptive input and softmax."""

    def __init__(self, config: TransformerXLConfig):
        super().__init__()
        c = self.config = config
        self.tokens = AdaptiveVocabulary(c.vocab_size, c.dim, c.cutoffs, c.divisor)
        self.before, self.after = (embedding_dropout(own, c.dropout) for own in (c.input_dropout, c.output_dropout))
        self.stack = Stack([_layer(c) for _ in range(c.layers)])
        init.normal(self, c.init_std)
        for layer in self.stack.layers:
            for bias in (layer.attention.body.relative.u, layer.attention.body.relative.v):
                nn.init.normal_(bias, std=c.init_std)

    def hidden_states(self, tokens: Int[Tensor, "b t"], state: Memory | None = None) -> Float[Tensor, "b t dim"]:
        """The last hidden state at each token; `state` then covers these tokens too."""
        state = self.start(len(tokens)) if state is None else state
        x = self.tokens(tokens) * math.sqrt(self.config.dim)
        if self.training and self.config.word_dropout:
            # The first word stays: with nothing else to attend to, a vector of zeros has no usable gradient in a layer norm.
            dropped = x[:, 1:] * word_dropout(tokens[:, 1:], self.config.vocab_size, self.config.word_dropout)
            x = torch.cat([x[:, :1], dropped], dim=1)
        x = self.before(x)
        keys, mask = state.layers[0][0].shape[1] + tokens.shape[1], None
        if self.config.same_length:
            mask = masks.build(masks.reach(state.length), tokens.shape[1], keys, tokens.device)
        if state.padding is not None:
            own = masks.key_padding(torch.arange(keys, device=tokens.device) >= state.padding[:, None])
            mask = own if mask is None else own & mask
            state.padding = (state.padding - max(0, keys - state.length)).clamp(min=0)  # what the memory drops
        for i, layer in enumerate(self.stack.layers):
            seen = torch.cat([state.layers[i][0], x], dim=1)
            x = layer.mlp(layer.attention(x, seen, mask=mask, causal=True))
            state.update(i, seen)
        return self.after(x)

    def project(self, x: Float[Tensor, "*rows dim"]) -> Float[Tensor, "*rows vocab"]:
        """Log probabilities, which are also logits."""
        return self.tokens.log_probs(x)

    def token_losses(self, x: Float[Tensor, "n dim"], expected: Int[Tensor, " n"]) -> Float[Tensor, " n"]:
        return self.tokens.nll(x, expected)

    def start(self, rows: int) -> Memory:
        """No memory yet, for this many rows."""
        c, like = self.config, self.tokens.tables[0].weight
        length = c.memory if self.training or c.evaluation_memory is None else c.evaluation_memory
        return Memory([(like.new_zeros(rows, 0, c.dim),) for _ in range(c.layers)], length)

    def step(self, tokens: Int[Tensor, " b"], state: Memory) -> Float[Tensor, "b vocab"]:
        return self.project(self.hidden_states(tokens[:, None], state)[:, 0])


def _layer(c: TransformerXLConfig) -> Layer:
    def within(body: nn.Module) -> PostNorm:
        return PostNorm(body, nn.LayerNorm(c.dim, eps=c.norm_eps), c.dropout)

    relative = RelativePositions(c.dim, c.heads, farthest=c.farthest, dropout=c.dropout)
    attention = Attention(c.dim, c.heads, dropout=c.attention_dropout, bias=False, relative=relative)
    return Layer(attention=within(attention), mlp=within(MLP(c.dim, c.hidden, F.relu, c.dropout)))


SYSTEM = System(
    TransformerXL,
    TransformerXLConfig,
    PRESETS,
    "Transformer-XL",
    task="language",
    growth=((5_000_000, "tiny"), (50_000_000, "small")),
)

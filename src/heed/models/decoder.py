"""The forward pass shared by decoder-only language models: embed, attend to the text so far, project. Model files set
the parts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heed.models.heads import Choices, Labels
from heed.nn import masks
from heed.nn.attention import Attention
from heed.nn.cache import StackCache, join_left_padded
from heed.nn.dropout import VariationalDropout
from heed.nn.packing import PackedMask, SequenceOffsets
from heed.nn.transformer import MLP, Layer, PostNorm, PreNorm


@dataclass
class TextState:
    """The keys and values of past tokens. The next window of a text is read independently: its positions begin at 0."""

    cache: StackCache
    layers: list = field(default_factory=list)  # nothing that a checkpoint would need
    padding: Tensor | None = None  # of each row, how many of the first positions are none of its own

    def detach(self) -> "TextState":
        return TextState(StackCache(len(self.cache)))

    def reorder(self, rows: Tensor) -> None:
        self.cache.reorder(rows)
        if self.padding is not None:
            self.padding = self.padding.index_select(0, rows)
            if len(rows) and (common := int(self.padding.min())):  # the longest rows have left
                self.padding = self.padding - common
                for own in self.cache:
                    own.attention.drop(common)

    @staticmethod
    def join(states: Sequence["TextState"], rows: Sequence[int]) -> "TextState":
        """One state for texts of different lengths; state i has `rows[i]` rows."""
        joined = TextState(StackCache(len(states[0].cache)))
        for i, own in enumerate(joined.cache):
            caches = [state.cache[i].attention for state in states]
            k, joined.padding = join_left_padded([cache.k for cache in caches], rows, 2)
            v, _ = join_left_padded([cache.v for cache in caches], rows, 2)
            if k is not None:
                own.attention.set(k, v)
        return joined


class Decoder(nn.Module):
    """Tokens in, the logits of each next token out.

    The parts: `tokens`, also the output matrix; `scale` multiplies embeddings; `positions`, `dropout` and `stack`;
    `after` drops units of the last hidden states;
    `bias` of the output (or None); `head` (or None) scores the choices of a question, or the labels of a text;
    `prompt` (or None) are vectors before every text (Lester et al., 2021).
    """

    TOKEN_ROWS = ("tokens.weight", "bias")  # have a row per token: tokens that a task adds get new ones

    def __init__(self, config: Any):
        super().__init__()
        self.config = config
        self.scale, self.bias, self.head, self.prompt = 1.0, None, None, None
        self.after = VariationalDropout(0.0)

    def hidden_states(self, tokens: Int[Tensor, "b t"], state: TextState | None = None) -> Float[Tensor, "b t dim"]:
        """The last hidden state at each token; `state` then covers these tokens too."""
        cache = None if state is None or self.training else state.cache
        before, length, prompt = cache.length if cache else 0, tokens.shape[1], self.config.prompt_length
        # The prompt takes no positions, so that as much text is read with it as without.
        start = max(0, before - prompt)
        if start + length > self.config.max_length:
            raise ValueError(
                f"a text has {start + length} tokens, but the model has {self.config.max_length} positions"
            )
        positions, mask = position_vectors(
            self.positions, length, start, before, None if cache is None else state.padding
        )
        x = self.tokens(tokens) * self.scale + positions
        if not prompt or before:
            return self.after(self.stack(self.dropout(x), causal=True, mask=mask, cache=cache))
        x = torch.cat([self.prompt.to(x.dtype).expand(len(x), -1, -1), x], dim=1)
        return self.after(self.stack(self.dropout(x), causal=True, mask=mask, cache=cache)[:, prompt:])

    def packed_hidden_states(self, tokens: Int[Tensor, "1 t"], offsets: SequenceOffsets) -> Float[Tensor, "1 t dim"]:
        """The same for texts packed in one row: none attends to another, and each starts at position 0."""
        if offsets.longest > self.config.max_length:
            raise ValueError(
                f"a text has {offsets.longest} tokens, but the model has {self.config.max_length} positions"
            )
        x = self.dropout(self.tokens(tokens) * self.scale + self.positions.at(offsets.positions))
        return self.stack(x, mask=PackedMask(offsets, offsets), causal=True)

    def classify_text(
        self, tokens: Int[Tensor, "b t"], valid: Bool[Tensor, "b t"] | None = None
    ) -> Float[Tensor, "b labels"] | Float[Tensor, " b"]:
        return self.classify_states(self.hidden_states(tokens), valid)

    def classify_states(
        self, states: Float[Tensor, "b t dim"], valid: Bool[Tensor, "b t"] | None = None
    ) -> Float[Tensor, "b labels"] | Float[Tensor, " b"]:
        """The logits of labels, or the score of a choice, from the hidden state at the last token of each text."""
        if self.head is None:
            raise ValueError("the model has no head for labels or choices: it is only a language model")
        if valid is None:
            return self.head(states[:, -1])
        return self.head(states[torch.arange(len(states), device=states.device), valid.sum(dim=1) - 1])

    def choose(
        self, tokens: Int[Tensor, "b choices t"], valid: Bool[Tensor, "b choices t"] | None = None
    ) -> Float[Tensor, "b choices"]:
        """The score of each choice, which is read after its question."""
        flat = None if valid is None else valid.flatten(0, 1)
        return self.classify_text(tokens.flatten(0, 1), flat).view(tokens.shape[:2])

    def project(self, x: Float[Tensor, "*rows dim"]) -> Float[Tensor, "*rows vocab"]:
        return F.linear(x, *self.output_weights())

    def output_weights(self) -> tuple[Tensor, Tensor | None]:
        return self.tokens.weight, self.bias

    def start(self, rows: int) -> TextState:
        return TextState(StackCache(self.config.layers))

    def step(self, tokens: Int[Tensor, " b"], state: TextState) -> Float[Tensor, "b vocab"]:
        return self.project(self.hidden_states(tokens[:, None], state)[:, 0])


def position_vectors(
    positions: nn.Module, length: int, start: int, before: int, padding: Int[Tensor, " b"] | None
) -> tuple[Float[Tensor, "*b t dim"], Bool[Tensor, "b 1 1 keys"] | None]:
    """The vectors of `length` positions from `start` on and, for padded rows, those of each row and the mask of
    `before` keys and these.
    """
    if padding is None:
        return positions(start, length), None
    at = start + torch.arange(length, device=padding.device) - padding[:, None]
    mask = masks.key_padding(torch.arange(before + length, device=padding.device) >= padding[:, None])
    return positions.at(at.flatten()).unflatten(0, at.shape), mask


def text_head(c: Any) -> nn.Module | None:
    """The head that scores choices or labels, if the config has any."""
    if c.choices:
        return Choices(c.dim, c.choice_dropout)
    return Labels(c.dim, c.labels, c.choice_dropout) if c.labels else None


def prompt_vectors(c: Any) -> nn.Parameter | None:
    """The prompt vectors before every text, if the config has any."""
    return nn.Parameter(torch.randn(c.prompt_length, c.dim) * c.init_std) if c.prompt_length else None


def layer(
    c: Any,
    around: type[PreNorm] | type[PostNorm],
    activation: Callable[[Tensor], Tensor],
    attention_dropout: float,
    norm_eps: float,
) -> Layer:
    """Self-attention and a feed-forward network with the sizes of a config, each wrapped in `around`."""

    def within(body: nn.Module) -> nn.Module:
        return around(body, nn.LayerNorm(c.dim, eps=norm_eps), c.dropout)

    attention = Attention(c.dim, c.heads, dropout=attention_dropout)
    return Layer(attention=within(attention), mlp=within(MLP(c.dim, c.hidden, activation)))

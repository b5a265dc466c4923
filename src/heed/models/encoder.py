"""The forward pass shared by encoders: embed, attend to the whole text, predict with a head. Model files set the
parts.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heed.models.encoder_heads import (
    HEADS,
    EachToken,
    Parts,
    PooledText,
    Pooler,
    Replaced,
    Words,
    build,
)
from heed.nn import init, masks
from heed.nn.attention import Attention
from heed.nn.capabilities import declares
from heed.nn.packing import SequenceOffsets
from heed.nn.pooling import first_token
from heed.nn.transformer import MLP, Layer, PostNorm, gelu_tanh

ACTIVATIONS = {"gelu": F.gelu, "gelu_tanh": gelu_tanh, "relu": F.relu}

Tokens = Int[Tensor, "b t"]
Valid = (
    Bool[Tensor, "b t"] | SequenceOffsets | None
)  # offsets: many texts one after another in one row, without padding


class Encoder(nn.Module):
    """Tokens in, their states and the predictions of a head out. The parts: `tokens` times `scale` plus `positions`
    and `segments` (the text of a pair), then `norm` and `dropout`; `widen` (or None) projects embeddings to the width
    of the layers; `stack`; `pooler` (or None); `head`.
    """

    HEAD = ("head.",)  # what a task replaces
    POOLED: ClassVar[frozenset[str]] = frozenset()  # the heads with which the model has a pooler

    def __init__(self, config: Any):
        super().__init__()
        self.config, self.scale, self.widen = config, 1.0, None

    def add_head(self, parts: Parts) -> None:
        """The head declared by the config, with a pooler if needed."""
        self.head = build(self.config, parts)
        self.pooler = Pooler(self.config.dim) if self.config.head in self.POOLED else None

    def initialize(self) -> None:
        init.normal(self, self.config.init_std)
        if self.config.init_positions == "sinusoids":
            init.sinusoidal(self.positions, self.config.init_std)
        if self.config.init_keys == "queries":
            init.keys_as_queries(self)

    def encode_text(
        self, tokens: Tokens, valid: Valid = None, segments: Tokens | None = None
    ) -> Float[Tensor, "b t dim"]:
        """The last state of each token. Without `segments`, all are of the first text."""
        offsets = valid if isinstance(valid, SequenceOffsets) else None
        longest = tokens.shape[1] if offsets is None else offsets.longest
        if longest > self.config.max_length:
            raise ValueError(f"a text has {longest} tokens, but the model has {self.config.max_length} positions")
        x = self.embed(tokens, segments, offsets)
        return self.run_layers(x if self.widen is None else self.widen(x), valid)

    def run_layers(self, x: Float[Tensor, "b t dim"], valid: Valid) -> Float[Tensor, "b t dim"]:
        return self.stack(x, mask=masks.key_padding(valid), causal=self.config.head == "causal")

    def packs(self, longest: int) -> bool:
        """Whether texts of up to this many tokens can be packed in one row."""
        return declares(self, "packed")

    def embed(
        self, tokens: Tokens, segments: Tokens | None = None, offsets: SequenceOffsets | None = None
    ) -> Float[Tensor, "b t width"]:
        alike = segments is None or self.config.segments == 1  # such a model tells no texts apart
        own = self.segments.weight[0] if alike else self.segments(segments)
        return self.normalize(self.tokens(tokens) * self.scale + own + self.position_vectors(tokens, offsets))

    def position_vectors(self, tokens: Tokens, offsets: SequenceOffsets | None = None) -> Float[Tensor, "*b t width"]:
        return self.positions(0, tokens.shape[1]) if offsets is None else self.positions.at(offsets.positions)

    def normalize(self, x: Float[Tensor, "b t width"]) -> Float[Tensor, "b t width"]:
        return self.dropout(self.norm(x))

    # what heads predict

    def predict_words(
        self, tokens: Tokens, valid: Valid = None, segments: Tokens | None = None
    ) -> Float[Tensor, "b t vocab"]:
        """The logits of the word at each position, or after it in a causal model."""
        return self.project(self.word_states(self.encode_text(tokens, valid, segments)))

    def word_states(self, states: Float[Tensor, "*rows dim"]) -> Float[Tensor, "*rows width"]:
        """The input of `output_weights`: for a loss that needs the logits of only some positions."""
        return self._part("words")(states)

    def project(self, x: Float[Tensor, "*rows width"]) -> Float[Tensor, "*rows vocab"]:
        return F.linear(x, *self.output_weights())

    def output_weights(self) -> tuple[Tensor, Tensor]:
        return self.tokens.weight, self._part("words").bias

    def classify_pair(self, states: Float[Tensor, "b t dim"]) -> Float[Tensor, "b 2"]:
        """From the states of a pair of texts: whether the second follows the first, or the two are in order."""
        return self._part("pair")(states, self.pooler)

    def classify_text(
        self, tokens: Tokens, valid: Valid = None, segments: Tokens | None = None
    ) -> Float[Tensor, "n labels"]:
        """The logits of the labels of each text or pair, or the score of each text as a choice."""
        states = self.encode_text(tokens, valid, segments)
        return self.classify_first(first_token(states, valid)[:, None])  # heads look at the first token of each text

    def classify_first(self, states: Float[Tensor, "b t dim"]) -> Float[Tensor, "b labels"]:
        """The same from the token states; heads use the first or the pooled one."""
        part = next((name for name in ("choice", "pair") if name in self.head), "text")
        return self._part(part)(states, self.pooler)

    def classify_tokens(
        self, tokens: Tokens, valid: Valid = None, segments: Tokens | None = None
    ) -> Float[Tensor, "b t labels"]:
        return self._part("tokens")(self.encode_text(tokens, valid, segments))

    def choose(
        self,
        tokens: Int[Tensor, "b choices t"],
        valid: Bool[Tensor, "b choices t"] | None = None,
        segments: Int[Tensor, "b choices t"] | None = None,
    ) -> Float[Tensor, "b choices"]:
        """The score of each choice, which is read together with its question."""
        parts = [part if part is None else part.flatten(0, 1) for part in (tokens, valid, segments)]
        return self._part("choice")(self.encode_text(*parts), self.pooler).view(tokens.shape[:2])

    def find_answer(
        self, tokens: Tokens, valid: Valid = None, segments: Tokens | None = None
    ) -> Float[Tensor, "b t 2"]:
        """The logits of each token as the first and the last of the answer."""
        return self._part("answer")(self.encode_text(tokens, valid, segments))

    def detect_replaced(
        self, tokens: Tokens, valid: Valid = None, segments: Tokens | None = None
    ) -> Float[Tensor, "b t"]:
        """The logit that each token was replaced."""
        return self._part("replaced")(self.encode_text(tokens, valid, segments))

    def _part(self, name: str) -> nn.Module:
        if name not in self.head:
            raise ValueError(f"the model has no head for {name}: its head is {self.config.head!r}")
        return self.head[name]

    def adapted(self, config: Any) -> "Encoder":
        """The same body with the head of another config; a pooler and parts of a head that both have are kept."""
        new, weights = type(self)(config), self.state_dict()
        own, free = new.state_dict(), (*self.HEAD, "pooler.")
        same = HEADS[config.head] if config.labels == self.config.labels else ()
        shared = (*(f"head.{part}." for part in same), "pooler.", "generator.")
        kept = {
            name: weight
            for name, weight in weights.items()
            if not name.startswith(free) or (name in own and name.startswith(shared))
        }
        new.load_state_dict({**{name: weight for name, weight in own.items() if name.startswith(free)}, **kept})
        return new

    def lengthened(self, positions: int) -> "Encoder":
        """The same model for longer texts. The learned positions are repeated (Longformer: Beltagy et al., 2020), so neighbours
        keep their relation everywhere but where a repetition begins.
        """
        new, weights = type(self)(dataclasses.replace(self.config, max_length=positions)), self.state_dict()
        weights["positions.places.weight"] = self.positions.repeated(positions)
        new.load_state_dict(weights)
        return new


def usual_parts(c: Any, activation: Callable[[Tensor], Tensor], width: int | None = None) -> dict[str, Callable]:
    """The parts of BERT's heads; `width` is that of the embeddings (default: that of the layers)."""
    dropout = c.dropout if c.classifier_dropout is None else c.classifier_dropout
    return {
        "words": lambda: Words(c.dim, width or c.dim, c.vocab_size, activation, c.norm_eps),
        "pair": lambda: PooledText(c.dim, 2),
        "text": lambda: PooledText(c.dim, c.labels, dropout),
        "tokens": lambda: EachToken(c.dim, c.labels, dropout),
        "choice": lambda: PooledText(c.dim, 1, dropout),
        "answer": lambda: EachToken(c.dim, 2),
        "replaced": lambda: Replaced(c.dim, activation),
    }


def layer(c: Any, attention: nn.Module | None = None) -> Layer:
    """Self-attention and a feed-forward network with the sizes of a config, post-norm; `attention` replaces the
    default.
    """

    def within(body: nn.Module) -> nn.Module:
        return PostNorm(body, nn.LayerNorm(c.dim, eps=c.norm_eps), c.dropout)

    usual = Attention(c.dim, c.heads, dropout=c.attention_dropout) if attention is None else attention
    return Layer(attention=within(usual), mlp=within(MLP(c.dim, c.hidden, ACTIVATIONS[c.activation])))

"""The forward pass shared by all encoder-decoders: embed, encode, decode, project. Model files set the parts."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heed.config import dropout_fields
from heed.nn import masks
from heed.nn.attention import Attention, record
from heed.nn.cache import DecoderState, StackCache
from heed.nn.packing import SequenceOffsets
from heed.nn.transformer import MLP, Layer, PostNorm, PreNorm

Around = type[PostNorm] | type[PreNorm]
Activation = Callable[[Tensor], Tensor]
ACTIVATIONS: dict[str, Activation] = {"relu": F.relu, "gelu": F.gelu, "swish": F.silu}

# sizes beyond which a config is taken for a mistake, or for an attack on memory
MOST = 1 << 24  # of any other whole number in a config
LARGEST = {
    "vocab_size": 1 << 24, "items": 1 << 28, "dim": 1 << 16, "heads": 1 << 12, "hidden": 1 << 18,
    "layers": 1000, "encoder_layers": 1000, "decoder_layers": 1000, "max_length": 1 << 20, "group_layers": 1000,
}  # fmt: skip


class Trace(NamedTuple):
    """`maps` are the attentions of "encoder", "decoder" and "cross", one (b, heads, q, k) per layer, empty if a model has
    none; `output` is that of the decoder, (b, t, dim); `states` of a recurrent model, by part, are (b, t, hidden).
    """

    maps: dict[str, list[Tensor]]
    output: Tensor
    states: dict[str, Tensor] | None = None


class EncoderDecoder(nn.Module):
    """Source and target tokens in, the logits of each next target token out.

    The parts: `tokens`, `positions` and `norm` (None: no norm of embeddings) are for the target, and for the source too
    if `source_tokens`, `source_positions`, `source_norm` are None; `scale` multiplies embeddings; then come `dropout`,
    `encoder` and `decoder`; `output` (None: the matrix of `tokens`) and `bias` (or None) compute the logits.
    """

    def __init__(self, config: Any):
        super().__init__()
        self.config = config

    def forward(
        self,
        source: Int[Tensor, "b s"],
        target: Int[Tensor, "b t"],
        valid: Bool[Tensor, "b s"] | None = None,
    ) -> Float[Tensor, "b t vocab"]:
        return self.project(self.decode(target, self.encode(source, valid), valid))

    def encode(
        self, source: Int[Tensor, "b s"], valid: Bool[Tensor, "b s"] | SequenceOffsets | None = None
    ) -> Float[Tensor, "b s dim"]:
        """The memory that the decoder attends to. Packed sources are one row, and `valid` are their offsets."""
        vectors = self._position_vectors(self.source_positions or self.positions, source, 0, valid)
        x = self._embed(self.source_tokens or self.tokens, source, vectors, self.source_norm or self.norm)
        return self.encoder(x, mask=masks.key_padding(valid))

    def decode(
        self,
        target: Int[Tensor, "b t"],
        memory: Float[Tensor, "sources s dim"],
        valid: Bool[Tensor, "sources s"] | SequenceOffsets | None = None,
        cache: StackCache | None = None,
        offsets: SequenceOffsets | None = None,
    ) -> Float[Tensor, "b t dim"]:
        """The output of the decoder at each target token, which predicts the next one.

        `offsets` are those of packed targets; then the sources are packed too.
        """
        vectors = self._position_vectors(self.positions, target, cache.length if cache else 0, offsets)
        x = self._embed(self.tokens, target, vectors, self.norm)
        own, other = masks.key_padding(offsets), masks.key_padding(valid, offsets)
        return self.decoder(x, memory, mask=own, causal=True, memory_mask=other, cache=cache)

    def project(self, x: Float[Tensor, "*rows dim"]) -> Float[Tensor, "*rows vocab"]:
        return F.linear(x, *self.output_weights())

    def output_weights(self) -> tuple[Tensor, Tensor | None]:
        """The matrix and the bias that turn the output of the decoder into logits."""
        return (self.tokens if self.output is None else self.output).weight, self.bias

    def start(self, source: Int[Tensor, "b s"], valid: Bool[Tensor, "b s"] | None = None) -> DecoderState:
        return DecoderState(self.encode(source, valid), valid, StackCache(self.config.decoder_layers))

    def step(self, tokens: Int[Tensor, " b"], state: DecoderState) -> Float[Tensor, "b vocab"]:
        return self.project(self.decode(tokens[:, None], state.memory, state.valid, state.cache)[:, 0])

    def trace(
        self, source: Int[Tensor, "b s"], target: Int[Tensor, "b t"], valid: Bool[Tensor, "b s"] | None = None
    ) -> Trace:
        """The attentions and the decoder's output for given sources and targets."""
        with record(self) as maps:
            memory = self.encode(source, valid)
            first = len(maps)  # an encoder may have no attention
            output = self.decode(target, memory, valid)
        return Trace({"encoder": maps[:first], "decoder": maps[first::2], "cross": maps[first + 1 :: 2]}, output)

    def _position_vectors(self, positions: nn.Module, tokens: Tensor, start: int, valid: Any) -> Float[Tensor, "t dim"]:
        return (
            positions.at(valid.positions) if isinstance(valid, SequenceOffsets) else positions(start, tokens.shape[1])
        )

    def _embed(
        self, table: nn.Embedding, tokens: Int[Tensor, "b t"], vectors: Float[Tensor, "t dim"], norm: nn.Module | None
    ) -> Float[Tensor, "b t dim"]:
        """The input of the first layer."""
        x = table(tokens) * self.scale + vectors
        return self.dropout(x if norm is None else norm(x))


def layer(
    c: Any,
    around: Around,
    activation: Activation,
    *,
    cross: bool = False,
    norm_eps: float = 1e-5,
    own: nn.Module | None = None,
) -> Layer:
    """One layer with the sizes and dropout rates of a config, each part wrapped in `around`; `own` replaces
    self-attention.
    """

    def within(body: nn.Module) -> nn.Module:
        return around(body, nn.LayerNorm(c.dim, eps=norm_eps), c.dropout)

    def attention() -> nn.Module:
        return within(Attention(c.dim, c.heads, dropout=c.attention_dropout))

    return Layer(
        attention=attention() if own is None else within(own),
        cross=attention() if cross else None,
        mlp=within(MLP(c.dim, c.hidden, activation, c.hidden_dropout)),
    )


def check(config: Any) -> None:
    """Refuse sizes and rates that no model can have."""
    for name, most in LARGEST.items():
        if (value := getattr(config, name, 1)) < 1:
            raise ValueError(f"{name} is {value}; it must be at least 1")
        if name in config.__dataclass_fields__ and value > most:  # not where it is computed, as "no limit"
            raise ValueError(f"{name} is {value}; it must be at most {most:,}")
    for name in (name for name in config.__dataclass_fields__ if name not in LARGEST):
        if type(value := getattr(config, name)) is int and not 0 <= value <= MOST:
            raise ValueError(f"{name} is {value}; it must be from 0 to {MOST:,}")
    if not 0 <= (std := getattr(config, "init_std", 0.0)) < math.inf:
        raise ValueError(f"init_std is {std}; it must be a number of at least 0")
    for name in dropout_fields(config):
        if not 0 <= (getattr(config, name) or 0) < 1:
            raise ValueError(f"{name} is {getattr(config, name)}; it must be at least 0 and below 1")


def source_size(config: Any) -> int:
    """The vocabulary size of the source, for a config with `tied` and an optional `source_vocab_size`."""
    sources = config.source_vocab_size or config.vocab_size
    if config.tied == "all" and sources != config.vocab_size:
        raise ValueError(
            f"tied is 'all', but the source has {sources} subwords and the target {config.vocab_size}: use a joint "
            "vocabulary, or tied = 'target'"
        )
    return sources

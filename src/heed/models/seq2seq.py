"""Sequence to sequence by recurrent networks: from one fixed vector (Sutskever et al., 2014), or with attention.

The recurrent ancestors of the Transformer in the lecture notes: an encoder reads the source into states h_j, a decoder
generates the target from the last one (`attention = "off"`), or attends to all of them at each step (Bahdanau et
al., 2015; Luong et al., 2015). docs/learn/road.md lists the equations and their code.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heed.config import from_data
from heed.models.encoder_decoder import Trace, check, source_size
from heed.models.system import System
from heed.nn import init
from heed.nn.packing import SequenceOffsets
from heed.nn.recurrent import GRU, LSTM, RNN, State, pad_packed, reverse_sequences
from heed.nn.recurrent_decoders import (
    BahdanauDecoder,
    CopyBridge,
    DecoderTrace,
    EncodedSource,
    FixedVectorDecoder,
    InputFeedingDecoder,
    LinearBridge,
    LuongDecoder,
    RecurrentDecoderState,
)
from heed.nn.scores import Additive, Content, Dot, General, ScaledDot

CELLS = {"rnn": RNN, "lstm": LSTM, "gru": GRU}
SCORES = {
    "content": Content,
    "additive": Additive,
    "dot": lambda hidden: Dot(),
    "general": General,
    "scaled-dot": lambda hidden: ScaledDot(),
}


@dataclass(frozen=True)
class Seq2SeqConfig:
    vocab_size: int = from_data()
    source_vocab_size: int | None = from_data(None)
    cell: Literal["rnn", "lstm", "gru"] = "lstm"
    dim: int = 256  # width of embeddings
    hidden: int = 512  # width of the hidden states
    encoder_layers: int = 1
    decoder_layers: int = 1
    bidirectional: bool = True  # bidirectional encoder; each direction is hidden / 2 wide
    attention: Literal["off", "content", "additive", "dot", "general", "scaled-dot"] = "additive"  # docs/learn/road.md
    order: Literal["bahdanau", "luong"] = "bahdanau"  # attend before each step of the decoder, or after it
    feeding: bool = False  # input feeding (only with "luong")
    reverse_source: bool = False  # reverse the source
    max_length: int = 1024  # maximum text length in tokens, including special tokens
    dropout: float = 0.2  # dropout of embeddings, between layers, and of the decoder's output
    tied: Literal["all", "target", "none"] = "all"  # which embeddings share a matrix: source, target and output

    def __post_init__(self):
        check(self)
        if self.bidirectional and self.hidden % 2:
            raise ValueError(f"hidden is {self.hidden}; it must be even, since each direction of the encoder has half")
        if self.feeding and (self.order != "luong" or self.attention == "off"):
            raise ValueError("feeding is true, which needs order = 'luong' and attention: set it to false")


PRESETS = {
    "tiny": {"dim": 128, "hidden": 256, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.2},
    "small": {"dim": 256, "hidden": 512, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.3},
    "base": {"dim": 512, "hidden": 1024, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.2},
    "big": {"dim": 1024, "hidden": 1024, "encoder_layers": 4, "decoder_layers": 4, "dropout": 0.2},
}


class Seq2Seq(nn.Module):
    """Source and target tokens in, the logits of each next target token out."""

    def __init__(self, config: Seq2SeqConfig):
        super().__init__()
        c = self.config = config
        sources = source_size(c)
        self.tokens = nn.Embedding(c.vocab_size, c.dim)
        self.source_tokens = None if c.tied == "all" else nn.Embedding(sources, c.dim)
        self.output = nn.Linear(c.dim, c.vocab_size, bias=False) if c.tied == "none" else None
        self.bias = nn.Parameter(torch.zeros(c.vocab_size))
        self.scale = math.sqrt(c.dim)
        self.dropout = nn.Dropout(c.dropout)
        half = c.hidden // (2 if c.bidirectional else 1)
        cell = CELLS[c.cell]
        self.encoder = cell(c.dim, half, c.encoder_layers, dropout=c.dropout, bidirectional=c.bidirectional)
        self.decoder = _decoder(c)
        same = not c.bidirectional and c.encoder_layers == c.decoder_layers
        self.bridge = CopyBridge() if same else LinearBridge(c.hidden, self.decoder.rnn)
        init.vaswani(self, c.dim)

    def forward(
        self, source: Int[Tensor, "b s"], target: Int[Tensor, "b t"], valid: Bool[Tensor, "b s"] | None = None
    ) -> Float[Tensor, "b t vocab"]:
        return self.project(self.decode(target, self.encode(source, valid)))

    def encode(
        self, source: Int[Tensor, "b s"], valid: Bool[Tensor, "b s"] | SequenceOffsets | None = None
    ) -> EncodedSource:
        """What the decoder gets from the source. Packed sources are one row, and `valid` are their offsets."""
        if isinstance(valid, SequenceOffsets):
            source, valid, _ = pad_packed(source, valid)
        states, last = self._states(source, valid)
        start = self.bridge(last)
        if self.config.attention == "off":
            return EncodedSource(start)
        return EncodedSource(start, states, self.decoder.score.keys(states), None if valid is None else valid[:, None])

    def decode(
        self,
        target: Int[Tensor, "b t"],
        memory: EncodedSource,
        valid: Bool[Tensor, "b s"] | SequenceOffsets | None = None,
        cache: None = None,
        offsets: SequenceOffsets | None = None,
    ) -> Float[Tensor, "b t dim"]:
        """The output of the decoder at each target token, which predicts the next one. The memory has its own mask.

        `offsets` are those of packed targets.
        """
        if offsets is None:
            return self._run_decoder(target, RecurrentDecoderState(memory, memory.start))[0]
        rows, _, indices = pad_packed(target, offsets)
        return self._run_decoder(rows, RecurrentDecoderState(memory, memory.start))[0][indices][None]

    def project(self, x: Float[Tensor, "*rows dim"]) -> Float[Tensor, "*rows vocab"]:
        return F.linear(x, *self.output_weights())

    def output_weights(self) -> tuple[Tensor, Tensor]:
        """The matrix and the bias that turn hidden states into logits."""
        return (self.tokens if self.output is None else self.output).weight, self.bias

    def start(self, source: Int[Tensor, "b s"], valid: Bool[Tensor, "b s"] | None = None) -> RecurrentDecoderState:
        memory = self.encode(source, valid)
        return RecurrentDecoderState(memory, memory.start)

    def step(self, tokens: Int[Tensor, " b"], state: RecurrentDecoderState) -> Float[Tensor, "b vocab"]:
        return self.project(self._run_decoder(tokens[:, None], state)[0][:, 0])

    def trace(
        self, source: Int[Tensor, "b s"], target: Int[Tensor, "b t"], valid: Bool[Tensor, "b s"] | None = None
    ) -> Trace:
        """The attentions and hidden states for given sources and targets."""
        memory = self.encode(source, valid)
        output, trace = self._run_decoder(target, RecurrentDecoderState(memory, memory.start))
        cross = [] if trace.weights is None else [trace.weights[:, None]]  # one head
        states = {"encoder": self._states(source, valid)[0], "decoder": trace.states}
        return Trace({"encoder": [], "decoder": [], "cross": cross}, output, states)

    def _states(self, source: Tensor, valid: Tensor | None) -> tuple[Float[Tensor, "b s hidden"], State]:
        """The states h_j in source order, and the final state of the encoder."""
        x = self._embed(self.source_tokens or self.tokens, source)
        if not self.config.reverse_source:
            return self.encoder(x, valid=valid)
        states, last = self.encoder(reverse_sequences(x, valid), valid=valid)
        return reverse_sequences(states, valid), last

    def _run_decoder(
        self, target: Int[Tensor, "b t"], state: RecurrentDecoderState
    ) -> tuple[Float[Tensor, "b t dim"], DecoderTrace]:
        output, trace = self.decoder(self._embed(self.tokens, target), state)
        return self.dropout(output), trace

    def _embed(self, table: nn.Embedding, tokens: Int[Tensor, "b t"]) -> Float[Tensor, "b t dim"]:
        return self.dropout(table(tokens) * self.scale)


def _decoder(c: Seq2SeqConfig) -> nn.Module:
    """The decoder, with the score function of its attention."""
    attends = c.attention != "off"
    more = c.hidden if attends and c.order == "bahdanau" else c.dim if c.feeding else 0  # inputs besides the last token
    rnn = CELLS[c.cell](c.dim + more, c.hidden, c.decoder_layers, dropout=c.dropout)
    if not attends:
        return FixedVectorDecoder(rnn, c.dim)
    order = BahdanauDecoder if c.order == "bahdanau" else InputFeedingDecoder if c.feeding else LuongDecoder
    return order(rnn, c.dim, SCORES[c.attention](c.hidden))


SYSTEM = System(Seq2Seq, Seq2SeqConfig, PRESETS, "Recurrent translator")

"""The recurrent language model: a network reads one word after another and predicts the next.

With `cell` "rnn" it is the one of the lecture notes, h(t) = tanh(W_h h(t-1) + W_e e(t) + b_1) and ŷ(t) = softmax(U h(t) + b_2)
(Mikolov et al., 2010); with "lstm", tied and with its dropouts that of Zaremba et al. (2014), Press and Wolf (2017) and
Merity et al. (2018).
"""

import sys
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from heed.config import from_data
from heed.models.encoder_decoder import check
from heed.models.system import System
from heed.nn.dropout import VariationalDropout, weight_dropout, word_dropout
from heed.nn.recurrent import GRU, LSTM, RNN, State

CELLS = {"rnn": RNN, "lstm": LSTM, "gru": GRU}
PRESETS = {
    "tiny": {"dim": 200, "hidden": 200, "dropout": 0.3},
    "small": {"dim": 650, "hidden": 650, "dropout": 0.5},
    "base": {"dim": 1024, "hidden": 1024, "dropout": 0.3},
    "big": {"dim": 1024, "hidden": 2048, "dropout": 0.2},
}
GROWTH = ((1_000_000, "tiny"), (50_000_000, "small"))  # tokens of the text


@dataclass(frozen=True)
class RNNLanguageModelConfig:
    vocab_size: int = from_data()
    cell: Literal["rnn", "lstm", "gru"] = "lstm"
    dim: int = 650  # width of embeddings
    hidden: int = 650  # width of the hidden states
    layers: int = 2
    tied: Literal["all", "target", "none"] = "all"  # "all": input and output share a matrix
    dropout: float = 0.5  # dropout of the last layer's output
    input_dropout: float | None = None  # dropout of embeddings (default: dropout)
    layer_dropout: float | None = None  # dropout between layers (default: dropout)
    word_dropout: float = 0.0  # dropout of whole words
    weight_dropout: float = 0.0  # dropout of the recurrent weights

    def __post_init__(self):
        check(self)
        if self.tied == "target":
            raise ValueError(f"tied is {self.tied!r}; a language model supports 'all' or 'none'")

    @property
    def max_length(self) -> int:
        """Unlimited: there are no positions."""
        return sys.maxsize


class RNNLanguageModel(nn.Module):
    """Tokens in, the logits of each next token out."""

    def __init__(self, config: RNNLanguageModelConfig):
        super().__init__()
        c = self.config = config
        between, before = (c.dropout if own is None else own for own in (c.layer_dropout, c.input_dropout))
        self.tokens = nn.Embedding(c.vocab_size, c.dim)
        self.net = CELLS[c.cell](c.dim, c.hidden, c.layers)
        self.net.dropout = VariationalDropout(between)
        self.before, self.after = VariationalDropout(before), VariationalDropout(c.dropout)
        tied = c.tied == "all"
        self.down = nn.Linear(c.hidden, c.dim) if tied and c.hidden != c.dim else None
        self.output = None if tied else nn.Linear(c.hidden, c.vocab_size, bias=False)
        self.bias = nn.Parameter(torch.zeros(c.vocab_size))
        for matrix in (self.tokens, self.output):
            if matrix is not None:
                nn.init.uniform_(matrix.weight, -0.1, 0.1)

    def forward(self, tokens: Int[Tensor, "b t"], state: State | None = None) -> Float[Tensor, "b t vocab"]:
        return self.project(self.hidden_states(tokens, state))

    def hidden_states(self, tokens: Int[Tensor, "b t"], state: State | None = None) -> Float[Tensor, "b t width"]:
        """The hidden state after each token, which predicts the next one; `state` then covers these tokens too."""
        c, x = self.config, self.tokens(tokens)
        if self.training and c.word_dropout:
            x = x * word_dropout(tokens, c.vocab_size, c.word_dropout)
        with weight_dropout(self.net, c.weight_dropout):
            x, after = self.net(self.before(x), state)
        if state is not None:
            state.layers = after.layers
        return self._last(self.after(x))

    def project(self, x: Float[Tensor, "*rows width"]) -> Float[Tensor, "*rows vocab"]:
        return F.linear(x, *self.output_weights())

    def output_weights(self) -> tuple[Tensor, Tensor | None]:
        """The matrix and the bias that turn hidden states into logits."""
        return (self.tokens if self.output is None else self.output).weight, self.bias

    def start(self, rows: int) -> State:
        """The state before any token is read, for this many rows."""
        return self.net.zero_state(rows)

    def step(self, tokens: Int[Tensor, " b"], state: State) -> Float[Tensor, "b vocab"]:
        """The logits of the next token after one more token in each row."""
        x, after = self.net.step(self.tokens(tokens), state)
        state.layers = after.layers
        return self.project(self._last(x))

    def _last(self, x: Float[Tensor, "*rows hidden"]) -> Float[Tensor, "*rows width"]:
        return x if self.down is None else self.down(x)


SYSTEM = System(
    RNNLanguageModel, RNNLanguageModelConfig, PRESETS, "Recurrent language model", task="language", growth=GROWTH
)

"""Recurrent decoders: from a fixed vector, or with attention before or after each step.

The names are those of the papers and the lecture notes: s_i the decoder state at step i, h_j the encoder state at
position j, α_ij the attention weight of step i on position j, c_i = Σ_j α_ij h_j the context.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heed.nn.attention import mix
from heed.nn.cache import keep_sources
from heed.nn.recurrent import Recurrent, State
from heed.nn.scores import Score


@dataclass
class EncodedSource:
    """The initial decoder state, from the encoder's last; with attention also the h_j, their keys and their mask.

    These have one row per source. Each source has `width` adjacent rows of the decoder, such as the beams of a search.
    """

    start: State
    values: Float[Tensor, "b s hidden"] | None = None
    keys: Float[Tensor, "b s hidden"] | None = None
    mask: Bool[Tensor, "b 1 s"] | None = None
    width: int = 1

    def reorder(self, rows: Tensor) -> None:
        """Keep these rows of the decoder, in this order."""
        if self.values is None:
            return
        sources, self.width = keep_sources(rows, self.width, len(self.values))
        for name in ("values", "keys", "mask") if sources is not None else ():
            part = getattr(self, name)
            setattr(self, name, None if part is None else part.index_select(0, sources))


@dataclass
class RecurrentDecoderState:
    """State of incremental decoding: the source, the state of the network, and with input feeding the last output."""

    source: EncodedSource
    hidden: State
    last_output: Tensor | None = None

    def reorder(self, rows: Tensor) -> None:
        """Keep these rows, in this order."""
        self.source.reorder(rows)
        self.hidden.reorder(rows)
        self.last_output = None if self.last_output is None else self.last_output.index_select(0, rows)


class DecoderTrace(NamedTuple):
    """The states s_i, and with attention the weights α_ij."""

    states: Float[Tensor, "b t hidden"]
    weights: Float[Tensor, "b t s"] | None


Output = tuple[Float[Tensor, "b t out"], DecoderTrace]


class FixedVectorDecoder(nn.Module):
    """Sutskever et al. (2014): s_i = f(s_{i-1}, y_{i-1}). The source is only in s_0."""

    def __init__(self, rnn: Recurrent, dim: int):
        super().__init__()
        self.rnn, self.out = rnn, nn.Linear(rnn.width, dim)

    def forward(self, x: Float[Tensor, "b t dim"], state: RecurrentDecoderState) -> Output:
        """The output at each position of x, the embedded target prefix. `state` is updated in place."""
        states, state.hidden = self.rnn(x, state.hidden)
        return self.out(states), DecoderTrace(states, None)


class BahdanauDecoder(nn.Module):
    """Bahdanau et al. (2015): e_ij = a(s_{i-1}, h_j), s_i = f(s_{i-1}, y_{i-1}, c_i); s_i, c_i, y_{i-1} predict y_i."""

    def __init__(self, rnn: Recurrent, dim: int, score: Score):
        super().__init__()
        self.rnn, self.score, self.out = rnn, score, nn.Linear(rnn.width * 2 + dim, dim)

    def forward(self, x: Float[Tensor, "b t dim"], state: RecurrentDecoderState) -> Output:
        steps = []
        for token in x.unbind(dim=1):
            context, weights = _attend(self.score, state.hidden.top[:, None], state.source)
            hidden, state.hidden = self.rnn.step(torch.cat([token, context[:, 0]], dim=1), state.hidden)
            steps.append((hidden, context[:, 0], weights[:, 0]))
        states, contexts, weights = (torch.stack(part, dim=1) for part in zip(*steps, strict=True))
        return self.out(torch.cat([states, contexts, x], dim=-1)).tanh(), DecoderTrace(states, weights)


class LuongDecoder(nn.Module):
    """Luong et al. (2015): s_i = f(s_{i-1}, y_{i-1}), e_ij = a(s_i, h_j); tanh(W [c_i; s_i]) predicts y_i.

    No state depends on an earlier context, so all steps run at once.
    """

    def __init__(self, rnn: Recurrent, dim: int, score: Score):
        super().__init__()
        self.rnn, self.score, self.out = rnn, score, nn.Linear(rnn.width * 2, dim)

    def forward(self, x: Float[Tensor, "b t dim"], state: RecurrentDecoderState) -> Output:
        states, state.hidden = self.rnn(x, state.hidden)
        context, weights = _attend(self.score, states, state.source)
        return self.out(torch.cat([context, states], dim=-1)).tanh(), DecoderTrace(states, weights)


class InputFeedingDecoder(LuongDecoder):
    """Luong's decoder with input feeding: the last output, tanh(W [c_{i-1}; s_{i-1}]), is an input of s_i."""

    def forward(self, x: Float[Tensor, "b t dim"], state: RecurrentDecoderState) -> Output:
        output, steps = torch.zeros_like(x[:, 0]) if state.last_output is None else state.last_output, []
        for token in x.split(1, dim=1):
            y, trace = super().forward(torch.cat([token, output[:, None].to(token.dtype)], dim=-1), state)
            output = y[:, 0]
            steps.append((output, *(part[:, 0] for part in trace)))
        state.last_output = output
        outputs, states, weights = (torch.stack(part, dim=1) for part in zip(*steps, strict=True))
        return outputs, DecoderTrace(states, weights)


def _attend(score: Score, query: Float[Tensor, "b q hidden"], source: EncodedSource) -> tuple[Tensor, Tensor]:
    """c_i and α_ij for these states. Rows of one source attend to it together."""
    queries = query.reshape(len(source.values), -1, query.shape[-1])
    return tuple(y.reshape(*query.shape[:2], -1) for y in mix(score(queries, source.keys), source.values, source.mask))


class CopyBridge(nn.Module):
    """Start the decoder in the encoder's last state, layer by layer."""

    def forward(self, last: State) -> State:
        return last


class LinearBridge(nn.Module):
    """Start the decoder in tanh(W h): a state for each layer, from the top of the encoder's last state."""

    def __init__(self, hidden: int, rnn: Recurrent):
        super().__init__()
        self.shape = len(rnn.layers), rnn.parts
        self.through = nn.Linear(hidden, hidden * len(rnn.layers) * rnn.parts)

    def forward(self, last: State) -> State:
        parts = self.through(last.top).tanh().to(last.top.dtype).unflatten(1, (*self.shape, -1))
        return State([layer.unbind(dim=1) for layer in parts.unbind(dim=1)])

"""Recurrent decoders: from a fixed vector alone, or with a look at the source before or after each step.

The names are those of the papers and the lecture notes: s_i the decoder's state at step i, h_j the encoder's at place j,
α_ij how much step i looks at place j, c_i = Σ_j α_ij h_j what it sees there.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heed.nn.attention import mix
from heed.nn.recurrent import Recurrent, State
from heed.nn.scores import Score


@dataclass
class Source:
    """What a decoder is given: the state to begin with, the fixed context vector of the source; and for one that looks,
    the h_j, the keys that a score makes of them, and which are no padding.
    """

    start: State
    values: Float[Tensor, "b s hidden"] | None = None
    keys: Float[Tensor, "b s hidden"] | None = None
    mask: Bool[Tensor, "b 1 s"] | None = None

    def reorder(self, rows: Tensor) -> None:
        """Keep these rows, in this order."""
        for name in ("values", "keys", "mask"):
            part = getattr(self, name)
            setattr(self, name, None if part is None else part.index_select(0, rows))


@dataclass
class Writing:
    """A decoder at work: what it was given, its state, and what it said last, where that is fed back."""

    source: Source
    state: State
    said: Tensor | None = None

    def reorder(self, rows: Tensor) -> None:
        """Keep these rows, in this order."""
        self.source.reorder(rows)
        self.state.reorder(rows)
        self.said = None if self.said is None else self.said.index_select(0, rows)


class Seen(NamedTuple):
    """How a decoder came to say something: its states s_i, and the weights α_ij where it looks at the source."""

    states: Float[Tensor, "b t hidden"]
    weights: Float[Tensor, "b t s"] | None


class Vector(nn.Module):
    """Sutskever et al. (2014): s_i = f(s_{i-1}, y_{i-1}). Of the source it has s_0, and nothing else."""

    def __init__(self, rnn: Recurrent, dim: int):
        super().__init__()
        self.rnn, self.out = rnn, nn.Linear(rnn.width, dim)

    def forward(self, x: Float[Tensor, "b t dim"], writing: Writing) -> tuple[Float[Tensor, "b t out"], Seen]:
        """What is said at each place of x, the target so far; `writing` goes on to its end."""
        states, writing.state = self.rnn(x, writing.state)
        return self.out(states), Seen(states, None)


class LookThenStep(nn.Module):
    """Bahdanau et al. (2015): e_ij = a(s_{i-1}, h_j), s_i = f(s_{i-1}, y_{i-1}, c_i), and s_i, y_{i-1}, c_i tell y_i."""

    def __init__(self, rnn: Recurrent, dim: int, score: Score):
        super().__init__()
        self.rnn, self.score, self.out = rnn, score, nn.Linear(rnn.width * 2 + dim, dim)

    def forward(self, x: Float[Tensor, "b t dim"], writing: Writing) -> tuple[Float[Tensor, "b t out"], Seen]:
        steps = []
        for now in x.unbind(dim=1):
            context, weights = _look(self.score, writing.state.top[:, None], writing.source)
            state, writing.state = self.rnn.step(torch.cat([now, context[:, 0]], dim=1), writing.state)
            steps.append((state, context[:, 0], weights[:, 0]))
        states, contexts, weights = (torch.stack(part, dim=1) for part in zip(*steps, strict=True))
        return self.out(torch.cat([states, contexts, x], dim=-1)).tanh(), Seen(states, weights)


class StepThenLook(nn.Module):
    """Luong et al. (2015): s_i = f(s_{i-1}, y_{i-1}), e_ij = a(s_i, h_j), and tanh(W [c_i; s_i]) tells y_i.

    All steps at once: no state waits for what was seen before it.
    """

    def __init__(self, rnn: Recurrent, dim: int, score: Score):
        super().__init__()
        self.rnn, self.score, self.out = rnn, score, nn.Linear(rnn.width * 2, dim)

    def forward(self, x: Float[Tensor, "b t dim"], writing: Writing) -> tuple[Float[Tensor, "b t out"], Seen]:
        states, writing.state = self.rnn(x, writing.state)
        context, weights = _look(self.score, states, writing.source)
        return self.out(torch.cat([context, states], dim=-1)).tanh(), Seen(states, weights)


class StepThenLookFed(StepThenLook):
    """The same with input feeding: what was said last, tanh(W [c_{i-1}; s_{i-1}]), goes into s_i beside y_{i-1}."""

    def forward(self, x: Float[Tensor, "b t dim"], writing: Writing) -> tuple[Float[Tensor, "b t out"], Seen]:
        said, steps = torch.zeros_like(x[:, 0]) if writing.said is None else writing.said, []
        for now in x.split(1, dim=1):
            y, seen = super().forward(torch.cat([now, said[:, None].to(now.dtype)], dim=-1), writing)
            said = y[:, 0]
            steps.append((said, *(part[:, 0] for part in seen)))
        writing.said = said
        said, states, weights = (torch.stack(part, dim=1) for part in zip(*steps, strict=True))
        return said, Seen(states, weights)


def _look(score: Score, query: Float[Tensor, "b q hidden"], source: Source) -> tuple[Tensor, Tensor]:
    """c_i and α_ij for these states."""
    return mix(score(query, source.keys), source.values, source.mask)


class Copy(nn.Module):
    """Begin where the encoder ended, layer by layer."""

    def forward(self, last: State) -> State:
        return last


class Bridge(nn.Module):
    """Begin with tanh(W h): a state for each layer out of the one vector in which the encoder ended."""

    def __init__(self, hidden: int, rnn: Recurrent):
        super().__init__()
        self.shape = len(rnn.layers), rnn.parts
        self.through = nn.Linear(hidden, hidden * len(rnn.layers) * rnn.parts)

    def forward(self, last: State) -> State:
        parts = self.through(last.top).tanh().to(last.top.dtype).unflatten(1, (*self.shape, -1))
        return State([own.unbind(dim=1) for own in parts.unbind(dim=1)])

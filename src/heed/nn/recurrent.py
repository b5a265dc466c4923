"""Recurrent networks.

The simple RNN of the lecture notes, h(t) = σ(W_h h(t-1) + W_e e(t) + b_1) with tanh for σ, the LSTM (Hochreiter and
Schmidhuber, 1997; its forget gate by Gers et al., 2000) and the GRU (Cho et al., 2014), computed by torch, on a GPU by
cuDNN. Whole sequences and single steps give the same.
"""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from heed.nn import masks
from heed.nn.packing import SequenceOffsets

Sequence = Tensor | PackedSequence
# One layer: (h,), or (h, c) of an LSTM, each (b, hidden), with two directions (b, 2 hidden)
LayerState = tuple[Tensor, ...]


@dataclass
class State:
    """The state of all layers of a recurrent network, one row per sequence."""

    layers: list[LayerState]

    @property
    def top(self) -> Float[Tensor, "b hidden"]:
        """The hidden state of the last layer."""
        return self.layers[-1][0]

    def reorder(self, rows: Tensor) -> None:
        """Keep these rows, in this order."""
        self.layers = [tuple(part.index_select(0, rows) for part in layer) for layer in self.layers]

    @staticmethod
    def join(states: "list[State]", rows: list[int]) -> "State":
        """Concatenate states."""
        return State(
            [tuple(map(torch.cat, zip(*parts, strict=True))) for parts in zip(*(s.layers for s in states), strict=True)]
        )

    def detach(self) -> "State":
        """The same state detached from its graph, for truncated backpropagation."""
        return State([tuple(part.detach() for part in layer) for layer in self.layers])


class Recurrent(nn.Module):
    """Stacked layers of one cell type with dropout between them, in one or both directions. Each layer is a separate
    torch network: cuDNN's dropout between layers ignores torch's random state, so a resumed run would differ.
    """

    rnn_class: type[nn.RNNBase]
    parts: int  # tensors in a layer's state
    gates: int  # blocks of `hidden` rows in its matrices

    def __init__(self, dim: int, hidden: int, layers: int = 1, *, dropout: float = 0.0, bidirectional: bool = False):
        super().__init__()
        self.hidden, self.directions = hidden, 2 if bidirectional else 1
        self.width = hidden * self.directions  # of the output
        widths = [dim, *[self.width] * (layers - 1)]
        options = {"batch_first": True, "bidirectional": bidirectional}
        self.layers = nn.ModuleList(self.rnn_class(width, hidden, **options) for width in widths)
        self.dropout = nn.Dropout(dropout)
        self.reset()

    def forward(
        self, x: Float[Tensor, "b t dim"], state: State | None = None, valid: Bool[Tensor, "b t"] | None = None
    ) -> tuple[Float[Tensor, "b t width"], State]:
        """The output of the last layer at each position, and the state after the last `valid` position of each row.

        The default state is zeros. Padding comes after the tokens; its outputs are zeros. A row of only padding keeps
        its state.
        """
        state = state or self.zero_state(len(x))
        if x.shape[1] == 1 and self.directions == 1 and valid is None:  # a cell is faster for a single step
            y, state = self.step(x[:, 0], state)
            return y[:, None], state
        with _without_autocast(x.device.type):
            packed, empty = _pack(x.to(state.top.dtype), valid)
            last = []
            for layer, before in zip(self.layers, state.layers, strict=True):
                packed, after = self._run_layer(layer, self._drop(packed) if last else packed, before)
                last.append(after if empty is None else _keep_state(before, after, empty))
        return _unpack(packed, x.shape[1], empty), State(last)

    def step(self, x: Float[Tensor, "b dim"], state: State) -> tuple[Float[Tensor, "b hidden"], State]:
        """One time step in one direction: the output of the last layer, and the state after it."""
        after = []
        with _without_autocast(x.device.type):
            x = x.to(state.top.dtype)
            for layer, before in zip(self.layers, state.layers, strict=True):
                after.append(self._cell(self.dropout(x) if after else x, before, layer._flat_weights))
                x = after[-1][0]
        return x, State(after)

    def zero_state(self, rows: int) -> State:
        """The default initial state."""
        zeros = self.layers[0].weight_hh_l0.new_zeros(rows, self.width)
        return State([(zeros,) * self.parts for _ in self.layers])

    @torch.no_grad()
    def reset(self) -> None:
        """Initialize gate by gate: input weights by Glorot's rule, recurrent weights orthogonal, biases zero."""
        for name, weight in self.named_parameters():
            for gate in weight.chunk(self.gates):
                if "bias" in name:
                    gate.zero_()
                elif "weight_hh" in name:
                    nn.init.orthogonal_(gate)
                else:
                    nn.init.xavier_uniform_(gate)

    def _cell(self, x: Tensor, state: LayerState, weights: list[Tensor]) -> LayerState:
        """One time step of one layer."""
        raise NotImplementedError

    def _run_layer(self, layer: nn.RNNBase, x: Sequence, state: LayerState) -> tuple[Sequence, LayerState]:
        """One layer over whole sequences. torch has directions first, and no tuple around a single tensor."""
        state = tuple(part.unflatten(1, (self.directions, -1)).transpose(0, 1).contiguous() for part in state)
        y, after = layer(x, state if self.parts > 1 else state[0])
        after = after if self.parts > 1 else (after,)
        return y, tuple(part.transpose(0, 1).flatten(1) for part in after)

    def _drop(self, x: Sequence) -> Sequence:
        return x._replace(data=self.dropout(x.data)) if isinstance(x, PackedSequence) else self.dropout(x)


class RNN(Recurrent):
    """h(t) = tanh(W_e e(t) + W_h h(t-1) + b): "The Simple RNN" of the lecture notes (Elman, 1990)."""

    rnn_class, parts, gates = nn.RNN, 1, 1

    def _cell(self, x: Tensor, state: LayerState, weights: list[Tensor]) -> LayerState:
        return (torch.rnn_tanh_cell(x, *state, *weights),)


class GRU(Recurrent):
    """h(t) = (1 - z) n + z h(t-1), where r gates how much n uses of h(t-1) (Cho et al., 2014)."""

    rnn_class, parts, gates = nn.GRU, 1, 3

    def _cell(self, x: Tensor, state: LayerState, weights: list[Tensor]) -> LayerState:
        return (torch.gru_cell(x, *state, *weights),)


class LSTM(Recurrent):
    """c(t) = f c(t-1) + i g and h(t) = o tanh(c(t)) (Hochreiter and Schmidhuber, 1997)."""

    rnn_class, parts, gates = nn.LSTM, 2, 4

    def _cell(self, x: Tensor, state: LayerState, weights: list[Tensor]) -> LayerState:
        return torch.lstm_cell(x, state, *weights)

    @torch.no_grad()
    def reset(self) -> None:
        """Like the others, with a forget gate bias of 1 (Jozefowicz et al., 2015)."""
        super().reset()
        for name, weight in self.named_parameters():
            if "bias_ih" in name:
                weight[self.hidden : 2 * self.hidden] = 1.0


def _without_autocast(device: str) -> AbstractContextManager:
    """CuDNN would use float16 even under bfloat16 autocast, and gradient sums would overflow."""
    return torch.autocast(device, enabled=False) if torch.is_autocast_enabled(device) else nullcontext()


def reverse_sequences(
    x: Float[Tensor, "b t dim"], valid: Bool[Tensor, "b t"] | None = None
) -> Float[Tensor, "b t dim"]:
    """Reverse the tokens of each row; padding stays at the end."""
    if valid is None:
        return x.flip(1)
    position = torch.arange(x.shape[1], device=x.device)
    source = torch.where(valid, valid.sum(dim=1, keepdim=True) - 1 - position, position)
    return x.gather(1, source[:, :, None].expand_as(x))


def pad_packed(tokens: Int[Tensor, "1 t"], offsets: SequenceOffsets) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor]]:
    """Packed sequences as padded rows, their `valid` positions, and the row and column of each token."""
    index = torch.arange(len(offsets.positions), device=tokens.device)
    row, column = torch.bucketize(index, offsets.starts[1:], right=True), offsets.positions
    lengths = offsets.starts.diff()
    rows = tokens.new_zeros(len(lengths), offsets.longest)
    return rows.index_put((row, column), tokens[0]), masks.from_lengths(lengths, offsets.longest), (row, column)


def _pack(x: Float[Tensor, "b t dim"], valid: Bool[Tensor, "b t"] | None) -> tuple[Sequence, Bool[Tensor, " b"] | None]:
    """A packed sequence for cuDNN; and which rows are empty, if any."""
    if valid is None:
        return x, None
    valid = valid.cpu()  # torch takes lengths on the CPU
    lengths = valid.sum(dim=1)
    if not torch.equal(valid, masks.from_lengths(lengths, valid.shape[1])):
        raise ValueError("valid has padding before a token; recurrent networks need padding at the end")
    if lengths.min() == valid.shape[1]:
        return x, None
    packed = pack_padded_sequence(x, lengths.clamp(min=1), batch_first=True, enforce_sorted=False)
    return packed, (lengths == 0).to(x.device) if lengths.min() == 0 else None


def _unpack(x: Sequence, length: int, empty: Bool[Tensor, " b"] | None) -> Float[Tensor, "b t width"]:
    if isinstance(x, Tensor):
        return x
    y = pad_packed_sequence(x, batch_first=True, total_length=length)[0]
    return y if empty is None else y.masked_fill(empty[:, None, None], 0.0)


def _keep_state(before: LayerState, after: LayerState, empty: Bool[Tensor, " b"]) -> LayerState:
    """The state of `empty` rows is unchanged."""
    return tuple(torch.where(empty[:, None], old, new) for old, new in zip(before, after, strict=True))

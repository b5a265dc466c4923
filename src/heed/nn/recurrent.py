"""Networks that read one place after another, each from what it remembers of those before.

The simple RNN of the lecture notes, h(t) = σ(W_h h(t-1) + W_e e(t) + b_1) with tanh for σ, the LSTM (Hochreiter and
Schmidhuber, 1997; its forget gate by Gers et al., 2000) and the GRU (Cho et al., 2014). What they compute is torch's, on
a GPU cuDNN's; whole sequences and single steps give the same.
"""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from heed.nn import masks
from heed.nn.packing import Borders

Sequence = Tensor | PackedSequence
Memory = tuple[
    Tensor, ...
]  # of one layer: (h,), or (h, c) of an LSTM, each (b, hidden), of two directions (b, 2 hidden)


@dataclass
class State:
    """What the layers of a recurrent network remember, a row for each sequence."""

    layers: list[Memory]

    @property
    def top(self) -> Float[Tensor, "b hidden"]:
        """What the last layer says."""
        return self.layers[-1][0]

    def reorder(self, rows: Tensor) -> None:
        """Keep these rows, in this order."""
        self.layers = [tuple(part.index_select(0, rows) for part in own) for own in self.layers]

    def detach(self) -> "State":
        """The same numbers, through which no gradient goes back: what truncated backpropagation carries on."""
        return State([tuple(part.detach() for part in own) for own in self.layers])


class Recurrent(nn.Module):
    """Layers of one kind of cell, one above the other, with dropout between them; in one direction or in both.

    Each layer is a network of torch's own: cuDNN's dropout between layers would draw its chance where no seed of a step
    reaches, and a resumed run would differ.
    """

    kind: type[nn.RNNBase]  # what reads whole sequences
    parts: int  # how many tensors a layer remembers
    gates: int  # how many blocks of `hidden` rows its matrices have

    def __init__(self, dim: int, hidden: int, layers: int = 1, *, dropout: float = 0.0, bidirectional: bool = False):
        super().__init__()
        self.hidden, self.directions = hidden, 2 if bidirectional else 1
        self.width = hidden * self.directions  # of what comes out
        widths = [dim, *[self.width] * (layers - 1)]
        self.layers = nn.ModuleList(self.kind(w, hidden, batch_first=True, bidirectional=bidirectional) for w in widths)
        self.dropout = nn.Dropout(dropout)
        self.reset()

    def forward(
        self,
        x: Float[Tensor, "b t dim"],
        state: State | None = None,
        valid: Bool[Tensor, "b t"] | None = None,
    ) -> tuple[Float[Tensor, "b t width"], State]:
        """What the last layer says at each place, and what all remember after the last one that is `valid`.

        Without a state it begins from zeros. At padding, which comes after the tokens, it says zeros; a row of nothing
        but padding keeps its state.
        """
        state = state or self.start(len(x))
        if x.shape[1] == 1 and self.directions == 1 and valid is None:  # a cell is quicker than a network of one place
            y, state = self.step(x[:, 0], state)
            return y[:, None], state
        with _exactly(x.device.type):
            packed, empty = _pack(x.to(state.top.dtype), valid)
            last = []
            for layer, own in zip(self.layers, state.layers, strict=True):
                packed, after = self._through(layer, self._dropped(packed) if last else packed, own)
                last.append(after if empty is None else _kept(own, after, empty))
        return _unpack(packed, x.shape[1], empty), State(last)

    def step(self, x: Float[Tensor, "b dim"], state: State) -> tuple[Float[Tensor, "b hidden"], State]:
        """One place further, in one direction: what the last layer says there, and what all remember after it."""
        after = []
        with _exactly(x.device.type):
            x = x.to(state.top.dtype)
            for layer, own in zip(self.layers, state.layers, strict=True):
                after.append(self._cell(self.dropout(x) if after else x, own, layer._flat_weights))
                x = after[-1][0]
        return x, State(after)

    def start(self, rows: int) -> State:
        """Nothing remembered yet."""
        zeros = self.layers[0].weight_hh_l0.new_zeros(rows, self.width)
        return State([(zeros,) * self.parts for _ in self.layers])

    @torch.no_grad()
    def reset(self) -> None:
        """Draw all weights anew: gate by gate, what comes in by Glorot's rule, what is remembered orthogonal."""
        for name, weight in self.named_parameters():
            for gate in weight.chunk(self.gates):
                if "bias" in name:
                    gate.zero_()
                elif "weight_hh" in name:
                    nn.init.orthogonal_(gate)
                else:
                    nn.init.xavier_uniform_(gate)

    def _cell(self, x: Tensor, own: Memory, weights: list[Tensor]) -> Memory:
        """One layer, one place further."""
        raise NotImplementedError

    def _through(self, layer: nn.RNNBase, x: Sequence, own: Memory) -> tuple[Sequence, Memory]:
        """One layer over whole sequences. torch has directions first, and no tuple around a single part."""
        own = tuple(part.unflatten(1, (self.directions, -1)).transpose(0, 1).contiguous() for part in own)
        y, after = layer(x, own if self.parts > 1 else own[0])
        after = after if self.parts > 1 else (after,)
        return y, tuple(part.transpose(0, 1).flatten(1) for part in after)

    def _dropped(self, x: Sequence) -> Sequence:
        return x._replace(data=self.dropout(x.data)) if isinstance(x, PackedSequence) else self.dropout(x)


class RNN(Recurrent):
    """h(t) = tanh(W_e e(t) + W_h h(t-1) + b): "The Simple RNN" of the lecture notes (Elman, 1990)."""

    kind, parts, gates = nn.RNN, 1, 1

    def _cell(self, x: Tensor, own: Memory, weights: list[Tensor]) -> Memory:
        return (torch.rnn_tanh_cell(x, *own, *weights),)


class GRU(Recurrent):
    """h(t) = (1 - z) n + z h(t-1), where n sees as much of h(t-1) as r lets through (Cho et al., 2014)."""

    kind, parts, gates = nn.GRU, 1, 3

    def _cell(self, x: Tensor, own: Memory, weights: list[Tensor]) -> Memory:
        return (torch.gru_cell(x, *own, *weights),)


class LSTM(Recurrent):
    """c(t) = f c(t-1) + i g and h(t) = o tanh(c(t)): what is remembered is added to (Hochreiter and Schmidhuber, 1997)."""

    kind, parts, gates = nn.LSTM, 2, 4

    def _cell(self, x: Tensor, own: Memory, weights: list[Tensor]) -> Memory:
        return torch.lstm_cell(x, own, *weights)

    @torch.no_grad()
    def reset(self) -> None:
        """As any, but it begins by remembering: the forget gate's bias is 1 (Jozefowicz et al., 2015)."""
        super().reset()
        for name, weight in self.named_parameters():
            if "bias_ih" in name:
                weight[self.hidden : 2 * self.hidden] = 1.0


def _exactly(device: str) -> AbstractContextManager:
    """Without autocast: cuDNN would take float16 even where bfloat16 is asked for, in which sums of gradients overflow."""
    return torch.autocast(device, enabled=False) if torch.is_autocast_enabled(device) else nullcontext()


def backwards(x: Float[Tensor, "b t dim"], valid: Bool[Tensor, "b t"] | None = None) -> Float[Tensor, "b t dim"]:
    """Each row from its last token to its first; padding stays where it is."""
    if valid is None:
        return x.flip(1)
    place = torch.arange(x.shape[1], device=x.device)
    source = torch.where(valid, valid.sum(dim=1, keepdim=True) - 1 - place, place)
    return x.gather(1, source[:, :, None].expand_as(x))


def apart(tokens: Int[Tensor, "1 t"], borders: Borders) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor]]:
    """Sequences end to end as rows with padding, what of it is no padding, and where each token came to stand."""
    place = torch.arange(len(borders.places), device=tokens.device)
    row, column = torch.bucketize(place, borders.starts[1:], right=True), borders.places
    lengths = borders.starts.diff()
    rows = tokens.new_zeros(len(lengths), borders.longest)
    return rows.index_put((row, column), tokens[0]), masks.of_lengths(lengths, borders.longest), (row, column)


def _pack(x: Float[Tensor, "b t dim"], valid: Bool[Tensor, "b t"] | None) -> tuple[Sequence, Bool[Tensor, " b"] | None]:
    """The tokens alone, as cuDNN takes them; and where some rows have none, which do."""
    if valid is None:
        return x, None
    here = valid.cpu()  # torch wants the lengths there
    lengths = here.sum(dim=1)
    if not torch.equal(here, masks.of_lengths(lengths, here.shape[1])):
        raise ValueError(
            "valid has padding before a token; a recurrent network reads rows that are padded at their end"
        )
    if lengths.min() == here.shape[1]:
        return x, None
    packed = pack_padded_sequence(x, lengths.clamp(min=1), batch_first=True, enforce_sorted=False)
    return packed, (lengths == 0).to(x.device) if lengths.min() == 0 else None


def _unpack(x: Sequence, length: int, empty: Bool[Tensor, " b"] | None) -> Float[Tensor, "b t width"]:
    if isinstance(x, Tensor):
        return x
    y = pad_packed_sequence(x, batch_first=True, total_length=length)[0]
    return y if empty is None else y.masked_fill(empty[:, None, None], 0.0)


def _kept(before: Memory, after: Memory, empty: Bool[Tensor, " b"]) -> Memory:
    """Rows in which nothing was read remember what they did."""
    return tuple(torch.where(empty[:, None], old, new) for old, new in zip(before, after, strict=True))

"""Three networks with equally many weights, and three tasks: a shifting pattern, a running state, and recall over a
distance.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from heed.nn import init
from heed.nn.attention import Attention
from heed.nn.positions import Sinusoidal
from heed.nn.recurrent import GRU
from heed.nn.transformer import MLP, Layer, PreNorm, Stack

HEADS, KERNEL, LAYERS = 4, 3, 2
LONGEST = 64  # positions
Batch = tuple[Int[Tensor, "b t parts"], Int[Tensor, "b t"]]  # tokens, each of one part or more, and labels; -1: none


class CausalConvolution(nn.Module):
    """A convolution over each position and those before it, with a residual."""

    def __init__(self, dim: int):
        super().__init__()
        self.conv = nn.Conv1d(dim, dim, KERNEL)

    def forward(self, x: Float[Tensor, "b t dim"]) -> Float[Tensor, "b t dim"]:
        return x + F.relu(self.conv(F.pad(x.mT, (KERNEL - 1, 0)))).mT


class Recurrence(nn.Module):
    """Heed's GRU, without its last state."""

    def __init__(self, dim: int):
        super().__init__()
        self.net = GRU(dim, dim, LAYERS)

    def forward(self, x: Float[Tensor, "b t dim"]) -> Float[Tensor, "b t dim"]:
        return self.net(x)[0]


class SelfAttention(nn.Module):
    """Heed's Transformer layers with sinusoids and causal attention."""

    def __init__(self, dim: int):
        super().__init__()
        self.positions = Sinusoidal(LONGEST, dim)
        layers = [
            Layer(PreNorm(Attention(dim, HEADS), nn.LayerNorm(dim)), PreNorm(MLP(dim, dim, F.relu), nn.LayerNorm(dim)))
            for _ in range(LAYERS)
        ]
        self.stack = Stack(layers, norm=nn.LayerNorm(dim))
        init.vaswani(self.stack, dim)

    def forward(self, x: Float[Tensor, "b t dim"]) -> Float[Tensor, "b t dim"]:
        return self.stack(x + self.positions(0, x.shape[1]), causal=True)


# Two convolutions for each layer of the others: a GRU has six matrices a layer, attention and MLP have six, a convolution three.
BODIES: dict[str, Callable[[int], nn.Module]] = {
    "convolution": lambda dim: nn.Sequential(*(CausalConvolution(dim) for _ in range(2 * LAYERS))),
    "recurrence": Recurrence,
    "attention": SelfAttention,
}


class Network(nn.Module):
    """Embeddings, a body, and labels: of each position or, with `pooled`, of the whole, by the maximum over
    positions.
    """

    def __init__(self, body: nn.Module, symbols: int, labels: int, dim: int, pooled: bool):
        super().__init__()
        self.tokens, self.body, self.labels = nn.Embedding(symbols, dim), body, nn.Linear(dim, labels)
        self.pooled = pooled

    def forward(self, tokens: Int[Tensor, "b t parts"]) -> Float[Tensor, "b t labels"]:
        x = self.body(self.tokens(tokens).sum(2))
        if self.pooled:
            x = x.amax(1, keepdim=True).expand_as(x)
        return self.labels(x)


@dataclass(frozen=True)
class Task:
    """Batches as in training (`new` False), and in a situation that training does not have; `favours` is the expected
    winner.
    """

    symbols: int
    labels: int
    pooled: bool
    favours: tuple[str, ...]
    draw: Callable[[int, bool, torch.Generator], Batch]


MOTIFS = ((1, 2, 3, 4), (2, 4, 1, 3), (3, 1, 4, 2), (4, 3, 2, 1))  # the same four symbols in four orders
NOISE = (1, 12)  # the symbols around them, these four too: only a motif has all of them side by side
TEXT, EARLY, LATE = 24, (0, 8), (12, 21)  # the length, and where a motif begins in training and in the test


def draw_pattern(rows: int, new: bool, generator: torch.Generator) -> Batch:
    """Which of four motifs is in a row; in training it begins early, in the new situation late."""
    tokens = torch.randint(*NOISE, (rows, TEXT), generator=generator)
    which = torch.randint(len(MOTIFS), (rows,), generator=generator)
    start = torch.randint(*(LATE if new else EARLY), (rows,), generator=generator)
    tokens.scatter_(1, start[:, None] + torch.arange(4), torch.tensor(MOTIFS)[which])
    labels = torch.full_like(tokens, -1)
    labels[:, -1] = which
    return tokens[..., None], labels


def draw_state(rows: int, new: bool, generator: torch.Generator) -> Batch:
    """Whether the number of ones so far is odd, at each position; rows are twice as long in the new situation, where the second half counts."""
    tokens = torch.randint(2, (rows, 32 if new else 16), generator=generator)
    labels = tokens.cumsum(1) % 2
    if new:
        labels[:, :16] = -1
    return tokens[..., None], labels


KEYS, VALUES, ASK = 16, 8, 24  # ids: keys, then values, then the question mark


def draw_recall(rows: int, new: bool, generator: torch.Generator) -> Batch:
    """Pairs of a key and a value, then a key and a question mark: its value? Six pairs in training, twelve in the new situation."""
    pairs = 12 if new else 6
    keys = torch.rand(rows, KEYS, generator=generator).argsort(1)[:, :pairs]
    values = torch.randint(VALUES, (rows, pairs), generator=generator)
    asked = torch.randint(pairs, (rows, 1), generator=generator)
    tokens = torch.stack([keys, KEYS + values], dim=2)
    question = torch.stack([keys.gather(1, asked), torch.full_like(asked, ASK)], dim=2)
    labels = torch.full((rows, pairs + 1), -1)
    labels[:, -1] = values.gather(1, asked)[:, 0]
    return torch.cat([tokens, question], dim=1), labels


TASKS = {
    "shifted pattern": Task(NOISE[1], len(MOTIFS), True, ("convolution", "recurrence"), draw_pattern),
    "running state": Task(2, 2, False, ("recurrence",), draw_state),
    "recall": Task(ASK + 1, VALUES, False, ("attention",), draw_recall),
}

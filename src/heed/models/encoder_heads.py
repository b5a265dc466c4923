"""Heads for all encoders: predictions from the states of a text. A head for whole texts gets the states and the
model's pooler, and uses either.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heed.models.encoder_decoder import check
from heed.nn.transformer import MLP, PostNorm

Activation = Callable[[Tensor], Tensor]
Parts = Mapping[str, Callable[[], nn.Module]]

HEADS = {  # by the `head` of a config: what it is made of
    "none": (),
    "masked": ("words",),
    "causal": ("words",),
    "pretraining": ("words", "pair"),
    "pair": ("pair",),
    "classification": ("text",),
    "tokens": ("tokens",),
    "choice": ("choice",),
    "answer": ("answer",),
    "replaced": ("replaced",),
    "joint": ("replaced",),
}
LABELLED = ("classification", "tokens")


def settle(config: Any) -> None:
    """Refuse sizes that no encoder can have. A model with labels classifies texts, unless its head classifies tokens."""
    check(config)
    for name in ("segments", "embedding"):
        if getattr(config, name, 1) < 1:
            raise ValueError(f"{name} is {getattr(config, name)}; it must be at least 1")
    known = [name for name in HEADS if name != "joint" or hasattr(config, "generator_fraction")]
    if config.head not in known:
        raise ValueError(f"the head is {config.head!r}; there are {', '.join(known)}")
    if config.labels and config.head not in LABELLED:
        object.__setattr__(config, "head", "classification")
    if config.head in LABELLED and not config.labels:
        raise ValueError(f"the head is {config.head!r}, but there are no labels")


def build(config: Any, parts: Parts) -> nn.ModuleDict:
    """The head declared by a config, built from these parts."""
    return nn.ModuleDict({name: parts[name]() for name in HEADS[config.head]})


class Pooler(nn.Module):
    """The state of the first token through a matrix and tanh: the vector of a text (Devlin et al., 2019)."""

    def __init__(self, dim: int):
        super().__init__()
        self.dense = nn.Linear(dim, dim)

    def forward(self, states: Float[Tensor, "b t dim"]) -> Float[Tensor, "b dim"]:
        return torch.tanh(self.dense(states[:, 0]))


class Words(nn.Module):
    """A matrix, an activation and a norm before the output, whose matrix is the token embedding; and the output
    bias.
    """

    def __init__(self, dim: int, width: int, vocab_size: int, activation: Activation, norm_eps: float):
        super().__init__()
        self.dense, self.activation = nn.Linear(dim, width), activation
        self.norm = nn.LayerNorm(width, eps=norm_eps)
        self.bias = nn.Parameter(torch.zeros(vocab_size))

    def forward(self, states: Float[Tensor, "*rows dim"]) -> Float[Tensor, "*rows width"]:
        return self.norm(self.activation(self.dense(states)))


class PooledText(nn.Module):
    """The vector of a text to logits: of labels, next sentence, sentence order, or a choice."""

    def __init__(self, dim: int, labels: int, dropout: float = 0.0):
        super().__init__()
        self.dropout, self.out = nn.Dropout(dropout), nn.Linear(dim, labels)

    def forward(self, states: Float[Tensor, "b t dim"], pooler: nn.Module) -> Float[Tensor, "b labels"]:
        return self.out(self.dropout(pooler(states)))


class FirstToken(nn.Module):
    """The state of the first token to logits, through a matrix of the head."""

    def __init__(self, dim: int, labels: int, activation: Activation, dropout: float = 0.0, first_dropout: float = 0.0):
        super().__init__()
        self.first_dropout, self.dropout = nn.Dropout(first_dropout), nn.Dropout(dropout)
        self.dense, self.activation, self.out = nn.Linear(dim, dim), activation, nn.Linear(dim, labels)

    def forward(self, states: Float[Tensor, "b t dim"], pooler: nn.Module | None) -> Float[Tensor, "b labels"]:
        return self.out(self.dropout(self.activation(self.dense(self.first_dropout(states[:, 0])))))


class EachToken(nn.Module):
    """The state of each token to logits: of its labels, or as the start and the end of an answer."""

    def __init__(self, dim: int, labels: int, dropout: float = 0.0):
        super().__init__()
        self.dropout, self.out = nn.Dropout(dropout), nn.Linear(dim, labels)

    def forward(self, states: Float[Tensor, "b t dim"]) -> Float[Tensor, "b t labels"]:
        return self.out(self.dropout(states))


class DeepAnswer(nn.Module):
    """A feed-forward network with its residual and norm before the logits of start and end (BigBird)."""

    def __init__(self, dim: int, hidden: int, activation: Activation, dropout: float, norm_eps: float):
        super().__init__()
        self.mlp = PostNorm(MLP(dim, hidden, activation), nn.LayerNorm(dim, eps=norm_eps), dropout)
        self.out = nn.Linear(dim, 2)

    def forward(self, states: Float[Tensor, "b t dim"]) -> Float[Tensor, "b t 2"]:
        return self.out(self.mlp(states))


class Replaced(nn.Module):
    """The state of each token to the logit that it was replaced (Clark et al., 2020)."""

    def __init__(self, dim: int, activation: Activation):
        super().__init__()
        self.dense, self.activation, self.out = nn.Linear(dim, dim), activation, nn.Linear(dim, 1)

    def forward(self, states: Float[Tensor, "b t dim"]) -> Float[Tensor, "b t"]:
        return self.out(self.activation(self.dense(states)))[..., 0]

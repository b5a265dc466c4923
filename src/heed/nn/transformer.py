"""Transformer layers, composed of modules. A layer takes modules, not options: a model file builds its attention and
feed-forward network and wraps each in PreNorm or PostNorm.
"""

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heed.nn.cache import LayerCache, StackCache
from heed.nn.local_pixels import LocalMask
from heed.nn.packing import PackedMask


def gelu_tanh(x: Tensor) -> Tensor:
    """GELU by its tanh approximation, as in GPT (Hendrycks and Gimpel, 2016)."""
    return F.gelu(x, approximate="tanh")


class MLP(nn.Module):
    """Equation (4): the feed-forward network, applied at each position."""

    def __init__(self, dim: int, hidden: int, activation: Callable[[Tensor], Tensor], dropout: float = 0.0):
        super().__init__()
        self.up = nn.Linear(dim, hidden)
        self.activation = activation
        self.dropout = nn.Dropout(dropout)
        self.down = nn.Linear(hidden, dim)

    def forward(self, x: Float[Tensor, "b t dim"]) -> Float[Tensor, "b t dim"]:
        return self.down(self.dropout(self.activation(self.up(x))))


class PostNorm(nn.Module):
    """norm(x + body(x)): equations (3) and (5), the original Transformer."""

    def __init__(self, body: nn.Module, norm: nn.Module, dropout: float = 0.0):
        super().__init__()
        self.body, self.norm, self.dropout = body, norm, nn.Dropout(dropout)

    def forward(self, x: Tensor, *args, **kwargs) -> Tensor:
        return self.norm(x + self.dropout(self.body(x, *args, **kwargs)))


class PreNorm(nn.Module):
    """x + body(norm(x)): the order of GPT-2, easier to train when deep (Xiong et al., 2020)."""

    def __init__(self, body: nn.Module, norm: nn.Module, dropout: float = 0.0):
        super().__init__()
        self.body, self.norm, self.dropout = body, norm, nn.Dropout(dropout)

    def forward(self, x: Tensor, *args, **kwargs) -> Tensor:
        return self.add(x, self.body(self.norm(x), *args, **kwargs))

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """The output for an input x and the body's output y."""
        return x + self.dropout(y)


class ScaledPreNorm(nn.Module):
    """x + scale · body(norm(x)): LayerScale (Touvron et al., 2021), and stochastic depth (Huang et al., 2016).

    `path_dropout` is the rate at which the branch is dropped per example in training; kept ones are scaled up.
    `scale` is the initial value of a learned factor per dimension; 0: none.
    """

    def __init__(self, body: nn.Module, norm: nn.LayerNorm, dropout: float, path_dropout: float, scale: float):
        super().__init__()
        self.body, self.norm, self.dropout, self.path_dropout = body, norm, nn.Dropout(dropout), path_dropout
        self.scale = nn.Parameter(torch.full(norm.normalized_shape, scale)) if scale else None

    def forward(self, x: Tensor, *args, **kwargs) -> Tensor:
        return self.add(x, self.body(self.norm(x), *args, **kwargs))

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """The output for an input x and the body's output y."""
        y = self.dropout(y)
        y = y if self.scale is None else y * self.scale
        if self.training and self.path_dropout:
            y = y * F.dropout(y.new_ones(len(y), 1, 1), self.path_dropout)
        return x + y


class Layer(nn.Module):
    """Self-attention, cross-attention in a decoder, and a feed-forward network."""

    def __init__(self, attention: nn.Module, mlp: nn.Module, cross: nn.Module | None = None):
        super().__init__()
        self.attention, self.cross, self.mlp = attention, cross, mlp

    def forward(
        self,
        x: Float[Tensor, "b t dim"],
        memory: Float[Tensor, "sources s dim"] | None = None,
        *,
        mask: Bool[Tensor, "..."] | PackedMask | LocalMask | None = None,
        causal: bool = False,
        memory_mask: Bool[Tensor, "..."] | PackedMask | None = None,
        cache: LayerCache | None = None,
    ) -> Float[Tensor, "b t dim"]:
        x = self.attention(x, mask=mask, causal=causal, cache=cache and cache.attention)
        if self.cross is not None:  # rows of one source, such as the beams of a search, attend to it together
            queries = x if len(x) == len(memory) else x.reshape(len(memory), -1, x.shape[-1])
            x = self.cross(queries, memory, mask=memory_mask, cache=cache and cache.cross).reshape(x.shape)
        return self.mlp(x)

    def sublayers(self) -> list[nn.Module]:
        return [part for part in (self.attention, self.cross, self.mlp) if part is not None]


class Stack(nn.Module):
    """A stack of layers, and an optional final norm."""

    def __init__(self, layers: Sequence[Layer], norm: nn.Module | None = None):
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.norm = norm

    def forward(self, x: Tensor, memory: Tensor | None = None, *, cache: StackCache | None = None, **masks) -> Tensor:
        for layer, layer_cache in zip(self.layers, cache or [None] * len(self.layers), strict=True):
            x = layer(x, memory, cache=layer_cache, **masks)
        return x if self.norm is None else self.norm(x)


class SharedStack(nn.Module):
    """Groups of layers: a stack of `depth` in which neighbours belong to the same group and share its weights
    (ALBERT).
    """

    def __init__(self, groups: Sequence[Sequence[Layer]], depth: int):
        super().__init__()
        self.groups = nn.ModuleList(nn.ModuleList(group) for group in groups)
        self.depth, self.norm = depth, None

    @property
    def layers(self) -> list[Layer]:
        """In the order of the forward pass, each as often as it is applied."""
        return [layer for i in range(self.depth) for layer in self.groups[i * len(self.groups) // self.depth]]

    def forward(self, x: Tensor, **masks) -> Tensor:
        for layer in self.layers:
            x = layer(x, **masks)
        return x

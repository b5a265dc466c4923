"""Transformer layers with a part left out, beside the ones that models are built of: to see what the part is for."""

from collections.abc import Callable
from functools import partial

import torch.nn.functional as F
from torch import Tensor, nn

from heed.nn import init
from heed.nn.attention import Attention
from heed.nn.transformer import MLP, Layer, PostNorm, PreNorm, Stack

Around = Callable[[nn.Module, int], nn.Module]


class Bare(nn.Module):
    """body(x): neither residual nor norm."""

    def __init__(self, body: nn.Module):
        super().__init__()
        self.body = body

    def forward(self, x: Tensor, *args, **kwargs) -> Tensor:
        return self.body(x, *args, **kwargs)


class NormAlone(nn.Module):
    """norm(body(x)): no residual."""

    def __init__(self, body: nn.Module, norm: nn.Module):
        super().__init__()
        self.body, self.norm = body, norm

    def forward(self, x: Tensor, *args, **kwargs) -> Tensor:
        return self.norm(self.body(x, *args, **kwargs))


class ResidualAlone(nn.Module):
    """x + body(x): no norm."""

    def __init__(self, body: nn.Module):
        super().__init__()
        self.body = body

    def forward(self, x: Tensor, *args, **kwargs) -> Tensor:
        return x + self.body(x, *args, **kwargs)


def _normed(around: Callable[[nn.Module, nn.Module], nn.Module], body: nn.Module, dim: int) -> nn.Module:
    return around(body, nn.LayerNorm(dim))


AROUND: dict[str, Around] = {
    "neither": lambda body, dim: Bare(body),
    "norm alone": partial(_normed, NormAlone),
    "residual alone": lambda body, dim: ResidualAlone(body),
    "post-norm": partial(_normed, PostNorm),
    "pre-norm": partial(_normed, PreNorm),
}


def build(kind: str, dim: int, heads: int, layers: int) -> Stack:
    """Attention and a feed-forward network in each layer, with `kind` around both, and the weights of Vaswani et al."""
    around = AROUND[kind]
    stack = Stack(
        [Layer(around(Attention(dim, heads), dim), around(MLP(dim, 4 * dim, F.relu), dim)) for _ in range(layers)],
        norm=nn.LayerNorm(dim) if kind == "pre-norm" else None,
    )
    init.vaswani(stack, dim)
    return stack

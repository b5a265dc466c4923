"""Transformer stacks with and without residuals and norms, to see what each is for."""

from collections.abc import Callable
from functools import partial

import torch.nn.functional as F
from torch import Tensor, nn

from heed.nn import init
from heed.nn.attention import Attention
from heed.nn.transformer import MLP, Layer, PostNorm, PreNorm, Stack

Wrapper = Callable[[nn.Module, int], nn.Module]


class BodyOnly(nn.Module):
    """body(x): neither residual nor norm."""

    def __init__(self, body: nn.Module):
        super().__init__()
        self.body = body

    def forward(self, x: Tensor, *args, **kwargs) -> Tensor:
        return self.body(x, *args, **kwargs)


class NormOnly(nn.Module):
    """norm(body(x)): no residual."""

    def __init__(self, body: nn.Module, norm: nn.Module):
        super().__init__()
        self.body, self.norm = body, norm

    def forward(self, x: Tensor, *args, **kwargs) -> Tensor:
        return self.norm(self.body(x, *args, **kwargs))


class ResidualOnly(nn.Module):
    """x + body(x): no norm."""

    def __init__(self, body: nn.Module):
        super().__init__()
        self.body = body

    def forward(self, x: Tensor, *args, **kwargs) -> Tensor:
        return x + self.body(x, *args, **kwargs)


def _with_norm(wrap: Callable[[nn.Module, nn.Module], nn.Module], body: nn.Module, dim: int) -> nn.Module:
    return wrap(body, nn.LayerNorm(dim))


WRAPPERS: dict[str, Wrapper] = {
    "neither": lambda body, dim: BodyOnly(body),
    "norm alone": partial(_with_norm, NormOnly),
    "residual alone": lambda body, dim: ResidualOnly(body),
    "post-norm": partial(_with_norm, PostNorm),
    "pre-norm": partial(_with_norm, PreNorm),
}


def build_stack(kind: str, dim: int, heads: int, layers: int) -> Stack:
    """Layers of attention and feed-forward network, each in a wrapper of this kind, initialized as in Vaswani et al. (2017)."""
    wrap = WRAPPERS[kind]
    stack = Stack(
        [Layer(wrap(Attention(dim, heads), dim), wrap(MLP(dim, 4 * dim, F.relu), dim)) for _ in range(layers)],
        norm=nn.LayerNorm(dim) if kind == "pre-norm" else None,
    )
    init.vaswani(stack, dim)
    return stack

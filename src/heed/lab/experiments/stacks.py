"""Transformer stacks with and without residuals and norms, to see what each is for."""

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from heed.nn import init
from heed.nn.attention import Attention
from heed.nn.transformer import MLP, Layer, PostNorm, PreNorm, Stack


class NormOnly(nn.Module):
    """norm(body(x)): no residual."""

    def __init__(self, body: nn.Module, norm: nn.Module):
        super().__init__()
        self.body, self.norm = body, norm

    def forward(self, x: Tensor, *args, **kwargs) -> Tensor:
        return self.norm(self.body(x, *args, **kwargs))


WRAPPERS: dict[str, Callable[[nn.Module, int], nn.Module]] = {
    "neither": lambda body, dim: NormOnly(body, nn.Identity()),
    "norm alone": lambda body, dim: NormOnly(body, nn.LayerNorm(dim)),
    "residual alone": lambda body, dim: PostNorm(body, nn.Identity()),
    "post-norm": lambda body, dim: PostNorm(body, nn.LayerNorm(dim)),
    "pre-norm": lambda body, dim: PreNorm(body, nn.LayerNorm(dim)),
}


def build_stack(kind: str, dim: int, heads: int, layers: int) -> Stack:
    """Layers of attention and feed-forward network, each in a wrapper of this kind, initialized as in Vaswani et al. (2017)."""
    wrap = WRAPPERS[kind]
    body = [Layer(wrap(Attention(dim, heads), dim), wrap(MLP(dim, 4 * dim, F.relu), dim)) for _ in range(layers)]
    stack = Stack(body, norm=nn.LayerNorm(dim) if kind == "pre-norm" else None)
    init.vaswani(stack, dim)
    return stack

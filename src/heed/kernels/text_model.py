"""Language models for a search on a CPU: the layers of a Transformer in few operators and modules, since a step has one
row, where reading the weights and starting operators take all of the time.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from heed.kernels import int8
from heed.nn.attention import attend
from heed.nn.cache import Cache, LayerCache, StackCache
from heed.nn.transformer import Layer, PostNorm, Stack

Weights = Callable[
    ..., nn.Module
]  # linear layers of the same input -> one module, whose outputs are next to each other


class SameWeights(nn.Module):
    """The layers themselves, with the same results to the last bit."""

    def __init__(self, *layers: nn.Linear | int8.Matrix):
        super().__init__()
        self.parts = tuple((own.weight, own.bias) for own in layers)

    def forward(self, x: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch out"]:
        if len(self.parts) == 1:
            return F.linear(x, *self.parts[0])
        return torch.cat([F.linear(x, *own) for own in self.parts], dim=-1)


class TextStack(nn.Module):
    """`Stack` for inference."""

    def __init__(self, stack: Stack, weights: Weights):
        super().__init__()
        self.layers, self.norm = nn.ModuleList(TextLayer(own, weights) for own in stack.layers), stack.norm

    def forward(
        self, x: Float[Tensor, "b t dim"], *, mask: Any = None, causal: bool = False, cache: StackCache | None = None
    ) -> Float[Tensor, "b t dim"]:
        for layer, own in zip(self.layers, cache or [None] * len(self.layers), strict=True):
            x = layer.forward(x, mask, causal, own)
        return x if self.norm is None else normed(self.norm, x)


class TextLayer(nn.Module):
    """`Layer` without a memory. Attention itself is in float32."""

    def __init__(self, layer: Layer, weights: Weights):
        super().__init__()
        attention, mlp = layer.attention.body, layer.mlp.body
        self.width, self.activation = attention.width, mlp.activation
        self.first, self.second = layer.attention.norm, layer.mlp.norm
        self.after = type(layer.attention) is PostNorm, type(layer.mlp) is PostNorm
        self.qkv, self.out = weights(attention.q, attention.k, attention.v), weights(attention.out)
        self.up, self.down = weights(mlp.up), weights(mlp.down)

    def forward(
        self, x: Float[Tensor, "b t dim"], mask: Any, causal: bool, cache: LayerCache | None
    ) -> Float[Tensor, "b t dim"]:
        own = None if cache is None else cache.attention
        x = around(self.first, self.after[0], x, lambda x: self.attend(x, mask, causal, own))
        return around(self.second, self.after[1], x, self.feed)

    def attend(self, x: Tensor, mask: Any, causal: bool, cache: Cache | None) -> Tensor:
        q, k, v = self.qkv.forward(x).unflatten(-1, (3, -1, self.width)).permute(2, 0, 3, 1, 4)
        if cache is not None:
            k, v = cache.append(k, v)
        return self.out.forward(attend(q, k, v, mask=mask, causal=causal).transpose(1, 2).flatten(2))

    def feed(self, x: Tensor) -> Tensor:
        return self.down.forward(self.activation(self.up.forward(x)))


def around(norm: nn.LayerNorm, after: bool, x: Tensor, body: Any) -> Tensor:
    """A body with its residual sum and its norm, before or after it."""
    return normed(norm, x + body(x)) if after else x + body(normed(norm, x))


def normed(norm: nn.LayerNorm, x: Tensor) -> Tensor:
    return torch.layer_norm(x, norm.normalized_shape, norm.weight, norm.bias, norm.eps)


class TextModel(nn.Module):
    """A copy of a language model for a search: what a search asks of a model. Embeddings, positions and norms are those
    of the model.
    """

    def __init__(self, model: nn.Module, weights: Weights = SameWeights):
        super().__init__()
        self.config, self.model = model.config, int8.int8_copy(model, {Stack: partial(TextStack, weights=weights)})
        self.output = weights(int8.Matrix(*model.output_weights()))

    def start(self, rows: int) -> Any:
        return self.model.start(rows)

    def hidden_states(self, tokens: Tensor, state: Any = None) -> Float[Tensor, "b t dim"]:
        return self.model.hidden_states(tokens, state)

    def project(self, x: Float[Tensor, "*rows dim"]) -> Float[Tensor, "*rows vocab"]:
        return self.output.forward(x)

    def step(self, tokens: Tensor, state: Any) -> Float[Tensor, "b vocab"]:
        return self.output.forward(self.model.hidden_states(tokens[:, None], state)[:, 0])

"""Attention: score every key, softmax over those the mask allows, and average their values.

Shapes: b batch, h heads, q queries, k keys, d head size, dim model size.
Equations are numbered as in the lecture notes on Vaswani et al. (2017).
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heed.nn import masks
from heed.nn.blocks import BlockMask, attend_blocks
from heed.nn.cache import Cache
from heed.nn.local_pixels import LocalMask, attend_local
from heed.nn.packing import PackedMask, attend_packed

Kernel = Callable[..., Tensor]


def attend(
    query: Float[Tensor, "b h q d"],
    key: Float[Tensor, "b h k d"],
    value: Float[Tensor, "b h k dv"],
    *,
    mask: Bool[Tensor, "... #q #k"] | PackedMask | BlockMask | LocalMask | None = None,
    causal: bool = False,
    dropout: float = 0.0,
    bias: Float[Tensor, "b h q k"] | None = None,
) -> Float[Tensor, "b h q dv"]:
    """softmax(query . key / sqrt(d) + bias) . value over the keys that `mask` and `causal` both allow.

    If there are more keys than queries, the queries are the last ones. (torch's `is_causal` aligns the first ones,
    which is wrong with cached keys.)
    """
    if isinstance(mask, PackedMask):
        return attend_packed(query, key, value, mask, causal, dropout)
    if isinstance(mask, BlockMask):
        return attend_blocks(query, key, value, mask, dropout)
    if isinstance(mask, LocalMask):
        return attend_local(query, key, value, mask, dropout)
    queries, keys = query.shape[-2], key.shape[-2]
    square_causal = causal and queries == keys and mask is None and bias is None
    if not square_causal:
        mask = _combine(mask, causal, queries, keys, query.device)
    if bias is not None:
        mask = bias if mask is None else bias.masked_fill(~mask, -torch.inf)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout, is_causal=square_causal)


def _combine(mask, causal, queries, keys, device) -> Tensor | None:
    """One mask that combines `mask` and `causal`."""
    if causal and queries > 1:
        past = masks.build(masks.causal(), queries, keys, device)
        mask = past if mask is None else mask & past
    return mask


def mix(
    scores: Float[Tensor, "*rows k"], value: Float[Tensor, "*batch k dv"], mask: Bool[Tensor, "..."] | None = None
) -> tuple[Float[Tensor, "*rows dv"], Float[Tensor, "*rows k"]]:
    """Equation (2): the average of the values with weights softmax(scores) over the allowed keys, and the weights. A
    query without allowed keys gets zeros. With `Score` modules this is the attention of recurrent decoders.
    """
    if mask is None:
        mask = scores.new_ones((), dtype=torch.bool)
    weights = scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(dim=-1)
    weights = weights.masked_fill(~mask, 0.0)
    return weights @ value, weights


class Attention(nn.Module):
    """Multi-head attention of x over itself, or over `memory`: equations (1), (2) and (6).

    Heads are dim / heads wide, or `head_dim`: then W_Q, W_K and W_V project to heads × head_dim, and W_O back to dim.
    With `causal`, the queries are the last of the keys, cached keys included. `kernel` computes the attention itself;
    `relative` adds a term to the scores, computed from queries and keys; without `bias` the four matrices have none.
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        head_dim: int | None = None,
        dropout: float = 0.0,
        kernel: Kernel = attend,
        bias: bool = True,
        relative: nn.Module | None = None,
    ):
        super().__init__()
        if head_dim is None and dim % heads:
            raise ValueError(f"dim ({dim}) is not a multiple of heads ({heads})")
        if head_dim is not None and head_dim < 1:
            raise ValueError(f"head_dim is {head_dim}; it must be at least 1")
        self.width = dim // heads if head_dim is None else head_dim
        concat = heads * self.width
        self.q = nn.Linear(dim, concat, bias=bias)
        self.k = nn.Linear(dim, concat, bias=bias)
        self.v = nn.Linear(dim, concat, bias=bias)
        self.out = nn.Linear(concat, dim, bias=bias)
        self.dropout = dropout
        self.kernel = kernel
        self.relative = relative

    def forward(
        self,
        x: Float[Tensor, "b q dim"],
        memory: Float[Tensor, "b k dim"] | None = None,
        *,
        mask: Bool[Tensor, "... #q #k"] | PackedMask | BlockMask | LocalMask | None = None,
        causal: bool = False,
        cache: Cache | None = None,
    ) -> Float[Tensor, "b q dim"]:
        q = self._split(self.q(x))
        if memory is not None and cache is not None and len(cache):
            k, v = cache.k, cache.v  # the memory does not change: its keys are cached after the first step
        else:
            source = x if memory is None else memory
            k, v = self._split(self.k(source)), self._split(self.v(source))
            if cache is not None:
                k, v = cache.append(k, v)
        terms = {} if self.relative is None else {"bias": self.relative(q, k)}
        dropout = self.dropout if self.training else 0.0
        y = self.kernel(q, k, v, mask=mask, causal=causal, dropout=dropout, **terms)
        return self.out(y.transpose(1, 2).flatten(2))

    @property
    def heads_fill_dim(self) -> bool:
        """Whether all heads together are as wide as the model, as kernels and other programs expect."""
        return self.q.out_features == self.q.in_features

    def _split(self, x: Float[Tensor, "b t hd"]) -> Float[Tensor, "b h t d"]:
        return x.unflatten(-1, (-1, self.width)).transpose(1, 2)


@contextmanager
def record(model: nn.Module) -> Iterator[list[Float[Tensor, "b h q k"]]]:
    """Within this block, collect the weights of every attention in `model`, in call order."""
    maps = []

    def attend_and_record(query, key, value, *, mask=None, causal=False, dropout=0.0, bias=None):
        if isinstance(mask, BlockMask):
            mask, bias = mask.valid, mask.bias(query.shape[-2]).to(query)
        if isinstance(mask, LocalMask):
            mask = mask.dense()
        scores = query @ key.mT / math.sqrt(query.shape[-1])  # equation (1), head by head
        scores = scores if bias is None else scores + bias
        combined = _combine(mask, causal, query.shape[-2], key.shape[-2], query.device)
        y, weights = mix(scores, value, combined)
        maps.append(weights)
        return y

    kernels = {module: module.kernel for module in model.modules() if isinstance(module, Attention)}
    for module in kernels:
        module.kernel = attend_and_record
    try:
        yield maps
    finally:
        for module, kernel in kernels.items():
            module.kernel = kernel

"""Self-attention that is block-sparse for long texts and full for short ones."""

from functools import lru_cache

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heed.nn.attention import Attention
from heed.nn.blocks import BlockMask, BlockPattern
from heed.nn.packing import PackedMask


class BlockSparseAttention(Attention):
    """Attention with a pattern of blocks; random blocks are drawn from `seed`. Outside of training they are the same
    if `fixed`, else the first block replaces each. The last `external` positions are global and in no block.
    """

    def __init__(
        self, dim: int, pattern: BlockPattern, seed: int, *, fixed: bool, dropout: float = 0.0, external: int = 0
    ):
        super().__init__(dim, pattern.heads, dropout=dropout)
        self.pattern, self.seed, self.fixed, self.external = pattern, seed, fixed, external

    def forward(
        self,
        x: Float[Tensor, "b t dim"],
        memory: None = None,
        *,
        mask: Bool[Tensor, "b 1 1 t"] | PackedMask | None = None,
        causal: bool = False,
        cache: None = None,
    ) -> Float[Tensor, "b t dim"]:
        length = mask.keys.longest if isinstance(mask, PackedMask) else x.shape[1] - self.external
        if length <= self.pattern.full:
            return super().forward(x, mask=mask, causal=causal)
        if causal:
            raise ValueError(
                f"a text has {length} tokens: block-sparse attention is for encoders; a causal model uses full "
                f"attention, up to {self.pattern.full} tokens"
            )
        if isinstance(mask, PackedMask):
            raise ValueError(
                f"a text has {length} tokens: block-sparse attention needs one text per row; packed texts are limited "
                f"to {self.pattern.full} tokens"
            )
        seed = self.seed if self.training or self.fixed else None
        table = _table(self.pattern, length, seed, x.device)
        return super().forward(x, mask=BlockMask(table, self.pattern.size, mask, self.external))


@lru_cache(maxsize=256)
def _table(pattern: BlockPattern, length: int, seed: int | None, device: torch.device) -> Int[Tensor, "h middle seen"]:
    """The blocks that each block attends to, with random ones if there is a seed; cached, since a copy would wait for
    the GPU in every layer.
    """
    random = pattern.first_again(length) if seed is None else pattern.drawn(length, seed)
    with torch.inference_mode(False):  # what is made in that mode could not be used in training afterwards
        return pattern.table(length, random).to(device)

"""Self-attention that is block-sparse for long texts and full for short ones."""

from jaxtyping import Bool, Float
from torch import Tensor

from heed.nn.attention import Attention
from heed.nn.blocks import BlockMask, BlockPattern
from heed.nn.packing import PackedMask


class BlockSparseAttention(Attention):
    """Attention by a pattern of blocks; its random blocks are drawn by `seed`.

    Outside of training they are the same if `fixed`, else the first block stands in for each.
    """

    def __init__(self, dim: int, pattern: BlockPattern, seed: int, *, fixed: bool, dropout: float = 0.0):
        super().__init__(dim, pattern.heads, dropout=dropout)
        self.pattern, self.seed, self.fixed = pattern, seed, fixed

    def forward(
        self,
        x: Float[Tensor, "b t dim"],
        memory: None = None,
        *,
        mask: Bool[Tensor, "b 1 1 t"] | PackedMask | None = None,
        causal: bool = False,
        cache: None = None,
    ) -> Float[Tensor, "b t dim"]:
        length = mask.keys.longest if isinstance(mask, PackedMask) else x.shape[1]
        if length <= self.pattern.full:
            return super().forward(x, mask=mask, causal=causal)
        if causal:
            raise ValueError(
                f"a text has {length} tokens: block-sparse attention is for encoders, and a model that predicts each next token "
                f"has full attention, up to {self.pattern.full} tokens"
            )
        if isinstance(mask, PackedMask):
            raise ValueError(
                f"a text has {length} tokens: block-sparse attention reads each text in a row of its own, and packed ones are of "
                f"up to {self.pattern.full} tokens"
            )
        drawn = self.training or self.fixed
        random = self.pattern.drawn(length, self.seed) if drawn else self.pattern.first_again(length)
        return super().forward(x, mask=BlockMask(self.pattern.table(length, random), self.pattern.size, mask))

"""The forward pass shared by recommenders: embed the items of a history, attend, and score every item with a shared
matrix. Model files set the parts.
"""

from typing import Any, ClassVar

import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heed.nn import masks
from heed.nn.packing import SequenceOffsets


class ItemEncoder(nn.Module):
    """Histories in, a state at each item out.

    The parts: `items`, times `scale`, with `positions` added; `norm` (or None) and `dropout`; `stack`; `head` (or
    None) is applied to states before the item matrix; `bias` of the scores (or None).
    """

    fills_masks: ClassVar[bool] = False  # reads a history as a whole and predicts masked items; else each next item

    def __init__(self, config: Any):
        super().__init__()
        self.config = config
        self.scale, self.norm, self.head, self.bias = 1.0, None, None, None

    @property
    def mask(self) -> int:
        """The id of the mask item."""
        return self.config.items

    def item_states(
        self, items: Int[Tensor, "b t"], valid: Bool[Tensor, "b t"] | SequenceOffsets | None = None
    ) -> Float[Tensor, "b t dim"]:
        """The state at each item; `valid` are the offsets of histories packed in one row, or the mask."""
        offsets = valid if isinstance(valid, SequenceOffsets) else None
        longest = items.shape[1] if offsets is None else offsets.longest
        if longest > self.config.max_length:
            raise ValueError(f"a history has {longest} items, but the model has {self.config.max_length} positions")
        positions = self.positions(0, longest) if offsets is None else self.positions.at(offsets.positions)
        x = self.items(items) * self.scale + positions
        x = self.dropout(x if self.norm is None else self.norm(x))
        x = self.stack(x, mask=masks.key_padding(valid), causal=not self.fills_masks)
        return x if self.head is None else self.head(x)

    def item_weights(self) -> tuple[Float[Tensor, "items dim"], Float[Tensor, " items"] | None]:
        """The matrix and the bias that score each item, except the mask item."""
        return self.items.weight[: self.config.items], self.bias

    def item_scores(self, states: Float[Tensor, "*rows dim"]) -> Float[Tensor, "*rows items"]:
        return F.linear(states, *self.item_weights())

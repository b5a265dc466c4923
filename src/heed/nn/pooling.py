"""Pooling: from the token states of a text to one vector."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heed.nn.packing import SequenceOffsets

States = Float[Tensor, "b t dim"]
Valid = Bool[Tensor, "b t"] | SequenceOffsets | None
Pooling = Callable[[States, Valid], Float[Tensor, "n dim"]]


def first_token(states: States, valid: Valid = None) -> Float[Tensor, "n dim"]:
    """The state of the first token, [CLS] or <s>. Packed filler may be empty, even at the end."""
    packed = isinstance(valid, SequenceOffsets)
    return states[0, valid.starts[:-1].clamp(max=states.shape[1] - 1)] if packed else states[:, 0]


def mean(states: States, valid: Valid) -> Float[Tensor, "n dim"]:
    """The mean of all tokens, including special ones (Reimers and Gurevych, 2019)."""
    return _reduced(states, valid, "mean")


def largest(states: States, valid: Valid) -> Float[Tensor, "n dim"]:
    """The maximum of each dimension."""
    return _reduced(states, valid, "max")


def _reduced(states: States, valid: Valid, how: str) -> Float[Tensor, "n dim"]:
    """Pool the tokens of each text into one vector, at least in single precision."""
    exact = torch.promote_types(states.dtype, torch.float32)
    if isinstance(valid, SequenceOffsets):
        tokens, lengths = states[0], valid.starts.diff()
    else:
        tokens, lengths = states[valid], valid.sum(dim=1)
    # `unsafe` skips a check of the lengths, for which a GPU would have to wait
    return torch.segment_reduce(tokens.to(exact), how, lengths=lengths.long(), axis=0, unsafe=True)


POOLINGS: dict[str, Pooling] = {"mean": mean, "cls": first_token, "max": largest}

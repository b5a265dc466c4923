"""One pass of a model: the sources read once, then each token said, by whichever operations are given."""

import torch
from torch import Tensor

from heed.decoding.cuda.buffers import SearchBuffers
from heed.decoding.cuda.plain import Plain
from heed.decoding.cuda.weights import Weights


def remember(weights: Weights, ops: Plain, tokens: Tensor, places: Tensor, longest: int, room: SearchBuffers) -> None:
    """Sources end to end, as the room has them seated: their keys and values for every layer of the decoder.

    A search begins anew with it.
    """
    room.begin()
    stream = ops.embed(weights.source, tokens, places)
    for attention, mlp in weights.source.layers:
        y, stream = ops.into(stream, attention)
        stream = ops.back(ops.attend_source(y, room, longest, weights.heads), attention.back, stream)
        y, stream = ops.into(stream, mlp)
        stream = ops.back(y, mlp.back, stream)
    memory = ops.end(stream, weights.source.last, weights.dtype)
    torch.addmm(weights.memory.bias, memory, weights.memory.weight.t(), out=room.memory[: len(tokens)].flatten(1))


def say(weights: Weights, ops: Plain, room: SearchBuffers) -> None:
    """One token for every beam."""
    heads = weights.heads
    stream = ops.embed(weights.target, room.token.view(-1), room.said, room.size.beams)
    for i, (own, cross, mlp) in enumerate(weights.target.layers):
        y, stream = ops.into(stream, own)
        stream = ops.back(ops.attend_own(y, room, i, heads), own.back, stream)
        y, stream = ops.into(stream, cross)
        stream = ops.back(ops.attend_memory(y, room, i, heads), cross.back, stream)
        y, stream = ops.into(stream, mlp)
        stream = ops.back(y, mlp.back, stream)
    ops.choose(stream, weights, room)

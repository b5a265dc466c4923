"""One pass of a model: encode the sources once, then one decoding step per token, by any back end."""

import torch
from torch import Tensor

from heed.decoding.cuda.buffers import SearchBuffers
from heed.decoding.cuda.plain import TorchOps
from heed.decoding.cuda.weights import Weights


def encode_sources(
    weights: Weights, ops: TorchOps, tokens: Tensor, positions: Tensor, longest: int, buffers: SearchBuffers
) -> None:
    """Reset the search, encode the packed sources, and store the cross-attention keys and values of all layers."""
    buffers.reset()
    residual = ops.embed(weights.source, tokens, positions)
    for attention, mlp in weights.source.layers:
        y, residual = ops.project_in(residual, attention)
        y = ops.encoder_attention(y, buffers, longest, weights.heads)
        residual = ops.project_out(y, attention.project_out, residual)
        y, residual = ops.project_in(residual, mlp)
        residual = ops.project_out(y, mlp.project_out, residual)
    memory = ops.final_norm(residual, weights.source.final_norm, weights.dtype)
    torch.addmm(weights.memory.bias, memory, weights.memory.weight.t(), out=buffers.memory[: len(tokens)].flatten(1))


def decode_step(weights: Weights, ops: TorchOps, buffers: SearchBuffers) -> None:
    """One token for every beam."""
    heads = weights.heads
    residual = ops.embed(weights.target, buffers.token.view(-1), buffers.generated, buffers.size.beams)
    for i, (attention, cross, mlp) in enumerate(weights.target.layers):
        y, residual = ops.project_in(residual, attention)
        residual = ops.project_out(ops.self_attention(y, buffers, i, heads), attention.project_out, residual)
        y, residual = ops.project_in(residual, cross)
        residual = ops.project_out(ops.cross_attention(y, buffers, i, heads), cross.project_out, residual)
        y, residual = ops.project_in(residual, mlp)
        residual = ops.project_out(y, mlp.project_out, residual)
    ops.select(residual, weights, buffers)

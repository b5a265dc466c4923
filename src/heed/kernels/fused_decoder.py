"""A decoder-only language model for training on a GPU: the same model with fused layers (kernels/fused_stack.py)."""

from functools import partial
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heed.kernels import fused_stack
from heed.nn.dropout import drops_whole_units
from heed.nn.packing import PackedMask, SequenceOffsets, WindowMask
from heed.nn.positions import Learned, Sinusoidal


def supports(model: nn.Module) -> bool:
    """Whether the stack can be fused, and the embedding kernel can add its positions."""
    if model.prompt is not None or drops_whole_units(model):  # in no kernel
        return False
    return fused_stack.supports(model) and (type(model.positions) is Learned or isinstance(model.positions, Sinusoidal))


def use_fused_layers(model: nn.Module) -> None:
    """Replace the layers and the embedding of a model that `supports` accepts; its weights are kept."""
    fused_stack.use_fused_layers(model)
    model.hidden_states = partial(_hidden_states, model)
    model.packed_hidden_states = partial(_packed_hidden_states, model)


def _hidden_states(model: nn.Module, tokens: Int[Tensor, "b t"], state: Any = None) -> Float[Tensor, "b t dim"]:
    """As in the model during training: windows of equal length, and nothing is kept in `state`."""
    rows, length = tokens.shape
    _check_length(length, model)
    x = _embed(model, tokens.flatten(), torch.arange(length, device=tokens.device).repeat(rows))
    return model.stack(x, mask=WindowMask(rows, length), causal=True).view(rows, length, -1)


def _packed_hidden_states(
    model: nn.Module, tokens: Int[Tensor, "1 t"], offsets: SequenceOffsets
) -> Float[Tensor, "1 t dim"]:
    x = _embed(model, tokens[0], offsets.positions)
    return model.stack(x, mask=PackedMask(offsets, offsets), causal=True)


def _check_length(length: int, model: nn.Module) -> None:
    if length > model.config.max_length:
        raise ValueError(f"a text has {length} tokens, but the model has {model.config.max_length} positions")


def _embed(model: nn.Module, tokens: Int[Tensor, " t"], positions: Int[Tensor, " t"]) -> Float[Tensor, "1 t dim"]:
    """Embeddings, positions and dropout by one kernel."""
    from heed.kernels import embedding

    own = model.positions
    waves, offset = (own.places.weight, own.offset) if type(own) is Learned else (own.waves, 0)
    rate = model.dropout.p if model.dropout.training else 0.0
    return embedding.embed(model.tokens.weight, tokens, positions + offset, waves, model.scale, rate)[None]

"""An encoder-decoder for training on a GPU: the same model, of swifter parts (nn/fused_stack.py)."""

import copy
from functools import partial
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor, nn

from heed.kernels import fused_stack
from heed.models.encoder_decoder import EncoderDecoder
from heed.nn.packing import Borders
from heed.nn.positions import Sinusoidal


def supports_packing(model: nn.Module) -> bool:
    """Whether a model can take sentences end to end."""
    return isinstance(model, EncoderDecoder) and fused_stack.supports_packing(model)


def supports(model: nn.Module) -> bool:
    """Whether a model is one that `use_fused_layers` knows."""
    return isinstance(model, EncoderDecoder) and fused_stack.supports(model)


def use_fused_layers(model: EncoderDecoder) -> None:
    """Exchange the parts of a model that `supports`; its weights stay where they are."""
    fused_stack.use_fused_layers(model)
    positions = {type(part) for part in (model.positions, model.source_positions) if part is not None}
    if all(issubclass(kind, Sinusoidal) for kind in positions) and model.norm is None and model.source_norm is None:
        model._places, model._embed = _which, partial(_embedded, model)
    else:
        model._embed = partial(_normed, model)


def half_precision_copy(model: EncoderDecoder, dtype: torch.dtype = torch.bfloat16) -> EncoderDecoder:
    """A rounded copy of a model that `supports`, to be listened to: it learns nothing and drops nothing."""
    own = copy.deepcopy(model).requires_grad_(False)
    exact = fused_stack.exact(own)
    for weight in own.parameters():
        if id(weight) not in exact:
            weight.data = weight.data.to(dtype)
    use_fused_layers(own)
    return own.eval()


def _which(positions: Sinusoidal, tokens: Tensor, start: int, valid: Borders) -> tuple[Tensor, Tensor]:
    """Which waves are to be added: that is done with the embeddings."""
    return positions.waves, valid.places


def _embedded(
    model: EncoderDecoder, table: nn.Embedding, tokens: Int[Tensor, "1 t"], places: tuple[Tensor, Tensor], norm: Any
) -> Tensor:
    from heed.kernels import embedding

    rate = model.dropout.p if model.dropout.training else 0.0
    return embedding.embed(table.weight, tokens[0], places[1], places[0], model.scale, rate)[None]


def _normed(
    model: EncoderDecoder, table: nn.Embedding, tokens: Int[Tensor, "1 t"], places: Tensor, norm: nn.LayerNorm | None
) -> Tensor:
    """As the model itself; but its norm has exact weights for rounded rows, which torch's own kernel does not take."""
    from heed.kernels import residual_norm

    x = (table(tokens) * model.scale + places).to(table.weight.dtype)
    return model.dropout(x if norm is None else residual_norm.norm(x.squeeze(0), norm)[None])

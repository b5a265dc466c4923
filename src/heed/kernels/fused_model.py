"""A model with fused layers, for a GPU: an encoder-decoder, a ViT or an Image Transformer; language models are in
fused_decoder, encoders in fused_encoder.
"""

import copy
from functools import partial
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heed.kernels import fused_decoder, fused_encoder, fused_stack
from heed.nn.attention import Attention
from heed.nn.capabilities import declares
from heed.nn.dropout import drops_whole_units
from heed.nn.packing import SequenceOffsets, WindowMask
from heed.nn.positions import Sinusoidal, SinusoidalHalves


def supports_packing(model: nn.Module) -> bool:
    """Whether a model can train on packed sequences."""
    prompted = bool(getattr(model.config, "prompt_length", 0))  # packed texts have no place for its vectors
    shared = drops_whole_units(model)  # the texts of a row would share one mask
    return declares(model, "packed") and not prompted and not shared and fused_stack.supports_packing(model)


def supports(model: nn.Module) -> bool:
    """Whether `use_fused_layers` supports a model."""
    if not declares(model, "fused") or not fused_stack.supports(model):
        return False
    if _reads_text(model):
        return fused_encoder.supports(model)
    if _continues_text(model):
        return fused_decoder.supports(model)
    if _reads_images(model):
        return True
    if _draws_images(model):  # kernels have neither local attention nor two lengths of windows
        return model.turns.mask is None and model.encoder is None
    return all(norm is None or type(norm) is nn.LayerNorm for norm in (model.norm, model.source_norm))


def use_fused_layers(model: nn.Module) -> None:
    """Replace the layers and the embedding of a model that `supports` accepts; its weights are kept."""
    if _reads_text(model):
        return fused_encoder.use_fused_layers(model)
    if _continues_text(model):
        return fused_decoder.use_fused_layers(model)
    fused_stack.use_fused_layers(model)
    if _reads_images(model):
        model.image_states = partial(_image_states, model)
        model._class_token = partial(_class_token, model)
        return None
    if _draws_images(model):
        model._decode = partial(_decode_pixels, model)
        return None
    positions = {type(part) for part in (model.positions, model.source_positions) if part is not None}
    if positions <= {Sinusoidal, SinusoidalHalves} and model.norm is None and model.source_norm is None:
        model._position_vectors, model._embed = _positions, partial(_embed_fused, model)
    else:
        model._embed = partial(_embed, model)
    return None


def _reads_text(model: nn.Module) -> bool:
    """Whether it is an encoder alone."""
    return hasattr(model, "encode_text")


def _continues_text(model: nn.Module) -> bool:
    """Whether it is decoder-only."""
    return hasattr(model, "packed_hidden_states")


def _reads_images(model: nn.Module) -> bool:
    return hasattr(model, "image_states")


def _draws_images(model: nn.Module) -> bool:
    return hasattr(model, "pixel_states")


def _decode_pixels(model: nn.Module, x: Float[Tensor, "b t dim"], memory: None) -> Float[Tensor, "b t dim"]:
    windows = WindowMask(*x.shape[:2])
    return model.stack(x.flatten(0, 1)[None], mask=windows, causal=True).unflatten(1, windows)[0]


def _image_states(model: nn.Module, images: Float[Tensor, "b c h w"]) -> Float[Tensor, "b t dim"]:
    """As in the model: all images have the same number of patches."""
    x = model.embed(images)
    windows = WindowMask(*x.shape[:2])
    return model.stack(x.flatten(0, 1)[None], mask=windows).unflatten(1, windows)[0]


def _class_token(model: nn.Module, x: Float[Tensor, "b t dim"]) -> Float[Tensor, "b dim"]:
    return model.stack(x.flatten(0, 1)[None], mask=WindowMask(*x.shape[:2]), first_only=True)[0]


def half_precision_copy(model: nn.Module, dtype: torch.dtype = torch.bfloat16) -> nn.Module:
    """A frozen copy for inference of a model that `supports` accepts, such as a teacher, rounded to `dtype`."""
    model = copy.deepcopy(model).requires_grad_(False)
    exact = fused_stack.float32_weights(model)
    for weight in model.parameters():
        if id(weight) not in exact:
            weight.data = weight.data.to(dtype)
    for part in model.modules():
        if isinstance(part, Attention):
            _join_weights(part)
    use_fused_layers(model)
    return model.eval()


def _join_weights(body: Attention) -> None:
    """Put the weights of queries, keys and values next to each other, so that one product needs no copy of them."""
    for name in ("weight", "bias"):
        parts = [getattr(layer, name) for layer in (body.q, body.k, body.v)]
        joint = torch.cat([part.data for part in parts]).split([len(part) for part in parts])
        for part, own in zip(parts, joint, strict=True):
            part.data = own


def _positions(positions: Sinusoidal, tokens: Tensor, start: int, valid: SequenceOffsets) -> tuple[Tensor, Tensor]:
    """What the fused embedding needs to add the position encodings itself."""
    return positions.waves, valid.positions


def _embed_fused(
    model: nn.Module, table: nn.Embedding, tokens: Int[Tensor, "1 t"], positions: tuple[Tensor, Tensor], norm: Any
) -> Tensor:
    from heed.kernels import embedding

    rate = model.dropout.p if model.dropout.training else 0.0
    return embedding.embed(table.weight, tokens[0], positions[1], positions[0], model.scale, rate)[None]


def _embed(
    model: nn.Module, table: nn.Embedding, tokens: Int[Tensor, "1 t"], positions: Tensor, norm: nn.LayerNorm | None
) -> Tensor:
    """As in the model, with a norm that takes float32 weights and rounded rows, which torch's does not."""
    from heed.kernels import residual_norm

    x = (table(tokens) * model.scale + positions).to(table.weight.dtype)
    return model.dropout(x if norm is None else residual_norm.layer_norm(x.squeeze(0), norm)[None])

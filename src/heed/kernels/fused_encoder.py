"""An encoder for training on a GPU: the same model with fused layers (kernels/fused_stack.py)."""

from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heed.kernels import fused_stack
from heed.nn.packing import PackedMask, SequenceOffsets, WindowMask


def supports(model: nn.Module) -> bool:
    """Whether the stacks can be fused, and all other norms are of the embeddings or of predicted words."""
    known = {id(model.norm), *(id(part.norm) for part in model.modules() if _predicts_words(part))}
    stacks = [part for part in model.modules() if type(part) in fused_stack.STACKS]
    known |= {id(part) for stack in stacks for part in stack.modules()}
    norms = [part for part in model.modules() if isinstance(part, nn.LayerNorm)]
    return fused_stack.supports(model) and model.config.head != "causal" and all(id(norm) in known for norm in norms)


def use_fused_layers(model: nn.Module) -> None:
    """Replace the layers of a model that `supports` accepts; its weights are kept."""
    fused_stack.use_fused_layers(model)
    model.normalize, model.encode_text = partial(_normalize, model), partial(_encode_text, model)
    for words in filter(_predicts_words, model.modules()):
        words.forward = partial(_word_states, words)
    if (generator := getattr(model, "generator", None)) is not None:
        generator.forward = partial(_generator_states, generator)


def _predicts_words(part: nn.Module) -> bool:
    """Whether it is a head with a norm before the output."""
    return hasattr(part, "dense") and hasattr(part, "norm")


def _encode_text(
    model: nn.Module, tokens: Int[Tensor, "b t"], valid: Any = None, segments: Int[Tensor, "b t"] | None = None
) -> Float[Tensor, "b t dim"]:
    """As in the model; a row has no padding except after its text."""
    offsets = valid if isinstance(valid, SequenceOffsets) else None
    longest = tokens.shape[1] if offsets is None else offsets.longest
    if longest > model.config.max_length:
        raise ValueError(f"a text has {longest} tokens, but the model has {model.config.max_length} positions")
    x = model.embed(tokens, segments, offsets)
    return _attend(model.stack, x if model.widen is None else model.widen(x), valid)


def _generator_states(
    generator: nn.Module, x: Float[Tensor, "b t width"], valid: Bool[Tensor, "b t"] | None = None
) -> Float[Tensor, "b t width"]:
    return generator.words(_attend(generator.stack, x if generator.widen is None else generator.widen(x), valid))


def _attend(stack: nn.Module, x: Float[Tensor, "b t dim"], valid: Any) -> Float[Tensor, "b t dim"]:
    if isinstance(valid, SequenceOffsets):
        return stack(x, mask=PackedMask(valid, valid))
    mask = WindowMask(*x.shape[:2]) if valid is None else row_mask(valid)
    return stack(x.flatten(0, 1)[None], mask=mask).view(x.shape)


def row_mask(valid: Bool[Tensor, "b t"]) -> PackedMask:
    """Each row as two sequences: its text, and the padding after it. Shapes do not depend on how long the texts are."""
    rows, length = valid.shape
    places, sizes = torch.arange(length, device=valid.device), valid.sum(dim=1, keepdim=True)
    first = torch.arange(rows, device=valid.device)[:, None] * length
    starts = torch.cat([torch.cat([first, first + sizes], dim=1).flatten(), first.new_full((1,), rows * length)])
    positions = torch.where(places < sizes, places, places - sizes).flatten()
    offsets = SequenceOffsets(starts.int(), max(16, 1 << (length - 1).bit_length()), positions)
    return PackedMask(offsets, offsets)


def _normalize(model: nn.Module, x: Float[Tensor, "b t width"]) -> Float[Tensor, "b t width"]:
    """As in the model, with a norm that takes float32 weights and rounded rows, which torch's does not."""
    norm = model.norm
    y = F.layer_norm(x.to(norm.weight.dtype), norm.normalized_shape, norm.weight, norm.bias, norm.eps)
    return model.dropout(y.to(model.tokens.weight.dtype))


def _word_states(words: nn.Module, states: Float[Tensor, "*rows dim"]) -> Float[Tensor, "*rows width"]:
    from heed.kernels import residual_norm

    x = words.activation(words.dense(states))
    return residual_norm.layer_norm(x.flatten(0, -2), words.norm).view(x.shape)

"""The weights of a model as the search on the GPU needs them: fused matrices in one dtype."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heed.models.decoder import Decoder
from heed.models.encoder_decoder import ACTIVATIONS as NAMED_ACTIVATIONS
from heed.models.encoder_decoder import EncoderDecoder
from heed.nn.attention import Attention, attend
from heed.nn.capabilities import declares
from heed.nn.transformer import MLP, Layer, PostNorm, PreNorm, Stack, gelu_tanh

ACTIVATIONS = {**NAMED_ACTIVATIONS, "gelu_tanh": gelu_tanh}
VOCAB_MULTIPLE = 64  # rows of the output matrix are padded to a multiple: tensor cores need aligned results


class Norm(NamedTuple):
    weight: Tensor
    bias: Tensor
    eps: float


class Linear(NamedTuple):
    weight: Tensor
    bias: Tensor | None


class Sublayer(NamedTuple):
    """Norm, `project_in`, attention or activation, `project_out`, sum; with `norm_residual` to the normed input."""

    norm: Norm | None
    norm_residual: bool
    project_in: Linear
    activation: str | None
    project_out: Linear


class StackWeights(NamedTuple):
    """Encoder or decoder: embeddings, position encodings, the sublayers of each layer, and the norm after the last."""

    tokens: Tensor
    positions: Tensor
    scale: float
    layers: list[tuple[Sublayer, ...]]
    final_norm: Norm | None


@dataclass(frozen=True, eq=False)
class DecoderWeights:
    """The weights of a decoder, all that a language model has; `output` has `vocab` rows, then padding."""

    target: StackWeights
    output: Tensor
    bias: Tensor | None
    vocab: int
    heads: int

    @property
    def dim(self) -> int:
        return self.output.shape[1]

    @property
    def dtype(self) -> torch.dtype:
        return self.output.dtype

    @property
    def accumulate_dtype(self) -> torch.dtype:
        """The dtype of residuals and scores: float32, or float64."""
        return torch.promote_types(self.dtype, torch.float32)


@dataclass(frozen=True, eq=False)
class Weights(DecoderWeights):
    """The weights of an encoder-decoder; `memory` computes the cross-attention keys and values of all layers."""

    source: StackWeights
    memory: Linear


def supports_text(model: nn.Module) -> bool:
    """Whether a decoder-only model declares support for generation on the GPU, and all its parts have kernels."""
    if not declares(model, "cuda_search") or not isinstance(model, Decoder) or model.prompt is not None:
        return False
    heads = {(len(m.q.weight), m.width) for m in model.modules() if isinstance(m, Attention)}
    return len(heads) == 1 and hasattr(model.positions, "at") and _supports_stack(model.stack, None)


@torch.inference_mode()
def read_text(model: Decoder, dtype: torch.dtype) -> DecoderWeights:
    """The weights of a model that `supports_text` accepts."""
    matrix, bias = model.output_weights()
    output = F.pad(matrix.detach(), (0, 0, 0, -len(matrix) % VOCAB_MULTIPLE)).to(dtype)
    target = _stack_weights(model, model.stack, output[: len(matrix)], model.positions, None, dtype)
    bias = None if bias is None else bias.detach().to(torch.promote_types(dtype, torch.float32), copy=True)
    return DecoderWeights(target, output, bias, len(matrix), model.config.heads)


def supports(model: nn.Module) -> bool:
    """Whether an encoder-decoder declares support for search on the GPU, and all its parts have kernels."""
    if not declares(model, "cuda_search") or not isinstance(model, EncoderDecoder):
        return False
    heads = {(len(m.q.weight), m.width) for m in model.modules() if isinstance(m, Attention)}
    positions = (model.source_positions or model.positions, model.positions)
    stacks = ((model.encoder, model.source_norm or model.norm), (model.decoder, model.norm))
    return len(heads) == 1 and all(hasattr(p, "at") for p in positions) and all(_supports_stack(*s) for s in stacks)


def _supports_stack(stack: nn.Module, embedding_norm: nn.Module | None) -> bool:
    """Whether all layers are post-norm, or all are pre-norm without a norm of the embeddings."""
    if type(stack) is not Stack or not all(type(layer) is Layer for layer in stack.layers):
        return False
    parts = [part for layer in stack.layers for part in layer.sublayers()]
    orders = {type(part) for part in parts}
    norms_fit = (orders == {PostNorm} and stack.norm is None) or (orders == {PreNorm} and embedding_norm is None)
    norms = [norm for norm in (embedding_norm, stack.norm, *(part.norm for part in parts)) if norm is not None]
    norms_fit = norms_fit and all(type(norm) is nn.LayerNorm for norm in norms)
    return norms_fit and all(_supports_body(part.body) for part in parts)


def _supports_body(body: nn.Module) -> bool:
    if type(body) is Attention:
        width, matrices = body.width, (body.q, body.k, body.v, body.out)
        fits = body.kernel is attend and width in (16, 32, 64, 128) and body.heads_fill_dim
    else:
        fits = type(body) is MLP and body.activation in ACTIVATIONS.values()
        matrices = (body.up, body.down) if fits else ()
    return fits and all(type(matrix) is nn.Linear and matrix.bias is not None for matrix in matrices)


@torch.inference_mode()
def read(model: EncoderDecoder, dtype: torch.dtype) -> Weights:
    """The weights of a model that `supports` accepts."""
    matrix, bias = model.output_weights()
    output = F.pad(matrix.detach(), (0, 0, 0, -len(matrix) % VOCAB_MULTIPLE)).to(dtype)
    table = output[: len(matrix)] if model.output is None else model.tokens.weight.detach().to(dtype, copy=True)
    source_table = table if model.source_tokens is None else model.source_tokens.weight.detach().to(dtype, copy=True)
    positions, norm = model.source_positions or model.positions, model.source_norm or model.norm
    source = _stack_weights(model, model.encoder, source_table, positions, norm, dtype)
    target = _stack_weights(model, model.decoder, table, model.positions, model.norm, dtype)
    cross = [layer.cross.body for layer in model.decoder.layers]
    memory = _fuse([matrix for body in cross for matrix in (body.k, body.v)], dtype)
    heads = len(cross[0].q.weight) // cross[0].width
    bias = None if bias is None else bias.detach().to(torch.promote_types(dtype, torch.float32), copy=True)
    return Weights(target, output, bias, len(matrix), heads, source, memory)


@torch.inference_mode()
def refresh(weights: Weights, model: EncoderDecoder) -> bool:
    """Copy the current weights of a model that `supports` accepts into the same memory, so that captured graphs use
    them; False, and nothing is copied, if the model differs in more than its weights.
    """
    old, new = list(_leaves(weights)), list(_leaves(read(model, weights.dtype)))
    if list(map(_kind, old)) != list(map(_kind, new)):
        return False
    pairs = [pair for pair in zip(old, new, strict=True) if isinstance(pair[0], Tensor)]
    torch._foreach_copy_(*map(list, zip(*pairs, strict=True)))
    return True


def _leaves(part: Any) -> Iterator[Any]:
    """All tensors and settings, in order."""
    if isinstance(part, DecoderWeights):
        part = [getattr(part, field.name) for field in fields(part)]
    if isinstance(part, (tuple, list)):
        for own in part:
            yield from _leaves(own)
    else:
        yield part


def _kind(leaf: Any) -> Any:
    return (leaf.shape, leaf.dtype, leaf.device) if isinstance(leaf, Tensor) else leaf


def _stack_weights(model, stack: Stack, tokens: Tensor, positions: nn.Module, pending, dtype) -> StackWeights:
    """`pending` is a norm that the next sublayer applies: that of the embeddings, or of the last post-norm sublayer."""
    layers = []
    for layer in stack.layers:
        sublayers = []
        for part in layer.sublayers():
            post = type(part) is PostNorm
            norm, pending = (pending, part.norm) if post else (part.norm, None)
            sublayers.append(_sublayer(part.body, norm, post, part is layer.cross, dtype))
        layers.append(tuple(sublayers))
    table = positions.at(torch.arange(model.config.max_length, device=tokens.device))
    table = table.detach().to(torch.promote_types(dtype, torch.float32), copy=True)
    return StackWeights(tokens, table, float(model.scale), layers, _norm(pending or stack.norm, dtype))


def _sublayer(body: nn.Module, norm: nn.Module | None, post: bool, cross: bool, dtype) -> Sublayer:
    if type(body) is MLP:
        name = next(name for name, function in ACTIVATIONS.items() if function is body.activation)
        return Sublayer(_norm(norm, dtype), post, _fuse([body.up], dtype), name, _fuse([body.down], dtype))
    project_in = [body.q] if cross else [body.q, body.k, body.v]
    return Sublayer(_norm(norm, dtype), post, _fuse(project_in, dtype), None, _fuse([body.out], dtype))


def _norm(norm: nn.Module | None, dtype) -> Norm | None:
    wide = torch.promote_types(dtype, torch.float32)
    return norm and Norm(norm.weight.detach().to(wide, copy=True), norm.bias.detach().to(wide, copy=True), norm.eps)


def _fuse(matrices: list[nn.Linear], dtype) -> Linear:
    """Linear layers with a common input as one; a copy, so that later changes to the model do not matter."""
    weight = torch.cat([matrix.weight.detach() for matrix in matrices]).to(dtype, copy=True)
    return Linear(weight, torch.cat([matrix.bias.detach() for matrix in matrices]).to(dtype, copy=True))

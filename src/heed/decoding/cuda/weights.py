"""The weights of an encoder-decoder, as a search on the card reads them: off the model's parts, in one number format."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heed.models.encoder_decoder import ACTIVATIONS, EncoderDecoder
from heed.nn.attention import Attention, attend
from heed.nn.transformer import MLP, Layer, PostNorm, PreNorm, Stack

ROUND = 64  # the output matrix has a multiple of so many rows: matrix units like aligned results


class Norm(NamedTuple):
    gain: Tensor
    shift: Tensor
    eps: float


class Linear(NamedTuple):
    weight: Tensor
    bias: Tensor | None


class Sublayer(NamedTuple):
    """norm, `into`, something between, `back`, and a sum; with `keeps` it is the normed that is summed, not what came."""

    norm: Norm | None
    keeps: bool
    into: Linear
    activation: str | None
    back: Linear


class Side(NamedTuple):
    """Embeddings with the positions to be added, the sublayers of each layer, and the norm after the last."""

    tokens: Tensor
    places: Tensor
    scale: float
    layers: list[tuple[Sublayer, ...]]
    last: Norm | None


class Weights(NamedTuple):
    """`memory` makes keys and values of all decoder layers at once; of `output`, the first `vocab` rows are tokens."""

    source: Side
    target: Side
    memory: Linear
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
    def stream(self) -> torch.dtype:
        """What sums and scores are kept in: float32, or more."""
        return torch.promote_types(self.dtype, torch.float32)


def known(model: nn.Module) -> bool:
    """Whether it is made of the parts that are read here, and of no others."""
    if not isinstance(model, EncoderDecoder):
        return False
    road = ("encode", "decode", "project", "output_weights", "start", "step", "_places", "_embed")
    if any(getattr(type(model), name) is not getattr(EncoderDecoder, name) for name in road):
        return False
    first = (model.source_norm or model.norm, model.norm)
    if not all(hasattr(places, "at") for places in (model.source_positions or model.positions, model.positions)):
        return False
    attentions = {(len(m.q.weight), m.width) for m in model.modules() if isinstance(m, Attention)}
    return len(attentions) == 1 and all(
        _known_stack(*pair) for pair in zip((model.encoder, model.decoder), first, strict=True)
    )


def _known_stack(stack: nn.Module, first: nn.Module | None) -> bool:
    """Layers all of one kind, without a norm before them that theirs would not take up."""
    if type(stack) is not Stack or not all(type(layer) is Layer for layer in stack.layers):
        return False
    parts = [part for layer in stack.layers for part in _parts(layer)]
    kinds = {type(part) for part in parts}
    ends = (kinds == {PostNorm} and stack.norm is None) or (kinds == {PreNorm} and first is None)
    norms = [norm for norm in (first, stack.norm, *(part.norm for part in parts)) if norm is not None]
    return ends and all(type(norm) is nn.LayerNorm for norm in norms) and all(_known_body(part.body) for part in parts)


def _known_body(body: nn.Module) -> bool:
    if type(body) is Attention:
        width, matrices = body.width, (body.q, body.k, body.v, body.out)
        fits = body.kernel is attend and width in (16, 32, 64, 128)
    else:
        fits = type(body) is MLP and body.activation in ACTIVATIONS.values()
        matrices = (body.up, body.down) if fits else ()
    return fits and all(type(matrix) is nn.Linear and matrix.bias is not None for matrix in matrices)


def _parts(layer: Layer) -> Iterator[nn.Module]:
    return (part for part in (layer.attention, layer.cross, layer.mlp) if part is not None)


@torch.inference_mode()
def read(model: EncoderDecoder, dtype: torch.dtype) -> Weights:
    """The weights of a model that is `known`."""
    matrix, bias = model.output_weights()
    output = F.pad(matrix.detach(), (0, 0, 0, -len(matrix) % ROUND)).to(dtype)
    own = output[: len(matrix)] if model.output is None else model.tokens.weight.detach().to(dtype, copy=True)
    theirs = own if model.source_tokens is None else model.source_tokens.weight.detach().to(dtype, copy=True)
    source = _side(model, theirs, model.source_positions or model.positions, model.source_norm or model.norm, dtype)
    target = _side(model, own, model.positions, model.norm, dtype, decoder=True)
    cross = [layer.cross.body for layer in model.decoder.layers]
    memory = _joined([matrix for body in cross for matrix in (body.k, body.v)], dtype)
    heads = len(cross[0].q.weight) // cross[0].width
    bias = None if bias is None else bias.detach().to(torch.promote_types(dtype, torch.float32), copy=True)
    return Weights(source, target, memory, output, bias, len(matrix), heads)


def _side(model, tokens: Tensor, positions: nn.Module, first: nn.Module | None, dtype, decoder: bool = False) -> Side:
    stack, pending = (model.decoder if decoder else model.encoder), first
    layers = []
    for layer in stack.layers:
        own = []
        for part in _parts(layer):
            post = isinstance(part, PostNorm)
            norm, pending = (pending, part.norm) if post else (part.norm, None)
            own.append(_sublayer(part.body, norm, post, part is layer.cross, dtype))
        layers.append(tuple(own))
    places = positions.at(torch.arange(model.config.max_length, device=tokens.device))
    places = places.detach().to(torch.promote_types(dtype, torch.float32), copy=True)
    return Side(tokens, places, float(model.scale), layers, _norm(pending or stack.norm, dtype))


def _sublayer(body: nn.Module, norm: nn.Module | None, post: bool, cross: bool, dtype) -> Sublayer:
    if isinstance(body, MLP):
        name = next(name for name, function in ACTIVATIONS.items() if function is body.activation)
        return Sublayer(_norm(norm, dtype), post, _joined([body.up], dtype), name, _joined([body.down], dtype))
    into = [body.q] if cross else [body.q, body.k, body.v]
    return Sublayer(_norm(norm, dtype), post, _joined(into, dtype), None, _joined([body.out], dtype))


def _norm(norm: nn.Module | None, dtype) -> Norm | None:
    wide = torch.promote_types(dtype, torch.float32)
    return norm and Norm(norm.weight.detach().to(wide, copy=True), norm.bias.detach().to(wide, copy=True), norm.eps)


def _joined(matrices: list[nn.Linear], dtype) -> Linear:
    """Several matrices with one input, as one; copies, so that what becomes of the model does not matter."""
    weight = torch.cat([matrix.weight.detach() for matrix in matrices]).to(dtype, copy=True)
    return Linear(weight, torch.cat([matrix.bias.detach() for matrix in matrices]).to(dtype, copy=True))

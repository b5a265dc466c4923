"""Language models for a search on a CPU whose steps are C code (text_step.c): from the ids of a few tokens to logits
without an operator of torch between. Prompts and steps of many rows run as in `text_model`.
"""

import ctypes
from array import array
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, Int8
from torch import Tensor, nn

from heed.kernels import int8, native
from heed.kernels.int8_text import Int8Weights
from heed.kernels.text_model import SameWeights, TextModel, Weights
from heed.nn.positions import Learned, Sinusoidal
from heed.nn.transformer import gelu_tanh

ROWS, INT8_ROWS = 32, 8  # of a step; torch's matrix products are faster for more
ACTIVATIONS = (gelu_tanh, F.relu)  # by the value of Model.relu
OUTSIDE = 2  # what heed_step returns for ids and positions that there are not
INT, POINTER = ctypes.c_int64, ctypes.c_void_p


class Linear(ctypes.Structure):
    _fields_ = (("weight", POINTER), ("scale", POINTER), ("bias", POINTER), ("out", INT), ("dim", INT))


class Norm(ctypes.Structure):
    _fields_ = (("weight", POINTER), ("bias", POINTER), ("eps", ctypes.c_double))


class Layer(ctypes.Structure):
    _fields_ = (("first", Norm), ("second", Norm), *((name, Linear) for name in ("q", "k", "v", "out", "up", "down")))


class Model(ctypes.Structure):
    _fields_ = (
        ("layers", ctypes.POINTER(Layer)), ("count", INT), ("dim", INT), ("heads", INT), ("width", INT), ("hidden", INT),
        ("post_norm", INT), ("relu", INT), ("tokens", POINTER), ("positions", POINTER), ("vocabulary", INT), ("length", INT),
        ("scale", ctypes.c_double), ("last", Norm), ("output", Linear),
    )  # fmt: skip


class Matrix(NamedTuple):
    """A weight in float32, or 8-bit integers with the scale of each row."""

    weight: Tensor
    scale: Tensor | None
    bias: Tensor | None


class NativeWeights(SameWeights):
    """The layers themselves, for C."""

    most_rows = ROWS

    def matrices(self) -> list[Matrix]:
        return [Matrix(weight, None, bias) for weight, bias in self.parts]


class NativeInt8Weights(Int8Weights):
    """Weights in 8-bit integers for C, and in the order that products of many rows read."""

    most_rows = INT8_ROWS

    def __init__(self, *layers: nn.Linear | int8.Matrix):
        super().__init__(*layers)
        self.sizes = [len(own.weight) for own in layers]

    def hold(self, values: Int8[Tensor, "out dim"]) -> None:
        int8.Int8Linear.hold(self, values)
        self.rows, (self.size, self.dim) = values, values.shape

    def matrices(self) -> list[Matrix]:
        parts = (part.split(self.sizes) for part in (self.rows, self.scale, self.bias))
        return [Matrix(*own) for own in zip(*parts, strict=True)]

    def forward(self, x: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch out"]:
        return self.products(x.reshape(-1, self.dim)).view(*x.shape[:-1], -1)

    def products(self, x: Float[Tensor, "n dim"]) -> Float[Tensor, "n out"]:
        code, threads, x = native.library(), torch.get_num_threads(), x.float().contiguous()
        count, values = len(x), x.new_empty(2 * len(x), self.dim, dtype=torch.uint8)
        scale, found = x.new_empty(count), x.new_empty(count, self.size)
        code.heed_split(*addresses(x), INT(count), INT(self.dim), *addresses(values, scale), threads)
        both = int8.integer_product(values, self.weight, self.scale)
        code.heed_join(*addresses(both), INT(count), INT(self.size), *addresses(scale, self.bias, found), threads)
        return found


class NativeTextModel(TextModel):
    """`TextModel` with steps in C."""

    def __init__(self, model: nn.Module, weights: Weights = NativeWeights):
        super().__init__(model, weights)
        self.step_in_c = native.library().heed_step
        self.described = Description(self)

    def step(self, tokens: Int[Tensor, " b"], state: Any) -> Float[Tensor, "b vocab"]:
        before = state.cache.length
        start = max(0, before - self.config.prompt_length)
        able = torch.is_inference_mode_enabled() and before > 0 and start < self.config.max_length
        if not able or not 0 < len(tokens) <= self.output.most_rows:
            return super().step(tokens, state)
        tokens, first = tokens.long().contiguous(), state.padding
        if first is None:
            places = array("q", [start] * len(tokens))
            place = places.buffer_info()[0]
        else:
            first = first.long().contiguous()
            places = start - first
            place = places.data_ptr()
        pasts = array("q")
        for layer in state.cache:
            k, v = layer.attention.rooms(before + 1)
            if not k.dtype == v.dtype == torch.float32:  # the prompt was read under autocast
                return super().step(tokens, state)
            pasts.extend((k.data_ptr(), v.data_ptr(), *k.stride()[:2], *v.stride()[:2]))
        logits = self.described.logits(len(tokens))
        failed = self.step_in_c(
            ctypes.byref(self.described.model), POINTER(pasts.buffer_info()[0]), INT(len(tokens)), INT(before),
            *addresses(tokens), POINTER(place), *addresses(first, logits), torch.get_num_threads(),
        )  # fmt: skip
        if failed == OUTSIDE:
            raise IndexError("a token id or a position is outside of the model's tables")
        if failed:
            raise MemoryError("there is not enough memory for a step")
        for layer in state.cache:
            layer.attention.length += 1
        return logits


class Description:
    """A model as C sees it, and the tensors that it points to."""

    def __init__(self, made: TextModel):
        self.held: list[Tensor] = []
        own, stack = made.model, made.model.stack
        first = stack.layers[0]
        layers = [self._layer(layer) for layer in stack.layers]
        self.layers = (Layer * len(layers))(*layers)
        self.output = self._linear(*made.output.matrices())
        last = Norm() if stack.norm is None else self._norm(stack.norm)
        positions = table(own.positions)
        self.model = Model(
            self.layers, len(layers), made.config.dim, made.config.heads, first.width, layers[0].up.out,
            first.after[0], ACTIVATIONS.index(first.activation), self._hold(own.tokens.weight),
            self._hold(positions), len(own.tokens.weight), len(positions), own.scale, last, self.output,
        )  # fmt: skip

    def logits(self, rows: int) -> Float[Tensor, "rows vocab"]:
        return torch.empty(rows, self.output.out, dtype=torch.float32, device="cpu")

    def _hold(self, part: Tensor | None) -> int | None:
        if part is None:
            return None
        self.held.append(part.detach().contiguous())
        return self.held[-1].data_ptr()

    def _layer(self, layer: Any) -> Layer:
        weights = (own for part in (layer.qkv, layer.out, layer.up, layer.down) for own in part.matrices())
        return Layer(self._norm(layer.first), self._norm(layer.second), *(self._linear(own) for own in weights))

    def _linear(self, own: Matrix) -> Linear:
        return Linear(*(self._hold(part) for part in own), *own.weight.shape)

    def _norm(self, norm: nn.LayerNorm) -> Norm:
        return Norm(self._hold(norm.weight), self._hold(norm.bias), norm.eps)


def addresses(*parts: Tensor | None) -> list[Any]:
    return [POINTER(None if part is None else part.data_ptr()) for part in parts]


def table(positions: nn.Module) -> Float[Tensor, "length dim"]:
    """The vector of each position."""
    return positions.places.weight[positions.offset :] if isinstance(positions, Learned) else positions.waves


def unsupported(model: nn.Module) -> str | None:
    """Why steps of a model are not C code here, or None if they are."""
    if not int8.supports(model) or not isinstance(model.positions, Learned | Sinusoidal):
        return f"it does not support this {type(model).__name__}"
    shapes = [shape(layer) for layer in model.stack.layers]
    norms = [part for part in model.stack.modules() if isinstance(part, nn.LayerNorm)]
    known = shapes[0][0] in ACTIVATIONS and all(norm.bias is not None for norm in norms)
    if not known or any(own != shapes[0] for own in shapes):
        return f"it does not support this {type(model).__name__}"
    return native.unavailable()


def shape(layer: Any) -> tuple:
    """What all layers have in common."""
    attention, mlp = layer.attention.body, layer.mlp.body
    return (
        mlp.activation,
        type(layer.attention),
        type(layer.mlp),
        attention.width,
        attention.q.weight.shape,
        mlp.up.weight.shape,
    )

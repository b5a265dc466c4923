"""The layers of a Transformer for training on a GPU: nn/transformer.py for packed sequences, in fewer kernels.

`use_fused_layers` replaces each plain stack by a fused one with the same weights. The bias of a sublayer's last linear
layer is added by the kernel that norms its residual sum.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from heed.nn.attention import Attention, attend
from heed.nn.packing import SHORT, PackedMask, WindowMask, attend_packed, attend_windows
from heed.nn.transformer import MLP, Layer, PostNorm, PreNorm, ScaledPreNorm, SharedStack, Stack, gelu_tanh

HEAD_DIMS = (16, 32, 64, 128)  # that the kernels are written for
ORDERS = (PostNorm, PreNorm, ScaledPreNorm)  # that can be fused
STACKS = (Stack, SharedStack)


def activation_codes() -> dict:
    """The activations that have a kernel, with their codes in kernels/linear.py."""
    return {F.relu: 0, F.gelu: 1, F.silu: 2, gelu_tanh: 3}


def supports_packing(model: nn.Module) -> bool:
    """Whether only plain attention mixes positions."""
    return has_plain_layers(model, (PostNorm, PreNorm))


def has_plain_layers(model: nn.Module, orders: tuple[type, ...] = ORDERS) -> bool:
    """Whether all layers are plain. Exact types: a subclass may compute something else."""
    stacks = [part for part in model.modules() if isinstance(part, STACKS)]
    layers = [layer for stack in stacks for layer in stack.layers]
    if (
        not stacks
        or any(type(part) not in STACKS for part in stacks)
        or any(type(part) is not Layer for part in layers)
    ):
        return False
    sublayers = [part for layer in layers for part in layer.sublayers()]
    return all(type(part) in orders and _is_plain(part.body) for part in sublayers)


def supports(model: nn.Module) -> bool:
    """Whether all layers of a model are plain and can be fused."""
    stacks = [part for part in model.modules() if type(part) in STACKS]
    return has_plain_layers(model) and all(_can_fuse(layer, stack.norm) for stack in stacks for layer in stack.layers)


def _is_plain(body: nn.Module) -> bool:
    return type(body) is MLP or (type(body) is Attention and body.kernel is attend)


def _can_fuse(layer: Layer, final_norm: nn.Module | None) -> bool:
    """Norms all before or all after the sublayers; supported head sizes and activation."""
    orders = {type(part) for part in layer.sublayers()}
    if len(orders) > 1 or not orders <= {*ORDERS} or (orders != {PostNorm} and final_norm is None):
        return False  # with pre-norm, the kernel of the last residual sum needs the final norm
    if any(getattr(part, "scale", None) is not None for part in layer.sublayers()):
        return False
    norms = [*(part.norm for part in layer.sublayers()), *([] if final_norm is None else [final_norm])]
    attentions = [part.body for part in layer.sublayers() if part is not layer.mlp]
    return (
        all(type(norm) is nn.LayerNorm and norm.bias is not None for norm in norms)
        and all(body.width in HEAD_DIMS and body.heads_fill_dim and _has_biases(body) for body in attentions)
        and layer.mlp.body.activation in activation_codes()
    )


def _has_biases(body: Attention) -> bool:
    return all(part.bias is not None for part in (body.q, body.k, body.v, body.out))


def use_fused_layers(model: nn.Module) -> None:
    """Replace the stacks of a model that `supports` accepts."""
    for owner in list(model.modules()):
        for name, part in list(owner.named_children()):
            if type(part) in STACKS:
                setattr(owner, name, FusedStack(part))


def float32_weights(model: nn.Module) -> set[int]:
    """The ids of weights that kernels read in float32: norms, and the biases added before them."""
    last = [_last_linear(part.body) for part in model.modules() if type(part) in ORDERS]
    norms = [weight for part in model.modules() if isinstance(part, nn.LayerNorm) for weight in part.parameters()]
    return {id(weight) for weight in [*norms, *(part.bias for part in last)]}


class FusedStack(nn.Module):
    """The layers of a plain stack, for packed sequences."""

    def __init__(self, plain: Stack | SharedStack):
        super().__init__()
        self.layers, self.norm = nn.ModuleList(plain.layers), plain.norm
        self.pre = type(plain.layers[0].mlp) is not PostNorm

    def forward(
        self,
        x: Float[Tensor, "1 t dim"],
        memory: Float[Tensor, "1 s dim"] | None = None,
        *,
        mask: PackedMask | WindowMask,
        causal: bool = False,
        memory_mask: PackedMask | None = None,
        cache: None = None,
        first_only: bool = False,
    ) -> Float[Tensor, "1 t dim"]:
        """`total` is the residual, `normed` the input of the next sublayer; with post-norm they are the same.

        `first_only`: only the state of the first position of each window; the last layer computes no other.
        """
        from heed.kernels import residual_norm

        parts = [part for layer in self.layers for part in layer.sublayers()]
        crosses = [layer.cross for layer in self.layers]
        total = normed = x.squeeze(0).to(parts[0].body.q.weight.dtype)  # not x[0], whose gradient would be a copy
        memory = None if memory is None else memory.squeeze(0)
        norms = [part.norm for part in parts]
        if self.pre:  # the norm after a residual sum is that of the next sublayer
            normed, norms = residual_norm.layer_norm(total, norms[0]), [*norms[1:], self.norm]
        for part, norm in zip(parts, norms, strict=True):
            body, last = part.body, _last_linear(part.body)
            if first_only and part is self.layers[-1].attention:
                y, total, mask = _first_attention(body, normed, total, mask)
            elif type(body) is MLP:
                y, normed = _feed_forward(body, normed)
            elif part in crosses:
                y, normed, memory = _attention(body, normed, memory, memory_mask, False)
            else:
                y, normed, _ = _attention(body, normed, None, mask, causal)
            total, normed = residual_norm.add_norm(
                total if self.pre else normed, y, last.bias, norm, _dropout_rate(part.dropout), share=self.pre,
                path=_path_dropout(part, mask),
            )  # fmt: skip
        return (normed if self.pre or self.norm is None else residual_norm.layer_norm(normed, self.norm))[None]


def _first_attention(
    body: Attention, x: Float[Tensor, "t dim"], total: Float[Tensor, "t dim"], windows: WindowMask
) -> tuple[Float[Tensor, "n dim"], Float[Tensor, "n dim"], WindowMask]:
    """The attention of the first position of each window to all of it; its residual, and the remaining mask."""
    left, keys = WindowMask(windows.rows, 1), windows.packed(x.device).keys
    first, total = (part.unflatten(0, windows)[:, 0] for part in (x, total))
    y, _, _ = _attention(body, first.contiguous(), x, PackedMask(left.packed(x.device).keys, keys), False)
    return y, total, left


def _last_linear(body: MLP | Attention) -> nn.Linear:
    return body.down if type(body) is MLP else body.out


def _dropout_rate(dropout: nn.Dropout) -> float:
    return dropout.p if dropout.training else 0.0


def _path_dropout(part: nn.Module, mask: PackedMask | WindowMask) -> tuple[float, int]:
    """The drop rate of a sublayer per sequence, and the rows per sequence."""
    rate = getattr(part, "path_dropout", 0.0) if part.training else 0.0
    return (rate, mask.length) if rate else (0.0, 1)


def _attention(
    body: Attention,
    x: Float[Tensor, "t dim"],
    memory: Float[Tensor, "s dim"] | None,
    mask: PackedMask | WindowMask,
    causal: bool,
) -> tuple[Float[Tensor, "t dim"], Float[Tensor, "t dim"], Float[Tensor, "s dim"] | None]:
    """Attention without its last bias, with one product for queries, keys and values, or two with a memory.

    Both inputs are returned for later use: see kernels/linear.py.
    """
    from heed.kernels import linear

    if memory is None and isinstance(mask, WindowMask) and mask.length > SHORT:
        q, k, v, x = linear.linear_triple(x, body.q, body.k, body.v)
        y = attend_windows(q, k, v, mask, body.width, causal, body.dropout if body.training else 0.0)
        return linear.linear_without_bias(y, body.out), x, None
    if memory is None:
        (q_or_qkv, x), kv = linear.linear(x, body.q, body.k, body.v), None
    else:
        (q_or_qkv, x), (kv, memory) = linear.linear(x, body.q), linear.linear(memory, body.k, body.v)
    return linear.linear_without_bias(attend_sequences(body, q_or_qkv, kv, mask, causal), body.out), x, memory


def _feed_forward(body: MLP, x: Float[Tensor, "t dim"]) -> tuple[Float[Tensor, "t dim"], Float[Tensor, "t dim"]]:
    """A feed-forward network without its last bias; and its input for later use."""
    from heed.kernels import feed_forward, linear

    activation, rate = activation_codes()[body.activation], _dropout_rate(body.dropout)
    if activation == linear.RELU and feed_forward.supports(body.down.weight):
        return feed_forward.feed_forward(x, body.up, body.down, rate)
    y, x = linear.linear_activation(x, body.up, activation, rate)
    return linear.linear_without_bias(y, body.down), x


def attend_sequences(
    body: Attention, q_or_qkv: Tensor, kv: Tensor | None, mask: PackedMask | WindowMask, causal: bool
) -> Float[Tensor, "t dim"]:
    dropout = body.dropout if body.training else 0.0
    if isinstance(mask, WindowMask):
        if kv is None and not (causal or dropout or torch.is_grad_enabled()):
            from heed.kernels import window_attention

            if window_attention.supports(mask.length):
                return window_attention.attend_window(q_or_qkv, mask, body.width)
        mask = mask.packed(q_or_qkv.device)
    starts, longest = (mask.queries.starts, mask.keys.starts), (mask.queries.longest, mask.keys.longest)
    if max(longest) <= SHORT:
        from heed.kernels.short_attention import attend_short

        return attend_short(q_or_qkv, kv, starts, longest, head_dim=body.width, causal=causal, dropout=dropout)
    tokens = len(q_or_qkv)
    parts = [q_or_qkv.view(tokens, 3, -1)] if kv is None else [q_or_qkv[:, None], kv.view(len(kv), 2, -1)]
    q, k, v = (one.unflatten(-1, (-1, body.width)).transpose(0, 1)[None] for part in parts for one in part.unbind(1))
    return attend_packed(q, k, v, mask, causal, dropout)[0].transpose(0, 1).flatten(1)

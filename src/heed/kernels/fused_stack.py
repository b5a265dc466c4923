"""The layers of a Transformer for training on a GPU: what nn/transformer.py says, for sequences end to end, in fewer kernels.

`use_fused_layers` puts a swift stack in the place of each plain one; the weights stay where they are. Biases of the last linear
layer of a body are added where its sum is normed.
"""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from heed.nn.attention import Attention, attend
from heed.nn.packing import SHORT, Within, attend_within
from heed.nn.transformer import MLP, Layer, PostNorm, PreNorm, Stack

WIDTHS = (16, 32, 64, 128)  # of a head, which the kernels are for


def kinds() -> dict:
    """The activations that have a kernel, by their function."""
    return {F.relu: 0, F.gelu: 1, F.silu: 2}


def supports_packing(model: nn.Module) -> bool:
    """Whether nothing but plain attention looks from one token to another: such a model can take sequences end to end."""
    stacks = [part for part in model.modules() if isinstance(part, Stack)]
    bodies = [part.body for stack in stacks for layer in stack.layers for part in _parts(layer)]
    return bool(stacks) and all(type(body) is MLP or _plain(body) for body in bodies)


def supports(model: nn.Module) -> bool:
    """Whether each layer of a model that `supports_packing` is one that this file knows."""
    stacks = [part for part in model.modules() if isinstance(part, Stack)]
    return supports_packing(model) and all(_known(layer, stack.norm) for stack in stacks for layer in stack.layers)


def _parts(layer: Layer) -> list[nn.Module]:
    return [part for part in (layer.attention, layer.cross, layer.mlp) if part is not None]


def _plain(body: nn.Module) -> bool:
    return type(body) is Attention and body.kernel is attend


def _known(layer: Layer, last: nn.Module | None) -> bool:
    """Its norms all before or all after, as the kernels expect them; heads and activation as they are made for."""
    kinds_of_norm = {type(part) for part in _parts(layer)}
    if kinds_of_norm not in ({PostNorm}, {PreNorm}) or (kinds_of_norm == {PreNorm} and last is None):
        return False  # (without a last norm nothing would norm the last sum)
    norms = [*(part.norm for part in _parts(layer)), *([] if last is None else [last])]
    return (
        all(type(norm) is nn.LayerNorm and norm.bias is not None for norm in norms)
        and all(part.body.width in WIDTHS for part in _parts(layer) if part is not layer.mlp)
        and layer.mlp.body.activation in kinds()
    )


def use_fused_layers(model: nn.Module) -> None:
    """Exchange the stacks of a model that `supports`."""
    for owner in list(model.modules()):
        for name, part in list(owner.named_children()):
            if isinstance(part, Stack):
                setattr(owner, name, FusedStack(part))


def exact(model: nn.Module) -> set[int]:
    """The ids of weights that kernels read in float32: those of norms, and the biases that are added before them."""
    bodies = [part.body for part in model.modules() if isinstance(part, PostNorm | PreNorm)]
    last = [_last(body) for body in bodies]
    norms = [own for part in model.modules() if isinstance(part, nn.LayerNorm) for own in part.parameters()]
    return {id(own) for own in [*norms, *(part.bias for part in last)]}


class FusedStack(nn.Module):
    """The layers of a plain stack, for one row of sequences end to end."""

    def __init__(self, plain: Stack):
        super().__init__()
        self.layers, self.norm = plain.layers, plain.norm
        self.pre = isinstance(plain.layers[0].mlp, PreNorm)

    def forward(
        self,
        x: Float[Tensor, "1 t dim"],
        memory: Float[Tensor, "1 s dim"] | None = None,
        *,
        mask: Within,
        causal: bool = False,
        memory_mask: Within | None = None,
        cache: None = None,
    ) -> Float[Tensor, "1 t dim"]:
        """`total` runs along the residuals, `normed` is what the next body is given; after the fact they are one."""
        from heed.kernels import residual_norm

        parts = [part for layer in self.layers for part in _parts(layer)]
        crosses = [layer.cross for layer in self.layers]
        total = normed = x.squeeze(0).to(parts[0].body.q.weight.dtype)  # (the gradient of x[0] would be a copy)
        far = None if memory is None else memory.squeeze(0)
        norms = [part.norm for part in parts]
        if self.pre:  # the norm that follows a sum is the next one's
            normed, norms = residual_norm.norm(total, norms[0]), [*norms[1:], self.norm]
        for part, norm in zip(parts, norms, strict=True):
            body, last = part.body, _last(part.body)
            if isinstance(body, MLP):
                y, normed = _hidden(body, normed)
            elif part in crosses:
                y, normed, far = _attended(body, normed, far, memory_mask, False)
            else:
                y, normed, _ = _attended(body, normed, None, mask, causal)
            total, normed = residual_norm.sum_norm(
                total if self.pre else normed, y, last.bias, norm, _rate(part.dropout)
            )
        return (normed if self.pre or self.norm is None else residual_norm.norm(normed, self.norm))[None]


def _last(body: MLP | Attention) -> nn.Linear:
    return body.down if isinstance(body, MLP) else body.out


def _rate(dropout: nn.Dropout) -> float:
    return dropout.p if dropout.training else 0.0


def _attended(
    body: Attention,
    x: Float[Tensor, "t dim"],
    memory: Float[Tensor, "s dim"] | None,
    mask: Within,
    causal: bool,
) -> tuple[Float[Tensor, "t dim"], Float[Tensor, "t dim"], Float[Tensor, "s dim"] | None]:
    """Queries, keys and values by one product, or two where keys are of a memory; all but the last bias.

    Both inputs are given back, to be used from there on.
    """
    from heed.kernels import linear

    if memory is None:
        (one, x), other = linear.linear(x, body.q, body.k, body.v), None
    else:
        (one, x), (other, memory) = linear.linear(x, body.q), linear.linear(memory, body.k, body.v)
    return linear.last(_mixed(body, one, other, mask, causal), body.out), x, memory


def _hidden(body: MLP, x: Float[Tensor, "t dim"]) -> tuple[Float[Tensor, "t dim"], Float[Tensor, "t dim"]]:
    """A feed-forward network but for its last bias; and its input, to be used from there on."""
    from heed.kernels import feed_forward, linear

    kind, rate = kinds()[body.activation], _rate(body.dropout)
    if kind == linear.RELU and feed_forward.takes(body.down.weight):
        return feed_forward.hidden(x, body.up, body.down, rate)
    y, x = linear.up(x, body.up, kind, rate)
    return linear.last(y, body.down), x


def _mixed(body: Attention, one: Tensor, other: Tensor | None, mask: Within, causal: bool) -> Float[Tensor, "t dim"]:
    dropout = body.dropout if body.training else 0.0
    starts, longest = (mask.queries.starts, mask.keys.starts), (mask.queries.longest, mask.keys.longest)
    if max(longest) <= SHORT:
        from heed.kernels.short_attention import attend_short

        return attend_short(one, other, starts, longest, width=body.width, causal=causal, dropout=dropout)
    parts = [one.view(len(one), 3, -1)] if other is None else [one[:, None], other.view(len(other), 2, -1)]
    q, k, v = (own.unflatten(-1, (-1, body.width)).transpose(0, 1)[None] for part in parts for own in part.unbind(1))
    return attend_within(q, k, v, mask, causal, dropout)[0].transpose(0, 1).flatten(1)

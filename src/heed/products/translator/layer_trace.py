"""One layer as numbers: what each part adds to a token, recorded from the model's own modules."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from heed.nn.attention import Attention
from heed.nn.transformer import MLP, Layer, PreNorm

UNITS = 64  # of each vector
LARGEST = 5  # hidden units of the feed-forward network that are named
DECIMALS = 4


@contextmanager
def record_layer(layer: Layer | None) -> Iterator[dict[str, dict[str, Any]]]:
    """Record the module, input and output of each part of a layer by name; None records nothing."""
    parts = {} if layer is None else {"attention": layer.attention, "cross": layer.cross, "feed-forward": layer.mlp}
    sublayers: dict[str, dict[str, Any]] = {name: {"module": part} for name, part in parts.items() if part is not None}
    with ExitStack() as stack:
        for own in sublayers.values():
            for name, module in _watched(own["module"]).items():
                stack.enter_context(module.register_forward_hook(_keep(own, name)))
        yield sublayers


def _watched(wrapper: nn.Module) -> dict[str, nn.Module]:
    body = wrapper.body
    last = {"mixing": body.out} if isinstance(body, Attention) else {"down": body.down} if isinstance(body, MLP) else {}
    return {"whole": wrapper, "norm": wrapper.norm, "body": body, **last}


def _keep(own: dict[str, Any], name: str):
    def hook(module: nn.Module, args: tuple, output: Tensor) -> None:
        own[name] = (args[0], output)

    return hook


def describe_sublayer(name: str, own: dict[str, Any], row: int) -> dict[str, Any]:
    """The effect of one part on one token: x, the added vector, the sum and the output, with their norms.

    `order` is "pre" for x + body(norm(x)), "post" for norm(x + body(x)).
    """
    before, after, added = own["whole"][0][0, row], own["whole"][1][0, row], own["body"][1][0, row]
    normed_from, normed = (part[0, row] for part in own["norm"])
    steps = {"before": before, "added": added, "sum": before + added, "after": after}
    found: dict[str, Any] = {
        "name": name,
        "order": "pre" if isinstance(own["module"], PreNorm) else "post",
        **{step: _rounded(vector[:UNITS]) for step, vector in steps.items()},
        "norms": {step: _number(vector.norm()) for step, vector in steps.items()},
        "norm": {"from": _spread(normed_from), "to": _spread(normed)},
    }
    if "mixing" in own:
        found["heads"] = _head_norms(own["module"].body, own["mixing"][0][0, row])
    if "down" in own:
        hidden = own["down"][0][0, row]
        top = hidden.abs().topk(min(LARGEST, len(hidden))).indices.tolist()
        largest = [[unit, _number(hidden[unit])] for unit in top]
        found["hidden"] = {"size": len(hidden), "active": int((hidden > 0).sum()), "largest": largest}
    return found


def _head_norms(attention: Attention, heads: Tensor) -> list[float]:
    """The norm of each head's contribution to the output: its part of W_O times its values."""
    width = attention.width
    columns = attention.out.weight.unflatten(1, (-1, width))
    return _rounded(torch.einsum("ohw,hw->ho", columns, heads.unflatten(0, (-1, width))).norm(dim=1))


def _spread(vector: Tensor) -> dict[str, float]:
    return {"mean": _number(vector.mean()), "deviation": _number(vector.std(correction=0))}


def _number(value: Tensor) -> float:
    return round(float(value), DECIMALS)


def _rounded(numbers: Tensor) -> list[float]:
    return [round(value, DECIMALS) for value in numbers.double().tolist()]

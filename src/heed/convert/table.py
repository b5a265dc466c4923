"""Tables of weight names, read from left to right and from right to left.

A row pairs a name of ours with a name of theirs. Each is a module, whose weight and bias go along, or one tensor. `{}`
stands for the number of a layer. Where a model has one matrix in several places, theirs is a tuple: any of the names is
read, all that are there must hold the same, and the first is written. A third item tells how a layout differs.
"""

import re
from collections.abc import Callable, Collection, Mapping
from fnmatch import fnmatch
from typing import NamedTuple

import torch
from torch import Tensor

from heed.convert.fields import every_name
from heed.models.folder import some

Weights = dict[str, Tensor]

NUMBER = re.compile(r"(?<=\.)\d+(?=\.)")
NEAR = 5e-3  # what bfloat16 leaves of a number up to one


class Layout(NamedTuple):
    """How a tensor of theirs becomes one of ours, and back."""

    ours: Callable[[Tensor], Tensor]
    theirs: Callable[[Tensor], Tensor]


same = Layout(ours=lambda w: w, theirs=lambda w: w)
row = Layout(ours=lambda w: w[0], theirs=lambda w: w[None])


class WeightTable:
    """`prefix` may be missing in their names. The rest names tensors of theirs that no row is for:

    `always` are numbers that we compute and they keep, checked when read and written; `formerly` are the same, but
    written by older versions alone; `ignore` are patterns of what is of no use. `absent` are ours that they may leave
    out: then zeros, one for each row of another of ours.
    """

    def __init__(
        self,
        *rows: tuple,
        prefix: str = "",
        always: Mapping[str, Tensor] | None = None,
        formerly: Mapping[str, Tensor] | None = None,
        ignore: tuple[str, ...] = (),
        absent: Mapping[str, str] | None = None,
    ):
        each = [(ours, every_name(theirs), *(layout or [same])) for ours, theirs, *layout in rows]
        self.by_theirs = {theirs: (ours, layout) for ours, names, layout in each for theirs in names}
        self.by_ours = {ours: (names[0], layout) for ours, names, layout in each}
        self.prefix, self.ignore = prefix, ignore
        self.always, self.fixed = dict(always or {}), {**(always or {}), **(formerly or {})}
        self.absent = dict(absent or {})

    def to_ours(self, weights: Mapping[str, Tensor], names: Collection[str]) -> Weights:
        """Their weights under our names: all of `names`, which are those of our model, and no other."""
        result, origin, unknown = {}, {}, []
        for given, tensor in weights.items():
            name = self._whole(given)
            if any(fnmatch(name, pattern) for pattern in self.ignore):
                continue
            if name in self.fixed:
                _check_fixed(given, tensor, self.fixed[name])
                continue
            ours, layout = _find(name, self.by_theirs)
            if ours not in names:
                unknown.append(given)
                continue
            tensor = layout.ours(tensor).contiguous()
            if ours in result and not torch.equal(tensor, result[ours]):
                raise ValueError(f"{given} and {origin[ours]} differ; in this model they are one matrix in two places")
            result[ours], origin[ours] = tensor, given
        if unknown:
            raise ValueError(
                f"the weights hold {some(unknown)}, which this model does not have: is it of another model?"
            )
        return self._complete(result, names)

    def to_theirs(self, weights: Mapping[str, Tensor]) -> Weights:
        """Our weights under their names, as their library would save them."""
        result = {}
        for name, tensor in weights.items():
            theirs, layout = _find(name, self.by_ours)
            if theirs is None:
                raise ValueError(f"no row of the table is for {name}")
            result[theirs] = layout.theirs(tensor).contiguous()
        kind = next(iter(result.values()))
        return result | {name: tensor.clone().to(kind) for name, tensor in self.always.items()}

    def _whole(self, name: str) -> str:
        """The name with its prefix, where it is one that lacks it."""
        known = name in self.fixed or _find(name, self.by_theirs)[0] is not None
        return name if known or name.startswith(self.prefix) else self.prefix + name

    def _complete(self, weights: Weights, names: Collection[str]) -> Weights:
        for name, other in self.absent.items():
            if name in names and name not in weights and other in weights:
                weights[name] = weights[other].new_zeros(len(weights[other]))
        missing = [_find(name, self.by_ours)[0] or name for name in names if name not in weights]
        if missing:
            raise ValueError(f"the weights lack {some(missing)}: they are of another model, or not complete")
        return weights


def _find(name: str, rows: Mapping[str, tuple[str, Layout]]) -> tuple[str | None, Layout]:
    """What stands opposite `name` in the table, and the layout; None where no row is for it."""
    template, numbers = NUMBER.sub("{}", name), NUMBER.findall(name)
    module, dot, last = template.rpartition(".")
    for key, ending in ((template, ""), (module, dot + last)):
        if key in rows:
            other, layout = rows[key]
            return other.format(*numbers) + ending, layout
    return None, same


def _check_fixed(name: str, tensor: Tensor, expected: Tensor) -> None:
    """Numbers that we compute ourselves may be left out only where they are those."""
    if tensor.shape != expected.shape:
        raise ValueError(
            f"{name} has shape {tuple(tensor.shape)}, but by the settings it should be {tuple(expected.shape)}"
        )
    if not torch.allclose(tensor.to(expected.dtype), expected, rtol=0, atol=NEAR):
        raise ValueError(
            f"{name} does not hold the sinusoids of this model, which heed computes: it cannot be taken over"
        )

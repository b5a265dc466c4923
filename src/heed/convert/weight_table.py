"""Mapping tables of weight names between Heed's models and those of transformers, used in both directions.

A row is (ours, theirs) or (ours, theirs, layout). A name refers to a module, including its weight and bias, or to a
single tensor. Rows of GPT-2 and ALBERT show all features:

    ("layers.{}.mlp.norm", "h.{}.ln_2")                      `{}` stands for the number of a layer
    ("layers.{}.mlp.body.up", "h.{}.mlp.c_fc", transposed)   a layout: the tensors differ in form, and it is reversible
    ("layers.{}.attention.body.{q,k,v}", "h.{}.attn.c_attn", transposed)
                                  one tensor of theirs is several of ours: in our layout, the first axis is split into equal
                                  parts, and joined when written
    ("tokens", ("wte", "lm_head"))
                                  one tensor has several names: any of them is read, all that are present must be equal, and
                                  the first is written
    ("layers.{}.mlp.body.up", "groups.0.layers.0.ffn")
                                  no `{}` in theirs: all layers share one tensor, which is written once, and then our layers
                                  must be equal
"""

import re
from collections.abc import Callable, Collection, Mapping
from fnmatch import fnmatch
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from heed.convert.config_table import as_names
from heed.models.folder import some

Weights = dict[str, Tensor]

PARTS = re.compile(r"\{(\w+(?:,\w+)+)\}")
TOLERANCE = 5e-3  # the precision of bfloat16 for numbers up to one


class Layout(NamedTuple):
    """How a tensor of theirs becomes one of ours, and the reverse."""

    ours: Callable[[Tensor], Tensor]
    theirs: Callable[[Tensor], Tensor]


same = Layout(ours=lambda w: w, theirs=lambda w: w)
one_row = Layout(ours=lambda w: w[0], theirs=lambda w: w[None])  # they keep a vector as a matrix of one row
# they compute x @ w, we w @ x; a bias stays as it is, and what has more axes is refused later for its shape
transposed = Layout(ours=lambda w: w.mT if w.ndim == 2 else w, theirs=lambda w: w.mT if w.ndim == 2 else w)


class Row(NamedTuple):
    """`ours` are the parts of one tensor of theirs, `theirs` its possible names."""

    ours: tuple[str, ...]
    theirs: tuple[str, ...]
    layout: Layout

    def split(self, name: str, tensor: Tensor) -> tuple[Tensor, ...]:
        """Split a tensor of theirs into our parts."""
        whole, count = self.layout.ours(tensor), len(self.ours)
        if count == 1:
            return (whole,)
        if whole.ndim == 0 or len(whole) % count:
            raise ValueError(
                f"{name} has shape {tuple(tensor.shape)}, which does not split into {count} equal parts for "
                f"{', '.join(self.ours)}"
            )
        return whole.chunk(count)

    def join(self, name: str, parts: Mapping[int, tuple[str, Tensor]]) -> Tensor:
        """Join the parts, given by index and name, into their tensor."""
        names, tensors = zip(*(parts[i] for i in sorted(parts)), strict=True)
        if len(parts) < len(self.ours):
            raise ValueError(f"{name} is joined from {', '.join(self.ours)}, but there is only {', '.join(names)}")
        if len({tensor.shape for tensor in tensors}) > 1:
            shapes = ", ".join(f"{part} {tuple(tensor.shape)}" for part, tensor in zip(names, tensors, strict=True))
            raise ValueError(f"{name} is joined from equal parts, but their shapes differ: {shapes}")
        return self.layout.theirs(torch.cat(tensors) if len(tensors) > 1 else tensors[0]).contiguous()


class WeightTable:
    """`prefix` may be missing from their names. The rest is about tensors of theirs without a row. `constants` are
    values that we compute and they store: they are checked when read, and written; `legacy` are those of older
    versions, which are not written. `ignore` are patterns of names without use. `endings` maps name endings of older
    versions to current ones. `absent` are weights of ours that they may omit: each is then zero, with as many entries
    as another weight of ours has rows.
    """

    def __init__(
        self,
        *rows: tuple,
        prefix: str = "",
        constants: Mapping[str, Tensor] | None = None,
        legacy: Mapping[str, Tensor] | None = None,
        ignore: tuple[str, ...] = (),
        absent: Mapping[str, str] | None = None,
        endings: Mapping[str, str] | None = None,
    ):
        each = [Row(_parts(ours), as_names(theirs), *(layout or [same])) for ours, theirs, *layout in rows]
        for row in each:
            assert all(name.count("{}") in (0, row.ours[0].count("{}")) for name in row.theirs), row
        self.by_theirs = {name: row for row in each for name in row.theirs}
        self.by_ours = {name: (row, part) for row in each for part, name in enumerate(row.ours)}
        self.prefix, self.ignore, self.absent = prefix, ignore, dict(absent or {})
        self.endings = dict(endings or {})
        self.constants, self.computed = dict(constants or {}), {**(constants or {}), **(legacy or {})}

    def to_ours(self, weights: Mapping[str, Tensor], names: Collection[str]) -> Weights:
        """Their weights under our names: exactly those of `names`, the names of our model."""
        result, origin, extra = {}, {}, []
        for given, tensor in weights.items():
            name = self._with_prefix(given)
            if any(fnmatch(name, pattern) for pattern in self.ignore):
                continue
            if name in self.computed:
                _check_computed(given, tensor, self.computed[name])
                continue
            row, numbers, ending = _find(name, self.by_theirs) or (None, [], "")
            targets = [_in_model(part + ending, numbers, names) for part in row.ours] if row else []
            if not targets or not all(targets):
                extra.append(given)
                continue
            for part, ours in zip(row.split(given, tensor), targets, strict=True):
                for name in ours:
                    if name in result and not torch.equal(part, result[name]):
                        raise ValueError(f"{given} and {origin[name]} differ; in this model they are the same matrix")
                    result[name], origin[name] = part.contiguous(), given
        if extra:
            raise ValueError(
                f"the weights hold {some(extra)}, which this model does not have: do they belong to another model?"
            )
        return self._complete(result, names)

    def to_theirs(self, weights: Mapping[str, Tensor]) -> Weights:
        """Our weights under their names, as their library would save them."""
        rows, parts = {}, {}
        for name, tensor in weights.items():
            found = _find(name, self.by_ours)
            if found is None:
                raise ValueError(f"the table has no entry for {name}")
            (row, part), numbers, ending = found
            theirs = row.theirs[0].format(*numbers) + ending
            rows[theirs], held = row, parts.setdefault(theirs, {})
            other, first = held.setdefault(part, (name, tensor))
            if first is not tensor and not torch.equal(first, tensor):
                raise ValueError(f"{name} and {other} differ, but {theirs} is shared by all layers")
        result = {theirs: row.join(theirs, parts[theirs]) for theirs, row in rows.items()}
        like = next(iter(result.values()))
        return result | {name: tensor.clone().to(like) for name, tensor in self.constants.items()}

    def _with_prefix(self, name: str) -> str:
        for old, new in self.endings.items():
            name = name.removesuffix(old) + new if name.endswith(old) else name
        known = name in self.computed or _find(name, self.by_theirs) is not None
        return name if known or name.startswith(self.prefix) else self.prefix + name

    def _complete(self, weights: Weights, names: Collection[str]) -> Weights:
        for name, other in self.absent.items():
            if name in names and name not in weights and other in weights:
                weights[name] = weights[other].new_zeros(len(weights[other]))
        missing = dict.fromkeys(self._their_name(name) for name in names if name not in weights)
        if missing:
            raise ValueError(f"the weights lack {some(list(missing))}: they belong to another model, or are incomplete")
        return weights

    def _their_name(self, name: str) -> str:
        (row, _), numbers, ending = _find(name, self.by_ours) or ((None, 0), [], "")
        return row.theirs[0].format(*numbers) + ending if row else name


def _parts(ours: str) -> tuple[str, ...]:
    """Expand `attention.{q,k,v}` to three names."""
    found = PARTS.search(ours)
    return tuple(ours.replace(found[0], part) for part in found[1].split(",")) if found else (ours,)


@cache
def _pattern(template: str) -> re.Pattern[str]:
    return re.compile(r"(\d+)".join(map(re.escape, template.split("{}"))))


def _find(name: str, rows: Mapping[str, Any]) -> tuple[Any, list[str], str] | None:
    """The entry for a name, the numbers at its `{}`, and the ending if the entry is a module."""
    module, dot, last = name.rpartition(".")
    for key, ending in ((name, ""), (module, dot + last)):
        for template, row in rows.items():
            if found := _pattern(template).fullmatch(key):
                return row, list(found.groups()), ending
    return None


def _in_model(template: str, numbers: list[str], names: Collection[str]) -> list[str]:
    """The weights of our model for the name in a row; without numbers, those of all layers."""
    if "{}" in template and not numbers:
        return [name for name in names if _pattern(template).fullmatch(name)]
    name = template.format(*numbers)
    return [name] if name in names else []


def _check_computed(name: str, given: Tensor, ours: Tensor) -> None:
    """Values that we compute ourselves need not be read, but must be equal."""
    if given.shape != ours.shape:
        raise ValueError(
            f"{name} has shape {tuple(given.shape)}, but according to the settings it should be {tuple(ours.shape)}"
        )
    if not torch.allclose(given.to(ours.dtype), ours, rtol=0, atol=TOLERANCE):
        raise ValueError(
            f"{name} does not match the sinusoidal positions that heed computes: the model cannot be imported"
        )

"""Checks of the shapes in signatures, once for each combination of types, shapes and formats that a function meets."""

import functools
import threading
from collections.abc import Callable, Collection
from types import FunctionType
from typing import Any

import jaxtyping
import numpy as np
import torch
from torch import nn

MOST = 32  # items of what is looked into; what is longer is checked at each call
check = jaxtyping.jaxtyped
plain: dict[type, bool] = {}  # whether there is nothing in a value of this type that an annotation speaks of
accepted: dict[Any, dict[Any, set]] = {}  # by function: what it returned, by what it was given
at_hand = threading.local()


class NotSeen(Exception):
    """An annotation may speak of more than can be seen quickly."""


def jaxtyped(fn: Any = None, *, typechecker: Any) -> Any:
    """Stands for `jaxtyping.jaxtyped`, which takes ten microseconds a call and more, a third of the time of some tests."""
    if fn is None:
        return functools.partial(jaxtyped, typechecker=typechecker)
    return _once(fn, typechecker) if type(fn) is FunctionType else check(fn, typechecker=typechecker)


def _once(fn: FunctionType, typechecker: Any) -> Callable:
    annotations = str(fn.__annotations__)
    exact = "Literal" in annotations or ", ...]" in annotations
    known = accepted.setdefault((fn.__code__, annotations), {})

    @functools.cache
    def checked():
        return check(_or_at_hand(fn), typechecker=typechecker)

    @functools.wraps(fn)
    def wrapped(*args, **kwargs):
        __tracebackhide__ = True
        if jaxtyping.config.jaxtyping_disable:
            return fn(*args, **kwargs)
        try:
            given = tuple([_seen(value, exact) for value in args])
            if kwargs:
                given = given, tuple([(name, _seen(value, exact)) for name, value in kwargs.items()])
        except NotSeen:
            return checked()(*args, **kwargs)
        new = given not in known
        made = checked()(*args, **kwargs) if new else fn(*args, **kwargs)
        try:
            returned = _seen(made, exact)
        except NotSeen:
            returned = None
        if new:
            known[given] = {returned} - {None}
        elif returned not in known[given]:
            at_hand.made = made
            try:
                checked()(*args, **kwargs)
            finally:
                at_hand.__dict__.pop("made", None)
            known[given] |= {returned} - {None}
        return made

    return wrapped


def _or_at_hand(fn: FunctionType) -> FunctionType:
    """The function, which is not called where its result is at hand. Names in its annotations are those of its module."""
    hand = at_hand

    def call(*args, **kwargs):
        return hand.__dict__.pop("made") if "made" in hand.__dict__ else fn(*args, **kwargs)

    own = FunctionType(call.__code__, fn.__globals__, fn.__name__, None, call.__closure__)
    return functools.update_wrapper(own, fn)


def _seen(value: Any, exact: bool) -> Any:
    """What annotations can speak of: the type, the shape and format of an array, and what is in a collection."""
    kind = type(value)
    if kind is torch.Tensor or kind is nn.Parameter:
        return kind, value.shape, value.dtype
    if (simple := plain.get(kind)) is None:
        simple = plain[kind] = kind in (str, bytes) or issubclass(kind, nn.Module) or not issubclass(kind, Collection)
    if simple:
        return value if isinstance(value, type) or (exact and kind in (str, int, bool)) else kind
    if isinstance(value, torch.Tensor | np.ndarray):
        return kind, tuple(value.shape), value.dtype
    if isinstance(value, tuple | list) and len(value) <= MOST:
        items = tuple([_seen(item, exact) for item in value])
        if (kind is list or (kind is tuple and exact)) and len(set(items)) > 1:
            raise NotSeen  # beartype draws one of the items at each call
        return kind, items
    if kind is dict and len(value) <= MOST:
        return kind, tuple([(_seen(name, exact), _seen(item, exact)) for name, item in value.items()])
    raise NotSeen

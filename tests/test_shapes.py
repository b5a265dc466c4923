"""Shapes in signatures are checked in tests: what was accepted is not checked again, and everything else is."""

import threading
from typing import Literal, NamedTuple

import jaxtyping
import pytest
import torch
from jaxtyping import Float, TypeCheckError
from torch import Tensor

from tests import shapes


class Pair(NamedTuple):
    one: Tensor
    other: Tensor


def checked(fn):
    from beartype import beartype

    return shapes.jaxtyped(fn, typechecker=beartype)


@pytest.fixture
def counted(monkeypatch):
    """How often something is checked."""
    calls, check = [], shapes.check

    def counting(fn, **how):
        own = check(fn, **how)
        return lambda *args, **kwargs: (calls.append(fn.__name__), own(*args, **kwargs))[1]

    monkeypatch.setattr(shapes, "check", counting)
    return calls


def test_the_same_shapes_are_checked_once(counted):
    @checked
    def double(values: Float[Tensor, "rows n"], factor: float = 2.0) -> Float[Tensor, "rows n"]:
        return values * factor

    for value in (1.0, 2.0, 3.0):
        assert double(torch.full((2, 3), value))[0, 0] == 2 * value
    assert len(counted) == 1
    double(torch.ones(3, 2))
    double(torch.ones(3, 2).double())
    double(torch.ones(3, 2), factor=3.0)
    assert len(counted) == 4


def test_what_is_wrong_is_refused_after_what_was_right():
    @checked
    def add(one: Float[Tensor, "rows n"], other: Float[Tensor, "rows n"], name: str | None = None) -> Tensor:
        return one + other

    right = torch.ones(2, 3)
    for wrong in (torch.ones(2, 1), torch.ones(3), torch.ones(2, 3, dtype=torch.long), 1.0, None):
        add(right, right)
        with pytest.raises(TypeCheckError):
            add(right, wrong)
        with pytest.raises(TypeCheckError):
            add(right, other=wrong)
    with pytest.raises(TypeCheckError):
        add(right, right, 1)
    with pytest.raises(TypeError, match="missing a required argument"):
        add(right)


def test_every_result_is_checked_and_nothing_is_computed_twice():
    made = []

    @checked
    def cut(values: Float[Tensor, " n"], size: int) -> Float[Tensor, " n"]:
        made.append(size)
        return values[:size]

    cut(torch.ones(3), 3)
    with pytest.raises(TypeCheckError, match="return value"):
        cut(torch.ones(3), 2)
    assert len(cut(torch.ones(3), 3)) == 3
    assert made == [3, 2, 3]


def test_arguments_that_a_call_has_spoilt_leave_nothing_behind():
    @checked
    def fill(values: list[int], item, more: int = 0) -> list:
        values.append(item)
        return values[:more]

    fill([1], 2)
    with pytest.raises(TypeCheckError):
        fill([], "two", 1)
    with pytest.raises(TypeCheckError):
        fill([], "two", 1)
    assert fill([1], 2, 2) == [1, 2]


def test_what_is_in_a_collection_is_seen():
    @checked
    def count(pairs: list[Pair] | dict[str, Tensor] | tuple[Float[Tensor, " n"], ...]) -> int:
        return len(pairs)

    pair = Pair(torch.ones(2), torch.ones(2))
    assert [count([pair]), count({"a": torch.ones(2)}), count((torch.ones(2), torch.ones(2)))] == [1, 1, 2]
    for wrong in ([1], {"a": 1}, {1: torch.ones(2)}, ("a",), {pair}):
        with pytest.raises(TypeCheckError):
            count(wrong)
    assert count([pair] * (shapes.MOST + 1)) == shapes.MOST + 1
    with pytest.raises(TypeCheckError):
        count([1] * (shapes.MOST + 1))


def test_of_items_that_differ_one_is_drawn_at_each_call(counted):
    @checked
    def one(values: list[Float[Tensor, "..."] | None]) -> int:
        return len(values)

    @checked
    def other(values: tuple[Float[Tensor, "..."] | None, ...]) -> int:
        return len(values)

    for own, kind in ((one, list), (other, tuple)):
        for times, items in ((1, [None, None]), (3, [None, torch.ones(2)])):
            counted.clear()
            assert [own(kind(items)) for _ in range(3)] == [2, 2, 2]
            assert len(counted) == times


def test_of_a_literal_the_value_counts():
    @checked
    def run(how: Literal["fast", "exact"]) -> str:
        return how

    assert run("fast") == "fast"
    with pytest.raises(TypeCheckError):
        run("slow")


def test_functions_within_a_function_share_what_was_accepted(counted):
    def make(sign):
        @checked
        def signed(values: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
            return sign * values

        return signed

    assert [make(sign)(torch.ones(2))[0].item() for sign in (1, -1)] == [1, -1]
    assert len(counted) == 1
    with pytest.raises(TypeCheckError):
        make(1)(torch.ones(2, 2))


def test_threads_keep_their_results():
    @checked
    def cut(values: Float[Tensor, " n"], size: int) -> Tensor:
        return values[:size]

    cut(torch.ones(9), 9)
    sizes = {}

    def work(own):
        sizes[own] = [len(cut(torch.ones(9), size)) for size in range(own, 10)]

    threads = [threading.Thread(target=work, args=(own,)) for own in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sizes == {own: list(range(own, 10)) for own in range(4)}


def test_the_code_under_test_is_checked_so():
    from heed.nn.masks import from_lengths

    assert jaxtyping.jaxtyped is shapes.jaxtyped
    for _ in range(2):
        assert from_lengths(torch.tensor([1, 2]), 2).sum() == 3
        with pytest.raises(TypeCheckError):
            from_lengths(torch.tensor([1.0, 2.0]), 2)

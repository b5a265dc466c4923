"""Calls in several threads: their results are in order, and not more than asked for are made ahead."""

import time

import pytest

from heed.data.in_thread import in_order


def test_results_are_in_order_whichever_call_ends_first():
    def slow(number):
        time.sleep(0.002 * (number % 3))
        return number * number

    found = [(item, result()) for item, result in in_order(slow, range(40), threads=4)]
    assert found == [(number, number * number) for number in range(40)]


def test_an_error_comes_with_its_own_item():
    results = [result for _, result in in_order(lambda n: 1 // n, [1, 0, 1], threads=2)]
    assert results[0]() == results[2]() == 1
    with pytest.raises(ZeroDivisionError):
        results[1]()


def test_only_some_calls_are_made_ahead_and_none_after_it_is_closed():
    taken = []
    found = in_order(lambda n: n, (taken.append(n) or n for n in range(1000)), ahead=3, threads=2)
    assert next(found)[0] == 0 and len(taken) == 8
    found.close()
    assert len(taken) == 8

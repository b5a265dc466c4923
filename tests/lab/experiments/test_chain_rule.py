"""The chain rule of the lecture notes, three ways, and the line in which a z is missing."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.lab.experiments import chain_rule


def test_the_numbers_at_1_7():
    own = chain_rule.measure()
    assert own.t == 1.7
    assert own.total == pytest.approx(math.e * math.cos(0.7), abs=1e-14) == own.closed_form
    assert f"{own.total:.3f}" == f"{own.autograd:.3f}" == "2.079"
    assert f"{own.middle:.3f}" == "0.637"
    assert own.products == pytest.approx([2.079057, 2.060194, -2.060194], abs=1e-6)  # the last two cancel: y z² is 1
    assert own.by_rule == pytest.approx(own.by_autograd, abs=1e-13)


@given(st.floats(0.2, 5))
def test_the_rule_is_autograd_and_a_small_step(t):
    step = 1e-6
    f = [math.sin(x) * math.e for x in (t + step - 1, t - step - 1)]
    assert chain_rule.by_rule(t) == pytest.approx(chain_rule.by_autograd(t), abs=1e-12)
    assert chain_rule.by_rule(t) == pytest.approx((f[0] - f[1]) / (2 * step), abs=1e-6)


def test_the_line_without_z_is_right_only_where_z_is_one():
    assert chain_rule.by_middle_line(1.0) == pytest.approx(chain_rule.by_rule(1.0))
    assert abs(chain_rule.by_middle_line(2.0) - chain_rule.by_rule(2.0)) > 0.5


def test_the_table_has_every_way():
    terms, sums = chain_rule.tables(chain_rule.measure())
    assert [row[0] for row in terms.rows] == ["x", "y", "z"]
    assert [row[1] for row in sums.rows] == ["2.079057", "2.079057", "2.079057", "0.636921"]

"""∂E/∂W term by term: the formula of the notes against autograd and against a small step of W."""

import pytest
import torch
from matplotlib.figure import Figure

from heed.lab.experiments import weight_terms


@pytest.mark.parametrize("seed", [0, 1])
def test_every_term_and_every_sum_is_that_of_autograd(seed):
    own = weight_terms.measure(seed)
    assert max(own.term_error, own.sum_error, own.total_error, own.jacobian_error) < 1e-13
    assert [len(row) for row in own.norms] == [1, 2, 3, 4, 5]


def test_red_blue_and_yellow_are_the_gradient_at_three():
    own = weight_terms.measure()
    terms = torch.tensor(list(own.terms.values()), dtype=torch.float64)
    assert torch.allclose(terms.sum(0), torch.tensor(own.sum, dtype=torch.float64), atol=1e-15)
    assert terms.norm(dim=(1, 2)).tolist() == pytest.approx(own.norms[2][::-1])
    assert own.norms[2][0] > 1e-3  # yellow


def test_yellow_is_exactly_zero_if_the_first_state_is():
    own = weight_terms.measure()
    assert own.zero_norms["yellow"] == 0.0 and own.zero_norms["blue"] > 0 and own.zero_norms["red"] > 0


def test_the_double_sum_is_what_a_small_step_of_w_does():
    example = weight_terms._example(0)
    found = sum(sum(row) for row in weight_terms.terms(example, example.start))
    weight, step = example.net.layers[0].weight_hh_l0, 1e-6
    losses = []
    for change in (step, -2 * step):
        weight[1, 2] += change
        losses.append(sum(weight_terms._losses(example, [example.net] * 5, example.start)))
    assert found[1, 2].item() == pytest.approx(((losses[0] - losses[1]) / (2 * step)).item(), abs=1e-8)


def test_what_is_drawn_is_what_was_measured():
    own, fig = weight_terms.measure(), Figure()
    weight_terms.draw(fig, fig.add_gridspec(1, 1)[0], own)
    cells = [panel.images[0].get_array() for panel in fig.axes]
    assert [values.tolist() for values in cells[:4]] == [*own.terms.values(), own.sum]
    coloured, norms, errors = weight_terms.tables(own)
    assert [row[3] for row in coloured.rows][-1] == "0.000000"
    assert norms.rows[2][1:4] == [f"{norm:.4f}" for norm in own.norms[2]] and len(errors.rows) == 4

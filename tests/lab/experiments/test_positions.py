"""Positions: what holds of the waves, and what the table of the lecture notes is."""

import math

import pytest
import torch

from heed.lab.experiments import positions
from heed.nn.positions import sinusoids


@pytest.mark.parametrize("dim", [2, 10, 64, 512])
def test_every_norm_is_the_root_of_half_the_width(dim):
    found = positions.measure(dim=dim, length=50)
    assert found.expected_norm == math.sqrt(dim / 2)
    assert found.waves.norms == pytest.approx([math.sqrt(dim / 2)] * 50, rel=1e-6)


@pytest.mark.parametrize("dim", [10, 64])
def test_a_distance_depends_on_the_offset_alone(dim):
    found = positions.measure(dim=dim, length=40).waves
    assert found.least == pytest.approx(found.greatest, abs=1e-5)
    by_formula = [
        math.sqrt(sum(2 - 2 * math.cos(offset / 10000 ** (2 * i / dim)) for i in range(dim // 2)))
        for offset in range(40)
    ]
    assert found.mean == pytest.approx(by_formula, abs=1e-5)


def test_the_table_of_the_notes_is_not_the_formulas():
    found = positions.measure()
    table = torch.tensor(found.notes)
    assert torch.equal(table, table.T)
    assert max(found.notes_norms) - min(found.notes_norms) > 0.4
    for offset in range(1, 9):
        assert table.diagonal(offset).max() - table.diagonal(offset).min() > 0.05


def test_all_cells_of_the_notes_follow_from_a_rate_for_each_column():
    found = positions.measure()
    for ours, theirs in zip(found.rebuilt, found.notes, strict=True):
        assert [round(value, 3) for value in ours] == theirs


@pytest.mark.parametrize("columns", [9, 11])
def test_no_other_number_of_columns_explains_them(columns):
    found = positions.distances(positions.notes_vectors(10, columns))
    assert (found - torch.tensor(positions.NOTES, dtype=torch.float64)).abs().max() > 0.01


def test_ours_is_the_formula_written_out():
    found = positions.measure()
    waves = sinusoids(10, 10).double()
    for row in range(10):
        for column in range(10):
            assert found.formula[row][column] == pytest.approx(math.dist(waves[row], waves[column]), abs=1e-9)


def test_distances_rise_until_they_fall():
    found = positions.measure(dim=10, length=10)
    mean = found.waves.mean
    assert found.rises_until == 3
    assert mean[0] < mean[1] < mean[2] < mean[3] > mean[4]


def test_learned_positions_stand_beside_the_waves():
    learned = torch.randn(20, 6)
    found = positions.measure(dim=8, length=12, learned=learned, model="mine")
    assert found.learned.norms == pytest.approx(learned[:12].double().norm(dim=1).tolist())
    assert found.learned.least[5] < found.learned.mean[5] < found.learned.greatest[5]
    assert "of mine have norms from" in positions.summary(found)
    cells, norms, apart = positions.figure(found).axes[5:]
    assert cells.images[0].get_array().tolist() == found.learned.values
    assert norms.lines[0].get_ydata().tolist() == found.learned.norms
    assert apart.images[0].get_array()[2, 7] == pytest.approx(math.dist(learned[2], learned[7]), abs=1e-5)
    assert len(positions.tables(found)[0].columns) == 6


def test_what_is_drawn_is_what_was_measured():
    found = positions.measure(dim=8, length=12)
    waves, norms, offsets, notes, ours = positions.figure(found).axes
    assert waves.images[0].get_array().tolist() == found.waves.values
    assert norms.lines[1].get_ydata().tolist() == found.notes_norms
    assert offsets.lines[0].get_ydata().tolist() == found.waves.mean
    assert [panel.images[0].get_array().tolist() for panel in (notes, ours)] == [found.notes, found.formula]


def test_sizes_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="dim is 7; it must be even"):
        positions.measure(dim=7)
    with pytest.raises(ValueError, match="length is 1; it must be at least 2"):
        positions.measure(length=1)

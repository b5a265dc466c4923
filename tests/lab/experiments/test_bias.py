"""The lab of inductive bias: its tasks by hand, its networks of one size."""

import pytest
import torch

from heed.lab.experiments import bias, bias_tasks
from heed.lab.experiments.bias_tasks import BODIES, MOTIFS, TASKS, Network


@pytest.fixture(scope="module")
def small():
    return bias.measure(dim=8, steps=3, rows=4)


def generator():
    return torch.Generator().manual_seed(1)


@pytest.mark.parametrize(("new", "first", "last"), [(False, 0, 7), (True, 12, 20)])
def test_a_motif_stands_where_it_should(new, first, last):
    tokens, labels = bias_tasks.draw_pattern(200, new, generator())
    begins = set()
    for row, which in zip(tokens[..., 0].tolist(), labels[:, -1].tolist(), strict=True):
        starts = [at for at in range(first, last + 1) if tuple(row[at : at + 4]) == MOTIFS[which]]
        assert starts
        begins.update(starts)
    assert {min(begins), max(begins)} == {first, last}
    assert (labels[:, :-1] == -1).all()
    assert len({tuple(sorted(motif)) for motif in MOTIFS}) == 1 and len(set(MOTIFS)) == 4


def test_a_state_is_the_parity_so_far():
    tokens, labels = bias_tasks.draw_state(5, False, generator())
    for row, states in zip(tokens[..., 0].tolist(), labels.tolist(), strict=True):
        assert states == [sum(row[: at + 1]) % 2 for at in range(16)]
    tokens, labels = bias_tasks.draw_state(5, True, generator())
    assert tokens.shape == (5, 32, 1) and (labels[:, :16] == -1).all() and (labels[:, 16:] >= 0).all()


@pytest.mark.parametrize(("new", "pairs"), [(False, 6), (True, 12)])
def test_the_value_of_a_key_is_asked_for(new, pairs):
    tokens, labels = bias_tasks.draw_recall(20, new, generator())
    for row, own in zip(tokens.tolist(), labels.tolist(), strict=True):
        known = {key: value - bias_tasks.KEYS for key, value in row[:-1]}
        assert len(known) == pairs
        assert row[-1][1] == bias_tasks.ASK and own == [-1] * pairs + [known[row[-1][0]]]


@pytest.mark.parametrize("body", BODIES)
def test_no_network_sees_what_comes_later(body):
    torch.manual_seed(0)
    network = Network(BODIES[body](8), 25, 4, 8, pooled=False)
    tokens = torch.randint(12, (2, 10, 1))
    later = tokens.clone()
    later[:, 6:] = (later[:, 6:] + 1) % 12
    one, other = network(tokens), network(later)
    assert torch.allclose(one[:, :6], other[:, :6], atol=1e-6)
    assert not torch.allclose(one[:, 6:], other[:, 6:], atol=1e-6)


def test_the_networks_have_about_as_many_weights():
    counts = [sum(part.numel() for part in build(32).parameters()) for build in BODIES.values()]
    assert max(counts) / min(counts) < 1.05


def test_the_same_seed_gives_the_same_numbers(small):
    assert small == bias.measure(dim=8, steps=3, rows=4)
    assert small.chance == {"shifted pattern": 0.25, "running state": 0.5, "recall": 0.125}


def test_what_is_drawn_is_what_was_measured(small):
    for panel, own in zip(bias.figure(small).axes, small.accuracy.values(), strict=True):
        heights = [bar.get_height() for bar in panel.patches]
        assert heights == [value for body in own.values() for value in (body.seen, body.new)]
    rows = bias.tables(small)[0].rows
    assert [row[1] for row in rows] == ["yes", "yes", "no", "no", "yes", "no", "no", "no", "yes"]
    assert all(task in bias.summary(small) for task in TASKS)


def test_sizes_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="dim is 6; it must be a multiple of 4"):
        bias.measure(dim=6)
    with pytest.raises(ValueError, match="steps is 0; it must be at least 1"):
        bias.measure(steps=0)

"""The loss on validation texts: a mean over tokens, in batches within the budget."""

from types import SimpleNamespace

import pytest
import torch

from heed.tasks.validation import mean_nll


@pytest.mark.parametrize(("budget", "sizes"), [(100, {3}), (10, {1, 2}), (1, {1})])
def test_it_is_the_mean_over_tokens_whatever_fits_into_a_batch(budget, sizes):
    """A text takes a position for its end too: two of four tokens are ten."""
    examples, batches = [([1, 2, 3, 4], [5]), ([6], [7, 8, 9, 10]), ([11, 12], [13, 14, 15, 16, 17])], []

    def objective(model, batch):
        batches.append(batch)
        expected = [token for _, target in batch.rows for token in target]
        return SimpleNamespace(nll=torch.tensor(float(sum(expected))), count=len(expected))

    def collate(rows):
        batch = SimpleNamespace(rows=rows)
        batch.to = lambda device: batch
        return batch

    found = mean_nll(torch.nn.Linear(1, 1), objective, examples, collate, budget)
    every = [token for _, target in examples for token in target]
    assert found == pytest.approx(sum(every) / len(every))
    assert {len(batch.rows) for batch in batches} == sizes


def test_the_loss_on_no_texts_is_zero():
    assert mean_nll(torch.nn.Linear(1, 1), None, [], None, 10) == 0

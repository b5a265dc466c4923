"""Weight decay of all weights, or of matrices alone."""

import torch
from torch import nn

from heed.training import checkpoints
from heed.training.checkpoints import TrainingState
from heed.training.config import TrainingConfig, make_optimizer
from heed.training.loop import set_learning_rate


def build() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Embedding(5, 4), nn.LayerNorm(4), nn.Linear(4, 3))


def step(model, optimizer, number: int) -> None:
    torch.manual_seed(number)
    set_learning_rate(optimizer, 0.1)
    model(torch.randint(5, (7,))).square().sum().backward()
    optimizer.step()
    optimizer.zero_grad()


def test_without_a_gradient_only_matrices_shrink():
    model = build()
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    optimizer = make_optimizer(TrainingConfig(weight_decay=0.5, decayed="matrices"), model.parameters())
    set_learning_rate(optimizer, 0.1)
    for weight in model.parameters():
        weight.grad = torch.zeros_like(weight)
    optimizer.step()
    for name, weight in model.state_dict().items():
        assert torch.allclose(weight, before[name] * (0.95 if weight.dim() > 1 else 1.0))


def test_two_groups_of_weights_resume_to_the_bit(tmp_path):
    config = TrainingConfig(weight_decay=0.5, decayed="matrices")
    whole, again = build(), build()
    first, second = (make_optimizer(config, model.parameters()) for model in (whole, again))
    for number in (1, 2):
        step(whole, first, number)
    checkpoints.write(tmp_path, 2, *TrainingState(whole, first).tensors(), {})
    step(whole, first, 3)
    kept = checkpoints.read_newest(tmp_path, print)
    TrainingState(again, second).restore(kept.model, kept.training, tmp_path)
    moments = {name for name in kept.training if name.startswith("optimizer.exp_avg.")}
    assert moments == {f"optimizer.exp_avg.{name}" for name, _ in whole.named_parameters()}
    assert all(
        kept.training[name].shape == kept.model[name.removeprefix("optimizer.exp_avg.")].shape for name in moments
    )
    step(again, second, 3)
    assert all(torch.equal(weight, again.state_dict()[name]) for name, weight in whole.state_dict().items())

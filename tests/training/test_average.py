"""One model out of several, beside means taken by hand."""

import pytest
import torch
from torch import nn

from heed.models.folder import write_weights
from heed.training.average import EMA, mean, temporary_weights


def files(folder, *models):
    paths = [folder / f"{i}.safetensors" for i in range(len(models))]
    for path, weights in zip(paths, models, strict=True):
        write_weights(path, weights)
    return paths


def drawn(seed, dtype=torch.float32, **shapes):
    generator = torch.Generator().manual_seed(seed)
    return {name: torch.randn(shape, generator=generator).to(dtype) for name, shape in shapes.items()}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_the_mean_of_files_is_the_mean_by_hand(tmp_path, dtype):
    models = [drawn(seed, dtype, a=(3, 4), b=(5,)) for seed in range(5)]
    found = mean(files(tmp_path, *models))
    assert found.keys() == {"a", "b"}
    for name, weight in found.items():
        by_hand = torch.stack([model[name].double() for model in models]).mean(0).to(dtype)
        assert weight.dtype == dtype
        torch.testing.assert_close(weight, by_hand, rtol=0, atol=1e-2 if dtype == torch.bfloat16 else 1e-7)


def test_the_mean_of_one_is_itself(tmp_path):
    model = drawn(0, a=(3, 4))
    assert torch.equal(mean(files(tmp_path, model))["a"], model["a"])


def test_different_models_are_refused(tmp_path):
    paths = files(tmp_path, drawn(0, a=(3,)), drawn(1, a=(3,), extra=(2,)), drawn(2, a=(4,)))
    with pytest.raises(
        ValueError, match=r"1\.safetensors and .*0\.safetensors belong to different models: only one .* extra"
    ):
        mean(paths[:2])
    with pytest.raises(ValueError, match=r"2\.safetensors: a has shape \(4,\), in .*0\.safetensors \(3,\)"):
        mean([paths[0], paths[2]])
    with pytest.raises(ValueError, match=r"has no weights: 3\.safetensors is missing"):
        mean([paths[0], tmp_path / "3.safetensors"])


def test_a_moving_average_is_its_formula():
    torch.manual_seed(0)
    model = nn.Linear(3, 2).double()
    ema = EMA(model, decay=0.9)
    by_hand = {name: weight.clone() for name, weight in model.state_dict().items()}
    for step in (1, 2, 50, 100, 1000):
        with torch.no_grad():
            for weight in model.parameters():
                weight += torch.randn_like(weight)
        ema.update(model, step)
        decay = min(0.9, (1 + step) / (10 + step))
        for name, weight in model.state_dict().items():
            by_hand[name] = decay * by_hand[name] + (1 - decay) * weight
            torch.testing.assert_close(ema.weights[name], by_hand[name], rtol=0, atol=1e-12)


def test_a_moving_average_leaves_the_model_alone():
    model = nn.Linear(3, 2)
    before = model.weight.detach().clone()
    ema = EMA(model, decay=0.9)
    ema.weights["weight"].zero_()
    ema.update(model, 5)
    assert torch.equal(model.weight, before)


def test_other_weights_are_borrowed_and_the_own_come_back_even_after_an_error():
    torch.manual_seed(0)
    model, other = nn.Linear(3, 2), nn.Linear(3, 2).state_dict()
    own, lent = ({name: weight.clone() for name, weight in some.items()} for some in (model.state_dict(), other))
    with pytest.raises(RuntimeError, match="stop"), temporary_weights(model, other):
        assert all(torch.equal(weight, lent[name]) for name, weight in model.state_dict().items())
        raise RuntimeError("stop")
    assert all(torch.equal(weight, own[name]) for name, weight in model.state_dict().items())
    assert all(torch.equal(weight, lent[name]) for name, weight in other.items())

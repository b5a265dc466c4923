"""What Marian alone has. That it computes what Hugging Face's does is in tests/convert."""

import dataclasses
import math

import pytest
import torch

from heed.models.marian import Marian, MarianConfig

CONFIG = MarianConfig(vocab_size=31, dim=16, heads=2, hidden=24, encoder_layers=1, decoder_layers=1, max_length=12)


def test_the_sines_lie_before_the_cosines():
    waves = Marian(CONFIG).positions.waves
    for place, i in [(0, 0), (3, 0), (11, 5), (7, 7)]:
        angle = place / 10000 ** (2 * i / 16)
        assert waves[place, i].item() == pytest.approx(math.sin(angle), abs=1e-6)
        assert waves[place, 8 + i].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_sinusoids_are_no_weights():
    assert not any("positions" in name for name in Marian(CONFIG).state_dict())


@pytest.mark.parametrize(("scaled", "scale"), [(True, 4.0), (False, 1.0)])
def test_embeddings_are_scaled_where_the_config_says_so(scaled, scale):
    model = Marian(dataclasses.replace(CONFIG, scaled=scaled)).eval()
    expected = model.tokens.weight[[5, 6]] * scale + model.positions.waves[:2]
    torch.testing.assert_close(
        model._embed(model.tokens, torch.tensor([[5, 6]]), model.positions(0, 2), None)[0], expected
    )


def test_tied_weights_are_counted_once():
    count = {tied: sum(p.numel() for p in Marian(dataclasses.replace(CONFIG, tied=tied)).parameters())
             for tied in ("all", "target", "none")}  # fmt: skip
    assert count["none"] - count["target"] == count["target"] - count["all"] == 31 * 16


def test_two_vocabularies_cannot_share_a_matrix():
    with pytest.raises(ValueError, match="tied is 'all', but the source has 40 subwords and the target 31"):
        Marian(dataclasses.replace(CONFIG, source_vocab_size=40))


def test_the_bias_of_the_output_is_learned():
    model = Marian(CONFIG)
    model(torch.tensor([[4]]), torch.tensor([[5]])).sum().backward()
    assert torch.equal(model.bias.grad, torch.ones(31))


def test_each_activation_is_another():
    source, target = torch.tensor([[4, 5, 6]]), torch.tensor([[7, 8]])
    models = [Marian(dataclasses.replace(CONFIG, activation=word, init_std=0.3)) for word in ("swish", "relu", "gelu")]
    seen = []
    for model in models:
        model.load_state_dict(models[0].state_dict())
        seen.append(model.eval()(source, target))
    assert (seen[0] - seen[1]).abs().max() > 1e-3
    assert (seen[1] - seen[2]).abs().max() > 1e-3
    assert (seen[0] - seen[2]).abs().max() > 1e-3

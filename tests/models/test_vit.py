"""ViT: what it computes, other resolutions, and its parts; parity with transformers is in tests/convert/test_vit.py."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from heed.models.vit import ViT, ViTConfig, interpolate
from heed.nn.transformer import PreNorm, ScaledPreNorm

SMALL = {"labels": 5, "size": 12, "channels": 3, "patch": 4, "dim": 16, "heads": 2, "hidden": 24, "layers": 3}


def model(**changes):
    torch.manual_seed(0)
    own = ViT(ViTConfig(**{**SMALL, **changes})).double().eval()
    with torch.no_grad():
        for weight in own.parameters():
            weight.normal_(0, 0.2)
    return own


def images(count=2, size=12, channels=3):
    return torch.randn(count, channels, size, size, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def test_patches_are_a_convolution():
    own = model(pooling="mean")
    expected = F.conv2d(images(), own.patches.weight, own.patches.bias, stride=4).flatten(2).mT + own.positions
    assert torch.allclose(own.embed(images()), expected, atol=1e-12)


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_an_image_is_classified_whatever_shares_its_batch(pooling):
    own = model(pooling=pooling)
    whole = own.classify_images(images(3))
    alone = torch.cat([own.classify_images(image[None]) for image in images(3)])
    assert whole.shape == (3, 5) and torch.allclose(whole, alone, atol=1e-12)
    assert own.config.max_length == 9 + (pooling == "cls") == own.image_states(images()).shape[1]


@pytest.mark.parametrize("changes", [{}, {"layers": 1}, {"layer_scale": 0.5}, {"pooling": "mean"}])
def test_the_vector_of_an_image_and_its_gradients_are_those_of_all_states(changes):
    """Of the last layer, only the class token is computed."""
    own = model(**changes)
    first, second = own.image_vectors(images()), own.pool(own.image_states(images()))
    assert torch.allclose(first, second, atol=1e-12)
    weights = [weight for name, weight in own.named_parameters() if not name.startswith("head")]
    found, expected = (torch.autograd.grad(each.square().sum(), weights) for each in (first, second))
    assert all(torch.allclose(one, two, atol=1e-10) for one, two in zip(found, expected, strict=True))


def test_positions_are_needed_to_tell_where_a_patch_is():
    own = model(pooling="mean")
    moved = images().roll(4, dims=3)  # the same patches in another order
    assert not torch.allclose(own.classify_images(images()), own.classify_images(moved))
    own.positions.data.zero_()
    assert torch.allclose(own.classify_images(images()), own.classify_images(moved), atol=1e-12)


def test_a_model_for_another_size_computes_what_the_first_does_with_images_of_that_size():
    own = model()
    larger = own.adapted(ViTConfig(**{**SMALL, "size": 20}))
    assert torch.allclose(
        larger.double().classify_images(images(2, 20)), own.classify_images(images(2, 20)), atol=1e-12
    )
    assert torch.equal(own.adapted(own.config).double().classify_images(images()), own.classify_images(images()))


def test_a_new_head_for_other_labels_and_nothing_else():
    own = model()
    new = own.adapted(ViTConfig(**{**SMALL, "labels": 7})).double()
    assert new.head.out_features == 7 and torch.equal(new.image_states(images()), own.image_states(images()))
    with pytest.raises(ValueError, match=r"images have 1 channels, but the model reads 3: set data\.colours"):
        own.adapted(ViTConfig(**{**SMALL, "channels": 1}))


def test_interpolation_keeps_the_class_token_and_an_even_surface():
    positions = torch.cat([torch.full((1, 4), 7.0), torch.full((9, 4), 3.0)])
    found = interpolate(positions, 3, 5, 2)
    assert found.shape == (11, 4) and (found[0] == 7).all() and torch.allclose(found[1:], torch.tensor(3.0))


def test_layer_scale_multiplies_what_a_sublayer_adds():
    body, norm = nn.Linear(4, 4), nn.LayerNorm(4)
    own, plain, x = ScaledPreNorm(body, norm, 0.0, 0.0, 0.5), PreNorm(body, norm), torch.randn(2, 3, 4)
    assert torch.allclose(own(x) - x, 0.5 * (plain(x) - x), atol=1e-6)
    assert "scale" in dict(own.named_parameters()) and ScaledPreNorm(body, norm, 0.0, 0.1, 0.0).scale is None


def test_stochastic_depth_leaves_out_whole_examples_and_keeps_the_mean():
    body, norm = nn.Linear(4, 4), nn.LayerNorm(4)
    own, x = ScaledPreNorm(body, norm, 0.0, 0.25, 0.0), torch.randn(1, 3, 4).expand(4000, -1, -1)
    torch.manual_seed(3)
    added = (own.train()(x) - x).detach()
    full = PreNorm(body, norm)(x[:1]) - x[:1]
    kept = added.flatten(1).abs().amax(dim=1) > 0
    assert 0.72 < kept.float().mean() < 0.78
    assert torch.allclose(added[kept], (full / 0.75).expand(int(kept.sum()), -1, -1), atol=1e-5)
    assert torch.equal(own.eval()(x[:1]), PreNorm(body, norm)(x[:1]))


def test_layers_are_dropped_more_often_the_later_they_are():
    layers = model(path_dropout=0.3).stack.layers
    assert [layer.attention.path_dropout for layer in layers] == pytest.approx([0, 0.15, 0.3])


def test_a_trace_has_every_state_and_every_attention():
    own = model()
    found = own.trace(images())
    assert torch.equal(found.logits, own.classify_images(images())) or torch.allclose(
        found.logits, own.classify_images(images()), atol=1e-12
    )
    assert len(found.states) == 4 and len(found.maps) == 3 and found.maps[0].shape == (2, 2, 10, 10)
    assert torch.allclose(own.pool(own.stack.norm(found.states[-1])), own.pool(own.image_states(images())), atol=1e-12)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"patch": 5}, r"images are 12 pixels wide, which is not a multiple of the patch size, 5"),
        ({"layer_scale": -1.0}, "layer_scale is -1.0; it must be 0"),
        ({"channels": 2}, "channels is 2; it must be 1"),
    ],
)
def test_what_cannot_be_built_is_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        ViTConfig(**{**SMALL, **changes})


def test_an_image_that_patches_do_not_divide_is_refused():
    with pytest.raises(ValueError, match="an image side has 13 pixels, which is not a multiple of the patch size, 4"):
        model().classify_images(torch.zeros(1, 3, 12, 13, dtype=torch.float64))


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_positions_can_start_as_sinusoids_of_row_and_column(pooling):
    grid = ViT(ViTConfig(**{**SMALL, "pooling": pooling, "init_positions": "2d"})).positions[-9:].view(3, 3, 16)
    place = torch.arange(3.0)
    for axis, part in ((place[:, None], grid[..., :8]), (place[None], grid[..., 8:])):
        assert torch.allclose(part[..., 0], axis.sin().expand(3, 3), atol=1e-6)
        assert torch.allclose(part[..., 1], axis.cos().expand(3, 3), atol=1e-6)


def test_positions_start_random_by_default():
    torch.manual_seed(0)
    assert ViT(ViTConfig(**SMALL)).positions.abs().max() <= 0.04

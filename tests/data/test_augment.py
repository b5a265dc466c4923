"""Augmentation in batches equals what is done to one image at a time, by Pillow or by hand."""

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps

from heed.data.images.augment import CropAndFlip, Erase, Mixing, Pipeline
from heed.data.images.randaugment import COLOURS, GEOMETRY, RandAugment, apply


def images(count=6, channels=3, size=16, seed=0):
    own = np.random.default_rng(seed).integers(20, 200, (count, channels, size, size))
    return torch.from_numpy(own).float()


def pillow(one):
    own = one.byte().permute(1, 2, 0).numpy()
    return Image.fromarray(own[..., 0] if own.shape[2] == 1 else own)


def tensor(image):
    own = np.asarray(image)
    return torch.from_numpy(own.copy().reshape(*own.shape[:2], -1)).permute(2, 0, 1).float()


BY_PILLOW = {
    "brightness": lambda image, s: ImageEnhance.Brightness(image).enhance(1 + 0.9 * s),
    "contrast": lambda image, s: ImageEnhance.Contrast(image).enhance(1 + 0.9 * s),
    "colour": lambda image, s: ImageEnhance.Color(image).enhance(1 + 0.9 * s),
    "sharpness": lambda image, s: ImageEnhance.Sharpness(image).enhance(1 + 0.9 * s),
    "posterize": lambda image, s: ImageOps.posterize(image, 8 - round(4 * abs(s))),
    "solarize": lambda image, s: ImageOps.solarize(image, 256 * (1 - abs(s))),
    "autocontrast": lambda image, s: ImageOps.autocontrast(image),
    "equalize": lambda image, s: ImageOps.equalize(image),
}


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("name", BY_PILLOW)
def test_colours_are_changed_as_by_pillow(name, channels):
    own = images(channels=channels)
    number = 1 + len(GEOMETRY) + [one.__name__ for one in COLOURS].index(name)
    for strength in (-0.5, 0.3, 1.0):
        found = apply(own, torch.full((6,), number), torch.full((6,), strength))
        for one, other in zip(own, found, strict=True):
            difference = (other - tensor(BY_PILLOW[name](pillow(one), strength))).abs()
            assert difference.max() <= 1, (strength, difference.max())


def test_an_operation_is_done_to_the_images_it_was_drawn_for_alone():
    own, chosen = images(14), torch.arange(14)
    found = apply(own, chosen, torch.full((14,), 0.7))
    for i in range(14):
        assert torch.equal(found[i : i + 1], apply(own[i : i + 1], chosen[i : i + 1], torch.full((1,), 0.7)))
        assert torch.equal(found[i], own[i]) == (i == 0)


def test_images_are_moved_as_their_matrices_say():
    size, own = 8, torch.zeros(1, 1, 8, 8)
    own[0, 0, 4, 3] = 100
    shifted = apply(own, torch.tensor([3]), torch.tensor([331 / 150 / size]))  # by one pixel
    assert shifted[0, 0, 4, 2] == 100 and shifted.sum() == 100
    down = apply(own, torch.tensor([4]), torch.tensor([-331 / 150 / size]))
    assert down[0, 0, 5, 3] == 100 and down.sum() == 100
    turned = apply(images(1, size=9), torch.tensor([5]), torch.tensor([3.0]))  # by a right angle
    assert torch.equal(turned, images(1, size=9).rot90(1, (2, 3))) or torch.equal(
        turned, images(1, size=9).rot90(-1, (2, 3))
    )


def test_shear_keeps_the_middle_row():
    own = images(1, size=9)
    found = apply(own, torch.tensor([1]), torch.tensor([1.0]))
    assert torch.equal(found[0, :, 4], own[0, :, 4]) and not torch.equal(found[0, :, 0], own[0, :, 0])


def test_randaugment_of_no_strength_moves_nothing():
    own = images() / 255
    part = RandAugment(2, 0.0)
    numbers = torch.zeros(6, 4)
    numbers[:, 0], numbers[:, 1] = torch.arange(6), 6  # all moves, then brightness
    assert torch.allclose(part(own, numbers), own, atol=1e-6)


def test_a_crop_is_a_part_of_the_padded_image_and_its_mirror_image():
    own = images(5, size=6) / 255
    part = CropAndFlip(2, True)
    numbers = np.array([[-2, 0, 0], [1, 2, 0], [0, 0, 1], [2, -1, 1], [0, 0, 0]])
    found = part(own, torch.from_numpy(numbers).float())
    for i, (down, across, flipped) in enumerate(numbers):
        padded = torch.nn.functional.pad(own[i], (2, 2, 2, 2))
        expected = padded[:, 2 + down :][:, :6, 2 + across :][:, :, :6]
        assert torch.equal(found[i], expected.flip(2) if flipped else expected)
    drawn = part.draw(np.random.default_rng(0), 1000)
    assert drawn[:, :2].min() == -2 and drawn[:, :2].max() == 2 and 400 < drawn[:, 2].sum() < 600
    assert not CropAndFlip(2, False).draw(np.random.default_rng(0), 100)[:, 2].any()


def test_a_box_is_erased_in_a_share_of_the_images():
    own = torch.full((400, 3, 12, 12), 2.0)
    part = Erase(0.25)
    found = part(own, torch.from_numpy(part.draw(np.random.default_rng(1), 400)).float())
    changed = found != own
    share = changed.flatten(1).any(dim=1).float().mean()
    assert 0.2 < share < 0.3
    noise = found[changed]
    assert (
        noise.min() >= 0 and noise.max() < 1 and abs(noise.mean() - 0.5) < 0.01 and abs(noise.std() - 12**-0.5) < 0.01
    )
    rows = changed[:, 0].any(dim=2).sum(dim=1) * changed[:, 0].any(dim=1).sum(dim=1)
    assert torch.equal(rows, changed[:, 0].sum(dim=(1, 2)))  # each is a rectangle


def test_images_are_mixed_by_the_shares_that_the_labels_get():
    own, part = images(300) / 255, Mixing(0.4, 1.0, 0.8)
    numbers = torch.from_numpy(part.draw(np.random.default_rng(2), 300))
    ones, zeros = torch.ones_like(own), torch.zeros_like(own)
    weights, share = part(ones, zeros, numbers)
    assert torch.allclose(weights.mean(dim=(1, 2, 3)), share)
    partners = own.flip(0)
    mixed, _ = part(own, partners, numbers)
    assert torch.allclose(mixed, weights * own + (1 - weights) * partners, atol=1e-6)
    blended = weights.flatten(1).std(dim=1) == 0
    kept = share == 1
    assert 0.15 < kept.float().mean() < 0.3 and 0.3 < (blended & ~kept).float().mean() < 0.5


@pytest.mark.parametrize(("mixup", "cutmix"), [(0.5, 0.0), (0.0, 0.5)])
def test_one_kind_of_mixing_alone(mixup, cutmix):
    part = Mixing(mixup, cutmix)
    numbers = part.draw(np.random.default_rng(3), 200)
    boxed = (numbers[:, 3:] > numbers[:, 1:3]).all(axis=1)
    assert boxed.mean() > 0.8 if cutmix else not boxed.any()
    assert (numbers[:, 0] == 1).all() if cutmix else (numbers[:, 0] < 1).any()


def test_parts_one_after_another_read_their_own_numbers():
    parts = [CropAndFlip(1, True), RandAugment(1, 9.0), Erase(1.0)]
    both = Pipeline(parts)
    numbers = both.draw(np.random.default_rng(5), 6)
    assert numbers.shape == (6, both.columns) and numbers.dtype == np.float32
    x, start = images() / 255, 0
    found = both(x, torch.from_numpy(numbers))
    for part in parts:
        x = part(x, torch.from_numpy(numbers[:, start : start + part.columns]))
        start += part.columns
    assert torch.equal(found, x)
    assert Pipeline([]).draw(np.random.default_rng(5), 6).shape == (6, 0)

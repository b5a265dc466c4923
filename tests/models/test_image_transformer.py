"""Image Transformer: local attention, outputs, what each value knows, and cached drawing."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from heed.decoding.images import draw_images, random_numbers
from heed.models.image_transformer import ImageTransformer, ImageTransformerConfig
from heed.nn.attention import Attention, attend, record
from heed.nn.local_pixels import in_lines, in_squares, read_before
from heed.nn.pixel_context import best_weights
from heed.nn.pixel_outputs import Categorical, LogisticMixture
from heed.nn.pixels import shrink

SMALL = {
    "size": 6, "channels": 3, "dim": 16, "heads": 2, "hidden": 24, "layers": 2, "dropout": 0.0, "query_block": 9,
    "memory_block": 6, "query_rows": 3, "query_columns": 2, "memory_rows": 2, "memory_columns": 1, "components": 3,
    "small_layers": 1,
}  # fmt: skip
KINDS = [
    {"attention": attention, "output": output, "channels": channels, **more}
    for attention in ("1d", "2d")
    for output in ("logistic", "categorical")
    for channels, more in ((3, {}), (1, {"labels": 4}), (3, {"small": 2}))
]


def random(*shape):
    return torch.rand(shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def model(**changes):
    torch.manual_seed(0)
    own = ImageTransformer(ImageTransformerConfig(**{**SMALL, **changes})).double().eval()
    with torch.no_grad():
        for weight in own.parameters():
            weight.normal_(0, 0.2)
    return own


def images(count=2, size=6, channels=3, seed=1):
    own = np.random.default_rng(seed).integers(0, 256, (count, size, size, channels), dtype=np.uint8)
    return torch.from_numpy(own)


def told(own, pixels):
    c = own.config
    found = {"labels": torch.arange(len(pixels)) % c.labels} if c.labels else {}
    return found | ({"small": shrink(pixels, c.small)} if c.small else {})


# local attention

ORDERS = {
    "1d": lambda: in_lines(24, 6, 4),
    "1d without memory": lambda: in_lines(24, 8, 0),
    "all": lambda: in_lines(24, 99, 5),
    "2d": lambda: in_squares(6, 1, (2, 3), (2, 1)),
    "2d of channels": lambda: in_squares(4, 3, (2, 2), (1, 2)),
}


@pytest.mark.parametrize("kind", ORDERS)
def test_local_attention_equals_dense_attention_under_its_mask(kind):
    order = ORDERS[kind]()
    length, mask = len(order.order), order.mask
    q, k, v = torch.randn(3, 2, 2, length, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    dense = torch.ones(length, length, dtype=torch.bool).tril() if mask is None else mask.dense()
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=dense)
    assert torch.allclose(attend(q, k, v, mask=mask, causal=mask is None), expected, rtol=0, atol=1e-12)
    for turn, own in enumerate(order.visible()):
        assert torch.equal(torch.arange(length)[own], dense[turn].nonzero()[:, 0])


@pytest.mark.parametrize("rows", [1, 2, 3, 6])
def test_the_squares_of_a_position_are_those_of_the_paper(rows):
    """A definition of its own: for each two pixels, whether one is before the other and in its block's memory."""
    size, columns, above, beside = 6, 3, 2, 1
    order = in_squares(size, 1, (rows, columns), (above, beside))
    place = [(p // size, p % size) for p in order.order.tolist()]
    turns = sorted(place, key=lambda p: (p[0] // rows, p[1] // columns, p[0] % rows, p[1] % columns))
    assert place == turns
    dense = torch.ones(36, 36, dtype=torch.bool).tril() if order.mask is None else order.mask.dense()
    for i, (row, column) in enumerate(place):
        top, left = row // rows * rows, column // columns * columns
        for j, (other_row, other_column) in enumerate(place):
            inside = top - above <= other_row < top + rows and left - beside <= other_column < left + columns + beside
            assert dense[i, j].item() == (inside and j <= i)


def test_a_recorded_attention_is_that_of_the_dense_mask():
    part, mask = Attention(8, 2).double(), in_squares(4, 1, (2, 2), (1, 1)).mask
    x = torch.randn(1, 16, 8, dtype=torch.float64)
    with record(part) as maps:
        y = part(x, mask=mask)
    assert torch.allclose(y, part(x, mask=mask), atol=1e-12) and torch.equal(maps[0][0, 0] > 0, mask.dense())


@pytest.mark.parametrize("order", [in_lines(16, 99, 0), in_squares(4, 1, (2, 2), (1, 1))])
@pytest.mark.parametrize("values", [1, 3])
def test_the_context_of_a_step_are_the_near_values_before_it(order, values):
    """A definition of its own, by the values of an image that are numbered in generation order."""
    pixels = order.order.numpy()
    steps = (pixels[:, None] * values + np.arange(values)).reshape(-1)
    numbers = np.empty((16, 3), int)
    numbers[pixels] = np.arange(48).reshape(16, 3)
    table, places = read_before(steps, 4, 3, values, reach=1)
    for turn, step in enumerate(steps):
        row, column = divmod(step // values, 4)
        for number, (down, right, channel) in zip(table[turn], places, strict=True):
            inside = 0 <= row + down < 4 and 0 <= column + right < 4
            own = numbers[(row + down) * 4 + column + right, channel] if inside else 48
            assert number == (own if own < turn * 3 // values else -1)
    assert {place[:2] for place in places} >= {(-1, -1), (-1, 0), (-1, 1), (0, -1)}
    assert ((0, 0, 0) in places, (0, 0, 2) in places) == (values == 3, False)


# outputs


@pytest.mark.parametrize("channels", [1, 3])
def test_a_mixture_of_logistics_is_a_distribution(channels):
    own = LogisticMixture(4, channels, 5).double()
    parameters = 2 * torch.randn(1, 1, own.out.out_features, dtype=torch.float64)
    values = torch.full((1, 256, channels), 77)
    values[0, :, -1] = torch.arange(256)  # all values of the last channel: together the probability of those before it
    total = own.logp(parameters.expand(1, 256, -1), values).exp().sum().item()
    assert total == pytest.approx(_marginal(own, parameters, values[:, :1], channels - 1), rel=1e-9)


def _marginal(own, parameters, values, channel):
    """The probability of the channels before one, by a mixture of those channels alone."""
    logits, means, scales, pairs = own._parts(parameters)
    x = (values.double() / 127.5 - 1)[..., None]
    total = logits.log_softmax(dim=-1)
    for i in range(channel):
        mean = own._mean(i, x, means, pairs)
        inverse = torch.exp(-scales[..., i, :])
        edges = [torch.sigmoid(inverse * (x[..., i, :] - mean + side / 255)) for side in (1, -1)]
        total = total + (edges[0] - edges[1]).log()
    return total.exp().sum().item()


def test_a_drawn_pixel_has_the_probabilities_of_the_mixture():
    torch.manual_seed(0)
    own = LogisticMixture(4, 1, 3).double()
    with torch.no_grad():
        own.out.weight.zero_()
        own.out.bias.copy_(torch.tensor([1.0, 0.0, -1.0, -0.5, 0.2, 0.9, -3.0, -2.0, -2.5]))
        values = torch.arange(256)[None, :, None]
        p = own.logp(own.out(torch.zeros(1, 256, 4, dtype=torch.float64)), values).exp()[0]
        drawn = own.sample(torch.zeros(40_000, 4, dtype=torch.float64), 1.0, random(40_000, 2))
    assert p.sum().item() == pytest.approx(1)
    counts = torch.bincount(drawn[:, 0], minlength=256) / len(drawn)
    assert (counts.cumsum(0) - p.cumsum(0)).abs().max() < 0.015


def test_a_mixture_can_be_relative_to_expected_values():
    """Each mean and each previous channel is shifted: the same as moving the means, with one component."""
    torch.manual_seed(0)
    own, states = LogisticMixture(4, 3, 1).double(), torch.randn(2, 5, 4, dtype=torch.float64)
    values, expected = torch.randint(0, 256, (2, 5, 3)), torch.rand(2, 5, 3, dtype=torch.float64) - 0.5
    parameters = own.out(states).detach()
    moved, pairs = parameters.clone(), parameters[..., 7:].tanh()
    moved[..., 1:4] += expected
    moved[..., 2] -= pairs[..., 0] * expected[..., 0]
    moved[..., 3] -= pairs[..., 1] * expected[..., 0] + pairs[..., 2] * expected[..., 1]
    assert torch.allclose(own.logp(parameters, values, expected), own.logp(moved, values), rtol=0, atol=1e-10)


def test_a_categorical_value_is_drawn_with_its_probability():
    own = Categorical(4).double()
    with torch.no_grad():
        own.out.weight.zero_()
        own.out.bias.copy_(torch.linspace(-3, 3, 256))
    p = (torch.linspace(-3, 3, 256) / 0.5).softmax(dim=0)
    drawn = own.sample(torch.zeros(40_000, 4, dtype=torch.float64), 0.5, random(40_000, 1))
    counts = torch.bincount(drawn[:, 0], minlength=256) / len(drawn)
    assert (counts.cumsum(0) - p.cumsum(0)).abs().max() < 0.015


def test_a_pixel_drawn_around_expected_values_has_the_probabilities_of_the_mixture():
    own, expected = LogisticMixture(4, 1, 3).double(), torch.tensor([[0.4]], dtype=torch.float64)
    with torch.no_grad():
        own.out.weight.zero_()
        own.spread()
        zeros = torch.zeros(40_000, 4, dtype=torch.float64)
        p = own.logp(own.out(zeros[None, :256]), torch.arange(256)[None, :, None], expected.expand(1, 256, 1)).exp()[0]
        drawn = own.sample(zeros, 1.0, random(40_000, 2), expected.expand(40_000, 1))
    assert p.sum().item() == pytest.approx(1) and 170 < drawn.double().mean() < 187  # 0.4 is the value 178.5
    counts = torch.bincount(drawn[:, 0], minlength=256) / len(drawn)
    assert (counts.cumsum(0) - p.cumsum(0)).abs().max() < 0.015


def test_gradients_are_finite_for_every_value():
    own = LogisticMixture(4, 3, 4)
    states = (20 * torch.randn(1, 256, 4)).requires_grad_()
    values = torch.arange(256)[None, :, None].expand(-1, -1, 3)
    own.nll(states, values).sum().backward()
    assert states.grad.isfinite().all() and all(weight.grad.isfinite().all() for weight in own.parameters())


def test_categorical_nll_is_that_of_its_softmax():
    own, states = Categorical(4).double(), torch.randn(2, 5, 4, dtype=torch.float64)
    values = torch.randint(0, 256, (2, 5, 1))
    logp = own.out(states).log_softmax(dim=2)
    assert torch.allclose(own.nll(states, values), -logp.gather(2, values).sum(dim=(1, 2)))


# the model


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_depends_on_those_before_it_alone(kind):
    own, pixels = model(**kind), images(1, channels=kind["channels"])
    more = told(own, pixels)
    values = own.in_turn(pixels)
    assert torch.equal(own.in_place(values), pixels)
    states = own.pixel_states(pixels, **more)
    for turn in (0, 5, len(values[0]) - 1):
        changed = values.clone()
        changed[:, turn] = (changed[:, turn] + 100) % 256
        other = own.pixel_states(own.in_place(changed), **more)
        same = (states - other).abs().amax(dim=2)[0] < 1e-12
        assert same[: turn + 1].all() and (turn + 1 == len(same) or not same.all())


@pytest.mark.parametrize("kind", KINDS)
def test_cached_drawing_equals_the_full_pass(kind):
    own, seen = model(**kind), []
    more = told(own, images(2, channels=kind["channels"]))
    found = draw_images(
        own, random_numbers(own, 4, range(2)), each_turn=lambda turn, states: seen.append(states), **more
    )
    with torch.inference_mode():
        states = own.pixel_states(found, **more)
    assert torch.allclose(torch.stack(seen, dim=1), states, rtol=0, atol=1e-10)


@pytest.mark.parametrize("small", [0, 2])
@pytest.mark.parametrize("attention", ["1d", "2d"])
def test_a_drawn_value_starts_from_what_its_context_predicts(attention, small):
    own, seen = model(attention=attention, small=small), []
    told = {"small": shrink(images(2), small)} if small else {}
    sample = own.output.sample
    own.output.sample = lambda *args: seen.append(args[3]) or sample(*args)
    found = draw_images(own, random_numbers(own, 4, range(2)), **told)
    expected = own.context.expected(own.in_turn(found).flatten(1), **told)
    assert torch.allclose(torch.stack(seen, dim=1), expected, rtol=0, atol=1e-12)


def test_a_new_model_expects_the_mean_of_the_pixels_at_the_left_and_above():
    own, pixels = ImageTransformer(ImageTransformerConfig(**SMALL, attention="1d")), images()
    x = pixels.float() / 127.5 - 1
    found = own.context.expected(own.in_turn(pixels).flatten(1)).unflatten(1, (6, 6))
    assert torch.allclose(found[:, 1:, 1:], (x[:, 1:, :-1] + x[:, :-1, 1:]) / 2, atol=1e-6)
    assert torch.allclose(found[:, 0, 1:], x[:, 0, :-1] / 2, atol=1e-6) and not found[:, 0, 0].any()


def test_each_pixel_is_told_the_small_pixel_it_belongs_to():
    own, pixels = model(small=2), images(1)
    found = own._told(1, None, own._memory(shrink(pixels, 2))) - own._told(1, None, None)
    found = found.view(2, 3, 2, 3, -1).transpose(1, 2).flatten(0, 1).flatten(1, 2)  # the nine pixels of each small one
    assert torch.allclose(found, own._memory(shrink(pixels, 2))[0][:, None].expand(-1, 9, -1), atol=1e-12)


@pytest.mark.parametrize("attention", ["1d", "2d"])
def test_the_context_also_has_the_nine_small_pixels_around(attention):
    """By a definition of its own, in steps of the generation order."""
    own, pixels = model(attention=attention, small=2), images(2)
    small, order = shrink(pixels, 2), own.turns.order.tolist()
    found = own.context.intensities(own.in_turn(pixels).flatten(1), small, slice(None))[..., -27:]
    for turn, pixel in enumerate(order):
        row, column = divmod(pixel, 6)
        near = [
            small[:, min(max(row // 3 + down, 0), 1), min(max(column // 3 + right, 0), 1)]
            for down in (-1, 0, 1)
            for right in (-1, 0, 1)
        ]
        assert torch.allclose(found[:, turn], torch.cat(near, dim=1).double() / 127.5 - 1, atol=1e-12)


@pytest.mark.parametrize("attention", ["1d", "2d"])
def test_each_place_within_a_small_pixel_has_a_prediction_of_its_own(attention):
    own, pixels = model(attention=attention, small=2), images(2)
    values, small = own.in_turn(pixels).flatten(1), shrink(pixels, 2)
    inputs, layer = own.context.intensities(values, small, slice(None)), own.context.predict
    found = own.context.expected(values, small)
    assert len(layer.weight) == 9
    for turn, pixel in enumerate(own.turns.order.tolist()):
        place = pixel // 6 % 3 * 3 + pixel % 6 % 3
        assert torch.allclose(found[:, turn], inputs[:, turn] @ layer.weight[place].T, atol=1e-12)


def test_a_new_model_that_enlarges_expects_what_correlations_imply():
    """In a constant image, its value; and by the normal equations, pixel by pixel."""
    own = ImageTransformer(ImageTransformerConfig(**SMALL, attention="1d", small=2))
    pixels = torch.full((1, 6, 6, 3), 204, dtype=torch.uint8)
    found = own.context.expected(own.in_turn(pixels).flatten(1), shrink(pixels, 2)).unflatten(1, (6, 6))
    assert torch.allclose(found[:, 3:, 3:5], torch.tensor(0.6), atol=0.05)  # a pixel that is missing counts as 0
    near, place, alike = [(0, -1), (-1, 0)], 3, lambda a, b: 0.5 + math.exp(-math.dist(a, b) / 8)
    blocks = [[(2 * i + k - 1, 2 * j + m - 1) for k in (0, 1) for m in (0, 1)] for i in (-1, 0, 1) for j in (-1, 0, 1)]
    groups = [*([own] for own in near), *blocks]
    mean = lambda one, other: sum(alike(a, b) for a in one for b in other) / len(one) / len(other)  # noqa: E731
    weights = best_weights(near, 2)[place]
    for one in groups:  # the error is uncorrelated with what is known
        known = sum(weight * mean(one, other) for weight, other in zip(weights, groups, strict=True))
        assert known == pytest.approx(mean(one, [(0, 0)]), abs=1e-3)


@pytest.mark.parametrize(("near", "times"), [([], 1), ([(0, -1), (-1, 0), (-2, 3)], 2), ([(-1, -1), (0, -2)], 5)])
def test_expected_pixels_are_those_of_all_pairs_of_pixels(near, times):
    inside = np.stack(np.divmod(np.arange(times**2), times), axis=1)
    around = times * (np.stack(np.divmod(np.arange(9), 3), axis=1) - 1)
    found = best_weights(near, times)
    for place, weights in enumerate(found):
        groups = [np.array([own]) for own in near] + [inside + own - inside[place] for own in around]
        alike = lambda a, b: (0.5 + np.exp(-np.linalg.norm(a[:, None] - b, axis=2) / 8)).mean()  # noqa: E731
        known = np.array([[alike(one, other) for other in groups] for one in groups]) + 1e-4 * np.eye(len(groups))
        right = np.linalg.solve(known, [alike(one, np.zeros((1, 2))) for one in groups])
        np.testing.assert_allclose(weights, right, rtol=0, atol=1e-9)


def test_without_context_it_is_the_papers_model():
    own = model(context=0)
    assert own.context is None
    found = draw_images(own, random_numbers(own, 4, range(1)))
    assert own.pixel_nll(found).isfinite().all()


def test_a_seed_draws_the_same_again():
    own = model(channels=1, labels=4)
    found = [draw_images(own, random_numbers(own, seed, range(2)), labels=torch.tensor([0, 3])) for seed in (4, 4, 5)]
    assert torch.equal(found[0], found[1]) and not torch.equal(found[0], found[2])


@pytest.mark.parametrize("output", ["logistic", "categorical"])
def test_an_image_does_not_depend_on_those_drawn_with_it(output):
    own = model(output=output)
    together = draw_images(own, random_numbers(own, 4, range(5)))
    for images in (range(1), range(3, 5)):
        assert torch.equal(draw_images(own, random_numbers(own, 4, images)), together[images.start : images.stop])
    assert not torch.equal(together[0], together[1])


@pytest.mark.parametrize("attention", ["1d", "2d"])
def test_completion_keeps_the_given_pixels(attention):
    own, pixels = model(attention=attention), images(2)
    which = torch.zeros(6, 6, dtype=torch.bool)
    which[:3] = True
    which[4, 2] = True
    found = draw_images(own, random_numbers(own, 4, range(2)), known=(pixels, which))
    assert torch.equal(found[:, which], pixels[:, which]) and not torch.equal(found[:, ~which], pixels[:, ~which])


def test_small_images_are_means_of_squares():
    own = images(1)
    expected = own[0, :3, 3:].double().mean(dim=(0, 1)).round()
    assert torch.equal(shrink(own, 2)[0, 0, 1].double(), expected)


def test_a_model_wants_what_it_was_made_for():
    with pytest.raises(ValueError, match="the model needs a class"):
        model(labels=3).pixel_nll(images())
    with pytest.raises(ValueError, match="the model has no classes"):
        model().pixel_nll(images(), labels=torch.zeros(2, dtype=torch.int64))
    with pytest.raises(ValueError, match="the model needs small images to enlarge"):
        model(small=2).pixel_nll(images())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"query_block": 7}, "query_block is 7, which does not divide the 36 positions of an image"),
        ({"attention": "2d", "query_rows": 4}, "query_rows is 4, which does not divide the 6 pixels of a side"),
        ({"components": 0}, "components is 0; it must be from 1 to 100"),
        ({"channels": 4}, "channels is 4; it must be 1"),
    ],
)
def test_what_cannot_be_built_is_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        ImageTransformerConfig(**{**SMALL, **changes})

"""Image models in 8-bit integers on a CPU: when they are, that the answers are those of the model, and what is said
where they cannot be.
"""

import numpy as np
import pytest
import torch

from heed.kernels import int8
from heed.models.package import Package
from heed.products import int8_images
from heed.products.image_classifier import ImageClassifier, ImageEmbedder
from heed.products.image_trace import look
from heed.vocabularies.labels import Labels
from tests.integers import product_of_integers
from tests.service.image_models import image_classifier, png

NEAR = 0.01  # what 127 steps leave of probabilities in this small model


@pytest.fixture(autouse=True)
def able(monkeypatch):
    """As on a CPU with the instructions."""
    if int8.unavailable():
        product_of_integers(monkeypatch)
    monkeypatch.setattr(int8, "unavailable", lambda: None)


def unable(monkeypatch):
    monkeypatch.setattr(int8, "unavailable", lambda: "this CPU is too old")


def quantized(pooling: str = "cls", engine: str = "int8") -> ImageClassifier:
    own = image_classifier(pooling)
    own.use(engine)
    return own


def pixels(count: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 256, (count, 16, 16, 3), np.uint8)


def package(own: ImageClassifier) -> Package:
    return Package(own.model, "image-classification", {"images": own.images, "labels": Labels(own.labels)}, {})


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_probabilities_are_close_to_those_of_float32_but_not_the_same(pooling):
    exact, found = image_classifier(pooling).probabilities(pixels(8)), quantized(pooling).probabilities(pixels(8))
    assert 1e-5 < np.abs(found - exact).max() < NEAR
    np.testing.assert_allclose(found.sum(axis=1), 1)


def test_order_and_sizes_of_batches_do_not_matter(monkeypatch):
    own, images = quantized(), pixels(7)
    expected = own.probabilities(images)
    order = [3, 0, 6, 2, 1, 5, 4]
    np.testing.assert_allclose(own.probabilities(images[order]), expected[order], atol=0.003)
    monkeypatch.setattr(int8_images, "PATCHES", 2 * 17)
    np.testing.assert_allclose(own.probabilities(images), expected, atol=0.003)
    monkeypatch.setattr(type(own), "_batch", lambda self: 3)
    np.testing.assert_allclose(own.probabilities(images), expected, atol=0.003)
    assert own.probabilities(images[:0]).shape == (0, 7)


def test_images_are_run_in_parts_that_fit_the_caches(monkeypatch):
    own, sizes = quantized(), []
    monkeypatch.setattr(int8_images, "PATCHES", 2 * 17)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    assert own.int8.takes()
    own.int8.run(own.upload(pixels(7)), lambda model, part: sizes.append(len(part)) or part)
    assert sizes == [4, 3], "parts of nearly one size"
    own.int8.run(own.upload(pixels(9)), lambda model, part: sizes.append(len(part)) or part)
    assert sizes[2:] == [3, 3, 3]
    for count in (0, 1):
        assert len(own.int8.run(own.upload(pixels(count)), lambda model, part: part)) == count


def test_opened_models_are_quantized_unless_torch_is_chosen():
    own = image_classifier()
    exact, images = own.probabilities(pixels(4)), pixels(4)
    opened = {
        engine: ImageClassifier.open([package(own)], ["cats"], engine=engine) for engine in ("auto", "torch", "int8")
    }
    assert np.array_equal(opened["torch"].probabilities(images), exact)
    for engine in ("auto", "int8"):
        assert np.array_equal(opened[engine].probabilities(images), quantized().probabilities(images))


def test_vectors_are_quantized_too():
    own = image_classifier()
    found, exact = (ImageEmbedder.open([package(own)], ["cats"], engine=name) for name in ("auto", "torch"))
    difference = np.abs(found.vectors(pixels(4)) - exact.vectors(pixels(4))).max()
    assert 1e-5 < difference < 0.2 * exact.vectors(pixels(4)).std()


def test_the_copy_is_made_once_and_again_after_the_weights_have_changed():
    own = quantized()
    first, made = own.probabilities(pixels(2)), own.int8.copy
    assert np.array_equal(own.probabilities(pixels(2)), first) and own.int8.copy is made
    with torch.no_grad():
        own.model.stack.layers[0].mlp.body.up.weight.mul_(3)
    assert np.abs(own.probabilities(pixels(2)) - first).max() > 0.01 and own.int8.copy is not made


def test_what_is_inspected_is_float32():
    own, exact = quantized(), look(image_classifier(), png(), None)
    own.classify([png()])
    found = look(own, png(), None)
    assert found.label == exact.label and np.array_equal(found.attention, exact.attention)


def test_where_it_is_unavailable_auto_is_torch_and_int8_is_refused(monkeypatch):
    unable(monkeypatch)
    assert np.array_equal(
        quantized(engine="auto").probabilities(pixels(2)), image_classifier().probabilities(pixels(2))
    )
    with pytest.raises(ValueError, match=r"^engine is 'int8', but this CPU is too old: use torch$"):
        quantized()


def test_other_precisions_are_not_quantized():
    auto, asked = quantized(engine="auto"), quantized()
    for own in (auto, asked):
        own.model.bfloat16()
    expected = image_classifier()
    expected.model.bfloat16()
    assert np.array_equal(auto.probabilities(pixels(2)), expected.probabilities(pixels(2)))
    with pytest.raises(
        ValueError, match=r"'int8', but it needs a model in float32, and this one is in bfloat16: use torch$"
    ):
        asked.probabilities(pixels(2))


def test_other_devices_and_models_are_not_quantized():
    own = image_classifier().model
    assert int8_images.unsupported(torch.nn.Linear(2, 2)) == "it does not support this Linear"
    assert int8_images.unsupported(own) is None
    assert int8_images.unsupported(own.to("meta")) == "it only runs on the CPU, and the model is on meta"


def test_a_model_that_cannot_be_quantized_runs_as_it_is(monkeypatch):
    def fail(model):
        raise RuntimeError("out of memory\nand more")

    monkeypatch.setattr(int8, "int8_copy", fail)
    own = quantized(engine="auto")
    with pytest.warns(UserWarning, match=r"cannot be quantized, using float32, which is slower: out of memory$"):
        found = own.probabilities(pixels(2))
    assert np.array_equal(found, image_classifier().probabilities(pixels(2)))
    assert np.array_equal(own.probabilities(pixels(2)), found), "it is tried once"
    with pytest.raises(ValueError, match=r"the model cannot be quantized: out of memory; use engine torch$"):
        quantized().probabilities(pixels(2))


def test_engines_of_texts_are_refused():
    with pytest.raises(
        ValueError, match=r"^engine is 'ctranslate2'; to classify images it must be auto, torch, int8 or fp8$"
    ):
        quantized(engine="ctranslate2")

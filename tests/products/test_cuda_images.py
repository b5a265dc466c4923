"""The fused copy through which images are run on a GPU: made once, made again after a change, and never needed."""

import copy

import numpy as np
import pytest
import torch

from heed.products import cuda_images
from tests.service.image_models import image_classifier, png


@pytest.fixture
def fused(monkeypatch):
    """As on a GPU; the copies that are made."""
    made = []
    monkeypatch.setattr(cuda_images, "can_fuse", lambda model: True)
    monkeypatch.setattr(
        cuda_images.fused_model,
        "half_precision_copy",
        lambda model, dtype: made.append(copy.deepcopy(model)) or made[-1],
    )
    return made


def test_a_copy_is_made_once_and_again_after_the_weights_have_changed(fused):
    own = image_classifier()
    first = own.classify([png()])[0].probabilities
    assert own.classify([png()])[0].probabilities == first and len(fused) == 1
    with torch.no_grad():
        own.model.head.bias.add_(torch.arange(7.0))
    assert own.classify([png()])[0].probabilities != first and len(fused) == 2


def test_where_the_kernels_fail_the_model_itself_is_used(fused, monkeypatch):
    def fail(model, dtype):
        raise RuntimeError("no compiler\nis here")

    expected = image_classifier().classify([png()])
    monkeypatch.setattr(cuda_images.fused_model, "half_precision_copy", fail)
    own = image_classifier()
    with pytest.warns(UserWarning, match="fused kernels are unavailable, .*: no compiler$"):
        assert own.classify([png()]) == expected
    assert own.classify([png()]) == expected, "it is tried once"


def test_on_a_cpu_the_model_itself_is_used():
    own = image_classifier()
    own.classify([png()])
    assert own.fused.current() is own.model and not cuda_images.can_fuse(own.model.bfloat16())


@pytest.mark.parametrize("count", [1, 3])
def test_images_in_any_memory_layout_are_classified(count):
    own = image_classifier()
    pixels = np.repeat(own.read([png()]), count, axis=0)
    frozen = pixels.copy()
    frozen.flags.writeable = False
    for other in (pixels[::-1], np.asfortranarray(pixels), frozen):
        assert np.array_equal(own.inputs(other).numpy(), own.inputs(pixels).numpy())


class Graph:
    """As a CUDA graph: it computes the same from whatever is in the same memory."""

    def __init__(self, work):
        self.replay = work


def test_full_batches_are_captured_once_and_the_answers_are_the_same(fused, monkeypatch):
    captured = []
    monkeypatch.setattr(cuda_images, "on_gpu", lambda pixels: True)
    monkeypatch.setattr(cuda_images, "record", lambda work, device: work() or captured.append(work) or Graph(work))
    own = image_classifier()
    shape = own.images.size, own.images.size, own.images.channels
    pixels = np.random.default_rng(1).integers(0, 256, (7, *shape), np.uint8)
    with torch.inference_mode():
        expected = own._classify(own.model, own.upload(pixels)).numpy()
    monkeypatch.setattr(type(own), "_batch", lambda self: 3)
    np.testing.assert_allclose(own.probabilities(pixels), expected, rtol=1e-4)
    np.testing.assert_allclose(own.probabilities(pixels[::-1]), expected[::-1], rtol=1e-4)
    assert len(captured) == 1, "the rest of one image is computed without"
    with torch.no_grad():
        own.model.head.bias.add_(torch.arange(7.0))
    assert (own.probabilities(pixels)[:, 6] > expected[:, 6] + 0.1).all() and len(captured) == 2


def test_without_a_graph_images_are_classified_all_the_same(fused, monkeypatch):
    def fail(work, device):
        raise RuntimeError("out of memory\nand more")

    monkeypatch.setattr(cuda_images, "on_gpu", lambda pixels: True)
    monkeypatch.setattr(cuda_images, "record", fail)
    own, expected = image_classifier(), image_classifier().classify([png()])[0].label
    monkeypatch.setattr(type(own), "_batch", lambda self: 1)
    with pytest.warns(UserWarning, match="without a CUDA graph, which is slower: out of memory$"):
        found = own.classify([png()])
    assert found[0].label == expected

"""Image classification in 8-bit floats on a GPU: when it is, that the answers are those of the model, and what is said
where it cannot be.
"""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from heed.kernels import fp8, int8
from heed.models.outputs import NOT_FINITE
from heed.models.package import Package
from heed.models.vit import ViT, ViTConfig
from heed.products import cuda_images
from heed.products.image_classifier import ImageClassifier, ImageEmbedder
from heed.products.image_trace import look
from heed.vocabularies.images import Images
from heed.vocabularies.labels import Labels
from tests.interpreted import assert_same
from tests.service.image_models import image_classifier, png


class Rounded(nn.Module):
    """Instead of the stack in 8-bit floats: one that computes something else."""

    def __init__(self, plain):
        super().__init__()
        self.plain = plain

    def forward(self, x):
        return self.plain(x) + torch.arange(x.shape[-1], dtype=x.dtype)


@pytest.fixture
def able(monkeypatch):
    """As on a GPU that multiplies 8-bit floats; the stacks that are replaced."""
    made = []
    monkeypatch.setattr(int8, "unavailable", lambda: "this is a GPU")
    monkeypatch.setattr(fp8, "unavailable", lambda device: None)
    monkeypatch.setattr(fp8, "supports", lambda model: True)
    monkeypatch.setattr(fp8, "Fp8Stack", lambda plain: made.append(plain) or Rounded(plain))
    monkeypatch.setattr(cuda_images, "can_fuse", lambda model: True)
    monkeypatch.setattr(cuda_images.fused_model, "half_precision_copy", lambda model, dtype: copy.deepcopy(model))
    return made


def pixels(count: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 256, (count, 16, 16, 3), np.uint8)


def classifier(engine: str | None = None, dtype: torch.dtype = torch.bfloat16) -> ImageClassifier:
    own = image_classifier("mean")
    if engine:
        own.use(engine)
    own.model.to(dtype)
    return own


def exact() -> np.ndarray:
    return classifier().probabilities(pixels(3))


def test_engines_auto_and_fp8_use_it_and_torch_does_not(able):
    found = classifier("auto").probabilities(pixels(3))
    assert np.abs(found - exact()).max() > 0.01 and len(able) == 1
    assert np.array_equal(classifier("fp8").probabilities(pixels(3)), found) and len(able) == 2
    for engine in (None, "torch"):
        assert np.array_equal(classifier(engine).probabilities(pixels(3)), exact())
    assert len(able) == 2


def test_opened_models_use_it_unless_torch_is_chosen(able):
    own = classifier()
    package = Package(own.model, "image-classification", {"images": own.images, "labels": Labels(own.labels)}, {})
    for engine, count in (("auto", 1), ("fp8", 2), ("torch", 2)):
        ImageClassifier.open([package], ["cats"], engine=engine).probabilities(pixels(1))
        assert len(able) == count
    ImageClassifier.open([package], ["cats"]).probabilities(pixels(1))
    assert len(able) == 3


def test_the_copy_is_made_once_and_again_after_the_weights_or_the_engine_have_changed(able):
    own = classifier("auto")
    first = own.probabilities(pixels(3))
    assert np.array_equal(own.probabilities(pixels(3)), first) and len(able) == 1
    with torch.no_grad():
        own.model.head.bias.add_(torch.arange(7.0))
    assert not np.array_equal(own.probabilities(pixels(3)), first) and len(able) == 2
    own = classifier("auto")
    own.probabilities(pixels(3))
    own.use("torch")
    assert np.array_equal(own.probabilities(pixels(3)), exact())


def test_vectors_and_what_is_inspected_are_not_in_fp8(able):
    own, plain = classifier("auto", torch.float32), look(image_classifier("mean"), png(), None)
    own.classify([png()])
    found = look(own, png(), None)
    assert found.label == plain.label and np.array_equal(found.attention, plain.attention)
    embedder = ImageEmbedder(own.model, own.images)
    embedder.use("auto")
    wanted = own.model.image_vectors(own.inputs(pixels(2))).detach().numpy()
    np.testing.assert_allclose(embedder.vectors(pixels(2)), wanted, rtol=1e-5)
    assert len(able) == 1, "that of the classifier"


def test_where_it_is_unavailable_auto_is_bfloat16_and_fp8_is_refused(able, monkeypatch):
    monkeypatch.setattr(fp8, "unavailable", lambda device: "this GPU is too old")
    assert np.array_equal(classifier("auto").probabilities(pixels(3)), exact()) and not able
    with pytest.raises(ValueError, match=r"^engine is 'fp8', but this GPU is too old: use torch$"):
        classifier("fp8")


def test_what_has_no_kernels_is_in_bfloat16(able, monkeypatch):
    monkeypatch.setattr(fp8, "supports", lambda model: False)
    assert np.array_equal(classifier("auto").probabilities(pixels(3)), exact()) and not able
    with pytest.raises(ValueError, match=r"^engine is 'fp8', but it does not support this ViT: use torch$"):
        classifier("fp8")


def test_a_cpu_is_told_so():
    assert np.array_equal(classifier("auto").probabilities(pixels(3)), exact())
    with pytest.raises(ValueError, match=r"'fp8', but it only runs on a GPU, and the model is on cpu: use torch$"):
        classifier("fp8")


def test_other_precisions_are_refused_when_they_are_run(able):
    own = classifier("fp8", torch.float32)
    with pytest.raises(ValueError, match=r"'fp8', but it quantizes bfloat16, and the model is in float32: use torch$"):
        own.probabilities(pixels(3))


def test_engines_of_others_are_refused():
    own = classifier()
    embedder = ImageEmbedder(own.model, own.images)
    with pytest.raises(ValueError, match=r"^engine is 'fp8'; to embed images it must be auto, torch or int8$"):
        embedder.use("fp8")
    with pytest.raises(ValueError, match=r"^engine is 'fp4'; to classify images it must be auto, torch, int8 or fp8$"):
        own.use("fp4")


def fail(*given):
    raise RuntimeError("no compiler\nis here")


def test_if_its_kernels_fail_bfloat16_is_used_after_one_warning(able, monkeypatch):
    monkeypatch.setattr(Rounded, "forward", fail)
    own = classifier("auto")
    with pytest.warns(UserWarning, match=r"^8-bit floats are unavailable, using bfloat16, .*: no compiler$") as said:
        assert np.array_equal(own.probabilities(pixels(3)), exact())
    assert len(said) == 1 and own.fused.copy is not None, "the fused copy in bfloat16"
    assert np.array_equal(own.probabilities(pixels(3)), exact()) and len(able) == 1, "it is tried once"
    own = classifier("fp8")
    for _ in range(2):
        with pytest.raises(ValueError, match=r"^the model cannot be quantized: no compiler; use engine torch$"):
            own.probabilities(pixels(3))


def test_if_all_kernels_fail_there_is_one_warning_too(able, monkeypatch):
    own, plain = classifier("auto"), exact()
    monkeypatch.setattr(cuda_images.fused_model, "half_precision_copy", fail)
    with pytest.warns(UserWarning, match=r"^fused kernels are unavailable, using torch's, .*: no compiler$") as said:
        assert np.array_equal(own.probabilities(pixels(3)), plain)
    assert len(said) == 1 and not able
    with pytest.raises(ValueError, match=r"^the model cannot be quantized: no compiler; use engine torch$"):
        classifier("fp8").probabilities(pixels(3))


PRODUCT = """
import numpy as np
import torch
import triton.language as tl
from torch import nn
from triton.runtime import interpreter
from heed.kernels import fp8, fused_model
from heed.products import cuda_images
from heed.products.image_classifier import ImageClassifier
from tests.products.test_fp8_images import draw, made, refused
plain = interpreter._convert_float
def convert(data, source, wanted, rounding):  # the interpreter's own loses what a rounded mantissa carries
    if wanted is tl.float8e4nv: return torch.from_numpy(np.ascontiguousarray(data)).to(fp8.FP8).view(torch.uint8).numpy()
    return plain(data, source, wanted, rounding)
interpreter._convert_float = convert
def emulated(x, weight, scale, bias, dtype):
    y = (x.values.float() @ weight.float().T) * x.scale * scale
    return (y if bias is None else y + bias).to(dtype)
fp8.product, fp8.unavailable, cuda_images.can_fuse = emulated, lambda device: None, lambda model: True
rounded = fused_model.half_precision_copy
fused_model.half_precision_copy = lambda model, dtype: rounded(model, torch.float32)
own = made()
exact = own.probabilities(draw(3))
own.use("auto")
own.int8 = None  # which this CPU may have
found = own.probabilities(draw(3))
assert type(own.fused.copy.stack) is fp8.Fp8Stack
assert 1e-4 < np.abs(found - exact).max() < 0.02, np.abs(found - exact).max()
np.testing.assert_allclose(own.probabilities(draw(3)[[2]]), found[[2]], atol=1e-4)
with torch.no_grad(): own.model.stack.layers[0].mlp.body.up.weight[0, 0] = float("nan")
assert refused(own), "and so it is without"
own.use("torch")
assert refused(own)
print("the same")
"""


def made() -> ImageClassifier:
    """A small classifier that the kernels support, with random weights."""
    torch.manual_seed(0)
    model = ViT(ViTConfig(labels=5, size=12, patch=2, dim=32, heads=2, hidden=48, layers=1)).eval()
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.2)
    return ImageClassifier(model, Images(12, 3, (0.5,) * 3, (0.25,) * 3), Labels(list("abcde")))


def draw(count: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (count, 12, 12, 3), np.uint8)


def refused(own: ImageClassifier) -> bool:
    """Whether its outputs are not finite."""
    try:
        own.probabilities(draw(1))
    except ValueError as error:
        return str(error) == NOT_FINITE
    return False


def test_a_classifier_in_fp8_answers_nearly_as_in_float32():
    pytest.importorskip("triton", reason="Triton comes with torch's GPU builds alone")
    assert_same(PRODUCT)

"""Image models under the accelerated step, by Triton's interpreter: losses and gradients are those of the plain model."""

import pytest
import torch

from heed.kernels import fused_model
from heed.models.image_transformer import ImageTransformer, ImageTransformerConfig
from heed.models.vit import ViT, ViTConfig
from tests.interpreted import assert_same

pytest.importorskip("triton", reason="Triton comes with torch's GPU builds alone")

BEGIN = """
import copy
import itertools
import torch
from torch import nn
from heed.data.images.augment import Mixing, Pipeline
from heed.data.images.batches import ImageBatch
from heed.kernels import fused_model, fused_stack, linear, reduce, residual_norm
from heed.models.vit import ViT, ViTConfig
from heed.nn.pixels import Normalize
from heed.tasks.image_classification import ImageLoss
from heed.training.accelerated.cuda_graph_step import CudaGraphStep
reduce.TILE["columns"] = 4096  # the interpreter is slow with many programs
residual_norm.program_count = linear.program_count = lambda rows, rows_each, limit: 1
generator = torch.Generator().manual_seed(0)
def made(**changes):
    sizes = dict(labels=3, size=4, channels=1, patch=2, dim=16, heads=1, hidden=16, layers=1)
    model = ViT(ViTConfig(**{**sizes, **changes}))
    for weight in model.parameters(): nn.init.normal_(weight, std=0.2, generator=generator)
    return model
def draw(count, size):
    pixels = torch.randint(0, 256, (count, size, size, 1), dtype=torch.uint8, generator=generator)
    return ImageBatch(pixels, torch.arange(count) % 3, torch.zeros(count, 0), torch.arange(count).flip(0), torch.rand(count, 5, generator=generator))
normalize = Normalize([0.5], [0.25])
"""

GRADIENTS = """
plain, mixed = (ImageLoss(Pipeline([]), mixing, normalize, 0.1) for mixing in (None, Mixing(0.8, 0.0, 1.0)))
for objective, changes, batch, fused_stack.SHORT in (
    (plain, dict(pooling="cls"), draw(2, 4), 128),
    (mixed, dict(pooling="mean", path_dropout=1e-9), draw(3, 4), 2),  # as images of more than 128 patches
):
    model = made(**changes)
    assert fused_model.supports(model)
    wanted = objective(model, batch)
    wanted.total.backward()
    gradients = {name: weight.grad for name, weight in model.named_parameters()}
    model.zero_grad()
    passes = CudaGraphStep(model, objective, torch.float32)
    found = passes(batch.clone())
    torch.testing.assert_close(found.total, wanted.total.detach(), rtol=1e-5, atol=1e-4)
    assert found.count == wanted.count == batch.count and passes.gradients is not None
    for name, weight in model.named_parameters():
        most = float(gradients[name].abs().max() + 1)
        torch.testing.assert_close(weight.grad, gradients[name], rtol=1e-4, atol=1e-4 * most, msg=lambda text: name + text)
    model.eval()
    with torch.inference_mode():
        x = normalize(batch.images.permute(0, 3, 1, 2) / 255)
        fast = fused_model.half_precision_copy(model, torch.float32)
        torch.testing.assert_close(fast.classify_images(x), model.classify_images(x), rtol=1e-4, atol=1e-4)
print("the same")
"""

PATHS = """
model, x = made(pooling="mean", path_dropout=0.5, layers=2).eval(), torch.randn(8, 1, 4, 4, generator=generator)
fast = copy.deepcopy(model).train()
fused_model.use_fused_layers(fast)
torch.manual_seed(1)
with torch.no_grad():
    found, kinds = fast.classify_images(x), set()
    parts, allowed = model.stack.layers[1].sublayers(), []
    for kept in itertools.product((0.0, 2.0), repeat=2):  # each sublayer is left out of an image, or twice as large
        for part, own in zip(parts, kept, strict=True): part.scale = nn.Parameter(torch.full((16,), own))
        allowed.append(model.classify_images(x))
    distance = (torch.stack(allowed) - found).abs().amax(dim=2)
    assert (distance.min(dim=0).values < 1e-4).all() and len(set(distance.argmin(dim=0).tolist())) > 1, distance
print("the same")
"""

PRODUCT = """
from heed.products import cuda_images
from heed.products.image_classifier import ImageClassifier, ImageEmbedder
from heed.vocabularies.images import Images
from heed.vocabularies.labels import Labels
rounded = fused_model.half_precision_copy
fused_model.half_precision_copy = lambda model, dtype: rounded(model, torch.float32)
pixels, images = draw(2, 4).images.numpy(), Images(4, 1, (0.5,), (0.25,))
for pooling in ("cls", "mean"):
    model, found = made(pooling=pooling).eval(), []
    for fused in (True, False):
        cuda_images.can_fuse = lambda model: fused
        classifier, embedder = ImageClassifier(model, images, Labels(["a", "b", "c"])), ImageEmbedder(model, images)
        found.append([torch.from_numpy(own(pixels)) for own in (classifier.probabilities, embedder.vectors)])
        assert (classifier.fused.copy is not None) is fused
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-4)
print("the same")
"""

PIXELS = """
from heed.models.image_transformer import ImageTransformer, ImageTransformerConfig
from heed.tasks.image_generation import ImageGenerationSettings, PixelLoss
for output, fused_stack.SHORT in (("logistic", 128), ("categorical", 2)):  # 2: as more than 128 positions
    sizes = dict(size=4, channels=1, labels=3, dim=16, heads=1, hidden=16, layers=1, dropout=0.0)
    model = ImageTransformer(ImageTransformerConfig(**sizes, output=output, components=2))
    for weight in model.parameters(): nn.init.normal_(weight, std=0.2, generator=generator)
    batch, objective = draw(2, 4), PixelLoss(Pipeline([]), ImageGenerationSettings(by_class=True))
    wanted = objective(model, batch)
    wanted.total.backward()
    gradients = {name: weight.grad for name, weight in model.named_parameters()}
    model.zero_grad()
    passes = CudaGraphStep(model, objective, torch.float32)
    found = passes(batch.clone())
    torch.testing.assert_close(found.total, wanted.total.detach(), rtol=1e-5, atol=1e-4)
    assert found.count == wanted.count == 2 and passes.gradients is not None
    for name, weight in model.named_parameters():
        most = float(gradients[name].abs().max() + 1)
        torch.testing.assert_close(weight.grad, gradients[name], rtol=1e-4, atol=1e-4 * most, msg=lambda text: name + text)
print("the same")
"""

PROGRAMS = {"gradients": GRADIENTS, "stochastic depth": PATHS, "product": PRODUCT, "pixels": PIXELS}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_fused_image_model_computes_what_the_plain_one_computes(program):
    assert_same(BEGIN + program)


@pytest.mark.parametrize(
    ("changes", "fused"),
    [({}, True), ({"query_block": 8}, False), ({"attention": "2d", "query_rows": 2, "query_columns": 2}, False), ({"small": 2}, False)],
)  # fmt: skip
def test_an_image_transformer_is_fused_where_each_position_sees_all_before_it(changes, fused):
    with torch.device("meta"):
        model = ImageTransformer(ImageTransformerConfig(size=4, dim=16, heads=1, hidden=24, layers=1, **changes))
        assert fused_model.supports(model) is fused


@pytest.mark.parametrize(
    ("changes", "fused"),
    [({}, True), ({"path_dropout": 0.1}, True), ({"layer_scale": 0.1}, False), ({"qkv_bias": False}, False), ({"heads": 2}, False)],
)  # fmt: skip
def test_only_what_has_kernels_is_fused(changes, fused):
    sizes = {"labels": 3, "size": 4, "patch": 2, "dim": 16, "heads": 1, "hidden": 24, "layers": 1, **changes}
    with torch.device("meta"):
        assert fused_model.supports(ViT(ViTConfig(**sizes))) is fused

"""A small image classifier and small models that draw; they know nothing, but different images give different results."""

import io

import numpy as np
import torch
from PIL import Image

from heed.models.image_transformer import ImageTransformer, ImageTransformerConfig
from heed.models.vit import ViT, ViTConfig
from heed.products.image_classifier import ImageClassifier
from heed.products.image_generator import ImageGenerator
from heed.vocabularies.images import Images
from heed.vocabularies.labels import Labels

CLASSES = ["cat", "dog", "owl", "고양이", "fox", "hen", "bee"]


def image_classifier(pooling: str = "cls") -> ImageClassifier:
    torch.manual_seed(2)
    sizes = {"dim": 16, "heads": 2, "hidden": 24, "layers": 3, "patch": 4, "size": 16}
    model = ViT(ViTConfig(labels=len(CLASSES), pooling=pooling, **sizes))
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    return ImageClassifier(model.eval(), Images(16, 3, (0.5,) * 3, (0.25,) * 3), Labels(CLASSES))


def image_generator(kind: type[ImageGenerator] = ImageGenerator, **changes) -> ImageGenerator:
    """By default one that draws by class, in squares, channel by channel."""
    torch.manual_seed(3)
    sizes = {"dim": 16, "heads": 2, "hidden": 24, "layers": 2, "size": 6, "query_rows": 3, "query_columns": 3}
    given = {"labels": 3, "attention": "2d", "output": "categorical", **sizes, **changes}
    model = ImageTransformer(ImageTransformerConfig(**given))
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    labels = Labels(CLASSES[: given["labels"]]) if given["labels"] else None
    return kind(model.eval(), Images(6, 3, (0.5,) * 3, (0.25,) * 3), labels)


def png(seed: int = 0, size: int = 20) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 256, (size, size, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, format="PNG")
    return out.getvalue()

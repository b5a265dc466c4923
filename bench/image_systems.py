"""The systems of bench/images.py: heed's ViT as `heed train` and `heed classify` run it, transformers', and one of torch's own parts."""

import itertools
import tempfile
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heed.convert import huggingface
from heed.data.images.batches import ImageBatch
from heed.decoding.images import random_numbers
from heed.models.image_transformer import ImageTransformer
from heed.models.package import Package
from heed.models.vit import ViT, ViTConfig
from heed.nn.pixels import Normalize, from_bytes
from heed.products.image_classifier import ImageClassifier
from heed.products.text_batches import in_precision
from heed.runs.execution_plan import plan_execution
from heed.tasks.image_classification import ImageClassification, ImageClassificationSettings, ImageLoss
from heed.training import loop
from heed.training.config import TrainingConfig, make_optimizer
from heed.training.distributed import SingleProcess
from heed.training.schedule import constant
from heed.vocabularies.images import Images
from heed.vocabularies.labels import Labels

SMOOTHING, RATE, CLIP = 0.1, 1e-4, 1.0
MEAN, STD = [0.49, 0.48, 0.45], [0.25, 0.24, 0.26]
TRAINING = TrainingConfig(beta2=0.999, epsilon=1e-8, weight_decay=0.05, decayed="matrices", clip=CLIP)


@dataclass(frozen=True)
class Shape:
    """A ViT with a class token, the only kind that transformers has, and how many images a batch of training has."""

    size: int
    patch: int
    dim: int
    heads: int
    hidden: int
    layers: int
    labels: int
    batch: int

    def model(self) -> ViT:
        torch.manual_seed(0)
        names = ("size", "patch", "dim", "heads", "hidden", "layers", "labels")
        return ViT(ViTConfig(channels=3, **{name: getattr(self, name) for name in names}))

    def pixels(self, count: int) -> np.ndarray:
        return np.random.default_rng(0).integers(0, 256, (count, self.size, self.size, 3), dtype=np.uint8)


class PlainViT(nn.Module):
    """The same ViT, as a careful user of torch would write it: one product for queries, keys and values, and SDPA."""

    def __init__(self, c: ViTConfig):
        super().__init__()
        self.heads = c.heads
        self.patches = nn.Conv2d(c.channels, c.dim, c.patch, c.patch)
        self.first, self.positions = nn.Parameter(torch.zeros(c.dim)), nn.Parameter(torch.zeros(c.max_length, c.dim))
        parts = {
            "before": lambda: nn.LayerNorm(c.dim, eps=c.norm_eps),
            "qkv": lambda: nn.Linear(c.dim, 3 * c.dim),
            "out": lambda: nn.Linear(c.dim, c.dim),
            "after": lambda: nn.LayerNorm(c.dim, eps=c.norm_eps),
            "up": lambda: nn.Linear(c.dim, c.hidden),
            "down": lambda: nn.Linear(c.hidden, c.dim),
        }
        self.layers = nn.ModuleList(
            nn.ModuleDict({name: make() for name, make in parts.items()}) for _ in range(c.layers)
        )
        self.norm, self.head = nn.LayerNorm(c.dim, eps=c.norm_eps), nn.Linear(c.dim, c.labels)

    def forward(self, images: Tensor) -> Tensor:
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(len(x), 1, -1).to(x.dtype), x], dim=1) + self.positions
        for layer in self.layers:
            qkv = layer["qkv"](layer["before"](x)).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
            x = x + layer["out"](F.scaled_dot_product_attention(*qkv).transpose(1, 2).flatten(2))
            x = x + layer["down"](F.gelu(layer["up"](layer["after"](x))))
        return self.head(self.norm(x[:, 0]))

    @classmethod
    @torch.no_grad()
    def like(cls, model: ViT) -> "PlainViT":
        """With the weights of heed's."""
        own = cls(model.config)
        for name in ("patches", "head"):
            getattr(own, name).load_state_dict(getattr(model, name).state_dict())
        own.norm.load_state_dict(model.stack.norm.state_dict())
        own.first.copy_(model.first)
        own.positions.copy_(model.positions)
        for mine, theirs in zip(own.layers, model.stack.layers, strict=True):
            attention, mlp = theirs.attention.body, theirs.mlp.body
            joint = [attention.q, attention.k, attention.v]
            mine["qkv"].weight.copy_(torch.cat([part.weight for part in joint]))
            mine["qkv"].bias.copy_(torch.cat([part.bias for part in joint]))
            pairs = {"before": theirs.attention.norm, "out": attention.out, "after": theirs.mlp.norm, "up": mlp.up}
            for name, part in {**pairs, "down": mlp.down}.items():
                mine[name].load_state_dict(part.state_dict())
        return own


def transformers_model(model: ViT) -> nn.Module:
    """A ViTForImageClassification with the weights of heed's."""
    import transformers

    names = Labels([str(number) for number in range(model.config.labels)])
    processors = {"images": Images(model.config.size, 3, tuple(MEAN), tuple(STD)), "labels": names}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vit"
        huggingface.write(Package(model, "image-classification", processors, {}), path)
        return transformers.ViTForImageClassification.from_pretrained(path)


Logits = Callable[[Any, Tensor], Tensor]
# Of each peer how it is made of heed's model, and how its logits are asked for.
PEERS: dict[str, tuple[Callable[[ViT], nn.Module], Logits]] = {
    "transformers": (transformers_model, lambda own, x: own(pixel_values=x).logits),
    "torch": (PlainViT.like, lambda own, x: own(x)),
}
Run = Callable[[], None]


def _batches(shape: Shape, device: torch.device) -> Iterator[ImageBatch]:
    """Two batches by turns, on the device."""
    pixels, count = torch.from_numpy(shape.pixels(2 * shape.batch)).to(device), shape.batch
    labels = (torch.arange(2 * count) % shape.labels).to(device)
    nothing, partners = torch.zeros(count, 0, device=device), torch.arange(count, device=device)
    made = [ImageBatch(own, label, nothing, partners, nothing) for own, label in zip(pixels.split(count), labels.split(count), strict=True)]  # fmt: skip
    return itertools.cycle(made)


def heed_training(model: ViT, shape: Shape, device: torch.device, steps: int, captured: bool = False) -> Run:
    """Steps as `heed train` makes them: the plan, the loss, the loop and the optimizer are its own. `captured`: without fused kernels."""
    model, settings = model.to(device), ImageClassificationSettings(label_smoothing=SMOOTHING)
    objective = ImageLoss(settings.augmentation(), settings.mixing(), Normalize(MEAN, STD), SMOOTHING)
    workers = SingleProcess(device)
    plan = plan_execution(TRAINING, model, ImageClassification(settings), objective, workers)
    plan = plan._replace(accelerated=False, captured=True) if captured else plan
    optimizer, passes = make_optimizer(TRAINING, list(model.parameters())), plan.passes(model, objective)
    batches = ((None, own) for own in _batches(shape, device))

    def run() -> None:
        loop.train(
            model, batches, objective, optimizer, constant(RATE, 0), steps=range(1, steps + 1), clip=CLIP,
            workers=workers, context=lambda: plan.context(device), forward_backward=passes,
        )  # fmt: skip
        wait(device)

    return run


def peer_training(
    model: nn.Module, logits: Logits, shape: Shape, device: torch.device, steps: int, compiled: bool = False
) -> Run:
    """The loop that a careful user of torch would write; normalizing the bytes is a part of what is compiled."""
    model, batches = model.to(device).train(), _batches(shape, device)
    groups = [[own for own in model.parameters() if (own.dim() > 1) is matrices] for matrices in (True, False)]
    decays = [TRAINING.weight_decay, 0.0]
    made = [{"params": own, "weight_decay": decay} for own, decay in zip(groups, decays, strict=True)]
    optimizer = torch.optim.AdamW(made, lr=RATE, betas=(0.9, TRAINING.beta2), eps=TRAINING.epsilon, fused=True)
    normalize = Normalize(MEAN, STD)
    normalize(torch.zeros(1, 3, 1, 1, device=device))  # its numbers are on the device now

    def loss(images: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(logits(model, normalize(from_bytes(images))), labels, label_smoothing=SMOOTHING)

    asked = torch.compile(loss, dynamic=False) if compiled else loss

    def run() -> None:
        for batch in itertools.islice(batches, steps):
            with torch.autocast("cuda", dtype=torch.bfloat16) if device.type == "cuda" else nullcontext():
                value = asked(batch.images, batch.labels)
            value.backward()
            nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            optimizer.step()
            optimizer.zero_grad()
        wait(device)

    return run


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


Classify = Callable[[np.ndarray], np.ndarray]


def heed_classifier(shape: Shape, device: torch.device, engine: str = "auto") -> ImageClassifier:
    """What `heed classify --engine` opens."""
    labels = Labels([str(number) for number in range(shape.labels)])
    product = ImageClassifier(shape.model().to(device).eval(), Images(shape.size, 3, tuple(MEAN), tuple(STD)), labels)
    in_precision(product.model, "auto")
    product.use(engine)
    return product


def peer_classifier(
    model: nn.Module, logits: Logits, size: int, device: torch.device, compiled: bool = False
) -> Classify:
    """From bytes to probabilities in batches of `size`, as heed: in bfloat16 on a GPU."""
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    model, normalize = model.to(device, dtype).eval(), Normalize(MEAN, STD)
    asked = partial(logits, model)
    asked = torch.compile(asked, dynamic=False) if compiled else asked

    @torch.inference_mode()
    def run(pixels: np.ndarray) -> np.ndarray:
        parts = []
        for start in range(0, len(pixels), size):
            own = torch.from_numpy(pixels[start : start + size])
            own = own.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else own
            parts.append(asked(normalize(from_bytes(own)).to(dtype)).double().softmax(dim=1))
        return torch.cat(parts).cpu().numpy()

    return run


@torch.inference_mode()
def draw_without_cache(model: ImageTransformer, count: int, seed: int) -> np.ndarray:
    """As `ImageGenerator.generate`, with a whole pass for each turn."""
    c, device = model.config, next(model.parameters()).device
    uniform = random_numbers(model, seed, range(count)).to(device)
    values = torch.zeros(count, c.max_length, c.channels // c.values, dtype=torch.long, device=device)
    state = model.start_images(count)
    for turn in range(c.max_length):
        states = model.pixel_states(model.in_place(values))[:, turn]
        own = state._replace(values=values.flatten(1))
        values[:, turn] = model.sample_values(states, turn, own, 1.0, uniform[:, turn])
    return model.in_place(values).cpu().numpy()

"""A new model and a new task, made here: a recommender of next items. Two dictionaries get an entry; nothing else changes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import heed
from heed.cli.main import main
from heed.config import from_data
from heed.data.batching import DataPosition
from heed.models import MODELS
from heed.models.system import System
from heed.products.product import Product, single
from heed.runs import recipe as recipes
from heed.tasks import TASKS
from heed.tasks.base import Metric, Prepared, Task, ValidationResult
from heed.training.loss import Loss
from heed.vocabularies.labels import Labels
from tests.contract.contract import check_log, check_refused, check_same, resume, train


@dataclass(frozen=True)
class BagConfig:
    items: int = from_data()
    dim: int = 8
    max_length: int = 64


class Bag(nn.Module):
    """The mean of the items so far predicts the next."""

    def __init__(self, config: BagConfig):
        super().__init__()
        self.config = config
        self.items = nn.Embedding(config.items, config.dim)
        self.out = nn.Linear(config.dim, config.items)

    def next_item_logits(self, items: Tensor) -> Tensor:
        counts = torch.arange(1, items.shape[1] + 1, device=items.device)[:, None]
        return self.out(self.items(items).cumsum(dim=1) / counts)


@runtime_checkable
class RecommendsItems(Protocol):
    def next_item_logits(self, items: Tensor) -> Tensor: ...


class Recommender(Product):
    noun, verbs = "a recommender", ("recommend",)

    def __init__(self, model: RecommendsItems, items: Labels):
        self.model, self.items = model, items

    @classmethod
    def open(cls, packages, names, **options):
        own = single(packages, names, cls.noun)
        return cls(own.model, own.processors["items"])

    @torch.inference_mode()
    def recommend(self, history: Sequence[str]) -> str:
        ids = torch.tensor([[i for [i] in self.items.encode(history)]])
        return self.items.names[int(self.model.next_item_logits(ids)[0, -1].argmax())]


@dataclass(frozen=True)
class Histories:
    train: str = ""
    valid: str = ""


@dataclass(frozen=True)
class NextItemSettings:
    size: int = 4  # histories of a batch


class Items(NamedTuple):
    items: Tensor

    def to(self, device) -> "Items":
        return Items(self.items.to(device))


class NextItem(Task):
    name, title, example, unit = "next-item", "Recommender", "heed recommend {}", "histories"
    Settings, sections, needs, products = NextItemSettings, {"data": Histories}, RecommendsItems, (Recommender,)
    best = "hits"
    metrics = (
        Metric("hits", "hit rate", True, lambda: "per cent"),
        Metric("loss", "loss", False, lambda: "-log p of an item", 3),
    )

    def prepare(self, recipe, base, tell) -> Prepared:
        parts = [
            [line.split() for line in Path(f).read_text().splitlines()] for f in (recipe.data.train, recipe.data.valid)
        ]
        items = Labels(sorted({name for row in parts[0] for name in row}))
        train, valid = ([torch.tensor([i for [i] in items.encode(row)]) for row in part] for part in parts)
        return Prepared("fixed", train, valid, {"items": items}, {"items": len(items)})

    def objective(self, prepared, teachers=()):
        def loss(model, batch: Items) -> Loss:
            logits = model.next_item_logits(batch.items[:, :-1]).flatten(0, 1)
            nll = F.cross_entropy(logits, batch.items[:, 1:].flatten(), reduction="sum")
            return Loss(nll, nll.detach(), len(logits))

        return loss

    def batches(self, recipe, prepared, plan, share, position):
        epoch, index = position
        size = self.settings.size
        while True:
            order = torch.randperm(len(prepared.train), generator=torch.Generator().manual_seed(epoch)).split(size)
            for number, rows in islice(enumerate(order), index, None):
                after = DataPosition(epoch, number + 1) if number + 1 < len(order) else DataPosition(epoch + 1, 0)
                yield after, Items(torch.stack([prepared.train[i] for i in rows.tolist()]))
            epoch, index = epoch + 1, 0

    def validation(self, recipe, prepared):
        return NextItemValidation(prepared.valid, self.objective(prepared))


@dataclass
class NextItemValidation:
    rows: list[Tensor]
    objective: Any
    size: int = field(init=False)

    def __post_init__(self):
        self.size = len(self.rows)

    @torch.inference_mode()
    def run(self, model) -> ValidationResult:
        items = torch.stack(self.rows)
        loss = self.objective(model.eval(), Items(items))
        hits = (model.next_item_logits(items[:, :-1])[:, -1].argmax(dim=-1) == items[:, -1]).float().mean()
        return ValidationResult({"loss": float(loss.nll) / loss.count, "hits": 100 * float(hits)}, [("a b", "c", "c")])

    def facts(self, model) -> dict[str, Any]:
        return {}

    def too_long(self, max_length: int) -> int:
        return 0


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setitem(MODELS, "bag", System(Bag, BagConfig, {"tiny": {}}, "Bag of items", task="next-item"))
    monkeypatch.setitem(TASKS, "next-item", NextItem)


@pytest.fixture
def sections(tmp_path):
    path = tmp_path / "histories.txt"
    path.write_text("".join(f"a{i % 3} b{i % 5} c{i % 3} d{i % 5}\n" for i in range(18)))
    return {"data": {"train": str(path), "valid": str(path)}}


def test_it_is_trained_resumed_saved_and_asked_as_any_other(registered, sections, tmp_path, capsys):
    training = {"steps": 2, "valid_every": 1, "log_every": 1, "threads": 1, "device": "cpu"}
    recipe = recipes.parse({"model": {"name": "bag", "preset": "tiny", "dim": 6}, "training": training, **sections})
    assert recipe.task == NextItem(NextItemSettings()) and recipe.filters is None
    whole = tmp_path / "whole"
    assert train(recipe, whole).how == "finished"
    resume(recipe, whole, tmp_path / "resumed")
    check_same(whole, tmp_path / "resumed")
    check_log("next-item", whole)
    recommender = heed.load(whole, "cpu")
    assert type(recommender) is Recommender and recommender.recommend(["a0", "b0"]) in recommender.items.names
    assert recommender.model.config == BagConfig(items=16, dim=6)
    assert main(["translate", str(whole), "hello"]) == 1
    assert "is a recommender: it cannot translate; use heed recommend" in capsys.readouterr().err


def test_other_pairs_are_refused(registered, sections):
    check_refused("transformer", "next-item", sections)
    text = {"data": {"source": ["a.txt"], "target": ["b.txt"]}}
    with pytest.raises(ValueError, match=r"^task\.name is 'translation', "):
        recipes.parse({"model": {"name": "bag"}, "task": {"name": "translation"}, **text})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"filters": {}}, "filters: next-item has no such section; there are data"),
        ({"model": {"name": "bag", "items": 5}}, "model.items: it is determined by the data; leave it out"),
        ({"model": {"name": "bag", "heads": 5}}, "model.heads: bag has no such setting"),
        ({"task": {"name": "next-item", "r_drop": 1.0}}, "task.r_drop: next-item has no such setting; translation has"),
        ({"training": {"metric": "bleu"}}, "training.metric is 'bleu'; next-item has hits, loss"),
    ],
)
def test_a_section_is_read_by_the_dataclass_of_what_it_names(registered, sections, change, says):
    with pytest.raises(ValueError) as error:
        recipes.parse({"model": {"name": "bag"}, **sections, **change})
    assert str(error.value).startswith(says)

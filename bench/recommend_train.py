"""SASRec trained by heed, by RecTools and by a plain loop of torch: the same model, log, negatives and batches of as many users."""

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heed.data.batching import DataPosition
from heed.data.in_thread import in_thread
from heed.data.interactions.batches import ItemBatches, next_items
from heed.models.sasrec import SASRec, SASRecConfig
from heed.tasks.item_losses import BinaryCrossEntropy, FullCrossEntropy, RecommendationLoss
from heed.training import loop
from heed.training.accelerated.captured_passes import CapturedPasses
from heed.training.schedule import constant
from heed.vocabularies.histories import Histories
from heed.vocabularies.ragged import RaggedRows

Epoch = Callable[[], None]  # trains one epoch


class Task(NamedTuple):
    """What is trained: histories of `items` items, read to `length`; the size of the model; users in a batch."""

    rows: RaggedRows
    items: int
    length: int = 50
    dim: int = 64
    heads: int = 2
    layers: int = 2
    dropout: float = 0.2
    users: int = 128
    objective: str = "bce"
    rate: float = 1e-3


def made_up_log(users: int, items: int, seed: int = 0) -> RaggedRows:
    """Histories as in Amazon's Beauty: five items or more, nine in the mean, some much longer; a few items are frequent."""
    random = np.random.default_rng(seed)
    lengths = 5 + np.minimum(195, random.geometric(0.21, users) - 1 + (random.random(users) < 0.01) * 40)
    popular = 1 / (10 + np.arange(items)) ** 0.8
    ids = random.choice(items, int(lengths.sum()), p=popular / popular.sum())
    chosen = random.permutation(len(ids))[:items]
    ids[chosen] = np.arange(len(chosen))  # others know only the items that occur: where there is room, all do
    return RaggedRows(np.unique(ids, return_inverse=True)[1].astype(np.int64), lengths.astype(np.int64))


def systems(task: Task, device: torch.device, wanted: list[str] | None = None) -> tuple[dict[str, Epoch], list[str]]:
    """What trains an epoch, by name, and sentences on what is not measured; the first is heed."""
    found: dict[str, Callable[[], Epoch]] = {
        "heed": lambda: heed(task, device),
        "plain torch": lambda: plain(task, device),
    }
    said = []
    if find_spec("rectools") and find_spec("pytorch_lightning"):
        found["RecTools"] = lambda: rectools(task, device)
    else:
        said.append("RecTools (rectools[torch]) is not installed here: it is not measured.")
    return {name: make() for name, make in found.items() if not wanted or name in ("heed", *wanted)}, said


def half(device: torch.device) -> Any:
    """What all of them compute in: bfloat16 on a GPU."""
    return torch.autocast("cuda", dtype=torch.bfloat16) if device.type == "cuda" else nullcontext()


def heed(task: Task, device: torch.device) -> Epoch:
    """Heed's loop, batches and objective, as `heed train` runs them: histories packed without padding, by CUDA graphs on a GPU."""
    torch.manual_seed(0)
    sizes = {"dim": task.dim, "heads": task.heads, "hidden": task.dim, "layers": task.layers, "max_length": task.length}
    drops = {"dropout": task.dropout, "attention_dropout": task.dropout}
    model = SASRec(SASRecConfig(task.items, **sizes, **drops, norm="paper", activation="relu")).to(device)
    loss = RecommendationLoss(BinaryCrossEntropy(1) if task.objective == "bce" else FullCrossEntropy())
    count = len(task.rows)
    arrays = {
        "items": task.rows.ids.astype(np.uint32), "offsets": np.concatenate([[0], task.rows.ends]),
        "train_end": task.rows.lengths, "valid_at": np.full(count, -1), "test_at": np.full(count, -1),
    }  # fmt: skip
    made = ItemBatches(
        Histories([str(i) for i in range(count)], task.items, arrays), next_items, longest=task.length + 1, seed=0,
        budget=round(task.users * np.minimum(task.rows.lengths, task.length + 1).mean()), equal=device.type == "cuda",
    )  # fmt: skip
    passes = CapturedPasses(model, loss, lambda: half(device)) if device.type == "cuda" else None
    optimizer = torch.optim.AdamW(model.parameters(), lr=task.rate, betas=(0.9, 0.98), weight_decay=0.0, fused=True)
    batches = in_thread((at, batch.to(device)) for at, batch in made.start(DataPosition(0, 0)))
    done = [0, 0]  # epochs and steps

    def epoch() -> None:
        steps = range(done[1] + 1, done[1] + len(made.plan(done[0])) + 1)
        how = {"context": lambda: half(device), "forward_backward": passes}
        loop.train(model, batches, loss, optimizer, constant(task.rate, 0), steps=steps, **how)
        done[0], done[1] = done[0] + 1, steps[-1]
        _wait(device)

    return epoch


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


class PlainLayer(nn.Module):
    """A layer of SASRec as its authors' code has it, of torch's own modules."""

    def __init__(self, dim: int, heads: int, dropout: float):
        super().__init__()
        self.attention = nn.MultiheadAttention(dim, heads, dropout, batch_first=True)
        self.norms = nn.ModuleList(nn.LayerNorm(dim, eps=1e-8) for _ in range(2))
        self.up, self.down, self.dropout = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        queries = self.norms[0](x)
        x = queries + self.dropout(self.attention(queries, x, x, attn_mask=mask, need_weights=False)[0])
        x = self.norms[1](x)
        return x + self.dropout(self.down(self.dropout(F.relu(self.up(x)))))


class PlainSASRec(nn.Module):
    """SASRec on histories that are padded on the left to one length."""

    def __init__(self, task: Task):
        super().__init__()
        self.items = nn.Embedding(task.items + 1, task.dim, padding_idx=0)
        self.positions = nn.Embedding(task.length, task.dim)
        self.layers = nn.ModuleList(PlainLayer(task.dim, task.heads, task.dropout) for _ in range(task.layers))
        self.norm, self.dropout = nn.LayerNorm(task.dim, eps=1e-8), nn.Dropout(task.dropout)
        self.register_buffer("mask", torch.ones(task.length, task.length, dtype=torch.bool).triu(1))

    def forward(self, items: Tensor) -> Tensor:
        real = (items > 0)[..., None]
        x = self.dropout(self.items(items) * self.items.embedding_dim**0.5 + self.positions.weight) * real
        for layer in self.layers:
            x = layer(x, self.mask) * real
        return self.norm(x)


def plain(task: Task, device: torch.device) -> Epoch:
    """A reference that pads, as most published code does: batches of as many users, negatives drawn with each."""
    torch.manual_seed(0)
    model = PlainSASRec(task).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=task.rate, betas=(0.9, 0.98))
    random = np.random.default_rng(0)

    def batches() -> Iterator[tuple[Tensor, ...]]:
        order = random.permutation(len(task.rows))
        for start in range(0, len(order), task.users):
            chosen = order[start : start + task.users]
            items, expected = (np.zeros((len(chosen), task.length), np.int64) for _ in range(2))
            for row, user in enumerate(chosen):
                own = task.rows[user][-task.length - 1 :] + 1
                items[row, task.length - len(own) + 1 :], expected[row, task.length - len(own) + 1 :] = (
                    own[:-1],
                    own[1:],
                )
            drawn = random.integers(1, task.items + 1, expected.shape)
            yield tuple(torch.from_numpy(part).to(device) for part in (items, expected, drawn))

    def epoch() -> None:
        model.train()
        for items, expected, drawn in batches():
            with half(device):
                states = model(items)
                counts = expected > 0
                if task.objective == "bce":
                    scores = [(states * model.items(own)).sum(-1).float() for own in (expected, drawn)]
                    loss = (F.softplus(-scores[0]) + F.softplus(scores[1]))[counts].mean()
                else:
                    logits = F.linear(states[counts], model.items.weight[1:])
                    loss = F.cross_entropy(logits.float(), expected[counts] - 1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        _wait(device)

    return epoch


def rectools(task: Task, device: torch.device) -> Epoch:
    """RecTools' SASRecModel, one more epoch at each call."""
    import pandas
    from pytorch_lightning import Trainer
    from rectools.dataset import Dataset
    from rectools.models import SASRecModel
    from rectools.models.nn.item_net import IdEmbeddingsItemNet

    warnings.filterwarnings("ignore", "Pydantic serializer warnings")
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    users = np.repeat(np.arange(len(task.rows)), task.rows.lengths)
    times = np.arange(len(users)).astype("datetime64[s]").astype("datetime64[ns]")
    log = pandas.DataFrame({"user_id": users, "item_id": task.rows.ids, "weight": 1.0, "datetime": times})
    dataset = Dataset.construct(log)

    def trainer() -> Any:
        return Trainer(
            max_epochs=1, min_epochs=1, accelerator="gpu" if device.type == "cuda" else "cpu", devices=1, logger=False,
            precision="bf16-mixed" if device.type == "cuda" else "32-true", enable_progress_bar=False,
            enable_model_summary=False, enable_checkpointing=False,
        )  # fmt: skip

    model = SASRecModel(
        n_blocks=task.layers, n_heads=task.heads, n_factors=task.dim, dropout_rate=task.dropout, session_max_len=task.length,
        loss="BCE" if task.objective == "bce" else "softmax", n_negatives=1, lr=task.rate, batch_size=task.users, epochs=1,
        item_net_block_types=(IdEmbeddingsItemNet,), get_trainer_func=trainer,
    )  # fmt: skip
    model.fit(dataset)

    def epoch() -> None:
        model.fit_partial(dataset, min_epochs=1, max_epochs=1)
        _wait(device)

    return epoch

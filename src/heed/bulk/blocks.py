"""How a cluster worker processes a block of rows, independently of Ray and Spark.

If a worker dies, its block is recomputed as a whole. The result depends only on the rows, so it does not matter which
worker computes it, or how often.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

Columns = Mapping[str, Sequence[Any]]
VERBS = ("translate", "score", "embed", "backtranslate")
OPENED = 2  # models that a worker process keeps
ROWS = 4096  # that are computed together, as many as heed translate takes on a GPU


@dataclass(frozen=True)
class Task:
    """A job for each row of a table; `verb` is translate, score, embed or backtranslate.

    `model` is a run, a model folder or a name on the hub that every worker can read. `text` is the text column,
    `target` the translation column, used by score. `options` are those of the verb in Python (beam, too_long,
    batch_tokens, ...).
    """

    verb: str
    model: str
    text: str = "text"
    target: str = "target"
    device: str = "auto"
    engine: str = "auto"
    tag: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self):
        if self.verb not in VERBS:
            raise ValueError(f"verb is {self.verb!r}; it must be {', '.join(VERBS[:-1])} or {VERBS[-1]}")
        if self.tag and (self.tag.split() != [self.tag] or self.verb != "backtranslate"):
            raise ValueError(f"tag is {self.tag!r}; it must be one word, such as <bt>, and is for backtranslate")
        if (self.options.get("nbest") or 1) != 1:
            raise ValueError(f"nbest is {self.options['nbest']}; each row gets one translation")

    @property
    def reads(self) -> list[str]:
        return [self.text, self.target] if self.verb == "score" else [self.text]

    @property
    def writes(self) -> dict[str, str]:
        """The columns that are added, and their types: text, number, count or vector."""
        return {
            "translate": {"translation": "text", "score": "number"},
            "score": {"logp": "number", "tokens": "count"},
            "embed": {"vector": "vector"},
            "backtranslate": {"source": "text"},
        }[self.verb]

    def check(self, columns: Sequence[str]) -> None:
        """Refuse a table that lacks a column, or already has one that would be added."""
        if missing := [name for name in self.reads if name not in columns]:
            raise ValueError(f"the table has no column {missing[0]!r}; it has {', '.join(columns)}: name it")
        if twice := [name for name in self.writes if name in columns]:
            raise ValueError(f"the table has a column {twice[0]!r} already, which {self.verb} adds: rename it")


class Worker:
    """Opens a model once and processes blocks: columns in, the same columns and the new ones out."""

    def __init__(self, task: Task):
        self.task = task
        self.product = _opened(task.model, task.device, task.engine, task.verb)

    def __call__(self, columns: Columns) -> dict[str, Any]:
        self.task.check(list(columns))
        texts = [_text(own, self.task.text) for own in columns[self.task.text]]
        keep, added = _COMPUTE[self.task.verb](self, texts, columns)
        kept = {name: _chosen(values, keep) for name, values in columns.items()}
        return kept | added

    def frames(self, frames: Iterator[Any]) -> Iterator[Any]:
        """The same for a stream of pandas data frames; large ones are split."""
        import pandas

        for frame in frames:
            for start in range(0, len(frame), ROWS):
                part = frame.iloc[start : start + ROWS]
                found = self({name: part[name].tolist() for name in part.columns})
                yield pandas.DataFrame({name: list(values) for name, values in found.items()})

    def _translate(self, texts: list[str], columns: Columns) -> tuple[None, dict[str, Any]]:
        found = self.product.translate(texts, **self.task.options)
        return None, {"translation": [own.text for own in found], "score": [float(own.score) for own in found]}

    def _score(self, texts: list[str], columns: Columns) -> tuple[None, dict[str, Any]]:
        targets = [_text(own, self.task.target) for own in columns[self.task.target]]
        found = self.product.score(texts, targets, **self.task.options)
        return None, {"logp": [float(own.logp) for own in found], "tokens": [len(own.tokens) for own in found]}

    def _embed(self, texts: list[str], columns: Columns) -> tuple[None, dict[str, Any]]:
        return None, {"vector": list(self.product.embed(texts, **self.task.options))}

    def _backtranslate(self, texts: list[str], columns: Columns) -> tuple[list[int], dict[str, Any]]:
        """Empty rows, and rows too long for the model, are dropped, as in heed backtranslate."""
        from heed.products.translator.stages import fitting

        keep = [row for row, fits in enumerate(fitting(self.product, texts)) if fits]
        found = self.product.translate([texts[row] for row in keep], **self.task.options)
        tag = f"{self.task.tag} " if self.task.tag else ""
        return keep, {"source": [f"{tag}{own.text}" for own in found]}


_COMPUTE: dict[str, Callable[..., tuple[list[int] | None, dict[str, Any]]]] = {
    verb: getattr(Worker, f"_{verb}") for verb in VERBS
}


@lru_cache(OPENED)
def _opened(model: str, device: str, engine: str, verb: str) -> Any:
    """The model of this process, shared by blocks and by tasks with other options."""
    from heed.loading import load

    return load(model, device, "torch" if verb == "score" else engine, "embed" if verb == "embed" else "translate")


def _text(value: Any, column: str) -> str:
    if not isinstance(value, str):
        raise ValueError(
            f"the column {column!r} has {value!r}; it must be text in every row: fill it in, or leave the row out"
        )
    return value


def _chosen(values: Sequence[Any], rows: list[int] | None) -> Any:
    if rows is None:
        return values
    return values[rows] if isinstance(values, np.ndarray) else [values[row] for row in rows]

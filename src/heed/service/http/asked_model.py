"""A served model, and the thread that runs it."""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from torch import nn

from heed.products.product import Work
from heed.products.text_trace import TextTrace
from heed.service.http.limits import Refusal
from heed.service.http.queue import BatchWorker, OnBatch, Ticket, wait_for_results

MAX_ATTENTION_WEIGHTS = 2_000_000  # of a text that is inspected
SIZE_FIELDS = ("layers", "heads", "dim")
Result = TypeVar("Result")
SLICE_SECONDS = 0.05  # that a request has the model for, unless one step takes longer


@dataclass(eq=False)
class AskedModel:
    """One product with its worker, which runs calls one after another."""

    name: str
    product: Any
    worker: BatchWorker | None = None

    attends = True  # whether its attention can be looked at

    @property
    def model(self) -> nn.Module:
        return self.product.model

    def start(self, on_batch: OnBatch, **sizes: int | float) -> None:
        self.worker = BatchWorker(self.name, self.run, on_batch=on_batch, **sizes)
        self.workers = [self.worker]

    def run(self, key: tuple, items: list[Any]) -> list[tuple[Any, Exception | None]]:
        """A batch, in the worker's thread. Errors are results: a failed batch would be rerun, and a text would lose
        tokens.
        """
        return [_outcome(item) for item in items]

    def ask(self, ticket: Ticket, kind: str, call: Callable[[], Any], size: int) -> Any:
        """The result of a call in the worker's thread."""
        [(result, error)] = wait_for_results(self.worker.submit(ticket, (kind,), [call], [size]), ticket)
        if error is not None:
            raise error
        return result

    def ask_in_slices(self, ticket: Ticket, kind: str, work: Work[Result], size: int) -> Result:
        """The result of work that goes on slice by slice, each of this size: other requests run between them, and it
        ends when nobody waits for it.
        """
        results: list[Result] = []

        def parts() -> Work[None]:
            results.append((yield from work))

        found = parts()
        while self.ask(ticket, kind, lambda: next_slice(found), size):
            pass
        return results[0]

    def check_inspectable(self, tokens: int) -> None:
        """Refuse a text with too many attention weights to show."""
        config = self.model.config
        layers, heads = (getattr(config, name, None) or 1 for name in SIZE_FIELDS[:2])
        most = min(config.max_length, math.isqrt(MAX_ATTENTION_WEIGHTS // (layers * heads)))
        if tokens > most:
            raise ValueError(f"the text has {tokens:,} tokens; the limit for inspection is {most:,}: shorten it")

    def look(self, ticket: Ticket, text: str, code: str | None) -> TextTrace:
        """A text inside the model; `code` is the control code, for CTRL models."""
        raise NotImplementedError

    def facts(self) -> dict[str, Any]:
        """Its entry in /v1/models."""
        config, known = self.model.config, getattr(self.product, "facts", {})
        vocabulary = getattr(self.product, "vocabulary", None)
        return {
            "name": self.name,
            "kind": type(self.model).__name__.lower(),
            "weights": sum(weight.numel() for weight in self.model.parameters()),
            **{name: getattr(config, name, None) for name in SIZE_FIELDS},
            "positions": config.max_length if config.max_length < 2**31 else None,
            "vocabulary": None if vocabulary is None else len(vocabulary),
            "trained": {k: v for k, v in known.get("trained", {}).items() if isinstance(v, int | float | str)},
        }

    def caption(self) -> str:
        """A one-line description."""
        facts = self.facts()
        heads = f" · {facts['heads']} heads" if facts["heads"] else ""
        return f"{self.name} · {facts['layers']} layers{heads} · {facts['weights'] / 1e6:.1f}M weights"


Asked = TypeVar("Asked", bound=AskedModel)
Step = TypeVar("Step")


def next_slice(found: Iterator[Step]) -> list[Step]:
    """The next steps, as many as fit in a time slice."""
    end, steps = time.monotonic() + SLICE_SECONDS, []
    for step in found:
        steps.append(step)
        if time.monotonic() >= end:
            break
    return steps


def choose_model(known: Mapping[str, Asked], name: str | None, what: str) -> Asked:
    """The model named in a request; optional if only one is served."""
    if not known:
        raise Refusal(404, f"no {what} is served here; see /v1/models")
    if name is None and len(known) > 1:
        raise Refusal(400, f"model is missing; choose one of {', '.join(known)}")
    if name is not None and name not in known:
        raise Refusal(
            404, f"model is {name[:60]!r}, which is not a {what} served here; choose one of {', '.join(known)}"
        )
    return next(iter(known.values())) if name is None else known[name]


def _outcome(item: Callable[[], Any]) -> tuple[Any, Exception | None]:
    try:
        return item(), None
    except Exception as error:
        return None, error

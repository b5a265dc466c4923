"""The language models that are served. Their texts are written in short slices, between which others have their turn."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from heed.products.generator import Generator
from heed.products.prompts import Prompt
from heed.products.writing import Piece
from heed.service.http.queue import BatchWorker, OnBatch, Ticket, wait_for_results

SLICE_SECONDS = 0.05  # that a request has the model for, unless one token takes longer
SLICE_TOKENS = 8  # that a slice counts as in the queue, for each text
MAX_ATTENTION_WEIGHTS = 2_000_000  # of a text that is inspected
SIZE_FIELDS = ("layers", "heads", "dim")


@dataclass(eq=False)
class ServedLanguageModel:
    """One language model and the worker that runs it."""

    name: str
    generator: Generator
    worker: BatchWorker | None = None

    def warm_up(self) -> None:
        """Build now what is built at the first call."""
        self.generator.generate_ids([], length=1)

    def start(self, on_batch: OnBatch, **sizes: int | float) -> None:
        self.worker = BatchWorker(self.name, self.run, on_batch=on_batch, **sizes)

    def run(self, key: tuple, items: list[Callable[[], Any]]) -> list[tuple[Any, Exception | None]]:
        """A batch, in the worker's thread. An error is a result: a batch that fails is run again, and a text would lose tokens."""
        return [_outcome(item) for item in items]

    def ask(self, ticket: Ticket, kind: str, call: Callable[[], Any], size: int) -> Any:
        """The result of a call in the worker's thread."""
        [(result, error)] = wait_for_results(self.worker.submit(ticket, (kind,), [call], [size]), ticket)
        if error is not None:
            raise error
        return result

    def write(self, ticket: Ticket, prompts: Sequence[Prompt], count: int, **options: Any) -> Iterator[list[Piece]]:
        """What each step adds to the texts, `count` of each prompt."""
        found = self.generator.write(prompts, count=count, **options)
        size = sum(len(own.ids) for own in prompts)
        while pieces := self.ask(ticket, "write", lambda: _slice(found), size):
            yield from pieces
            size = SLICE_TOKENS * len(prompts) * count

    def check_inspectable(self, tokens: int) -> None:
        """Refuse a text with too many attention weights to show."""
        config = self.generator.model.config
        layers, heads = (getattr(config, name, None) or 1 for name in SIZE_FIELDS[:2])
        most = min(config.max_length, math.isqrt(MAX_ATTENTION_WEIGHTS // (layers * heads)))
        if tokens > most:
            raise ValueError(f"the text has {tokens:,} tokens; one that is inspected has at most {most:,}: take less")

    def facts(self) -> dict[str, Any]:
        """What /v1/models says of it."""
        generator, config = self.generator, self.generator.model.config
        trained = {k: v for k, v in generator.facts.get("trained", {}).items() if isinstance(v, int | float | str)}
        positions = config.max_length if config.max_length < 2**31 else None
        return {
            "name": self.name,
            "kind": type(generator.model).__name__.lower(),
            "weights": sum(weight.numel() for weight in generator.model.parameters()),
            **{name: getattr(config, name, None) for name in SIZE_FIELDS},
            "positions": positions,
            "vocabulary": len(generator.vocabulary),
            "codes": generator.codes,
            "trained": trained,
        }

    def caption(self) -> str:
        """One line that describes it."""
        facts = self.facts()
        heads = f" · {facts['heads']} heads" if facts["heads"] else ""
        return f"{self.name} · {facts['layers']} layers{heads} · {facts['weights'] / 1e6:.1f}M weights"


def _outcome(item: Callable[[], Any]) -> tuple[Any, Exception | None]:
    try:
        return item(), None
    except Exception as error:
        return None, error


def _slice(found: Iterator[list[Piece]]) -> list[list[Piece]]:
    """The next steps, as many as a slice has time for."""
    end, pieces = time.monotonic() + SLICE_SECONDS, []
    for step in found:
        pieces.append(step)
        if time.monotonic() >= end:
            break
    return pieces

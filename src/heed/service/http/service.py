"""All that the answers need: models, limits, keys, figures, and how work is waited for."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.requests import Request

from heed.service.http.detect import Detected, detect
from heed.service.http.files import Files
from heed.service.http.limits import Gate, Keys, Limits, Refusal
from heed.service.http.metrics import Metrics
from heed.service.http.models import Catalogue, Served
from heed.service.http.queue import MOST_ROWS, Cancelled, Ticket
from heed.service.http.segmenter_pool import Readers

log = logging.getLogger("heed.service")


class Gone(Exception):
    """The client has left."""


@dataclass(frozen=True)
class Settings:
    """`wait` in seconds, `budget` in subwords of a batch, `rows` in sentences of one; `cors` are sites, `runs` a folder."""

    wait: int | float = 0.003
    budget: int = 1024
    rows: int = MOST_ROWS
    cors: tuple[str, ...] = ()
    runs: Path | None = None
    log_texts: bool = False
    limits: Limits = field(default_factory=Limits)


class Service:
    """One running service; `close` ends its threads and removes its files."""

    def __init__(self, models: Sequence[Served], settings: Settings | None = None, keys: Keys | None = None):
        self.settings, self.keys = settings or Settings(), keys
        self.limits = self.settings.limits
        self.catalogue, self.gate, self.metrics, self.files = Catalogue(models), Gate(self.limits), Metrics(), Files()
        self.readers = Readers()
        self.threads = self.limits.requests + 8
        self.pool = ThreadPoolExecutor(self.threads, thread_name_prefix="heed-request")
        self.clerk = ThreadPoolExecutor(
            1, thread_name_prefix="heed-terms"
        )  # reads long glossaries, one after the other
        for model in models:
            watch = self.metrics.watcher(model.name)
            model.start(wait=self.settings.wait, budget=self.settings.budget, rows=self.settings.rows, watch=watch)
        own = [((("model", model.name),), model) for model in models]
        self.metrics.gauge("heed_inside", "Requests in work.", lambda: {(): len(self.gate.inside)})
        self.metrics.gauge(
            "heed_waiting_tokens", "Source subwords that wait.", lambda: {key: model.worker.size for key, model in own}
        )

    def warm(self) -> None:
        """Begin all threads now: each keeps the event loop waiting until it has begun, and many would begin with the first rush."""
        everyone = threading.Barrier(self.threads + 1)
        for _ in range(self.threads):
            self.pool.submit(everyone.wait)
        everyone.wait()

    def close(self) -> None:
        self.gate.closing = True
        for ticket in list(self.gate.inside):
            ticket.cancel()
        for model in self.catalogue.models:
            model.worker.close()
        self.pool.shutdown(wait=True, cancel_futures=True)
        self.clerk.shutdown(wait=True, cancel_futures=True)
        self.readers.close()
        self.files.close()

    def admit(self, request: Request, found: dict[str, Any] | None, characters: int = 0) -> None:
        """Whether a request may be answered: its key is known, and has not spent its minute."""
        if self.keys is None:
            return
        shown = (found or {}).get("api_key") or request.query_params.get("api_key") or request.headers.get("x-api-key")
        header = request.headers.get("authorization", "")
        if not shown and header.lower().startswith("bearer "):
            shown = header[7:].strip()
        self.keys.of(shown if isinstance(shown, str) else None).spend(characters, time.monotonic())

    async def perform(
        self, request: Request, characters: int, work: Callable[[Ticket], Any], long: bool = False
    ) -> Any:
        """What `work` gives, done in a thread; if the client leaves or the time is up, it is taken back.

        `long`: it may take a while however few characters there are.
        """
        ticket = self.gate.enter(characters, long)
        self.metrics.characters.add(characters)
        task = asyncio.get_running_loop().run_in_executor(self.pool, _in_turn, work, ticket)
        task.add_done_callback(lambda _: self.gate.leave(ticket))
        left = asyncio.ensure_future(_left(request))
        try:
            await asyncio.wait({task, left}, timeout=self.limits.seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            left.cancel()
            if not task.done():
                ticket.cancel()
                task.add_done_callback(_forgotten)
        if task.done():
            return _result(task)
        if left.done() and not left.cancelled():
            self.metrics.gone.add()
            raise Gone
        sentence = f"this was not done within {self.limits.seconds:g} seconds: send less at once, or come back later"
        raise Refusal(503, sentence, 5)

    def detected(self, text: str, target: str | None = None) -> list[Detected]:
        """Which language a text is in, among those that can be translated."""
        return detect(
            text, self.catalogue.sources(target) if target else [one["code"] for one in self.catalogue.languages]
        )

    def note(self, texts: Sequence[str]) -> None:
        """Texts go to the log only where that was asked for."""
        if self.settings.log_texts:
            for text in texts:
                log.info("text %r", text[:200])


def _in_turn(work: Callable[[Ticket], Any], ticket: Ticket) -> Any:
    with ticket.turns:
        return work(ticket)


def _result(task: asyncio.Future) -> Any:
    try:
        return task.result()
    except Cancelled:
        raise Refusal(503, "the service is closing: come back when it is there again", 5) from None
    except ValueError as error:
        raise Refusal(400, " ".join(str(error).split())) from None


def _forgotten(task: asyncio.Future) -> None:
    """Look at what became of it, so that nobody complains that no one did."""
    if not task.cancelled():
        task.exception()


async def _left(request: Request) -> None:
    """Wait until the client has gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass

"""Shared by all routes: models, limits, API keys, metrics, and how work is run and awaited."""

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.requests import Request

from heed.service.http.asked_model import AskedModel
from heed.service.http.bodies import Body, read_fields, validate
from heed.service.http.catalogue import NO_TRANSLATOR, Catalogue
from heed.service.http.connections import ConnectionLimits
from heed.service.http.detect import Detection, detect, other_language, warm_up
from heed.service.http.encoders import ServedEncoder
from heed.service.http.files import FileStore
from heed.service.http.image_models import ServedImageGenerator, ServedImageModel
from heed.service.http.language_models import ServedLanguageModel
from heed.service.http.limits import ApiKeys, ClientQuotas, Gate, Limits, Refusal
from heed.service.http.metrics import Metrics
from heed.service.http.models import ServedModel
from heed.service.http.progress import ProgressBook
from heed.service.http.queue import MAX_BATCH_JOBS, Cancelled, Ticket
from heed.service.http.recognizers import ServedRecognizer
from heed.service.http.recommenders import ServedRecommender
from heed.service.http.segmenter_pool import SegmenterPool
from heed.service.http.voices import ServedVoice

log = logging.getLogger("heed.service")
END = object()  # after the last item of a stream


class ClientDisconnected(Exception):
    """The client has disconnected: nobody reads the response."""


@dataclass(frozen=True)
class Settings:
    """`max_wait` is how many seconds a sentence waits for others in its batch; `cors` are allowed origins, `runs` a
    folder.
    """

    max_wait: int | float = 0.003
    batch_tokens: int = 1024
    batch_sentences: int = MAX_BATCH_JOBS
    cors: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()  # besides loopback names and the address that a client reached; "*" is any
    trusted_proxies: tuple[str, ...] = ()  # addresses and networks whose X-Forwarded-For is believed
    runs: Path | None = None
    log_texts: bool = False
    limits: Limits = field(default_factory=Limits)
    connections: ConnectionLimits = field(default_factory=ConnectionLimits)


class Service:
    """One running service; `close` ends its threads and removes its files."""

    def __init__(
        self,
        models: Sequence[ServedModel | AskedModel],
        settings: Settings | None = None,
        keys: ApiKeys | None = None,
    ):
        self.settings, self.keys = settings or Settings(), keys
        self.limits = self.settings.limits
        self.models, self.started = list(models), int(time.time())
        self.image_models = {own.name: own for own in models if isinstance(own, ServedImageModel)}
        self.image_generators = {own.name: own for own in models if isinstance(own, ServedImageGenerator)}
        self.language_models = {own.name: own for own in models if isinstance(own, ServedLanguageModel)}
        self.encoders = {own.name: own for own in models if isinstance(own, ServedEncoder)}
        self.recommenders = {own.name: own for own in models if isinstance(own, ServedRecommender)}
        self.recognizers = {own.name: own for own in models if isinstance(own, ServedRecognizer)}
        self.voices = {own.name: own for own in models if isinstance(own, ServedVoice)}
        self.catalogue = Catalogue([own for own in models if isinstance(own, ServedModel)])
        self.gate, self.metrics, self.quotas = Gate(self.limits), Metrics(), ClientQuotas(self.limits)
        self.files, self.progress, self.segmenters = FileStore(), ProgressBook(), SegmenterPool()
        self.threads = self.limits.requests + 8
        self.pool = ThreadPoolExecutor(self.threads, thread_name_prefix="heed-request")
        self.glossary_pool = ThreadPoolExecutor(1, thread_name_prefix="heed-terms")  # parses long glossaries one by one
        batches = {"max_tokens": self.settings.batch_tokens, "max_jobs": self.settings.batch_sentences}
        for model in models:
            model.start(self.metrics.batch_observer(model.name), max_wait=self.settings.max_wait, **batches)
        self.metrics.gauge("heed_inside", "Requests in progress.", lambda: {(): len(self.gate.active)})
        self.metrics.gauge(
            "heed_waiting_tokens", "Source subwords waiting.",
            lambda: {(("model", model.name),): sum(own.waiting_tokens for own in model.workers) for model in models},
        )  # fmt: skip

    @property
    def listing(self) -> str:
        """What is served, one line per kind of model."""
        seen = [f"images: {name}" for name in self.image_models] + [f"draw: {name}" for name in self.image_generators]
        names = ", ".join(self.language_models)
        readers = [f"{own.verb}: {own.name}" for own in self.encoders.values()]
        readers += [f"recommend: {name}" for name in self.recommenders]
        readers += [f"transcribe: {name}" for name in self.recognizers]
        readers += [f"speak: {name}" for name in self.voices]
        return "\n".join(filter(None, [self.catalogue.listing, names and f"language models: {names}", *readers, *seen]))

    def warm(self) -> None:
        """Do now what would block the event loop: load language models for detection, list the languages, and start
        all threads. The first burst of requests would start many.
        """
        warm_up()
        self.catalogue.prepare()
        barrier = threading.Barrier(self.threads + 1)
        for _ in range(self.threads):
            self.pool.submit(barrier.wait)
        barrier.wait()

    def close(self) -> None:
        self.gate.closing = True
        for ticket in list(self.gate.active):
            ticket.cancel()
        for worker in [own for model in self.models for own in model.workers]:
            worker.close()
        self.pool.shutdown(wait=True, cancel_futures=True)
        self.glossary_pool.shutdown(wait=True, cancel_futures=True)
        self.segmenters.close()
        self.files.close()

    def check_key(self, request: Request, fields: dict[str, Any] | None, characters: int = 0) -> None:
        """Refuse a request over the quota of its client, without a known API key, or over the quota of its key."""
        self.quotas.charge(request.client.host if request.client else "", 0, characters, time.monotonic())
        if self.keys is None:
            return
        key = (fields or {}).get("api_key") or request.query_params.get("api_key") or request.headers.get("x-api-key")
        header = request.headers.get("authorization", "")
        if not key and header.lower().startswith("bearer "):
            key = header[7:].strip()
        self.keys.find(key if isinstance(key, str) else None).charge(characters, time.monotonic())

    async def read_sentence(self, request: Request, model: type[Body]) -> Body:
        """The body of a request about one sentence, `text`; its key is checked."""
        body = validate(model, await read_fields(request, self.limits.text_bytes, forms=False))
        self.check_key(request, {"api_key": body.api_key}, len(body.text))
        self.log_texts([body.text])
        return body

    async def run(self, request: Request, characters: int, work: Callable[[Ticket], Any], long: bool = False) -> Any:
        """The result of `work`, run in a thread; it is cancelled if the client disconnects or the time is up. `long`:
        it may take a while even for few characters.
        """
        ticket = self.gate.enter(characters, long)
        self.metrics.characters.add(characters)
        task = asyncio.get_running_loop().run_in_executor(self.pool, _run_in_slot, work, ticket)
        task.add_done_callback(lambda _: self.gate.leave(ticket))
        disconnect = asyncio.ensure_future(_wait_for_disconnect(request))
        try:
            await asyncio.wait({task, disconnect}, timeout=self.limits.seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            disconnect.cancel()
            if not task.done():
                ticket.cancel()
                task.add_done_callback(_retrieve_exception)
        if task.done():
            return _result(task)
        if disconnect.done() and not disconnect.cancelled():
            self.metrics.disconnects.add()
            raise ClientDisconnected
        raise Refusal(503, self._too_slow(), 5)

    async def stream(
        self, characters: int, work: Callable[[Ticket], Iterator[Any]], long: bool = False
    ) -> AsyncIterator[Any]:
        """What `work` yields in a thread, as it arrives; it is cancelled if nobody reads on or the time is up. `long`
        as in `run`.
        """
        ticket, loop, items = self.gate.enter(characters, long), asyncio.get_running_loop(), asyncio.Queue()
        end = loop.time() + self.limits.seconds
        self.metrics.characters.add(characters)

        def run(ticket: Ticket) -> None:
            for item in work(ticket):
                loop.call_soon_threadsafe(items.put_nowait, item)

        task = loop.run_in_executor(self.pool, _run_in_slot, run, ticket)
        task.add_done_callback(lambda _: (self.gate.leave(ticket), items.put_nowait(END)))
        try:
            while (item := await asyncio.wait_for(items.get(), end - loop.time())) is not END:
                yield item
            _result(task)
        except TimeoutError:
            raise Refusal(503, self._too_slow(), 5) from None
        finally:
            if not task.done():
                self.metrics.disconnects.add()
                ticket.cancel()
                task.add_done_callback(_retrieve_exception)

    def _too_slow(self) -> str:
        return f"the request timed out after {self.limits.seconds:g} seconds: send less at once, or try again later"

    def detect_language(self, text: str, target: str | None = None) -> list[Detection]:
        """The likely languages of a text; with a target, only those that can be translated into it."""
        languages = [one["code"] for one in self.catalogue.languages]
        if not languages:
            raise Refusal(404, NO_TRANSLATOR)
        return detect(text, self.catalogue.sources(target) if target else languages)

    def other_language(self, text: str, target: str | None) -> Detection | None:
        """The language of a text that is certainly not a served source language, for `target` if given."""
        sources = self.catalogue.sources(target)
        return other_language(text, sources) if sources else None

    def log_texts(self, texts: Sequence[str]) -> None:
        """Log texts only if the settings ask for it."""
        if self.settings.log_texts:
            for text in texts:
                log.info("text %r", text[:200])


def _run_in_slot(work: Callable[[Ticket], Any], ticket: Ticket) -> Any:
    with ticket.slots:
        return work(ticket)


def _result(task: asyncio.Future) -> Any:
    try:
        return task.result()
    except Cancelled:
        raise Refusal(503, "the service is shutting down: try again later", 5) from None
    except ValueError as error:
        raise Refusal(400, " ".join(str(error).split())) from None


def _retrieve_exception(task: asyncio.Future) -> None:
    """Otherwise asyncio logs that it was never retrieved."""
    if not task.cancelled():
        task.exception()


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass

"""Progress of file translations, under an identifier chosen by the client."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Annotated

from fastapi import APIRouter, Path
from fastapi.responses import JSONResponse

from heed.service.http.openapi import responses

JOB = r"^[A-Za-z0-9_-]{16,64}$"
MOST = 1000  # at once; what comes after that is translated without being counted


class Progress:
    """Translated parts, and the number of parts known so far; for a route of two models, those of both."""

    def __init__(self):
        self.done = self.total = 0
        self.lock = threading.Lock()

    def expect(self, parts: int) -> None:
        with self.lock:
            self.total += parts

    def finish(self, future: Future | None = None) -> None:
        with self.lock:
            self.done += 1

    def counts(self) -> dict[str, int]:
        with self.lock:
            return {"done": self.done, "total": max(self.done, self.total)}


class ProgressBook:
    """The files in progress, by identifier."""

    def __init__(self):
        self.at_work: dict[str, Progress] = {}
        self.lock = threading.Lock()

    @contextmanager
    def counting(self, job: str | None) -> Iterator[Progress | None]:
        """Count progress until the block ends; None without an identifier, or if it is taken."""
        with self.lock:
            own = None if job is None or job in self.at_work or len(self.at_work) >= MOST else Progress()
            if own is not None:
                self.at_work[job] = own
        try:
            yield own
        finally:
            if own is not None:
                with self.lock:
                    del self.at_work[job]

    def find(self, job: str) -> Progress | None:
        return self.at_work.get(job)


def router(book: ProgressBook) -> APIRouter:
    routes = APIRouter(prefix="/v1", tags=["ours"])

    @routes.get("/progress/{job}", responses=responses({"done": 12, "total": 40}))
    async def progress(job: Annotated[str, Path(pattern=JOB)]) -> JSONResponse:
        """How many parts of a file are translated, of how many known so far; `job` is the identifier sent to
        /translate_file. Both are 0 before the work begins and after it has ended.
        """
        found = book.find(job)
        return JSONResponse(found.counts() if found else {"done": 0, "total": 0})

    return routes

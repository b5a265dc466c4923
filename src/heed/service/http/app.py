"""The application: its addresses, what every answer carries, and what becomes of errors."""

import asyncio
import hashlib
import logging
import time
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heed.service import page
from heed.service.http import libretranslate, reference, v1
from heed.service.http.limits import Refusal
from heed.service.http.service import Gone, Service
from heed.version import __version__

POLICY = "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
LINGER, SILENCE = 30.0, 1.0  # seconds that an unwanted body may come for, and may not
BROKEN = "something went wrong here, which is not your fault"
log = logging.getLogger("heed.service")


def create(service: Service) -> FastAPI:
    """The application of a service; at its end the service is closed."""

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    app = FastAPI(
        title="Heed", version=__version__, docs_url=None, redoc_url=None, lifespan=life,
        description="Translates, and lets you look inside. Compatible with LibreTranslate's API.",
    )  # fmt: skip
    app.include_router(libretranslate.router(service))
    app.include_router(v1.router(service))
    _add_pages(app, service)
    _add_errors(app)
    app.add_middleware(Watch, service=service)
    if service.settings.cors:
        app.add_middleware(
            CORSMiddleware, allow_origins=list(service.settings.cors), allow_methods=["GET", "POST"],
            allow_headers=["Content-Type", "Authorization", "X-API-Key"], expose_headers=["Retry-After"],
        )  # fmt: skip
    return app


def _add_pages(app: FastAPI, service: Service) -> None:
    @app.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
    async def index(request: Request) -> Response:
        return _asset("index.html", request.headers.get("if-none-match", ""))

    @app.api_route("/assets/{name}", methods=["GET", "HEAD"], include_in_schema=False)
    async def asset(request: Request, name: str) -> Response:
        return _asset(name, request.headers.get("if-none-match", ""))

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(reference.page(app.openapi()))

    @app.get("/docs.css", include_in_schema=False)
    async def style() -> Response:
        return Response(reference.STYLE, media_type="text/css")

    @app.get("/metrics", include_in_schema=False)
    async def metrics() -> PlainTextResponse:
        return PlainTextResponse(service.metrics.text(), media_type="text/plain; version=0.0.4")


def _asset(name: str, known: str) -> Response:
    """A file of the page; `known` are the tags of what the browser has of it."""
    found = page.asset(name)
    if found is None:
        raise Refusal(404, "there is no such page")
    kept = "max-age=86400" if name.endswith(".ttf") else "no-cache"  # a font is large and does not change
    tag = f'"{hashlib.sha256(found[0]).hexdigest()[:32]}"'
    headers = {"Cache-Control": kept, "ETag": tag}
    if tag in (own.strip().removeprefix("W/") for own in known.split(",")):
        return Response(status_code=304, headers=headers)
    return Response(found[0], media_type=found[1], headers=headers)


class Crowded(Refusal):
    """There is no room for a body that is still coming."""

    def __init__(self):
        super().__init__(503, "too much is being sent at once: come back later", 1)


def refused(error: Refusal) -> JSONResponse:
    headers = {"Retry-After": str(error.retry_after)} if error.retry_after is not None else {}
    kind = Unwanted if error.status in (408, 413) or isinstance(error, Crowded) else JSONResponse
    return kind({"error": error.sentence}, error.status, headers)


class Unwanted(JSONResponse):
    """An answer while the body still comes. Who sends it may read the answer only afterwards: so it is let come for a while, and forgotten."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [*self.raw_headers, (b"connection", b"close")]
        await send({"type": "http.response.start", "status": self.status_code, "headers": headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        end = time.monotonic() + LINGER
        with suppress(TimeoutError):
            while (left := end - time.monotonic()) > 0:
                message = await asyncio.wait_for(receive(), min(left, SILENCE))
                if message["type"] != "http.request" or not message.get("more_body"):
                    break
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(Refusal)
    async def refusal(_: Request, error: Refusal) -> JSONResponse:
        return refused(error)

    @app.exception_handler(Gone)
    async def gone(_: Request, error: Gone) -> Response:
        return Response(status_code=499)  # nobody reads it

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        return JSONResponse({"error": f"{first['loc'][-1]}: {first['msg'][:1].lower()}{first['msg'][1:]}"}, 400)

    @app.exception_handler(HTTPException)
    async def other(_: Request, error: HTTPException) -> JSONResponse:
        words = {
            404: "there is nothing at this address; /docs tells what there is",
            405: "this address does not take this method",
        }
        return JSONResponse(
            {"error": words.get(error.status_code, str(error.detail))}, error.status_code, error.headers
        )


class Watch:
    """Around everything: counts and times answers, gives them their headers, and stops bodies that are too much."""

    def __init__(self, app: ASGIApp, service: Service):
        self.app, self.service = app, service
        self.bytes = 0  # of all bodies that are in work, as they came: what is only promised takes no room

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = time.monotonic(), 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        body = _Body(self, receive)
        try:
            self._check(scope, self._size(scope))
            await self.app(scope, body if scope["method"] == "POST" else receive, answer)
        except Refusal as error:
            await refused(error)(scope, receive, answer)
        except Exception as error:  # its message may hold texts: what is said is its kind, and where it was
            where = "".join(traceback.format_tb(error.__traceback__))
            log.error("%s at %s\n%s", type(error).__name__, self._place(scope), where)
            if not status:
                await JSONResponse({"error": BROKEN}, 500)(scope, receive, answer)
        finally:
            body.forget()
            labels = (("path", self._place(scope)), ("status", str(status)))
            self.service.metrics.requests.add(1, labels)
            self.service.metrics.seconds.add(time.monotonic() - start, labels[:1])

    def _check(self, scope: Scope, size: int) -> None:
        """Before a body is read: whether it is too long, and whether there is room for it and for its work."""
        limits = self.service.limits
        most = limits.bytes if scope["path"] == "/translate_file" else limits.text_bytes
        if size > most:
            raise Refusal(413, f"the body has more than {most:,} bytes, which is all that is taken here")
        if scope["method"] == "POST" and scope["path"] != "/detect":
            self.service.gate.check()
        if self.bytes and self.bytes + size > limits.all_bytes:
            raise Crowded

    def _size(self, scope: Scope) -> int:
        """How long a body says it is, or may become where it does not say."""
        headers = dict(scope["headers"])
        length = headers.get(b"content-length", b"")
        if length.isdigit():
            return int(length[:20])
        limits = self.service.limits
        most = limits.bytes if scope["path"] == "/translate_file" else limits.text_bytes
        return most if b"transfer-encoding" in headers else 0

    def _place(self, scope: Scope) -> str:
        """The address as it is written in the code: what is asked for can be anything."""
        return getattr(scope.get("route"), "path", "other")


class _Body:
    """Counts the bytes of one body as they come; one for which there is no room is refused, and counted no more."""

    def __init__(self, watch: Watch, receive: Receive):
        self.watch, self.receive = watch, receive
        self.size, self.wanted = 0, True

    async def __call__(self) -> Message:
        message = await self.receive()
        if self.wanted and (size := len(message.get("body", b""))):
            if self.watch.bytes + size > self.watch.service.limits.all_bytes:
                self.forget()
                raise Crowded
            self.size += size
            self.watch.bytes += size
        return message

    def forget(self) -> None:
        self.watch.bytes -= self.size
        self.size, self.wanted = 0, False

"""The application: routes, response headers, body limits, and error handling."""

import asyncio
import hashlib
import logging
import time
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heed.service import page
from heed.service.http import (
    audio_routes,
    completions,
    encoder_routes,
    libretranslate,
    progress,
    recommend_routes,
    reference,
    v1,
)
from heed.service.http.drawing_routes import router as drawing_router
from heed.service.http.hosts import check_host
from heed.service.http.image_routes import router as image_router
from heed.service.http.limits import Refusal
from heed.service.http.service import ClientDisconnected, Service
from heed.version import __version__

POLICY = "default-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
DRAIN_SECONDS, DRAIN_IDLE_SECONDS = 30.0, 1.0  # for the rest of a refused body, and between two chunks of it
INTERNAL_ERROR = "internal server error"
ROUTING_ERRORS = {
    404: "not found; /docs lists the endpoints",
    405: "method not allowed",
}
OPENAI = (
    "/v1/completions",
    "/v1/embeddings",
    "/v1/models/",
    "/v1/audio/",
)  # whose clients expect errors in another shape
IMAGES = ("/v1/images/classify", "/v1/images/look", "/v1/images/draw")
FILES = ("/translate_file", "/v1/audio/transcriptions", *IMAGES)  # whose bodies are files
log = logging.getLogger("heed.service")


def create_app(service: Service) -> FastAPI:
    """The application of a service, which is closed with it."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    app = FastAPI(
        title="Heed", version=__version__, docs_url=None, redoc_url=None, lifespan=lifespan,
        description="Translation, text generation, text understanding, speech, images and recommendation, and a look inside the models. Compatible with the LibreTranslate and OpenAI APIs.",
    )  # fmt: skip
    app.include_router(image_router(service))
    app.include_router(drawing_router(service))
    app.include_router(libretranslate.router(service))
    app.include_router(v1.router(service))
    app.include_router(progress.router(service.progress))
    app.include_router(completions.router(service))
    app.include_router(encoder_routes.router(service))
    app.include_router(recommend_routes.router(service))
    app.include_router(audio_routes.router(service))
    _add_pages(app, service)
    _add_error_handlers(app)
    app.add_middleware(ServiceMiddleware, service=service)
    if service.settings.cors:
        app.add_middleware(
            CORSMiddleware, allow_origins=list(service.settings.cors), allow_methods=["GET", "POST"],
            allow_headers=["Content-Type", "Authorization", "X-API-Key"], expose_headers=["Retry-After"],
        )  # fmt: skip
    return app


def _add_pages(app: FastAPI, service: Service) -> None:
    @app.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
    @app.api_route("/assets/{name}", methods=["GET", "HEAD"], include_in_schema=False)
    async def asset(request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        return _asset(name, request.headers.get("if-none-match", ""))

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(reference.render(app.openapi()))

    @app.get("/spec", include_in_schema=False)
    async def spec() -> JSONResponse:
        return JSONResponse(app.openapi())  # where LibreTranslate has it

    @app.get("/docs.css", include_in_schema=False)
    async def style() -> Response:
        return Response(reference.STYLE, media_type="text/css")

    @app.get("/metrics", include_in_schema=False)
    async def metrics() -> PlainTextResponse:
        return PlainTextResponse(service.metrics.text(), media_type="text/plain; version=0.0.4")


def _asset(name: str, cached_tags: str) -> Response:
    """A file of the page, unless the browser has it already, according to its If-None-Match header."""
    asset = page.asset(name)
    if asset is None:
        raise Refusal(404, "page not found")
    data, media_type = asset
    caching = "max-age=86400" if name.endswith(".ttf") else "no-cache"  # a font is large and does not change
    tag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
    headers = {"Cache-Control": caching, "ETag": tag}
    if tag in (cached.strip().removeprefix("W/") for cached in cached_tags.split(",")):
        return Response(status_code=304, headers=headers)
    return Response(data, media_type=media_type, headers=headers)


class TooManyBytes(Refusal):
    """The bodies of all requests use as much memory as allowed."""

    def __init__(self):
        super().__init__(503, "too many uploads at once: try again later", 1)


def error_body(path: str, status: int, message: str) -> dict[str, Any]:
    """The JSON of an error; on OpenAI's paths in the form that its clients expect."""
    return completions.error_body(status, message) if path.startswith(OPENAI) else {"error": message}


def error_response(path: str, error: Refusal) -> JSONResponse:
    headers = {"Retry-After": str(error.retry_after)} if error.retry_after is not None else {}
    unread = error.status in (408, 413) or isinstance(error, TooManyBytes)
    body = error_body(path, error.status, error.message) | error.details
    return (DrainingResponse if unread else JSONResponse)(body, error.status, headers)


class DrainingResponse(JSONResponse):
    """A response before the body has been read. Some clients read it only after sending everything, so the rest is
    received and dropped.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [*self.raw_headers, (b"connection", b"close")]
        await send({"type": "http.response.start", "status": self.status_code, "headers": headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        end = time.monotonic() + DRAIN_SECONDS
        with suppress(TimeoutError):
            while (left := end - time.monotonic()) > 0:
                message = await asyncio.wait_for(receive(), min(left, DRAIN_IDLE_SECONDS))
                if message["type"] != "http.request" or not message.get("more_body"):
                    break
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _add_error_handlers(app: FastAPI) -> None:
    @app.exception_handler(Refusal)
    async def refusal(request: Request, error: Refusal) -> JSONResponse:
        return error_response(request.url.path, error)

    @app.exception_handler(ClientDisconnected)
    async def disconnected(_: Request, error: ClientDisconnected) -> Response:
        return Response(status_code=499)  # nobody reads it

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        message = f"{first['loc'][-1]}: {first['msg'][:1].lower()}{first['msg'][1:]}"
        return JSONResponse(error_body(request.url.path, 400, message), 400)

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> JSONResponse:
        message = ROUTING_ERRORS.get(error.status_code, str(error.detail))
        return JSONResponse(error_body(request.url.path, error.status_code, message), error.status_code, error.headers)


class ServiceMiddleware:
    """Counts and times responses, adds their headers, and refuses bodies that are too large."""

    def __init__(self, app: ASGIApp, service: Service):
        self.app, self.service = app, service
        self.bytes = 0  # received of all bodies in progress: an announced length takes no memory yet

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = time.monotonic(), 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        body = _CountedBody(self, receive)
        try:
            self._check(scope)
            await self.app(scope, body if scope["method"] == "POST" else receive, send_with_headers)
        except Refusal as error:
            await error_response(scope["path"], error)(scope, receive, send_with_headers)
        except Exception as error:  # its message may contain texts: only its type and its place are logged
            trace = "".join(traceback.format_tb(error.__traceback__))
            log.error("%s at %s\n%s", type(error).__name__, self._route_path(scope), trace)
            if not status:
                failure = error_body(scope["path"], 500, INTERNAL_ERROR)
                await JSONResponse(failure, 500)(scope, receive, send_with_headers)
        finally:
            body.release()
            labels = (("path", self._route_path(scope)), ("status", str(status)))
            self.service.metrics.requests.add(1, labels)
            self.service.metrics.seconds.add(time.monotonic() - start, labels[:1])

    def _check(self, scope: Scope) -> None:
        """Before a body is read: refuse another host, a body that is too long, or one without room for it or its
        work.
        """
        limits = self.service.limits
        check_host(scope, self.service.settings.allowed_hosts)
        if scope["method"] == "POST":
            self.service.quotas.charge((scope.get("client") or ("",))[0], 1, 0, time.monotonic())
        most = limits.bytes if scope["path"] in FILES else limits.text_bytes
        if (size := _declared_size(scope, most)) > most:
            raise Refusal(413, f"the request body exceeds the limit of {most:,} bytes")
        if scope["method"] == "POST" and scope["path"] != "/detect":
            self.service.gate.check()
        if self.bytes and self.bytes + size > limits.all_bytes:
            raise TooManyBytes

    def _route_path(self, scope: Scope) -> str:
        """The path of the route, not of the request, which can be anything."""
        return getattr(scope.get("route"), "path", "other")


def _declared_size(scope: Scope, most: int) -> int:
    """The length of a body according to its headers, or the maximum if they do not say."""
    headers = dict(scope["headers"])
    length = headers.get(b"content-length", b"")
    if length.isdigit():
        return int(length[:20])
    return most if b"transfer-encoding" in headers else 0


class _CountedBody:
    """Counts the bytes of one body as they arrive; if there is no room for them it is refused and no longer counted."""

    def __init__(self, middleware: ServiceMiddleware, receive: Receive):
        self.middleware, self.receive = middleware, receive
        self.size, self.counting = 0, True

    async def __call__(self) -> Message:
        message = await self.receive()
        if self.counting and (size := len(message.get("body", b""))):
            if self.middleware.bytes + size > self.middleware.service.limits.all_bytes:
                self.release()
                raise TooManyBytes
            self.size += size
            self.middleware.bytes += size
        return message

    def release(self) -> None:
        self.middleware.bytes -= self.size
        self.size, self.counting = 0, False

"""Image generation: whole images, or a stream of values as they are generated."""

import base64
import io
import json
import secrets
import time
from asyncio import to_thread
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import Field

from heed.products.image_generator import picture
from heed.service.http.asked_model import choose_model
from heed.service.http.bodies import read_fields, validate
from heed.service.http.completions import EVENTS
from heed.service.http.encoder_routes import NO_LANGUAGES, AskedOfModel
from heed.service.http.image_models import ServedImageGenerator
from heed.service.http.image_routes import Encoded, base64_bytes, decoded_image
from heed.service.http.limits import Refusal
from heed.service.http.openapi import operation
from heed.service.http.service import Service

MAX_DRAWN = 16  # images of one request
DRAWN_COST = 500  # characters that an image counts as, for quotas and the queue


class DrawRequest(AskedOfModel, json_schema_extra={"example": {"label": "Bag", "count": 1, "seed": 7}}):
    """Images to draw."""

    label: str | None = Field(None, max_length=200, description="the class; without one, all classes in turn")
    count: int = Field(1, ge=1, le=MAX_DRAWN, description="number of images")
    temperature: float = Field(1.0, gt=0, le=10, description="below 1: more likely, less varied images")
    seed: int | None = Field(None, ge=0, lt=2**53, description="random seed; the same seed draws the same images")
    complete: Encoded | None = Field(None, description="a base64-encoded image file whose upper part is kept")
    keep: float | None = Field(
        None,
        gt=0,
        lt=1,
        description="the share to keep; without it all of an image that is wider than it is tall, else half",
    )
    enlarge: Encoded | None = Field(None, description="a base64-encoded image file, for models that enlarge images")
    stream: bool = Field(False, description="stream the values as they are generated")


ANSWER = {"images": ["iVBORw0KGgo…"], "size": 32, "seed": 7, "model": "draw"}


def router(service: Service) -> APIRouter:
    routes = APIRouter(prefix="/v1/images", tags=["images"])

    @routes.post("/draw", **operation(DrawRequest, ANSWER, NO_LANGUAGES))
    async def draw(request: Request) -> Response:
        """Draw images as base64-encoded PNG files. With `stream`, server-sent events with the values of each step,
        and `data: [DONE]` at the end. With `complete`, `kept` says which rows of the picture are kept.
        """
        start = time.monotonic()
        fields = await read_fields(request, service.limits.bytes, forms=False)
        body = validate(DrawRequest, fields)
        model = choose_model(service.image_generators, body.model, "model that draws images")
        size = body.count * DRAWN_COST
        service.check_key(request, fields, size)
        seed = secrets.randbelow(2**31) if body.seed is None else body.seed
        options = _options(body, seed)
        if body.stream:
            parts = service.stream(size, lambda ticket: model.draw(ticket, body.count, **options), long=True)
            first = await anext(parts)  # what is wrong with a request is said before the stream begins
            head = _head(model, body, seed) | await _kept(model, options)
            events = _events(head, first, parts)
            return StreamingResponse(events, media_type="text/event-stream", headers=EVENTS)
        work = lambda ticket: list(model.draw(ticket, body.count, **options))  # noqa: E731
        drawn = np.concatenate(await service.run(request, size, work, long=True))
        images = [_png(own) for own in model.images(drawn)]
        told = {"images": images, "size": model.model.config.size, "seed": seed, "model": model.name}
        told |= await _kept(model, options)
        return JSONResponse({**told, "seconds": round(time.monotonic() - start, 4)})

    return routes


def _options(body: DrawRequest, seed: int) -> dict[str, Any]:
    given: dict[str, Any] = {"seed": seed, "temperature": body.temperature, "keep": body.keep}
    given["labels"] = [] if body.label is None else [body.label]
    for name in ("complete", "enlarge"):
        text = getattr(body, name)
        given[name] = None if text is None else decoded_image(text, 1)
    return given


async def _kept(model: ServedImageGenerator, options: dict[str, Any]) -> dict[str, str]:
    """What is kept of the image that is completed."""
    if options["complete"] is None:
        return {}
    return {"kept": (await to_thread(model.product.upper, options["complete"], options["keep"])).note}


def _head(model: ServedImageGenerator, body: DrawRequest, seed: int) -> dict[str, Any]:
    """The header of the stream: `offsets` are where in the bytes of an image the values of each step begin."""
    config, offsets = model.model.config, model.product.offsets
    return {
        "model": model.name,
        "seed": seed,
        "size": config.size,
        "channels": config.channels,
        "count": body.count,
        "turns": len(offsets),
        "values": config.channels // config.values,
        "offsets": base64_bytes(offsets.astype("<u4")),
    }


async def _events(head: dict[str, Any], first: np.ndarray, parts: AsyncIterator[np.ndarray]) -> AsyncIterator[str]:
    """Server-sent events: the header, then the values of several steps each. Later errors are sent as events too."""
    turn = 0
    try:
        yield _event(head)
        yield _event({"turn": turn, "values": base64_bytes(first)})
        turn += len(first)
        async for part in parts:
            yield _event({"turn": turn, "values": base64_bytes(part)})
            turn += len(part)
        yield "data: [DONE]\n\n"
    except Refusal as error:
        yield _event({"error": error.message})
    finally:
        await parts.aclose()


def _event(data: dict[str, Any]) -> str:
    return f"data: {json.dumps(data, separators=(',', ':'))}\n\n"


def _png(pixels: np.ndarray) -> str:
    out = io.BytesIO()
    picture(pixels).save(out, format="PNG")
    return base64.b64encode(out.getvalue()).decode("ascii")

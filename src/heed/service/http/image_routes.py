"""Images: classification, and the attention over one image."""

import base64
import binascii
import time
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import Field

from heed.service.http.asked_model import choose_model
from heed.service.http.bodies import read_fields, validate
from heed.service.http.encoder_routes import NO_LANGUAGES, AskedOfModel
from heed.service.http.limits import Refusal
from heed.service.http.openapi import operation
from heed.service.http.service import Service

MAX_IMAGES = 64  # of one request
IMAGE_COST = 200  # characters that an image counts as, for quotas and the queue
SHORT_BYTES = 100_000  # of images whose headers are read between short requests
Encoded = Annotated[str, Field(min_length=1)]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


class ImagesRequest(AskedOfModel, json_schema_extra={"example": {"image": PIXEL, "top": 3}}):
    """Images to classify."""

    image: Encoded | list[Encoded] = Field(description="a base64-encoded image file, or a list of them")
    top: int = Field(5, ge=1, le=1000, description="number of classes per image, most likely first")

    @property
    def images(self) -> list[str]:
        return [self.image] if isinstance(self.image, str) else self.image


class LookRequest(AskedOfModel, json_schema_extra={"example": {"image": PIXEL}}):
    """An image to inspect."""

    image: Encoded = Field(description="a base64-encoded image file")
    layer: int | None = Field(None, ge=1, description="the layer whose heads are returned, from 1; default: the last")


CLASSES = {"images": [{"classes": [{"label": "cat", "probability": 0.9}]}], "model": "vit"}
LOOK = {"classes": [{"label": "cat", "probability": 0.9}], "size": 32, "rows": 8, "heads": 6, "layers": 9, "layer": 9}


def router(service: Service) -> APIRouter:
    routes = APIRouter(prefix="/v1/images", tags=["images"])

    @routes.post("/classify", **operation(ImagesRequest, CLASSES, NO_LANGUAGES))
    async def classify(request: Request) -> JSONResponse:
        """Classify images: the most likely classes of each."""
        start = time.monotonic()
        body, model, size = await _asked(service, request, ImagesRequest)
        images = [decoded_image(own, number) for number, own in enumerate(body.images, 1)]
        long = sum(map(len, images)) > SHORT_BYTES
        found = await service.run(request, size, lambda ticket: model.classify(ticket, images), long)
        results = [{"classes": _classes(one.probabilities, body.top)} for one in found]
        return JSONResponse({"images": results, "model": model.name, "seconds": round(time.monotonic() - start, 4)})

    @routes.post("/look", **operation(LookRequest, LOOK, NO_LANGUAGES))
    async def look(request: Request) -> JSONResponse:
        """Inspect an image: its classes, the image as the model reads it, attention rollout, and the attention of each
        head of a layer as base64 bytes.
        """
        start = time.monotonic()
        body, model, size = await _asked(service, request, LookRequest)
        image = decoded_image(body.image, 1)
        found = await service.run(request, size, lambda ticket: model.look_at(ticket, image, body.layer), long=True)
        heads, length, _ = found.attention.shape
        told = {
            "classes": _classes(found.label.probabilities, 10),
            "model": model.name,
            "size": found.pixels.shape[0],
            "channels": found.pixels.shape[2],
            "pixels": base64_bytes(found.pixels),
            "rows": found.rollout.shape[0],
            "layers": found.layers,
            "layer": found.layer,
            "heads": heads,
            "mean_of_heads": heads < model.model.config.heads,
            "positions": length,
            "class_token": found.has_class_token,
            "attention": base64_bytes(np.round(found.attention * 65535).astype("<u2")),
            "rollout": found.rollout.reshape(-1).tolist(),
            "seconds": round(time.monotonic() - start, 4),
        }
        return JSONResponse(told)

    return routes


async def _asked(service: Service, request: Request, kind: type[Any]) -> tuple[Any, Any, int]:
    """The request, its model, and its cost."""
    fields = await read_fields(request, service.limits.bytes, forms=False)
    body = validate(kind, fields)
    model = choose_model(service.image_models, body.model, "image classifier")
    count = len(body.images) if isinstance(body, ImagesRequest) else 1
    if not 1 <= count <= MAX_IMAGES:
        raise Refusal(400, f"there are {count} images; a request may have 1 to {MAX_IMAGES}")
    size = count * IMAGE_COST
    service.check_key(request, fields, size)
    return body, model, size


def decoded_image(text: str, number: int) -> bytes:
    try:
        return base64.b64decode(text.partition("base64,")[2] or text, validate=True)
    except (binascii.Error, ValueError):
        raise Refusal(400, f"image {number} is not base64: send a base64-encoded image file") from None


def _classes(probabilities: dict[str, float], top: int) -> list[dict[str, Any]]:
    return [{"label": name, "probability": own} for name, own in list(probabilities.items())[:top]]


def base64_bytes(values: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode("ascii")

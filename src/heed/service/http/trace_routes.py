"""/v1/look/numbers: the numbers of a forward pass, for the page."""

from collections.abc import Awaitable, Callable
from typing import Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from heed.products.translator import forward_trace
from heed.service.http.models import ServedModel
from heed.service.http.openapi import SENTENCE, operation
from heed.service.http.options import MAX_BEAM, MAX_SENTENCE
from heed.service.http.service import Service

AskModel = Callable[[Service, Request, Any, Callable[[ServedModel], Any]], Awaitable[Any]]


class Query(BaseModel, extra="forbid"):
    """One query of one head; all indices start at 0."""

    part: Literal["encoder", "decoder", "cross"] = "cross"
    layer: int = Field(0, ge=0)
    head: int = Field(0, ge=0)
    row: int = Field(0, ge=0)


class Choice(BaseModel, extra="forbid"):
    """One decoding step, and the sampling settings to apply there."""

    step: int = Field(0, ge=0)
    temperature: float = Field(1.0, ge=1e-6, le=100)
    top_k: int = Field(0, ge=0, le=1_000_000)
    top_p: float = Field(1.0, gt=0, le=1)


class Token(BaseModel, extra="forbid"):
    """One token in one layer; both indices start at 0."""

    part: Literal["encoder", "decoder"] = "encoder"
    layer: int = Field(0, ge=0)
    row: int = Field(0, ge=0)


class TraceRequest(BaseModel, extra="forbid", json_schema_extra={"example": SENTENCE}):
    """A sentence and its translation."""

    text: str = Field(min_length=1, max_length=MAX_SENTENCE)
    source: str = Field("auto", max_length=40)
    target: str | None = Field(None, max_length=40)
    translation: str | None = Field(
        None, max_length=MAX_SENTENCE, description="trace this translation instead of the model's own"
    )
    beam: int | None = Field(None, ge=1, le=MAX_BEAM)
    query: Query | None = None
    choice: Choice | None = None
    token: Token | None = None
    api_key: str | None = None


def add_routes(router: APIRouter, service: Service, ask_model: AskModel) -> None:
    codes = service.catalogue.language_codes

    @router.post("/look/numbers", **operation(TraceRequest, {"encoder": {}, "decoder": {}, "dim": 128}, codes))
    async def numbers(request: Request) -> JSONResponse:
        """Embeddings, positions and layers; with `query`, one query of one head; with `choice`, the likely tokens of a step; with `token`, one token in one layer."""
        body = await service.read_sentence(request, TraceRequest)
        query = forward_trace.Query(**body.query.model_dump()) if body.query else None
        choice = forward_trace.Choice(**body.choice.model_dump()) if body.choice else None

        token = forward_trace.Token(**body.token.model_dump()) if body.token else None
        options = {"beam": body.beam, "query": query, "choice": choice, "token": token}

        def trace(model: ServedModel) -> dict[str, Any]:
            model.check_inspectable(body.text, body.translation)
            return model.translator.trace(body.text, body.translation, **options)

        return JSONResponse(await ask_model(service, request, body, trace))

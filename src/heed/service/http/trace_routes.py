"""What happens inside, as numbers: a sentence on its way through the model, for the page."""

from collections.abc import Awaitable, Callable
from typing import Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from heed.products.translator import forward_trace
from heed.service.http.bodies import checked, fields
from heed.service.http.models import Served
from heed.service.http.openapi import answers, body, example
from heed.service.http.options import MOST_BEAMS
from heed.service.http.service import Service

SENTENCE = 2_000  # characters of a sentence that is looked into
Inside = Callable[[Service, Request, Any, Callable[[Served], Any]], Awaitable[Any]]


class Query(BaseModel):
    """One query of one head; all are counted from 0."""

    model_config = ConfigDict(extra="forbid")
    part: Literal["encoder", "decoder", "cross"] = "cross"
    layer: int = Field(0, ge=0)
    head: int = Field(0, ge=0)
    row: int = Field(0, ge=0)


class Choice(BaseModel):
    """One step of writing, and how chance would draw there."""

    model_config = ConfigDict(extra="forbid")
    step: int = Field(0, ge=0)
    temperature: float = Field(1.0, ge=1e-6, le=100)
    top_k: int = Field(0, ge=0, le=1_000_000)
    top_p: float = Field(1.0, gt=0, le=1)


class Numbers(BaseModel):
    """A sentence and its translation."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra=example({"text": "나는 학생이에요.", "target": "en"}),
    )
    text: str = Field(min_length=1, max_length=SENTENCE)
    source: str = Field("auto", max_length=40)
    target: str | None = Field(None, max_length=40)
    translation: str | None = Field(None, max_length=SENTENCE, description="walked with instead of the model's own")
    beam: int | None = Field(None, ge=1, le=MOST_BEAMS)
    query: Query | None = None
    choice: Choice | None = None
    api_key: str | None = None


def add(own: APIRouter, service: Service, inside: Inside) -> None:
    codes = service.catalogue.codes

    @own.post(
        "/look/numbers",
        openapi_extra=body(Numbers, codes=codes),
        responses=answers({"encoder": {}, "decoder": {}, "dim": 128}),
    )
    async def numbers(request: Request) -> JSONResponse:
        """Embeddings, positions and layers; with `query`, one query of one head; with `choice`, the likely tokens of a step."""
        asked = checked(Numbers, await fields(request, service.limits.text_bytes, forms=False))
        query = forward_trace.Query(**asked.query.model_dump()) if asked.query else None
        choice = forward_trace.Choice(**asked.choice.model_dump()) if asked.choice else None

        def call(model: Served) -> dict[str, Any]:
            model.check_look(asked.text, asked.translation)
            return model.translator.trace(asked.text, asked.translation, beam=asked.beam, query=query, choice=choice)

        return JSONResponse(await inside(service, request, asked, call))

"""Encoders: fill masks, tag words, answer questions, and classify and compare texts."""

import base64
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from heed.evaluation.retrieval import unit_rows
from heed.service.http.asked_model import choose_model
from heed.service.http.bodies import Body, read_fields, validate
from heed.service.http.encoders import Input, ServedEncoder
from heed.service.http.limits import Refusal
from heed.service.http.openapi import OPENAI_ERROR, operation
from heed.service.http.service import Service

MAX_TEXT = 10_000  # characters of one text: it has the model to itself for as long as it takes
Parts = Annotated[list[str], Field(min_length=1)]
NO_LANGUAGES: tuple[list[str], list[str]] = ([], [])


class AskedOfModel(BaseModel, extra="forbid"):
    """Fields common to all requests."""

    model: str | None = Field(None, max_length=200, description="optional if only one is available")
    api_key: str | None = None


class MayBeCut(AskedOfModel):
    """A request whose texts must fit the model."""

    too_long: Literal["refuse", "cut"] = Field("refuse", description="cut: truncate texts that are too long")


class FillRequest(AskedOfModel, json_schema_extra={"example": {"text": "I [MASK] a book."}}):
    """Texts with masks to fill."""

    text: str | list[str] = Field(description="a text, or a list of texts; each has at least one [MASK] or <mask>")
    top: int = Field(5, ge=1, le=50, description="number of words per mask")


class TagRequest(AskedOfModel, json_schema_extra={"example": {"text": "Ann lives in Seoul."}}):
    """Texts to tag."""

    text: str | list[str] = Field(description="a text, or a list of texts")


class AnswerRequest(
    AskedOfModel, json_schema_extra={"example": {"question": "Where does Ann live?", "context": "Ann lives in Seoul."}}
):
    """A question and the text that contains its answer."""

    question: str
    context: str
    n: int = Field(1, ge=1, le=20, description="number of answers, best first")


class ClassifyRequest(MayBeCut, json_schema_extra={"example": {"text": "What a film."}}):
    """Texts to classify. A pair, or a context and its choices, is a list of parts."""

    text: str | list[str | Parts] = Field(description="a text, or a list whose items are texts or lists of parts")


class SimilarityRequest(
    MayBeCut, json_schema_extra={"example": {"text": "A man sings.", "others": ["A man is singing.", "It rains."]}}
):
    """A text and the texts to compare it with."""

    text: str
    others: list[str]


class EmbeddingsRequest(MayBeCut, json_schema_extra={"example": {"input": ["A man sings.", "It rains."]}}):
    """An embedding request, as in OpenAI's API."""

    input: str | list[str] = Field(description="a text, or a list of texts")
    encoding_format: Literal["float", "base64"] | None = None
    user: str | None = Field(None, description="ignored")


FILLED = {"text": "I [MASK] a book.", "filled": "I read a book.", "masks": [[{"word": "read", "probability": 0.6}]]}
ANSWER = {"answers": [{"text": "Seoul", "start": 13, "end": 18, "score": 9.1, "probability": 0.97}], "windows": 1}
VECTORS = {"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": [0.1]}], "model": "bert"}


def router(service: Service) -> APIRouter:
    routes = APIRouter(prefix="/v1", tags=["encoders"])
    _add_token_routes(routes, service)
    cut = lambda body: {"too_long": body.too_long}  # noqa: E731

    @routes.post("/classify", **operation(ClassifyRequest, {"texts": [], "model": "bert"}, NO_LANGUAGES))
    async def classify(request: Request) -> JSONResponse:
        """Classify texts: each gets its label with all probabilities, or its number, or the best of its choices."""
        inputs = lambda body: [[own] if isinstance(own, str) else own for own in _list(body.text)]  # noqa: E731
        _, model, found, seconds = await _read(service, request, ClassifyRequest, "classify", inputs, cut)
        return JSONResponse({"texts": [asdict(one) for one in found], "model": model.name, "seconds": seconds})

    @routes.post("/similarity", **operation(SimilarityRequest, {"cosines": [0.93, 0.12]}, NO_LANGUAGES))
    async def similarity(request: Request) -> JSONResponse:
        """Compare a text with others by the cosine similarity of their embeddings."""
        inputs = lambda body: [body.text, *body.others]  # noqa: E731
        _, model, found, seconds = await _read(service, request, SimilarityRequest, "embed", inputs, cut)
        first, *others = unit_rows(np.stack(found).astype(np.float64))
        cosines = [float(first @ other) for other in others]
        return JSONResponse({"cosines": cosines, "model": model.name, "seconds": seconds})

    @routes.post("/embeddings", **operation(EmbeddingsRequest, VECTORS, NO_LANGUAGES, error=OPENAI_ERROR))
    async def embeddings(request: Request) -> JSONResponse:
        """Embed texts, in OpenAI's response format."""
        texts = lambda body: _list(body.input)  # noqa: E731
        body, model, found, _ = await _read(service, request, EmbeddingsRequest, "embed", texts, cut)
        write = _base64 if body.encoding_format == "base64" else np.ndarray.tolist
        data = [{"object": "embedding", "index": i, "embedding": write(row)} for i, row in enumerate(found)]
        return JSONResponse({"object": "list", "data": data, "model": model.name})

    return routes


def _add_token_routes(routes: APIRouter, service: Service) -> None:
    @routes.post("/fill", **operation(FillRequest, {"texts": [FILLED], "model": "bert"}, NO_LANGUAGES))
    async def fill(request: Request) -> JSONResponse:
        """Fill masks: the most likely words for each mask of each text."""
        options = lambda body: {"top": body.top}  # noqa: E731
        texts = lambda body: _list(body.text)  # noqa: E731
        _, model, found, seconds = await _read(service, request, FillRequest, "fill", texts, options)
        return JSONResponse({"texts": [asdict(one) for one in found], "model": model.name, "seconds": seconds})

    @routes.post("/tag", **operation(TagRequest, {"texts": [], "model": "bert"}, NO_LANGUAGES))
    async def tag(request: Request) -> JSONResponse:
        """Tag texts: words with their labels, and entities."""
        _, model, found, seconds = await _read(service, request, TagRequest, "tag", lambda body: _list(body.text))
        return JSONResponse({"texts": [asdict(one) for one in found], "model": model.name, "seconds": seconds})

    @routes.post("/answer", **operation(AnswerRequest, ANSWER, NO_LANGUAGES))
    async def answer(request: Request) -> JSONResponse:
        """Answer a question from a context: spans, best first; an empty one means that there is no answer."""
        pair = lambda body: [(body.question, body.context)]  # noqa: E731
        options = lambda body: {"n": body.n}  # noqa: E731
        _, model, [found], seconds = await _read(service, request, AnswerRequest, "answer", pair, options)
        best = [asdict(one) for one in found.best]
        facts = {"windows": found.windows, "question_cut": found.cut, "model": model.name, "seconds": seconds}
        return JSONResponse({"answers": best, **facts})


def _list(given: Any) -> list[Any]:
    return [given] if isinstance(given, str) else given


async def _read(
    service: Service,
    request: Request,
    kind: type[Body],
    verb: str,
    inputs_of: Callable[[Any], Sequence[Input]],
    options_of: Callable[[Any], dict[str, Any]] = lambda body: {},
) -> tuple[Any, ServedEncoder, list[Any], float]:
    """The request body, its model, the result for each input, and the time taken in seconds."""
    start = time.monotonic()
    fields = await read_fields(request, service.limits.text_bytes, forms=False)
    body = validate(kind, fields)
    model, inputs = find_model(service, verb, body.model), inputs_of(body)
    texts = [part for own in inputs for part in ([own] if isinstance(own, str) else own)]
    size = service.limits.check(texts)
    service.check_key(request, fields, size)
    _check_texts(texts)
    service.log_texts(texts)
    options = options_of(body)
    found = await service.run(request, size, lambda ticket: model.read(ticket, inputs, **options))
    return body, model, found, round(time.monotonic() - start, 4)


def _check_texts(texts: Sequence[str]) -> None:
    for number, text in enumerate(texts, 1):
        if not text.strip():
            raise Refusal(400, f"text {number} is empty: send at least a word")
        if len(text) > MAX_TEXT:
            raise Refusal(
                400, f"text {number} has {len(text):,} characters; the limit per text is {MAX_TEXT:,}: split it"
            )


def find_model(service: Service, verb: str, name: str | None) -> ServedEncoder:
    """The model named in the request, which must support this task; optional if only one does."""
    known = {own.name: own for own in service.encoders.values() if own.verb == verb}
    return choose_model(known, name, f"model that can {verb}")


def _base64(row: np.ndarray) -> str:
    return base64.b64encode(row.astype("<f4").tobytes()).decode()

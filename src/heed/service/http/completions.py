"""Language models: OpenAI's /v1/completions, whole and streamed, and inspection of a text."""

import json
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, Field

from heed.service.http.asked_model import AskedModel, choose_model
from heed.service.http.bodies import read_fields, validate
from heed.service.http.completion_body import ANSWER, ChoiceWriter, CompletionRequest, joined
from heed.service.http.language_models import ServedLanguageModel
from heed.service.http.limits import Refusal
from heed.service.http.openapi import OPENAI_ERROR, operation, responses
from heed.service.http.options import MAX_SENTENCE
from heed.service.http.queue import Ticket
from heed.service.http.service import Service

MAX_PROMPT_TOKENS = 16_384  # of all prompts of a request
EVENTS = {"X-Accel-Buffering": "no"}  # a proxy must not hold parts back
NO_LANGUAGES: tuple[list[str], list[str]] = ([], [])
MODEL = {"id": "gpt2", "object": "model", "created": 1790000000, "owned_by": "heed"}


class LookTextRequest(BaseModel, extra="forbid", json_schema_extra={"example": {"text": "The history of"}}):
    """A text to inspect."""

    text: str = Field(min_length=1, max_length=MAX_SENTENCE)
    model: str | None = Field(None, max_length=200, description="optional if only one is available")
    code: str | None = Field(None, max_length=200, description="the control code, for CTRL models")
    api_key: str | None = None


def router(service: Service) -> APIRouter:
    routes = APIRouter(prefix="/v1", tags=["language models"])

    @routes.post("/completions", **operation(CompletionRequest, ANSWER, NO_LANGUAGES, error=OPENAI_ERROR))
    async def completions(request: Request) -> Response:
        """Continue texts. With `stream`, as server-sent events, with `data: [DONE]` at the end."""
        fields = await read_fields(request, service.limits.text_bytes, forms=False)
        body = validate(CompletionRequest, fields)
        model = find_model(service, body.model)
        try:
            prompts = body.prompts
        except ValueError as error:
            raise Refusal(400, str(error)) from None
        texts = [prompt for prompt in prompts if isinstance(prompt, str)]
        service.limits.check(texts)
        size = service.limits.check_size(sum(map(len, prompts)))
        service.check_key(request, fields, size)
        service.log_texts(texts)
        completion = Completion(service, model, body, prompts)
        if not body.stream:
            parts = await service.run(request, size, lambda ticket: list(completion.parts(ticket)))
            return JSONResponse({**completion.head(), "choices": joined(parts), "usage": completion.usage()})
        parts = service.stream(size, completion.parts)
        first = await anext(parts, None)  # what is wrong with a request is said before the stream begins
        return StreamingResponse(_events(completion, first, parts), media_type="text/event-stream", headers=EVENTS)

    @routes.get("/models/{name:path}", responses=responses(MODEL, error=OPENAI_ERROR))
    async def one_model(name: str) -> JSONResponse:
        """One language model, as OpenAI describes models."""
        return JSONResponse(describe(service, find_model(service, name)))

    @routes.post("/look/text", **operation(LookTextRequest, {"format": 1, "inputs": [], "attention": []}, NO_LANGUAGES))
    async def look_text(request: Request) -> Response:
        """The attention of every head over a text and, for a language model, the likely tokens at each position."""
        body = await service.read_sentence(request, LookTextRequest)
        model = choose_model(_looked_into(service), body.model, "model to look into")
        look = lambda ticket: model.look(ticket, body.text, body.code).to_json()  # noqa: E731
        return Response(await service.run(request, len(body.text), look), media_type="application/json")

    return routes


def find_model(service: Service, name: str | None) -> ServedLanguageModel:
    """The language model named in a request; optional if only one is served."""
    return choose_model(service.language_models, name, "language model")


def _looked_into(service: Service) -> dict[str, AskedModel]:
    """The models whose attention over a text can be shown."""
    return service.language_models | {name: own for name, own in service.encoders.items() if own.attends}


def describe(service: Service, model: ServedLanguageModel) -> dict[str, Any]:
    """A model in OpenAI's format."""
    return {"id": model.name, "object": "model", "created": service.started, "owned_by": "heed"}


@dataclass
class Completion:
    """The texts of one request."""

    service: Service
    model: ServedLanguageModel
    body: CompletionRequest
    given: list[str | list[int]]
    id: str = field(default_factory=lambda: f"cmpl-{uuid.uuid4().hex}")
    created: int = field(default_factory=lambda: int(time.time()))
    read: int = 0
    written: int = 0

    def __post_init__(self):
        self.options, self.seed = self.body.options()

    def head(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": "text_completion",
            "created": self.created,
            "model": self.model.name,
            "seed": self.seed,
        }

    def usage(self) -> dict[str, int]:
        total = self.read + self.written
        return {"prompt_tokens": self.read, "completion_tokens": self.written, "total_tokens": total}

    def parts(self, ticket: Ticket) -> Iterator[dict[str, Any]]:
        """The choices part by part, as the model generates them."""
        body, generator, count = self.body, self.model.generator, self.body.n or 1
        ids = [self._ids(given) for given in self.given]
        prompts = [generator.prompt(own, body.code) for own in ids]
        self.read = sum(len(own.text) for own in prompts)
        if self.read > MAX_PROMPT_TOKENS:
            raise ValueError(f"the prompts have {self.read:,} tokens; the limit per request is {MAX_PROMPT_TOKENS:,}")
        choices = [ChoiceWriter(i, body) for i in range(len(prompts) * count)]
        length = 16 if body.max_tokens is None else body.max_tokens
        for i, choice in enumerate(choices):
            if body.echo or body.return_token_ids or not length:
                echo = self._echo(ticket, i // count, prompts[i // count]) if body.echo else ("", [])
                yield choice.part(*echo, None if length else "length", ids[i // count])
        if not length:
            return
        for pieces in self.model.write(ticket, prompts, count, length=length, **self.options):
            self.written += len(pieces)
            self.service.metrics.generated.add(len(pieces), (("model", self.model.name),))
            for piece in pieces:
                if piece.text or piece.finish or body.logprobs is not None or body.return_token_ids:
                    yield choices[piece.row].part(piece.text, [piece.token], piece.finish)

    def _ids(self, given: str | list[int]) -> list[int]:
        if isinstance(given, str):
            return self.model.generator.encode(given)
        size = len(self.model.generator.vocabulary)
        if wrong := next((i for i in given if not 0 <= i < size), None):
            raise ValueError(f"prompt contains the token id {wrong}; valid ids are 0 to {size - 1:,}")
        return given

    def _echo(self, ticket: Ticket, number: int, prompt: Any) -> tuple[str, list[Any]]:
        """The text of a prompt and, if requested, its tokens."""
        given, tokens = self.given[number], []
        if self.body.logprobs is not None:
            tokens = self.model.read_prompt(ticket, prompt, self.body.logprobs)
        text = "".join(token.text for token in tokens) if tokens else self.model.generator.decode(prompt.text)
        return text if tokens or not isinstance(given, str) else given, tokens


async def _events(
    completion: Completion, first: dict[str, Any] | None, parts: AsyncIterator[dict[str, Any]]
) -> AsyncIterator[str]:
    """Server-sent events. Later errors are sent as events too."""
    try:
        if first is not None:
            yield _event({**completion.head(), "choices": [first]})
        async for part in parts:
            yield _event({**completion.head(), "choices": [part]})
        if (completion.body.stream_options or {}).get("include_usage"):
            yield _event({**completion.head(), "choices": [], "usage": completion.usage()})
        yield "data: [DONE]\n\n"
    except Refusal as error:
        yield _event(error_body(error.status, error.message))
    finally:
        await parts.aclose()


def _event(data: dict[str, Any]) -> str:
    return f"data: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}\n\n"


def error_body(status: int, message: str) -> dict[str, Any]:
    """An error in OpenAI's format."""
    kinds = {403: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}
    kind = kinds.get(status, "invalid_request_error" if status < 500 else "server_error")
    code = "model_not_found" if status == 404 else None
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}

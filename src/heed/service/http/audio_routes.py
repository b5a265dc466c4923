"""Speech to text, as OpenAI's clients ask for it."""

import time
from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import BaseModel, Field

from heed.products.recognizer import Transcription
from heed.products.subtitles import lines, subrip, web_vtt
from heed.service.http.asked_model import choose_model
from heed.service.http.bodies import Upload, read_fields, validate
from heed.service.http.limits import Refusal
from heed.service.http.openapi import FORMS, OPENAI_ERROR, operation
from heed.service.http.recognizers import ServedRecognizer
from heed.service.http.service import Service

EXAMPLE = {"text": "seven"}
NO_LANGUAGES: tuple[list[str], list[str]] = ([], [])


class TranscriptionRequest(BaseModel, extra="forbid", arbitrary_types_allowed=True):
    """OpenAI's request for a transcription."""

    file: Any = Field(
        description="a recording: WAV, FLAC, Ogg or MP3", json_schema_extra={"type": "string", "format": "binary"}
    )
    model: str | None = Field(None, max_length=200, description="may be omitted if there is only one")
    response_format: Literal["json", "text", "srt", "verbose_json", "vtt"] = "json"
    beam: int | None = Field(None, ge=1, le=50, description="hypotheses that are kept at each step")
    language: str | None = Field(None, max_length=20, description="ignored: a model knows what it has learned")
    prompt: str | None = Field(None, description="ignored")
    temperature: float | None = Field(None, description="ignored")
    granularities: Any = Field(None, alias="timestamp_granularities[]", description="words have times in any case")
    api_key: str | None = None


def router(service: Service) -> APIRouter:
    routes = APIRouter(prefix="/v1/audio", tags=["speech"])

    @routes.post(
        "/transcriptions", **operation(TranscriptionRequest, EXAMPLE, NO_LANGUAGES, FORMS[2:], error=OPENAI_ERROR)
    )
    async def transcriptions(request: Request) -> Response:
        """What is said in a recording; verbose_json, srt and vtt have the times of words."""
        start = time.monotonic()
        fields = await read_fields(request, service.limits.bytes)
        body = validate(TranscriptionRequest, {name: value for name, value in fields.items() if value != ""})
        if not isinstance(body.file, Upload):
            raise Refusal(400, "file is missing: send it as a part of a form (multipart/form-data), with its name")
        known: dict[str, ServedRecognizer] = service.recognizers
        model, upload = choose_model(known, body.model, "speech recognizer"), body.file
        size = min(len(upload.data), service.limits.characters)
        service.check_key(request, {"api_key": body.api_key}, size)
        changes = {} if body.beam is None else {"beam": body.beam}
        found = await service.run(
            request, size, lambda ticket: model.transcribe(ticket, upload.name, upload.data, **changes), long=True
        )
        return _answer(body.response_format, found, model, round(time.monotonic() - start, 4))

    return routes


def _answer(form: str, found: Transcription, model: ServedRecognizer, seconds: float) -> Response:
    if form == "text":
        return PlainTextResponse(found.text + "\n")
    if form in ("srt", "vtt"):
        return PlainTextResponse((subrip if form == "srt" else web_vtt)(found))
    if form == "json":
        return JSONResponse({"text": found.text})
    words = [
        {"word": one.text, "start": one.start, "end": one.end, "probability": one.probability} for one in found.words
    ]
    segments = [
        {"id": i, "start": start, "end": end, "text": text} for i, (start, end, text) in enumerate(lines(found))
    ]
    language = model.product.facts.get("target_language") or model.product.facts.get("language")
    return JSONResponse(
        {"task": "translate" if model.product.translates else "transcribe", "language": language, "duration": found.seconds,
         "text": found.text, "words": words, "segments": segments, "model": model.name, "seconds": seconds}
    )  # fmt: skip

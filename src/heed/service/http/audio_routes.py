"""Speech to text and text to speech, compatible with OpenAI's clients."""

import time
from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import BaseModel, Field

from heed.audio.files import encode
from heed.products.recognizer import Transcription
from heed.products.subtitles import lines, subrip, web_vtt
from heed.service.http.asked_model import choose_model
from heed.service.http.bodies import Upload, read_fields, validate
from heed.service.http.limits import Refusal
from heed.service.http.openapi import FORMS, OPENAI_ERROR, operation, responses
from heed.service.http.recognizers import ServedRecognizer
from heed.service.http.service import Service

EXAMPLE = {"text": "seven"}
SOUNDS = {"wav": "audio/wav", "flac": "audio/flac", "mp3": "audio/mpeg", "pcm": "audio/pcm"}
NO_LANGUAGES: tuple[list[str], list[str]] = ([], [])


class TranscriptionRequest(BaseModel, extra="forbid", arbitrary_types_allowed=True):
    """A transcription request, as in OpenAI's API."""

    file: Any = Field(
        description="a recording: WAV, FLAC, Ogg or MP3", json_schema_extra={"type": "string", "format": "binary"}
    )
    model: str | None = Field(None, max_length=200, description="optional if only one is available")
    response_format: Literal["json", "text", "srt", "verbose_json", "vtt"] = "json"
    beam: int | None = Field(None, ge=1, le=50, description="beam size")
    attention: bool = Field(
        False, description="verbose_json: attention for each word, for recordings read in one piece"
    )
    language: str | None = Field(None, max_length=20, description="ignored: the language is fixed by the model")
    prompt: str | None = Field(None, description="ignored")
    temperature: float | None = Field(None, description="ignored")
    granularities: Any = Field(None, alias="timestamp_granularities[]", description="word timings are always included")
    api_key: str | None = None


class SpeechRequest(BaseModel, extra="forbid", json_schema_extra={"example": {"input": "안녕하세요."}}):
    """A speech request, as in OpenAI's API."""

    input: str = Field(max_length=4096, description="what to say")
    model: str | None = Field(None, max_length=200, description="optional if only one is available")
    voice: str | None = Field(None, max_length=200, description="one of the model's speakers (default: the first)")
    response_format: Literal["wav", "flac", "mp3", "pcm"] = "wav"
    speed: float = Field(1.0, description="must be 1: the speed is fixed by the model")
    instructions: str | None = Field(None, description="ignored")
    api_key: str | None = None


def router(service: Service) -> APIRouter:
    routes = APIRouter(prefix="/v1/audio", tags=["speech"])
    _add_speech(routes, service)

    @routes.post(
        "/transcriptions", **operation(TranscriptionRequest, EXAMPLE, NO_LANGUAGES, FORMS[2:], error=OPENAI_ERROR)
    )
    async def transcriptions(request: Request) -> Response:
        """Transcribe a recording; verbose_json, srt and vtt include word timings."""
        start = time.monotonic()
        fields = await read_fields(request, service.limits.bytes)
        body = validate(TranscriptionRequest, {name: value for name, value in fields.items() if value != ""})
        if not isinstance(body.file, Upload):
            raise Refusal(400, "file is missing: upload it as multipart/form-data, with its file name")
        known: dict[str, ServedRecognizer] = service.recognizers
        model, upload = choose_model(known, body.model, "speech recognizer"), body.file
        size = min(len(upload.data), service.limits.characters)
        service.check_key(request, {"api_key": body.api_key}, size)
        changes = {"attention": body.attention and body.response_format == "verbose_json"}
        changes |= {} if body.beam is None else {"beam": body.beam}
        found = await service.run(
            request, size, lambda ticket: model.transcribe(ticket, upload.name, upload.data, **changes), long=True
        )
        return _answer(body.response_format, found, model, round(time.monotonic() - start, 4))

    return routes


def _add_speech(routes: APIRouter, service: Service) -> None:
    described = operation(SpeechRequest, {}, NO_LANGUAGES, error=OPENAI_ERROR)
    described["responses"] = responses("the sound", "audio/wav", OPENAI_ERROR)

    @routes.post("/speech", **described)
    async def speech(request: Request) -> Response:
        """Synthesize speech from a text."""
        fields = await read_fields(request, service.limits.text_bytes, forms=False)
        body = validate(SpeechRequest, fields)
        if body.speed != 1:
            raise Refusal(400, f"speed is {body.speed:g}; the speed is fixed by the model: leave it out")
        model = choose_model(service.voices, body.model, "voice")
        size = service.limits.check([body.input])
        service.check_key(request, fields, size)
        service.log_texts([body.input])
        data = await service.run(
            request,
            size,
            lambda ticket: encode(model.speak(ticket, body.input, body.voice), body.response_format),
            long=True,
        )
        return Response(data, media_type=SOUNDS[body.response_format])


def _answer(form: str, found: Transcription, model: ServedRecognizer, seconds: float) -> Response:
    if form == "text":
        return PlainTextResponse(found.text + "\n")
    if form in ("srt", "vtt"):
        return PlainTextResponse((subrip if form == "srt" else web_vtt)(found))
    if form == "json":
        return JSONResponse({"text": found.text})
    words = [
        {
            "word": one.text,
            "start": one.start,
            "end": one.end,
            "probability": one.probability,
            **({"attention": one.attention, "step": model.product.state_seconds} if one.attention else {}),
        }
        for one in found.words
    ]
    segments = [
        {"id": i, "start": start, "end": end, "text": text} for i, (start, end, text) in enumerate(lines(found))
    ]
    language = model.product.facts.get("target_language") or model.product.facts.get("language")
    return JSONResponse(
        {"task": "translate" if model.product.translates else "transcribe", "language": language, "duration": found.seconds,
         "text": found.text, "words": words, "segments": segments, "model": model.name, "seconds": seconds}
    )  # fmt: skip

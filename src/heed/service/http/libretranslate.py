"""LibreTranslate's API, as its clients expect it."""

import asyncio
from dataclasses import replace
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, Field, StringConstraints

from heed.service.http.bodies import Upload, read_fields, validate
from heed.service.http.detect import Detection
from heed.service.http.files import KEEP_SECONDS, safe_name
from heed.service.http.hosts import host_name
from heed.service.http.limits import Refusal
from heed.service.http.openapi import FORMS, operation, responses
from heed.service.http.options import MAX_NBEST, Names, Terms, read_glossary, translation_options
from heed.service.http.progress import JOB
from heed.service.http.request import RouteTranslator
from heed.service.http.segmenter import TRANSLATE, TextTask
from heed.service.http.service import Service
from heed.text import documents
from heed.text.glossary import Glossary

LanguageCode = Annotated[str, StringConstraints(min_length=1, max_length=40)]
MISSING = "Invalid request: missing {} parameter"  # its clients match on its words
EXAMPLE = {"q": "나는 학생이에요.", "source": "auto", "target": "en"}


class TranslateRequest(BaseModel, json_schema_extra={"example": EXAMPLE}):
    """One or more texts to translate."""

    q: str | list[str] = Field(description="a text, or a list of texts")
    source: LanguageCode = Field(description="the code of its language, or auto")
    target: LanguageCode = Field(description="the code of the target language")
    format: str = Field("text", description="the format of the text: text or html", max_length=40)
    alternatives: int = Field(0, ge=0, le=MAX_NBEST - 1, description="number of alternative translations to return")
    api_key: str | None = None
    glossary: Terms | None = Field(
        None, description="an object of terms and translations, or lines with a term, a tab and its translation"
    )
    keep: Names | None = Field(None, description="terms to leave untranslated")


class DetectRequest(BaseModel, json_schema_extra={"example": {"q": EXAMPLE["q"]}}):
    """A text whose language is detected."""

    q: str
    api_key: str | None = None


class FileRequest(BaseModel, arbitrary_types_allowed=True):
    """A document, as multipart/form-data."""

    file: Annotated[Any, Field(description="the file", json_schema_extra={"type": "string", "format": "binary"})]
    source: LanguageCode
    target: LanguageCode
    column: int | None = Field(None, description="the .tsv column to translate, counted from 1")
    api_key: str | None = None
    glossary: str | None = None
    keep: Names | None = None
    job: str | None = Field(None, pattern=JOB, description="an identifier of your own, for GET /v1/progress/{job}")


def router(service: Service) -> APIRouter:
    routes, codes = APIRouter(tags=["LibreTranslate's"]), service.catalogue.language_codes

    @routes.post("/translate", **operation(TranslateRequest, {"translatedText": "I am a student."}, codes, FORMS))
    async def translate(request: Request) -> JSONResponse:
        """Translate one or more texts."""
        return JSONResponse(await _translate(service, request))

    @routes.post("/detect", **operation(DetectRequest, [{"language": "ko", "confidence": 98.0}], codes, FORMS))
    async def detect(request: Request) -> JSONResponse:
        """Detect the language of a text, with a confidence from 0 to 100 for each served language."""
        fields = await read_fields(request, service.limits.text_bytes)
        body = validate(DetectRequest, fields, MISSING)
        service.check_key(request, fields, service.limits.check([body.q]))
        return JSONResponse([_in_percent(one) for one in service.detect_language(body.q)])

    @routes.get("/languages", responses=responses([{"code": "ko", "name": "Korean", "targets": ["en"]}]))
    async def languages() -> Response:
        """The served languages, and the targets of each."""
        return Response(service.catalogue.languages_json, media_type="application/json")

    @routes.post("/translate_file", **operation(FileRequest, {"translatedFileUrl": "http://…"}, codes, FORMS[2:]))
    async def translate_file(request: Request) -> JSONResponse:
        """Translate a document; the response contains the URL of the translation, valid for ten minutes."""
        token, name = await _translate_file(service, request)
        asyncio.get_running_loop().call_later(KEEP_SECONDS + 1, service.files.remove_expired)
        return JSONResponse({"translatedFileUrl": f"{_base_url(request)}/download_file/{token}/{quote(name)}"})

    @routes.get("/download_file/{token}/{name}", responses=responses("the file", "application/octet-stream"))
    async def download_file(token: str, name: str) -> Response:
        """Download a translated document."""
        file = service.files.open(token)
        if file is None:
            raise Refusal(404, "there is no such file, or it has expired: files are kept for ten minutes")
        disposition = f"attachment; filename*=UTF-8''{quote(file.name, safe='')}"
        headers = {"Content-Disposition": disposition, "Content-Security-Policy": "sandbox; default-src 'none'"}
        headers["Content-Length"] = str(file.size)
        return StreamingResponse(file.chunks(), media_type="application/octet-stream", headers=headers)

    @routes.get("/frontend/settings", responses=responses({"charLimit": 100000, "keyRequired": False}))
    async def settings() -> JSONResponse:
        """Limits and defaults, for web pages."""
        names = {one["code"]: one["name"] for one in service.catalogue.languages}
        first = next(iter(service.catalogue.models), None)
        sides = {side: getattr(first, side, "") for side in ("source", "target")}
        answer = {
            "apiKeys": service.keys is not None,
            "keyRequired": service.keys is not None,
            "charLimit": service.limits.characters,
            "filesTranslation": True,
            "frontendTimeout": 500,
            "language": {side: {"code": code, "name": names.get(code, code)} for side, code in sides.items()},
            "suggestions": False,
            "supportedFilesFormat": list(documents.KINDS),
        }
        return JSONResponse(answer)

    @routes.get("/health", responses=responses({"status": "ok"}))
    async def health() -> JSONResponse:
        """Whether the service is running."""
        if service.gate.closing:
            raise Refusal(503, "the service is shutting down", 5)
        return JSONResponse({"status": "ok"})

    return routes


async def _translate(service: Service, request: Request) -> dict[str, Any]:
    fields = await read_fields(request, service.limits.text_bytes)
    body = validate(TranslateRequest, fields, MISSING)
    texts = [body.q] if isinstance(body.q, str) else body.q
    size = service.limits.check(texts)
    service.check_key(request, fields, size)
    service.log_texts(texts)
    terms = await read_glossary(service.glossary_pool, body.glossary, body.keep)
    _check(service, body, terms)
    plain, auto = body.format == "text", body.source == "auto"
    ranks = 1 + (body.alternatives if plain else 0)

    def work(ticket) -> tuple[list[list[str]], list[Detection | None]]:
        detections = [_detected(service, text, body.target) if auto else None for text in texts]
        sources = [one.language if one else body.source for one in detections]
        ranked: list[list[str]] = [[] for _ in texts]  # the translations of each text, the best first
        for source in dict.fromkeys(sources):
            route = service.catalogue.route(source, body.target)
            options = translation_options(route, terms, nbest=ranks)
            translator = RouteTranslator(ticket, service.segmenters, route, options)
            own = [i for i, other in enumerate(sources) if other == source]
            task = TextTask("plain" if plain else "pages", [texts[i] for i in own], source, terms.keep)
            for rank in range(ranks):
                for i, translation in zip(own, translator.run(task, rank), strict=True):
                    ranked[i].append(translation)
        return ranked, detections

    ranked, detections = await service.run(request, size, work) if texts else ([], [])
    return _answer(body, ranked, detections)


def _check(service: Service, body: TranslateRequest | FileRequest, terms: Glossary) -> None:
    """Refuse unsupported languages before any work, even without texts, with LibreTranslate's messages."""
    catalogue = service.catalogue
    names = {one["code"]: one["name"] for one in catalogue.languages}
    codes = [code for code in (body.source, body.target) if code != "auto" or code == body.target]
    for code in codes if names else []:
        if code not in names:
            raise Refusal(400, f"{code} is not supported")
    if isinstance(body, TranslateRequest) and body.format not in ("text", "html"):
        raise Refusal(400, f"{body.format} format is not supported")
    source, target = body.source, body.target
    if source == "auto":
        catalogue.sources(target)
    elif names and source != target and (source, target) not in catalogue.pairs:
        pair = f"{names[target]} ({target})", f"{names[source]} ({source})"
        raise Refusal(400, f"{pair[0]} is not available as a target language from {pair[1]}")
    else:
        translation_options(catalogue.route(source, target), terms)


def _detected(service: Service, text: str, target: str) -> Detection:
    """The language of a text. A text already in the target language is returned unchanged."""
    other = service.other_language(text, target)
    if other and other.language != target:
        raise Refusal(400, f"{other.language} is not supported")
    return other or service.detect_language(text, target)[0]


def _answer(body: TranslateRequest, ranked: list[list[str]], detections: list[Detection | None]) -> dict[str, Any]:
    single = isinstance(body.q, str)
    answer: dict[str, Any] = {"translatedText": ranked[0][0] if single else [own[0] for own in ranked]}
    if body.source == "auto":
        detected = [_in_percent(one) for one in detections]
        answer["detectedLanguage"] = detected[0] if single else detected
    if body.alternatives:
        others = [list(dict.fromkeys(other for other in own[1:] if other != own[0])) for own in ranked]
        answer["alternatives"] = others[0] if single else others
    return answer


async def _translate_file(service: Service, request: Request) -> tuple[str, str]:
    fields = await read_fields(request, service.limits.bytes)
    body = validate(FileRequest, {name: value for name, value in fields.items() if value != ""}, MISSING)
    if not isinstance(body.file, Upload):
        raise Refusal(400, "file is missing: upload it as multipart/form-data, with its file name")
    data, name, translated_name = body.file.data, safe_name(body.file.name), safe_name(body.file.name, body.target)
    service.check_key(request, fields, len(data))
    terms = await read_glossary(service.glossary_pool, body.glossary, body.keep)
    _check(service, body, terms)

    def work(ticket) -> str:
        documents.kind_of(name)
        task = TextTask("document", keep=terms.keep, name=name, column=body.column, data=data)
        source = body.source
        if source == "auto":
            first = service.segmenters.run_step(task, {}, ticket)
            texts = [text for kind, text, _ in first.missing if kind == TRANSLATE]
            source = _detected(service, " ".join(texts[:50]), body.target).language
        route = service.catalogue.route(source, body.target)
        with service.progress.counting(body.job) as progress:
            options = translation_options(route, terms)
            translator = RouteTranslator(ticket, service.segmenters, route, options, progress=progress)
            translated = translator.run(replace(task, language=source), check=service.limits.check_size)
        return service.files.put(translated_name, translated)

    size = min(len(data), service.limits.characters)
    return await service.run(request, size, work, long=True), translated_name


def _in_percent(detection: Detection) -> dict[str, Any]:
    return {"language": detection.language, "confidence": round(100 * detection.confidence, 1)}


def _base_url(request: Request) -> str:
    """The service's address as the client wrote it, if the Host header is a valid address."""
    host = request.headers.get("host", "")
    return f"{request.url.scheme}://{host}" if host_name(host) else ""

"""LibreTranslate's API: what its clients ask, in their words."""

import asyncio
from dataclasses import replace
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from heed.service.http.bodies import Upload, checked, fields
from heed.service.http.detect import Detected
from heed.service.http.files import KEPT, safe_name
from heed.service.http.limits import Refusal
from heed.service.http.openapi import FORMS, answers, body, example
from heed.service.http.options import MOST_BEST, glossary_of, wish_of
from heed.service.http.request import Asker
from heed.service.http.segmenter import TEXT, Task
from heed.service.http.service import Service
from heed.text import documents
from heed.text.glossary import Glossary

Code = Annotated[str, StringConstraints(min_length=1, max_length=40)]


class Translate(BaseModel):
    """A text, or several."""

    model_config = ConfigDict(json_schema_extra=example({"q": "나는 학생이에요.", "source": "auto", "target": "en"}))
    q: str | list[str] = Field(description="a text, or a list of texts")
    source: Code = Field(description="the code of its language, or auto")
    target: Code = Field(description="the code of the language it is to be in")
    format: Literal["text", "html"] = Field("text", description="what it is written in")
    alternatives: int = Field(0, ge=0, le=MOST_BEST - 1, description="how many other translations are wanted")
    api_key: str | None = None
    glossary: dict[str, str] | str | None = Field(
        None, description="terms and their translations, or lines of both with a tab"
    )
    keep: list[str] | str | None = Field(None, description="names that stay as they are")


class Detect(BaseModel):
    """A text whose language is asked for."""

    model_config = ConfigDict(json_schema_extra=example({"q": "나는 학생이에요."}))
    q: str
    api_key: str | None = None


class File(BaseModel):
    """A document; only in a form of parts."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    file: Annotated[Any, Field(description="the file", json_schema_extra={"type": "string", "format": "binary"})]
    source: Code
    target: Code
    column: int | None = Field(None, description="of a .tsv, from 1")
    api_key: str | None = None
    glossary: str | None = None
    keep: list[str] | str | None = None


def router(service: Service) -> APIRouter:
    own, codes = APIRouter(tags=["LibreTranslate's"]), service.catalogue.codes

    @own.post(
        "/translate",
        openapi_extra=body(Translate, *FORMS, codes=codes),
        responses=answers({"translatedText": "I am a student."}),
    )
    async def translate(request: Request) -> JSONResponse:
        """Translate a text, or several."""
        found = await fields(request, service.limits.text_bytes)
        return JSONResponse(await _translated(service, request, found))

    @own.post(
        "/detect",
        openapi_extra=body(Detect, *FORMS, codes=codes),
        responses=answers([{"language": "ko", "confidence": 98.0}]),
    )
    async def detect(request: Request) -> JSONResponse:
        """Tell the language of a text, with a confidence from 0 to 100 for each that is served."""
        found = await fields(request, service.limits.text_bytes)
        asked = checked(Detect, found)
        service.admit(request, found, service.limits.check([asked.q]))
        return JSONResponse([_percent(one) for one in service.detected(asked.q)])

    @own.get("/languages", responses=answers([{"code": "ko", "name": "Korean", "targets": ["en"]}]))
    async def languages() -> JSONResponse:
        """The languages that are served, and what each can become."""
        return JSONResponse(service.catalogue.languages)

    @own.post(
        "/translate_file",
        openapi_extra=body(File, "multipart/form-data", codes=codes),
        responses=answers({"translatedFileUrl": "http://…"}),
    )
    async def translate_file(request: Request) -> JSONResponse:
        """Translate a document; the answer says where it can be fetched, for ten minutes."""
        found = await fields(request, service.limits.bytes)
        token, name = await _file(service, request, found)
        asyncio.get_running_loop().call_later(KEPT + 1, service.files.tidy)
        place = f"download_file/{token}/{quote(name)}"
        return JSONResponse({"translatedFileUrl": f"{_root(request)}/{place}"})

    @own.get("/download_file/{token}/{name}", responses=answers("the file", kind="application/octet-stream"))
    async def download_file(token: str, name: str) -> Response:
        """A translated document."""
        kept = service.files.get(token)
        if kept is None:
            raise Refusal(404, "there is no such file, or no longer: a file can be fetched for ten minutes")
        headers = {
            "Content-Disposition": f"attachment; filename*=UTF-8''{quote(kept[0], safe='')}",
            "Content-Security-Policy": "sandbox; default-src 'none'",
        }
        return Response(kept[1], media_type="application/octet-stream", headers=headers)

    @own.get("/frontend/settings", responses=answers({"charLimit": 100000, "keyRequired": False}))
    async def settings() -> JSONResponse:
        """Limits and defaults, for pages."""
        return JSONResponse(_settings(service))

    @own.get("/health", responses=answers({"status": "ok"}))
    async def health() -> JSONResponse:
        """Whether the service is there."""
        if service.gate.closing:
            raise Refusal(503, "the service is closing", 5)
        return JSONResponse({"status": "ok"})

    return own


async def _translated(service: Service, request: Request, found: dict[str, Any]) -> dict[str, Any]:
    asked = checked(Translate, found)
    texts = [asked.q] if isinstance(asked.q, str) else asked.q
    size = service.limits.check(texts)
    service.admit(request, found, size)
    service.note(texts)
    terms = await glossary_of(service.clerk, asked.glossary, asked.keep)
    glossary, keep = terms if terms.terms else None, terms.keep
    _served(service, asked, glossary)
    ranks = 1 + (asked.alternatives if asked.format == "text" else 0)

    def done(ticket) -> tuple[list[list[str]], list[Detected | None]]:
        detected = [service.detected(text, asked.target)[0] if asked.source == "auto" else None for text in texts]
        sources = [own.language if own else asked.source for own in detected]
        said: list[list[str]] = [[] for _ in texts]
        for source in dict.fromkeys(sources):
            route = service.catalogue.route(source, asked.target)
            wish = wish_of(route, nbest=ranks, glossary=glossary)
            asker = Asker(ticket, service.readers, route, wish)
            own = [i for i, other in enumerate(sources) if other == source]
            what = "plain" if asked.format == "text" else "pages"
            task = Task(what, texts=[texts[i] for i in own], language=source, keep=keep)
            for rank in range(ranks):
                for i, one in zip(own, asker.done(task, rank), strict=True):
                    said[i].append(one)
        return said, detected

    said, detected = await service.perform(request, size, done) if texts else ([], [])
    return _answer(asked, said, detected)


def _served(service: Service, asked: "Translate | File", glossary: Glossary | None) -> None:
    """Say what is wrong with languages before anything waits for them, also where there are no texts."""
    if asked.source == "auto":
        service.catalogue.sources(asked.target)
    else:
        wish_of(service.catalogue.route(asked.source, asked.target), glossary=glossary)


def _answer(asked: Translate, said: list[list[str]], detected: list[Detected | None]) -> dict[str, Any]:
    one = isinstance(asked.q, str)
    answer: dict[str, Any] = {"translatedText": said[0][0] if one else [own[0] for own in said]}
    if asked.source == "auto":
        known = [_percent(own) for own in detected]
        answer["detectedLanguage"] = known[0] if one else known
    if asked.alternatives:
        others = [list(dict.fromkeys(other for other in own[1:] if other != own[0])) for own in said]
        answer["alternatives"] = others[0] if one else others
    return answer


async def _file(service: Service, request: Request, found: dict[str, Any]) -> tuple[str, str]:
    asked = checked(File, {name: value for name, value in found.items() if value != ""})
    if not isinstance(asked.file, Upload):
        raise Refusal(400, "file is missing: send it as a part of a form (multipart/form-data), with its name")
    data, name = asked.file.data, safe_name(asked.file.name, asked.target)
    shown = safe_name(asked.file.name)
    service.admit(request, found, len(data))
    terms = await glossary_of(service.clerk, asked.glossary, asked.keep)
    glossary, keep = terms if terms.terms else None, terms.keep
    _served(service, asked, glossary)

    def done(ticket) -> str:
        documents.kind_of(shown)
        task = Task("document", keep=keep, name=shown, column=asked.column, data=data)
        source = asked.source
        if source == "auto":
            first = service.readers.step(task, {}, ticket)
            texts = [text for kind, text, _ in first.wanted if kind == TEXT]
            source = service.detected(" ".join(texts[:50]), asked.target)[0].language
        route = service.catalogue.route(source, asked.target)
        asker = Asker(ticket, service.readers, route, wish_of(route, glossary=glossary))
        made = asker.done(replace(task, language=source), check=service.limits.check_size)
        return service.files.put(name, made)

    size = min(len(data), service.limits.characters)
    return await service.perform(request, size, done, long=True), name


def _percent(one) -> dict[str, Any]:
    return {"language": one.language, "confidence": round(100 * one.confidence, 1)}


def _root(request: Request) -> str:
    """Where the client found us, if what it says is an address at all."""
    host = request.headers.get("host", "")
    plain = host and all(char.isascii() and (char.isalnum() or char in ".-:[]_") for char in host)
    return f"{request.url.scheme}://{host}" if plain else ""


def _settings(service: Service) -> dict[str, Any]:
    known = {one["code"]: one for one in service.catalogue.languages}
    first = service.catalogue.models[0]
    named = {side: {"code": code, "name": known[code]["name"]}
             for side, code in (("source", first.source), ("target", first.target))}  # fmt: skip
    return {
        "apiKeys": service.keys is not None,
        "keyRequired": service.keys is not None,
        "charLimit": service.limits.characters,
        "filesTranslation": True,
        "frontendTimeout": 500,
        "language": named,
        "suggestions": False,
        "supportedFilesFormat": list(documents.KINDS),
    }

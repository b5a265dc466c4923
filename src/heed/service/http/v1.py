"""Ours: translations with all that is known of them, other words, attentions, facts, and runs to watch."""

import json
import time
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from heed.lab.attention import to_json
from heed.products.translator.word_links import WordLinks, word_spans
from heed.service.http import runs, trace_routes
from heed.service.http.alternatives import alternatives
from heed.service.http.bodies import checked, fields
from heed.service.http.limits import Refusal
from heed.service.http.models import Said, Served
from heed.service.http.openapi import answers, body, example
from heed.service.http.options import MOST_BEAMS, MOST_BEST, glossary_of, wish_of
from heed.service.http.queue import gathered
from heed.service.http.request import Asker
from heed.service.http.segmenter import Passage, Task
from heed.service.http.service import Service
from heed.text import documents
from heed.version import __version__

Code = Annotated[str, StringConstraints(min_length=1, max_length=40)]
Beams = Annotated[int, Field(ge=1, le=MOST_BEAMS)]
SENTENCE = 2_000  # characters of a sentence that is looked into


class Translate(BaseModel):
    """A text, or several, and how they are to be translated."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=example({"text": "나는 학생이에요.", "target": "en"}))
    text: str | list[str] = Field(description="a text, or a list of texts")
    source: Code = Field("auto", description="the code of its language, or auto")
    target: Code | None = Field(None, description="may be left out where there is one only")
    beam: Beams | None = None
    nbest: int = Field(1, ge=1, le=MOST_BEST)
    length_penalty: float | None = Field(None, ge=0, le=5)
    prefix: str = Field("", max_length=2_000, description="what the translation must begin with")
    glossary: dict[str, str] | str | None = None
    keep: list[str] | str | None = None
    tokens: bool = True
    alignment: bool = True
    api_key: str | None = None


class Alternatives(BaseModel):
    """A sentence, its translation, and the place of a word in that."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra=example(
            {"text": "나는 학생이에요.", "target": "en", "translation": "I am a student.", "word": 2}
        ),
    )
    text: str = Field(min_length=1, max_length=SENTENCE)
    source: Code = "auto"
    target: Code | None = None
    translation: str = Field(max_length=SENTENCE)
    word: int = Field(ge=0, le=SENTENCE, description="its number, from 0")
    count: int = Field(8, ge=1, le=20)
    glossary: dict[str, str] | str | None = None
    keep: list[str] | str | None = None
    api_key: str | None = None


class Look(BaseModel):
    """A sentence that is looked into."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=example({"text": "나는 학생이에요.", "target": "en"}))
    text: str = Field(min_length=1, max_length=SENTENCE)
    source: Code = "auto"
    target: Code | None = None
    translation: str | None = Field(None, max_length=SENTENCE, description="looked at instead of the model's own")
    beam: Beams | None = None
    api_key: str | None = None


def router(service: Service) -> APIRouter:
    own, codes = APIRouter(prefix="/v1", tags=["ours"]), service.catalogue.codes

    @own.post(
        "/translate",
        openapi_extra=body(Translate, codes=codes),
        responses=answers({"translations": [], "seconds": 0.04}),
    )
    async def translate(request: Request) -> JSONResponse:
        """Translate, with scores, tokens, alignments and other translations, sentence by sentence."""
        start = time.monotonic()
        found = await fields(request, service.limits.text_bytes, forms=False)
        said = await _translations(service, request, found)
        return JSONResponse({"translations": said, "seconds": round(time.monotonic() - start, 4)})

    @own.post(
        "/alternatives",
        openapi_extra=body(Alternatives, codes=codes),
        responses=answers({"prefix": "I am", "word": "a", "alternatives": []}),
    )
    async def other_words(request: Request) -> JSONResponse:
        """Other words at one place of a translation, each with the sentence as it goes on from there."""
        found = await fields(request, service.limits.text_bytes, forms=False)
        asked = checked(Alternatives, found)
        _admit(service, request, asked)
        terms = await glossary_of(service.clerk, asked.glossary, asked.keep)

        def call(model: Served) -> dict[str, Any]:
            model.check_look(asked.text, asked.translation)
            return alternatives(model.translator, asked.text, asked.translation, asked.word, asked.count, terms)

        return JSONResponse(await _asked(service, request, asked, call))

    @own.post(
        "/look",
        openapi_extra=body(Look, codes=codes),
        responses=answers({"format": 1, "source": ["▁나는"], "cross": []}),
    )
    async def look(request: Request) -> Response:
        """Attentions by layer and head, likely next tokens, and the search step by step."""
        found = await fields(request, service.limits.text_bytes, forms=False)
        asked = checked(Look, found)
        chosen = {} if asked.beam is None else {"beam": asked.beam}

        def call(model: Served) -> str:
            model.check_look(asked.text, asked.translation)
            return to_json(model.translator.look(asked.text, asked.translation, model.line(), **chosen))

        return Response(await _inside(service, request, asked, call), media_type="application/json")

    @own.get("/models", responses=answers({"models": [], "pairs": [], "languages": []}))
    async def models() -> JSONResponse:
        """The models that are served, the pairs of languages, and the limits."""
        return JSONResponse(_facts(service))

    trace_routes.add(own, service, _inside)
    _add_runs(own, service)
    return own


def _add_runs(own: APIRouter, service: Service) -> None:
    @own.get("/runs", responses=answers({"runs": []}))
    async def all_runs(request: Request) -> JSONResponse:
        """The runs of the folder that is watched."""
        return JSONResponse(
            await service.perform(request, 0, lambda _: {"runs": runs.listed(_folder(service, request))}, long=True)
        )

    @own.get("/runs/{name}", responses=answers({"name": "ko-en", "lines": [], "next": 0}))
    async def one_run(request: Request, name: str, after: Annotated[int, Query(ge=0, le=10**9)] = 0) -> JSONResponse:
        """What has been logged in a run from line `after` on."""
        folder = _folder(service, request)
        found = await service.perform(request, 0, lambda _: runs.followed(folder, name, after), long=True)
        if found is None:
            raise Refusal(404, f"there is no run {name[:60]!r} here")
        return JSONResponse(found)

    @own.get("/runs/{name}/samples", responses=answers({"samples": [{"step": 150, "of": []}]}))
    async def samples(request: Request, name: str) -> JSONResponse:
        """The fixed samples of a run as they were at each validation."""
        folder = _folder(service, request)
        found = await service.perform(request, 0, lambda _: runs.sampled(folder, name), long=True)
        if found is None:
            raise Refusal(404, f"there is no run {name[:60]!r} here")
        return JSONResponse({"samples": found})


def _folder(service: Service, request: Request):
    service.admit(request, None)
    if service.settings.runs is None:
        raise Refusal(404, "no folder of runs is watched: start the service with --runs DIR")
    return service.settings.runs


def _languages(service: Service, text: str, source: str, target: str | None) -> tuple[str, str, dict[str, Any] | None]:
    """From which language to which, and what was detected."""
    detected = None
    if source == "auto":
        found = service.detected(text, target)
        if target is None:
            known = service.catalogue.sources()
            found = [one for one in found if one.language in known]
        detected = {"language": found[0].language, "confidence": round(found[0].confidence, 4)}
        source = found[0].language
    elif source not in {*service.catalogue.sources(), *service.catalogue.targets}:
        service.catalogue.route(source, target or source)
    return source, target or service.catalogue.target(source), detected


async def _translations(service: Service, request: Request, found: dict[str, Any]) -> list[dict[str, Any]]:
    asked = checked(Translate, found)
    texts = [asked.text] if isinstance(asked.text, str) else asked.text
    size = service.limits.check(texts)
    service.admit(request, found, size)
    service.note(texts)
    terms = await glossary_of(service.clerk, asked.glossary, asked.keep)
    glossary, keep = terms if terms.terms else None, terms.keep
    search = {"beam": asked.beam, "length_penalty": asked.length_penalty}
    prefix = " ".join(asked.prefix.split())

    def done(ticket) -> list[dict[str, Any]]:
        ways = [_languages(service, text, asked.source, asked.target) for text in texts]
        said: list[dict[str, Any]] = [{} for _ in texts]
        for source, target in dict.fromkeys(way[:2] for way in ways):
            route = service.catalogue.route(source, target)
            wish = wish_of(route, nbest=asked.nbest, glossary=glossary, tokens=asked.tokens, **search)
            asker = Asker(ticket, service.readers, route, wish, prefix)
            own = [i for i, way in enumerate(ways) if way[:2] == (source, target)]
            task = Task("passages", [texts[i] for i in own], source, keep, begun=bool(prefix))
            made = asker.done(task)
            links = _links(asker, [found for _, found in made]) if asked.alignment else [[]] * len(own)
            for i, (whole, found), each in zip(own, made, links, strict=True):
                said[i] = _translation(asker, texts[i], whole, found, each) | {
                    "source": source,
                    "target": target,
                    "detected": ways[i][2],
                }
        return said

    return await service.perform(request, size, done) if texts else []


def _links(asker: Asker, passages: list[list[Passage]]) -> list[list[WordLinks]]:
    """Alignments of all passages, asked for at once."""
    flat = [passage for own in passages for passage in own]
    found = iter(asker.aligned([one.source for one in flat], [one.target for one in flat]))
    return [[next(found) for _ in own] for own in passages]


def _translation(
    asker: Asker, text: str, whole: str, passages: list[Passage], links: list[WordLinks]
) -> dict[str, Any]:
    shown = [
        _sentence(text, whole, passage, asker.said(passage, first=not i), links[i] if links else [])
        for i, passage in enumerate(passages)
    ]
    score = None if any(one["score"] is None for one in shown) else sum(one["score"] for one in shown)
    return {"text": whole, "models": [model.name for model in asker.route], "score": score, "sentences": shown}


def _sentence(text: str, whole: str, passage: Passage, said: Said | None, links: WordLinks) -> dict[str, Any]:
    left = word_spans(text, passage.start, passage.end, len(passage.source.split()))
    right = word_spans(whole, passage.begin, passage.finish, len(passage.target.split()))
    pairs = [(i, j) for i, j in links if i < len(left) and j < len(right)]
    return {
        "source": {"text": text[passage.start : passage.end], "start": passage.start, "end": passage.end},
        "target": {"text": whole[passage.begin : passage.finish], "start": passage.begin, "end": passage.finish},
        "score": said.score if said else None,
        "tokens": [{"text": token, "score": score} for token, score in said.tokens] if said else [],
        "alignment": [
            {
                "source": {"word": i, "start": left[i][0], "end": left[i][1]},
                "target": {"word": j, "start": right[j][0], "end": right[j][1]},
            }
            for i, j in pairs
        ],
        "nbest": [{"text": own, "score": score} for own, score in (said.nbest if said else [(passage.target, None)])],
    }


async def _inside(service: Service, request: Request, asked: Any, call) -> Any:
    """Something that one model is asked about one sentence, by whoever may."""
    _admit(service, request, asked)
    return await _asked(service, request, asked, call)


def _admit(service: Service, request: Request, asked: Any) -> None:
    service.admit(request, {"api_key": asked.api_key}, len(asked.text))
    service.note([asked.text])


async def _asked(service: Service, request: Request, asked: Any, call) -> Any:
    """It in its turn, once it is admitted."""
    source, target, _ = _languages(service, asked.text, asked.source, asked.target)
    route = service.catalogue.route(source, target)
    if len(route) != 1:
        raise Refusal(400, f"no one model translates {source} to {target}: ask for each step of the way")
    model = route[0]

    def done(ticket) -> Any:
        size = 4 * len(model.translator.source.encode([asked.text])[0]) + 1
        return gathered(model.worker.submit(ticket, ("call",), [lambda: call(model)], [size]), ticket)[0]

    return await service.perform(request, len(asked.text), done)


def _facts(service: Service) -> dict[str, Any]:
    limits, pairs = service.limits, service.catalogue.pairs
    return {
        "models": [json.loads(json.dumps(model.facts())) for model in service.catalogue.models],
        "pairs": [
            {"source": source, "target": target, "through": route[0].target if len(route) > 1 else None}
            for (source, target), route in pairs.items()
        ],
        "languages": service.catalogue.languages,
        "limits": {
            "characters": limits.characters,
            "texts": limits.texts,
            "bytes": limits.bytes,
            "seconds": limits.seconds,
        },
        "files": list(dict.fromkeys(documents.KINDS)),
        "keys": service.keys is not None,
        "runs": service.settings.runs is not None,
        "version": __version__,
    }

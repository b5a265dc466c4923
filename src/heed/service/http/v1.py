"""Heed's own API, /v1: translations with scores and alignments, alternatives, attention weights, models, and training
runs.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field, StringConstraints

from heed.decoding.config import UNGUARDED
from heed.lab.attention import to_json
from heed.products.translator.word_links import WordLinks, word_spans
from heed.service.http import runs, trace_routes
from heed.service.http.alternatives import alternatives
from heed.service.http.bodies import read_fields, validate
from heed.service.http.catalogue import MOST
from heed.service.http.completions import describe
from heed.service.http.detect import Detection
from heed.service.http.limits import Refusal
from heed.service.http.models import ServedModel, TranslatedSentence, count_terms
from heed.service.http.openapi import SENTENCE, operation, responses
from heed.service.http.options import MAX_BEAM, MAX_NBEST, MAX_SENTENCE, read_glossary, translation_options
from heed.service.http.queue import wait_for_results
from heed.service.http.request import RouteTranslator
from heed.service.http.segmenter import TextTask
from heed.service.http.service import Service
from heed.text import documents
from heed.text.language_codes import name as language_name
from heed.text.passages import Passage
from heed.version import __version__

LanguageCode = Annotated[str, StringConstraints(min_length=1, max_length=40)]
Beam = Annotated[int, Field(ge=1, le=MAX_BEAM)]
TRANSLATED = {**SENTENCE, "translation": "I am a student.", "word": 2}


class TranslateRequest(BaseModel, extra="forbid", json_schema_extra={"example": SENTENCE}):
    """One or more texts, and translation settings."""

    text: str | list[str] = Field(description="a text, or a list of texts")
    source: LanguageCode = Field("auto", description="the code of its language, or auto")
    target: LanguageCode | None = Field(None, description="optional if only one is available")
    beam: Beam | None = None
    nbest: int = Field(1, ge=1, le=MAX_NBEST)
    length_penalty: float | None = Field(None, ge=0, le=5)
    rerank: Literal["none", "mbr"] | None = Field(None, description="mbr: the candidate most similar to all the others")
    avoid_loops: bool | None = Field(None, description="decode again where a translation repeats itself")
    avoid_overlong: bool | None = Field(None, description="decode again where it is far longer than its source")
    avoid_copies: bool | None = Field(None, description="decode again where it copies its source")
    prefix: str = Field("", max_length=2_000, description="force the translation to begin with this")
    glossary: dict[str, str] | str | None = None
    keep: list[str] | str | None = None
    tokens: bool = True
    alignment: bool = True
    api_key: str | None = None


class AlternativesRequest(BaseModel, extra="forbid", json_schema_extra={"example": TRANSLATED}):
    """A sentence, its translation, and the index of a word in the translation."""

    text: str = Field(min_length=1, max_length=MAX_SENTENCE)
    source: LanguageCode = "auto"
    target: LanguageCode | None = None
    translation: str = Field(max_length=MAX_SENTENCE)
    word: int = Field(ge=0, le=MAX_SENTENCE, description="index of the word, from 0")
    count: int = Field(8, ge=1, le=20)
    glossary: dict[str, str] | str | None = None
    keep: list[str] | str | None = None
    api_key: str | None = None


class LookRequest(BaseModel, extra="forbid", json_schema_extra={"example": SENTENCE}):
    """A sentence to inspect."""

    text: str = Field(min_length=1, max_length=MAX_SENTENCE)
    source: LanguageCode = "auto"
    target: LanguageCode | None = None
    translation: str | None = Field(
        None, max_length=MAX_SENTENCE, description="inspect this translation instead of the model's own"
    )
    beam: Beam | None = None
    api_key: str | None = None


def router(service: Service) -> APIRouter:
    routes, codes = APIRouter(prefix="/v1", tags=["ours"]), service.catalogue.language_codes

    @routes.post("/translate", **operation(TranslateRequest, {"translations": [], "seconds": 0.04}, codes))
    async def translate(request: Request) -> JSONResponse:
        """Translate with scores, tokens, alignments and alternatives, sentence by sentence."""
        start = time.monotonic()
        fields = await read_fields(request, service.limits.text_bytes, forms=False)
        translations = await _translate(service, request, fields)
        return JSONResponse({"translations": translations, "seconds": round(time.monotonic() - start, 4)})

    @routes.post(
        "/alternatives", **operation(AlternativesRequest, {"prefix": "I am", "word": "a", "alternatives": []}, codes)
    )
    async def other_words(request: Request) -> JSONResponse:
        """Alternatives for one word of a translation, each with the sentence decoded again from there."""
        body = await service.read_sentence(request, AlternativesRequest)
        terms = await read_glossary(service.glossary_pool, body.glossary, body.keep)

        def find(model: ServedModel) -> dict[str, Any]:
            model.check_inspectable(body.text, body.translation)
            return alternatives(model.translator, body.text, body.translation, body.word, body.count, terms)

        def weigh(model: ServedModel) -> float:
            """Each alternative is decoded to the end of the sentence."""
            return body.count * (1 + model.terms_cost(count_terms(terms, body.text))) / 4

        return JSONResponse(await _ask_model(service, request, body, find, weigh))

    @routes.post("/look", **operation(LookRequest, {"format": 1, "source": ["▁나는"], "cross": []}, codes))
    async def look(request: Request) -> Response:
        """Inspect a translation: attention by layer and head, likely next tokens, and the search step by step."""
        body = await service.read_sentence(request, LookRequest)
        decoding = {} if body.beam is None else {"beam": body.beam}

        def inspect(model: ServedModel) -> str:
            model.check_inspectable(body.text, body.translation)
            return to_json(model.translator.look(body.text, body.translation, model.caption(), **decoding))

        return Response(await _ask_model(service, request, body, inspect), media_type="application/json")

    @routes.get("/models", responses=responses({"models": [], "directions": [], "languages": []}))
    async def models() -> JSONResponse:
        """List the served models, the translation directions, and the limits."""
        return JSONResponse(_describe(service))

    trace_routes.add_routes(routes, service, _ask_model)
    _add_runs(routes, service)
    return routes


def _add_runs(routes: APIRouter, service: Service) -> None:
    async def read(request: Request, name: str, reader: Callable[..., Any], *given: Any) -> Any:
        folder = _runs_folder(service, request)
        found = await service.run(request, 0, lambda _: reader(folder, name, *given), long=True)
        if found is None:
            raise Refusal(404, f"there is no run {name[:60]!r} here")
        return found

    @routes.get("/runs", responses=responses({"runs": [runs.EXAMPLE]}))
    async def all_runs(request: Request) -> JSONResponse:
        """List the runs in the --runs folder, with the metrics of each run's task."""
        found = await service.run(request, 0, lambda _: runs.list_runs(_runs_folder(service, request)), long=True)
        return JSONResponse({"runs": found})

    @routes.get("/runs/{name}", responses=responses({**runs.EXAMPLE, "lines": [], "next": 0}))
    async def one_run(request: Request, name: str, after: Annotated[int, Query(ge=0, le=10**9)] = 0) -> JSONResponse:
        """The log of a run from line `after` on."""
        return JSONResponse(await read(request, name, runs.read_run, after))

    @routes.get("/runs/{name}/samples", responses=responses({"samples": [{"step": 150, "of": []}]}))
    async def samples(request: Request, name: str) -> JSONResponse:
        """The sample outputs of a run at each validation."""
        return JSONResponse({"samples": await read(request, name, runs.read_samples)})


def _runs_folder(service: Service, request: Request) -> Path:
    service.check_key(request, None)
    if service.settings.runs is None:
        raise Refusal(404, "no runs folder is configured: start the service with --runs DIR")
    return service.settings.runs


def _languages(service: Service, text: str, source: str, target: str | None) -> tuple[str, str, dict[str, Any] | None]:
    """The source and target languages of a text, and what was detected."""
    detected = None
    if source == "auto":
        if other := service.other_language(text, target):
            raise _not_served(service, other, target)
        detections = service.detect_language(text, target)
        if target is None:
            known = service.catalogue.sources()
            detections = [one for one in detections if one.language in known]
        source, confidence = detections[0]
        detected = {"language": source, "confidence": round(confidence, 4)}
    elif source not in {*service.catalogue.sources(), *service.catalogue.targets}:
        service.catalogue.route(source, target or source)
    return source, target or service.catalogue.only_target(source), detected


def _not_served(service: Service, detected: Detection, target: str | None) -> Refusal:
    sources, name = service.catalogue.sources(target), language_name(detected.language)
    offered = ", ".join(sources[:MOST]) + (", …" if len(sources) > MOST else "")
    details = {"detected": {"language": detected.language, "name": name, "confidence": round(detected.confidence, 4)}}
    return Refusal(
        400, f"this looks like {name}, and no model here translates from it; to translate it anyway, set the source language: {offered}",
        details=details | {"sources": sources},
    )  # fmt: skip


async def _translate(service: Service, request: Request, fields: dict[str, Any]) -> list[dict[str, Any]]:
    body = validate(TranslateRequest, fields)
    texts = [body.text] if isinstance(body.text, str) else body.text
    size = service.limits.check(texts)
    service.check_key(request, fields, size)
    service.log_texts(texts)
    terms = await read_glossary(service.glossary_pool, body.glossary, body.keep)
    decoding = {"nbest": body.nbest, "beam": body.beam, "length_penalty": body.length_penalty, "rerank": body.rerank}
    decoding |= {name: getattr(body, name) for name in UNGUARDED}
    prefix = " ".join(body.prefix.split())

    def work(ticket) -> list[dict[str, Any]]:
        languages = [_languages(service, text, body.source, body.target) for text in texts]
        answers: list[dict[str, Any]] = [{} for _ in texts]
        for source, target in dict.fromkeys(one[:2] for one in languages):
            route = service.catalogue.route(source, target)
            options = translation_options(route, terms, tokens=body.tokens, **decoding)
            translator = RouteTranslator(ticket, service.segmenters, route, options)
            own = [i for i, one in enumerate(languages) if one[:2] == (source, target)]
            task = TextTask("passages", [texts[i] for i in own], source, terms.keep, prefix)
            outputs = translator.run(task)
            flat = [passage for _, passages in outputs for passage in passages]
            sentences = iter(translator.sentences(flat))
            links = iter(_align(translator, flat) if body.alignment else [[]] * len(flat))
            for i, (output, passages) in zip(own, outputs, strict=True):
                described = [
                    _describe_sentence(texts[i], output, one, next(sentences), next(links)) for one in passages
                ]
                used = {"source": source, "target": target, "detected": languages[i][2]}
                answers[i] = _describe_translation(translator, output, described) | used
        return answers

    return await service.run(request, size, work) if texts else []


def _align(translator: RouteTranslator, passages: list[Passage]) -> list[WordLinks]:
    """The word links of passages, all in one request to the model."""
    return translator.align([one.source for one in passages], [one.target for one in passages])


def _describe_translation(translator: RouteTranslator, output: str, sentences: list[dict[str, Any]]) -> dict[str, Any]:
    scores = [one["score"] for one in sentences]
    score = None if None in scores else sum(scores)
    names = [model.name for model in translator.route]
    return {"text": output, "models": names, "score": score, "sentences": sentences}


def _describe_sentence(
    text: str, output: str, passage: Passage, translated: TranslatedSentence | None, links: WordLinks
) -> dict[str, Any]:
    source, start, end, target, target_start, target_end, _ = passage
    left = word_spans(text, start, end, len(source.split()))
    right = word_spans(output, target_start, target_end, len(target.split()))
    nbest = translated.nbest if translated else [(target, None)]
    return {
        "source": {"text": text[start:end], "start": start, "end": end},
        "target": {"text": output[target_start:target_end], "start": target_start, "end": target_end},
        "score": translated.score if translated else None,
        "tokens": [{"text": token, "score": score} for token, score in translated.tokens] if translated else [],
        "alignment": [
            {
                "source": {"word": i, "start": left[i][0], "end": left[i][1]},
                "target": {"word": j, "start": right[j][0], "end": right[j][1]},
            }
            for i, j in links
            if i < len(left) and j < len(right)
        ],
        "nbest": [{"text": own, "score": score} for own, score in nbest],
    }


async def _ask_model(
    service: Service,
    request: Request,
    body: Any,
    call: Callable[[ServedModel], Any],
    weigh: Callable[[ServedModel], float] = lambda _: 1.0,
) -> Any:
    """Call the one model that translates a sentence; `weigh` is the cost relative to a translation."""
    source, target, _ = _languages(service, body.text, body.source, body.target)
    route = service.catalogue.route(source, target)
    if len(route) != 1:
        raise Refusal(400, f"no single model translates {source} to {target}: request each step separately")
    model = route[0]

    def work(ticket) -> Any:
        size = 4 * len(model.translator.source.encode([body.text])[0]) + 1
        cost = size * max(1.0, weigh(model))
        futures = model.submit(ticket, ("call",), [call], [size], [cost])
        return wait_for_results(futures, ticket)[0]

    return await service.run(request, len(body.text), work)


def _describe(service: Service) -> dict[str, Any]:
    limits, catalogue = service.limits, service.catalogue
    return {
        "object": "list",
        "data": [describe(service, model) for model in service.language_models.values()],
        "images": [model.facts() for model in service.image_models.values()],
        "image_generators": [model.facts() for model in service.image_generators.values()],
        "language_models": [model.facts() for model in service.language_models.values()],
        "encoders": [model.facts() for model in service.encoders.values()],
        "recommenders": [model.facts() for model in service.recommenders.values()],
        "recognizers": [model.facts() for model in service.recognizers.values()],
        "voices": [model.facts() for model in service.voices.values()],
        "models": [json.loads(json.dumps(model.facts())) for model in catalogue.models],
        "directions": catalogue.groups,
        "languages": [{"code": one["code"], "name": one["name"]} for one in catalogue.languages],
        "limits": {name: getattr(limits, name) for name in ("characters", "texts", "bytes", "seconds")},
        "files": list(dict.fromkeys(documents.KINDS)),
        "keys": service.keys is not None,
        "runs": service.settings.runs is not None,
        "version": __version__,
    }

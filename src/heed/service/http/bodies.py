"""Request bodies, JSON or forms: read within limits of size and time, and validated."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, ValidationError
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

from heed.service.http.limits import Refusal

MAX_FIELDS = 2_000
BODY_SECONDS, IDLE_SECONDS = 30.0, 5.0  # for the whole body, and between two chunks of it
PARSED_AT_ONCE = 1 << 17  # bytes of a form between two turns of the event loop
Body = TypeVar("Body", bound=BaseModel)


class Upload(NamedTuple):
    """An uploaded file."""

    name: str
    data: bytes


async def read_fields(request: Request, max_bytes: int, *, forms: bool = True) -> dict[str, Any]:
    """The fields of a body; if forms are allowed, also those of the query string."""
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    body = await _read_body(request, max_bytes)
    if kind == "application/json" or kind.endswith("+json") or (not forms and not kind):
        values = _json(body)
    elif forms and kind == "application/x-www-form-urlencoded":
        values = _form(body)
    elif forms and kind == "multipart/form-data":
        values = await _multipart(request, body)
    elif forms and not body:
        values = {}
    else:
        allowed = "application/json, or a form" if forms else "application/json"
        raise Refusal(415, f"the body is {kind[:60] or 'of no named kind'!r}; it must be {allowed}")
    if forms:
        values = {**_grouped(list(request.query_params.multi_items())), **values}
    _refuse_surrogates(values)
    return values


def validate(model: type[Body], values: dict[str, Any], missing: str = "{} is missing") -> Body:
    """Validate the fields; the first error is reported in one sentence, that of a missing field as `missing`."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = ".".join(str(part) for part in first["loc"][:1]) or "the body"
        if first["type"] == "missing":
            raise Refusal(400, missing.format(name)) from None
        if first["type"] == "extra_forbidden":
            raise Refusal(
                400, f"{name[:60]!r} is not a known field; the fields are {', '.join(model.model_fields)}"
            ) from None
        message = first["msg"].removeprefix("Value error, ")
        raise Refusal(
            400, f"{name} is {_abbreviated(values.get(name))}: {message[:1].lower()}{message[1:300]}"
        ) from None


def _abbreviated(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


async def _read_body(request: Request, max_bytes: int) -> bytes:
    chunks, size, stream = [], 0, request.stream()
    end = asyncio.get_running_loop().time() + BODY_SECONDS
    try:
        while True:
            idle_end = asyncio.get_running_loop().time() + IDLE_SECONDS
            async with asyncio.timeout_at(min(idle_end, end)):
                chunk = await anext(stream, None)
            if chunk is None:
                return b"".join(chunks)
            size += len(chunk)
            if size > max_bytes:
                raise Refusal(413, f"the request body exceeds the limit of {max_bytes:,} bytes")
            chunks.append(chunk)
    except TimeoutError:
        slow, idle = f"did not arrive within {BODY_SECONDS:g}", f"stalled for {IDLE_SECONDS:g}"
        raise Refusal(408, f"the body {slow if idle_end > end else idle} seconds: send it again") from None
    except ClientDisconnect:
        raise Refusal(400, "the body ended before it was complete") from None


def _json(body: bytes) -> dict[str, Any]:
    try:
        values = json.loads(body)
    except (ValueError, RecursionError):
        raise Refusal(400, "the body is not JSON") from None
    if not isinstance(values, dict):
        raise Refusal(400, f'the body is a JSON {type(values).__name__}; it must be an object, as in {{"q": "…"}}')
    return values


def _form(body: bytes) -> dict[str, Any]:
    try:
        text = body.decode("utf-8")
        return _grouped(parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS))
    except UnicodeDecodeError:
        raise Refusal(400, "the form is not UTF-8") from None
    except ValueError:
        raise Refusal(400, f"the form has more than {MAX_FIELDS:,} fields") from None


async def _multipart(request: Request, body: bytes) -> dict[str, Any]:
    """A multipart form. It is in memory already, so nothing is spooled to a file."""

    async def stream() -> AsyncIterator[bytes]:
        for start in range(0, len(body), PARSED_AT_ONCE):
            yield body[start : start + PARSED_AT_ONCE]
            await asyncio.sleep(0)

    parser = MultiPartParser(request.headers, stream(), max_files=1, max_fields=MAX_FIELDS, max_part_size=len(body) + 1)
    parser.spool_max_size = len(body) + 1
    try:
        form = await parser.parse()
    except MultiPartException as error:
        raise Refusal(400, f"the form cannot be read: {error.message}") from None
    except Exception:  # the parser below it raises errors of several kinds
        raise Refusal(400, "the form cannot be read: its parts are malformed") from None
    pairs: list[tuple[str, Any]] = []
    for name, value in form.multi_items():
        pairs.append((name, value if isinstance(value, str) else Upload(value.filename or "", await value.read())))
    await form.close()
    return _grouped(pairs)


def _grouped(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Fields by name; repeated ones are lists."""
    grouped: dict[str, list[Any]] = {}
    for name, value in pairs:
        grouped.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in grouped.items()}


def _refuse_surrogates(values: Any) -> None:
    """JSON can spell a lone surrogate, which is not valid in a text."""
    stack = [values]
    while stack:
        one = stack.pop()
        if isinstance(one, str):
            if not one.isascii():
                try:
                    one.encode("utf-8")
                except UnicodeEncodeError:
                    raise Refusal(400, "a text contains a lone surrogate, which is not valid Unicode") from None
        elif isinstance(one, dict):
            stack += [*one.keys(), *one.values()]
        elif isinstance(one, list):
            stack += one

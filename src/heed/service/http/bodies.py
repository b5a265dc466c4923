"""What a request says: JSON, or a form, read within limits of size and time and checked against a description."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, ValidationError
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

from heed.service.http.limits import Refusal

MOST_FIELDS = 2_000
SECONDS, SILENCE = 30.0, 5.0  # for a body to come, and for nothing of it to come
SLICE = 1 << 17  # bytes of a form that are read at once
Body = TypeVar("Body", bound=BaseModel)


class Upload(NamedTuple):
    """A file that was sent."""

    name: str
    data: bytes


async def fields(request: Request, most: int, *, forms: bool = True) -> dict[str, Any]:
    """The fields of a body of at most so many bytes, and of the address too where a form may be sent."""
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    body = await _read(request, most)
    if kind == "application/json" or kind.endswith("+json") or (not forms and not kind):
        found = _json(body)
    elif forms and kind == "application/x-www-form-urlencoded":
        found = _form(body)
    elif forms and kind == "multipart/form-data":
        found = await _parts(request, body)
    elif forms and not body:
        found = {}
    else:
        both = "application/json, or a form" if forms else "application/json"
        raise Refusal(415, f"the body is {kind[:60] or 'of no named kind'!r}; it must be {both}")
    if forms:
        found = {**_collected(list(request.query_params.multi_items())), **found}
    _whole_characters(found)
    return found


def checked(description: type[Body], found: dict[str, Any]) -> Body:
    """The fields as what they should be; of what is wrong, the first thing in a sentence."""
    try:
        return description.model_validate(found)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = ".".join(str(part) for part in first["loc"][:1]) or "the body"
        if first["type"] == "missing":
            raise Refusal(400, f"{name} is missing") from None
        if first["type"] == "extra_forbidden":
            raise Refusal(
                400, f"{name[:60]!r} is no field here; there is {', '.join(description.model_fields)}"
            ) from None
        message = first["msg"].removeprefix("Value error, ")
        raise Refusal(400, f"{name} is {_short(found.get(name))}: {message[:1].lower()}{message[1:300]}") from None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


async def _read(request: Request, most: int) -> bytes:
    chunks, size, stream = [], 0, request.stream()
    end = asyncio.get_running_loop().time() + SECONDS
    try:
        while True:
            silent = asyncio.get_running_loop().time() + SILENCE
            async with asyncio.timeout_at(min(silent, end)):
                chunk = await anext(stream, None)
            if chunk is None:
                return b"".join(chunks)
            size += len(chunk)
            if size > most:
                raise Refusal(413, f"the body has more than {most:,} bytes, which is all that is taken here")
            chunks.append(chunk)
    except TimeoutError:
        why = f"did not come within {SECONDS:g} seconds" if silent > end else f"stopped coming for {SILENCE:g} seconds"
        raise Refusal(408, f"the body {why}: send it again") from None
    except ClientDisconnect:
        raise Refusal(400, "the body ended before it was complete") from None


def _json(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise Refusal(400, "the body is not JSON") from None
    if not isinstance(found, dict):
        raise Refusal(400, f'the body is a JSON {type(found).__name__}; it must be an object, as in {{"q": "…"}}')
    return found


def _form(body: bytes) -> dict[str, Any]:
    try:
        text = body.decode("utf-8")
        return _collected(parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS))
    except UnicodeDecodeError:
        raise Refusal(400, "the form is not UTF-8") from None
    except ValueError:
        raise Refusal(400, f"the form has more than {MOST_FIELDS:,} fields") from None


async def _parts(request: Request, body: bytes) -> dict[str, Any]:
    """A form in parts. All of it is in memory already: nothing is written to a file."""

    async def stream() -> AsyncIterator[bytes]:
        for start in range(0, len(body), SLICE):
            yield body[start : start + SLICE]
            await asyncio.sleep(0)  # others have their turn

    parser = MultiPartParser(
        request.headers, stream(), max_files=1, max_fields=MOST_FIELDS, max_part_size=len(body) + 1
    )
    parser.spool_max_size = len(body) + 1
    try:
        form = await parser.parse()
    except MultiPartException as error:
        raise Refusal(400, f"the form cannot be read: {error.message}") from None
    except Exception:  # its parser knows errors of its own
        raise Refusal(400, "the form cannot be read: its parts are not as they should be") from None
    pairs: list[tuple[str, Any]] = []
    for name, value in form.multi_items():
        pairs.append((name, value if isinstance(value, str) else Upload(value.filename or "", await value.read())))
    await form.close()
    return _collected(pairs)


def _collected(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A field that comes more than once is a list."""
    found: dict[str, list[Any]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return {name: own[0] if len(own) == 1 else own for name, own in found.items()}


def _whole_characters(value: Any) -> None:
    """JSON can spell half of a character, which is no text."""
    stack = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, str):
            if not one.isascii():
                try:
                    one.encode("utf-8")
                except UnicodeEncodeError:
                    raise Refusal(400, "a text holds half of a character (a surrogate), which is no text") from None
        elif isinstance(one, dict):
            stack += [*one.keys(), *one.values()]
        elif isinstance(one, list):
            stack += one

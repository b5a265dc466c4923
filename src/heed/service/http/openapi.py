"""What the OpenAPI document says of bodies and answers that are read and written by hand."""

from typing import Any

from pydantic import BaseModel

FORMS = ("application/json", "application/x-www-form-urlencoded", "multipart/form-data")
ERROR = {
    "type": "object",
    "properties": {"error": {"type": "string"}},
    "required": ["error"],
    "example": {"error": "q is missing"},
}
STATUS = {
    400: "something is missing or wrong",
    403: "a key is needed, or not known",
    404: "there is no such thing",
    408: "the body came too slowly",
    413: "the body is too large",
    415: "the body is of a kind that is not read",
    429: "the key has spent its minute",
    503: "the queue is full, the time is up, or the service is closing",
}


def example(value: dict[str, Any]) -> dict[str, Any]:
    return {"example": value}


def body(model: type[BaseModel], *kinds: str, codes: tuple[list[str], list[str]]) -> dict[str, Any]:
    """A body that is one of these kinds; `codes` are those of the languages that can be its source and its target."""
    schema = _plain(model.model_json_schema())
    for name, own in zip(("source", "target"), (["auto", *codes[0]], codes[1]), strict=True):
        if name in schema["properties"]:
            schema["properties"][name]["enum"] = [*own, *([None] if "anyOf" in schema["properties"][name] else [])]
    content = {kind: {"schema": schema} for kind in kinds or ("application/json",)}
    return {"requestBody": {"required": True, "content": content}}


def answers(shown: Any, kind: str = "application/json") -> dict[int | str, dict[str, Any]]:
    """A success that looks like this, and what may go wrong."""
    if kind == "application/json":
        schema: dict[str, Any] = {"type": "array" if isinstance(shown, list) else "object", "example": shown}
        if isinstance(shown, list):
            schema["items"] = {}
    else:
        schema = {"type": "string", "format": "binary"}
    wrong = {
        status: {"description": why, "content": {"application/json": {"schema": ERROR}}}
        for status, why in STATUS.items()
    }
    return {200: {"description": "as it was asked for", "content": {kind: {"schema": schema}}}, **wrong}


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    """Without titles, which say names twice, and with all that it is made of in its place."""
    known = schema.pop("$defs", {})

    def put(value: Any) -> Any:
        if isinstance(value, dict) and "$ref" in value:
            return put(known[value["$ref"].split("/")[-1]])
        if isinstance(value, dict):
            return {name: put(own) for name, own in value.items() if name != "title" or not isinstance(own, str)}
        return [put(own) for own in value] if isinstance(value, list) else value

    return put(schema)

"""OpenAPI descriptions of request bodies and responses, which FastAPI does not parse itself."""

from typing import Any

from pydantic import BaseModel

JSON = "application/json"
FORMS = (JSON, "application/x-www-form-urlencoded", "multipart/form-data")
SENTENCE = {"text": "나는 학생이에요.", "target": "en"}  # an example of a body
ERROR = {
    "type": "object",
    "properties": {"error": {"type": "string"}},
    "required": ["error"],
    "example": {"error": "Invalid request: missing q parameter"},
}
OPENAI_ERROR = {
    "type": "object",
    "properties": {"error": {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]}},
    "required": ["error"],
    "example": {"error": {"message": "model is missing", "type": "invalid_request_error", "param": None, "code": None}},
}
ERROR_STATUSES = {
    400: "a field is missing or invalid",
    403: "the API key is missing or invalid",
    404: "not found",
    408: "the body arrived too slowly",
    413: "the body is too large",
    415: "the body has an unsupported content type",
    429: "the quota of the key is exhausted",
    503: "the queue is full, the request timed out, or the service is shutting down",
}


def operation(
    model: type[BaseModel],
    answer: Any,
    codes: tuple[list[str], list[str]],
    content_types: tuple[str, ...] = (JSON,),
    error: dict[str, Any] = ERROR,
) -> dict[str, Any]:
    """For a route: its body, in one of these content types, and its responses; `codes` are those of source and target
    languages.
    """
    schema = _inlined(model.model_json_schema())
    for name, allowed in zip(("source", "target"), (["auto", *codes[0]], codes[1]), strict=True):
        if (field := schema["properties"].get(name)) and codes[0]:
            field["enum"] = [*allowed, *([None] if "anyOf" in field else [])]
    body = {"required": True, "content": {kind: {"schema": schema} for kind in content_types}}
    return {"openapi_extra": {"requestBody": body}, "responses": responses(answer, error=error)}


def responses(example: Any, content_type: str = JSON, error: dict[str, Any] = ERROR) -> dict[int | str, dict[str, Any]]:
    """A success response with an example, and all errors."""
    schema: dict[str, Any] = {"type": "string", "format": "binary"}
    if content_type == JSON:
        kind = {"type": "array", "items": {}} if isinstance(example, list) else {"type": "object"}
        schema = {**kind, "example": example}
    content = {JSON: {"schema": error}}
    errors = {status: {"description": why, "content": content} for status, why in ERROR_STATUSES.items()}
    return {200: {"description": "in the requested format", "content": {content_type: {"schema": schema}}}, **errors}


def _inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema without titles, which only repeat names, and with its definitions inlined."""
    definitions = schema.pop("$defs", {})

    def inline(value: Any) -> Any:
        if isinstance(value, dict) and "$ref" in value:
            return inline(definitions[value["$ref"].split("/")[-1]])
        if isinstance(value, dict):
            return {name: inline(own) for name, own in value.items() if name != "title" or not isinstance(own, str)}
        return [inline(own) for own in value] if isinstance(value, list) else value

    return inline(schema)

"""The request and response of /v1/completions, in OpenAI's format."""

import secrets
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import BaseModel, Field, field_validator

from heed.products.writing import Token

MAX_TOKENS, MAX_TEXTS, MAX_LOGPROBS, MAX_STOPS = 4_096, 32, 20, 16
EXAMPLE = {"model": "gpt2", "prompt": "The history of", "max_tokens": 20, "temperature": 0.8, "logprobs": 3}
ANSWER = {
    "id": "cmpl-1f", "object": "text_completion", "created": 1790000000, "model": "gpt2", "seed": 7,
    "choices": [{"index": 0, "text": " the city", "finish_reason": "length", "logprobs": None}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
}  # fmt: skip


class CompletionRequest(BaseModel, extra="forbid", json_schema_extra={"example": EXAMPLE}):
    """OpenAI's fields and, after `user`, Heed's own."""

    model: str | None = Field(None, max_length=200, description="optional if only one is available")
    prompt: str | list[str] | list[int] | list[list[int]] = Field("", description="a text, token ids, or several")
    max_tokens: int | None = Field(16, ge=0, le=MAX_TOKENS)
    temperature: float | None = Field(1.0, ge=0, le=100, description="0: greedy decoding")
    top_p: float | None = Field(1.0, gt=0, le=1)
    n: int | None = Field(1, ge=1, le=MAX_TEXTS, description="number of texts per prompt")
    stream: bool | None = False
    stream_options: dict[str, Any] | None = None
    logprobs: int | None = Field(
        None, ge=0, le=MAX_LOGPROBS, description="number of most likely tokens to return per position"
    )
    echo: bool | None = Field(False, description="include the prompt in the text")
    stop: str | list[str] | None = None
    seed: int | None = Field(None, ge=-(2**63), lt=2**63, description="random seed; the same seed gives the same text")
    best_of: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    logit_bias: dict[str, Any] | None = None
    suffix: str | None = None
    user: str | None = Field(None, description="ignored")
    code: str | None = Field(None, max_length=200, description="the control code, for CTRL models")
    top_k: int = Field(0, ge=0, le=1_000_000)
    min_p: float = Field(0.0, ge=0, le=1)
    typical_p: float = Field(1.0, gt=0, le=1)
    repetition_penalty: float = Field(1.0, gt=0, le=100)
    no_repeat: int = Field(0, ge=0, le=1_000, description="never repeat an n-gram of this length")
    one_line: bool = Field(False, description="stop at the end of the line")
    return_token_ids: bool = False
    api_key: str | None = None

    @field_validator("presence_penalty", "frequency_penalty")
    @classmethod
    def no_penalty(cls, value: float | None) -> float | None:
        if value:
            raise ValueError("this penalty is not supported: leave it out, or use repetition_penalty")
        return value

    @field_validator("logit_bias", "suffix")
    @classmethod
    def unsupported(cls, value: Any) -> Any:
        if value:
            raise ValueError("this is not supported: leave it out")
        return value

    @field_validator("stop")
    @classmethod
    def few_stops(cls, value: Any) -> Any:
        if isinstance(value, list) and len(value) > MAX_STOPS:
            raise ValueError(f"there may be at most {MAX_STOPS} stop strings")
        return value

    @property
    def prompts(self) -> list[str | list[int]]:
        """One or several, each a text or token ids."""
        several = isinstance(self.prompt, list) and (not self.prompt or not isinstance(self.prompt[0], int))
        prompts = self.prompt if several else [self.prompt]
        count = self.n or 1
        if not prompts:
            raise ValueError("prompt is an empty list: give at least one text")
        if len(prompts) * count > MAX_TEXTS:
            raise ValueError(
                f"{len(prompts)} prompts with n {count} are {len(prompts) * count} texts; the limit per request is "
                f"{MAX_TEXTS}"
            )
        if self.best_of not in (None, count):
            raise ValueError(f"best_of is {self.best_of}: it is not supported unless it equals n, which is {count}")
        if self.greedy and count > 1:
            raise ValueError(f"n is {count}, but at temperature 0 there is only one text: raise the temperature")
        return prompts

    @property
    def greedy(self) -> bool:
        return self.temperature == 0

    def options(self) -> tuple[dict[str, Any], int]:
        """The generation settings, and their seed, which is random if not given."""
        seed = secrets.randbelow(2**31) if self.seed is None else self.seed
        stops = [self.stop] if isinstance(self.stop, str) else self.stop or []
        names = ("top_k", "min_p", "typical_p", "repetition_penalty", "no_repeat")
        options = {name: getattr(self, name) for name in names} | {"seed": seed, "sample": not self.greedy}
        options |= {"top_p": 1.0 if self.top_p is None else self.top_p, "stop": stops, "one_line": self.one_line}
        if not self.greedy:
            options["temperature"] = 1.0 if self.temperature is None else self.temperature
        return options | {"likely": self.logprobs or 0}, seed


class ChoiceWriter:
    """Builds the parts of one choice, one after another."""

    def __init__(self, index: int, body: CompletionRequest):
        self.index, self.body, self.offset = index, body, 0

    def part(
        self, text: str, tokens: Sequence[Token], finish: str | None, prompt_ids: Sequence[int] | None = None
    ) -> dict[str, Any]:
        """What is added to the choice."""
        part = {"index": self.index, "text": text, "logprobs": None, "finish_reason": finish}
        if self.body.logprobs is not None:
            part["logprobs"] = self._logprobs(tokens)
        if self.body.return_token_ids:
            part["token_ids"] = [token.id for token in tokens]
            if prompt_ids is not None:
                part["prompt_token_ids"] = list(prompt_ids)
        return part

    def _logprobs(self, tokens: Sequence[Token]) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {"tokens": [], "token_logprobs": [], "top_logprobs": [], "text_offset": []}
        if self.body.return_token_ids:
            found["top_tokens"] = []
        for token in tokens:
            top = {}
            for other in token.likely:
                top.setdefault(other.text, other.logp)
            found["tokens"].append(token.text)
            found["token_logprobs"].append(token.logp)
            found["top_logprobs"].append({**top, token.text: token.logp} if self.body.logprobs else {})
            found["text_offset"].append(self.offset)
            self.offset += len(token.text)
            if self.body.return_token_ids:
                found["top_tokens"].append([{"id": i, "text": text, "logprob": logp} for i, text, logp in token.likely])
        return found


def joined(parts: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Whole choices from their parts."""
    choices: dict[int, dict[str, Any]] = {}
    for part in parts:
        whole = choices.setdefault(part["index"], part)
        if whole is part:
            continue
        whole["text"] += part["text"]
        whole["finish_reason"] = part["finish_reason"] or whole["finish_reason"]
        if whole["logprobs"] is not None:
            for name, own in part["logprobs"].items():
                whole["logprobs"][name] += own
        if "token_ids" in whole:
            whole["token_ids"] += part["token_ids"]
    return [choices[i] for i in sorted(choices)]

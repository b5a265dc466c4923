"""Recommendations for users and histories, and a search for items."""

import time
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse
from pydantic import Field

from heed.service.http.asked_model import choose_model
from heed.service.http.bodies import read_fields, validate
from heed.service.http.encoder_routes import NO_LANGUAGES, AskedOfModel
from heed.service.http.limits import Refusal
from heed.service.http.openapi import operation, responses
from heed.service.http.recommenders import ItemsAfter, ServedRecommender
from heed.service.http.service import Service

MAX_K = 1000  # items that are recommended after one history
MAX_RESULTS = 100_000  # items of one answer
MAX_PAGE = 100  # items of one page of /v1/items
MAX_EXPLAINED = 20  # histories of one request whose recommendations are explained
Name = Annotated[str, Field(min_length=1, max_length=1_000)]
History = Annotated[list[Name], Field(min_length=1)]


class RecommendRequest(
    AskedOfModel, json_schema_extra={"example": {"items": ["shampoo", "soap"], "k": 3, "exclude_seen": True}}
):
    """A history of items, oldest first, or a user from the training log; or a list of either."""

    items: History | Annotated[list[History], Field(min_length=1)] | None = Field(
        None, description="a history, or a list of histories"
    )
    user: Name | Annotated[list[Name], Field(min_length=1)] | None = Field(
        None, description="a user, or a list of users"
    )
    k: int = Field(10, ge=1, le=MAX_K, description="how many items to recommend")
    exclude_seen: bool = Field(False, description="do not recommend items that are in the history")
    unknown: Literal["refuse", "leave_out"] = Field("refuse", description="how to handle unknown items")
    explain: bool = Field(False, description="explain which history items each recommendation is based on")

    @property
    def users(self) -> list[str]:
        return [self.user] if isinstance(self.user, str) else self.user or []

    @property
    def histories(self) -> list[list[str]]:
        given = self.items or []
        return [given] if given and isinstance(given[0], str) else given


RECOMMENDED = {"history": ["shampoo", "soap"], "items": [{"item": "towel", "score": 3.1}]}
FOUND = {"items": ["soap", "soap dish"], "total": 2, "next": None, "model": "shop"}


def router(service: Service) -> APIRouter:
    routes = APIRouter(prefix="/v1", tags=["recommenders"])

    @routes.post("/recommend", **operation(RecommendRequest, {"results": [RECOMMENDED], "model": "shop"}, NO_LANGUAGES))
    async def recommend(request: Request) -> JSONResponse:
        """Recommend the next items for each history or user, best first, with scores."""
        start = time.monotonic()
        fields = await read_fields(request, service.limits.text_bytes, forms=False)
        body = validate(RecommendRequest, fields)
        model = choose_model(service.recommenders, body.model, "recommender")
        size = _check_size(service, body)
        service.check_key(request, fields, size)
        service.log_texts([*body.users, *(", ".join(own) for own in body.histories)])

        def work(ticket: Any) -> list[dict[str, Any]]:
            return model.recommend(ticket, _asked(model, body), body.exclude_seen)

        found = await service.run(request, size, work)
        for user, one in zip(body.users, found, strict=False):
            one["user"] = user
        seconds = round(time.monotonic() - start, 4)
        return JSONResponse({"results": found, "model": model.name, "seconds": seconds})

    @routes.get("/items", responses=responses(FOUND))
    async def items(
        request: Request,
        q: Annotated[str, Query(max_length=200)] = "",
        model: Annotated[str | None, Query(max_length=200)] = None,
        after: Annotated[int, Query(ge=0, le=10**9)] = 0,
        limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 20,
    ) -> JSONResponse:
        """Search items whose names contain `q`, from number `after` on; names that begin with it and frequent items come first."""
        service.check_key(request, None)
        own = choose_model(service.recommenders, model, "recommender")
        found = await service.run(request, len(q), lambda _: own.search(q), long=True)
        page = [own.product.items.names[i] for i in found[after : after + limit]]
        following = after + limit if after + limit < len(found) else None
        return JSONResponse({"items": page, "total": len(found), "next": following, "model": own.name})

    return routes


def _check_size(service: Service, body: RecommendRequest) -> int:
    """The number of characters in a request; refuses too many characters, histories or results."""
    if (body.items is None) == (body.user is None):
        raise Refusal(400, "give either items or user")
    histories, count = body.histories, len(body.histories) + len(body.users)
    if count * body.k > MAX_RESULTS:
        raise Refusal(400, f"{count * body.k:,} recommendations requested; the limit per request is {MAX_RESULTS:,}")
    if body.explain and count > MAX_EXPLAINED:
        raise Refusal(
            400,
            f"explain supports at most {MAX_EXPLAINED} histories per request: send fewer, or leave explain out",
        )
    return service.limits.check([*body.users, *("".join(own) for own in histories)])


def _asked(model: ServedRecommender, body: RecommendRequest) -> Sequence[ItemsAfter]:
    leave_out = body.unknown == "leave_out"
    given = [(user, []) for user in body.users] or [(None, own) for own in body.histories]
    asked = []
    for number, one in enumerate(given, 1):
        history = tuple(model.history(*one, leave_out))
        if not history:
            raise ValueError(f"history {number} has no items that the model knows")
        asked.append(ItemsAfter(history, body.k, body.explain))
    return asked

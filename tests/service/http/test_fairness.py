"""One request does not keep others waiting: what it may cost is known before it is done."""

import asyncio
import json
import socket
import threading
from contextlib import ExitStack, closing
from dataclasses import replace

import pytest

from heed.service.http import alternatives, bodies
from heed.service.http.app import ServiceMiddleware, TooManyBytes, _CountedBody
from heed.service.http.connections import networks
from heed.service.http.limits import Limits, read_keys
from heed.service.http.service import Service, Settings
from heed.text import glossary
from tests.service.http.test_limits import wait_until

HELLO = "한국어는 쉬웠어요."
ASKED = {"text": HELLO, "source": "ko", "target": "en"}


@pytest.fixture(scope="module")
def single_model(start):
    """A service of one model."""
    running = start(both=False)
    with running.client(60) as client:
        yield running, client


@pytest.mark.parametrize(
    ("place", "more"), [("look", {}), ("look/numbers", {}), ("alternatives", {"word": 0, "translation": "a b"})]
)
@pytest.mark.parametrize("side", ["text", "translation"])
def test_a_sentence_too_long_to_be_inspected_is_refused(single_model, place, more, side, monkeypatch):
    """Before the model sees any of it."""
    running, client = single_model
    model = running.service.catalogue.models[0]
    monkeypatch.setattr(type(model.translator.model), "forward", None)
    monkeypatch.setattr(type(model.translator), "encode_pairs", None)
    said = client.post(f"/v1/{place}", json=ASKED | more | {side: "a b c " * 330})
    assert said.status_code == 400, said.text
    assert (
        said.json()["error"].startswith(f"the {side} has ") and "the limit for inspection is " in said.json()["error"]
    )


def test_many_alternatives_are_found_for_an_ordinary_sentence_only(single_model, monkeypatch):
    """Each is decoded to the end of the sentence: the cost is their number times its length."""
    _, client = single_model
    asked = ASKED | {"translation": "a b c d", "word": 1}
    said = client.post("/v1/alternatives", json=asked | {"count": 20})
    assert said.status_code == 200 and len(said.json()["alternatives"]) > 5
    monkeypatch.setattr("heed.service.http.alternatives.MAX_DECODED", 1_200)
    long = asked | {"text": "a b c " * 15}
    said = client.post("/v1/alternatives", json=long | {"count": 1})
    assert said.status_code == 200, said.text
    said = client.post("/v1/alternatives", json=long | {"count": 20})
    assert said.status_code == 400
    sentence = "the sentence has 45 subwords; with a count of 20, at most 20 are allowed"
    assert said.json()["error"] == sentence


def test_a_sentence_of_sixty_subwords_may_have_twenty_alternatives():
    alternatives._check_cost(60, 20)
    with pytest.raises(ValueError, match="the sentence has 67 subwords; with a count of 20, at most 66"):
        alternatives._check_cost(67, 20)


def announce_body(running, size, place="/translate_file", sent=b""):
    """A connection that announces a body of this size, and sends only `sent` of it."""
    connection = socket.create_connection(("127.0.0.1", running.port), timeout=20)
    head = (
        f"POST {place} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n\r\n"
    )
    connection.sendall(head.encode() + sent)
    return connection


def translated(client) -> int:
    return client.post("/translate", json={"q": HELLO, "source": "ko", "target": "en"}).status_code


@pytest.fixture
def bodies_started(monkeypatch):
    """The requests whose bodies have begun to be read, at any service."""
    begun, read = [], bodies._read_body

    async def noted(request, most):
        begun.append(request)
        return await read(request, most)

    monkeypatch.setattr(bodies, "_read_body", noted)
    return begun


def test_a_body_that_is_only_announced_takes_no_room(single_model, bodies_started, monkeypatch):
    running, client = single_model
    with ExitStack() as stack:
        for _ in range(9):
            stack.enter_context(announce_body(running, running.service.limits.bytes))
        wait_until(lambda: len(bodies_started) >= 8)
        assert translated(client) == 200


def test_a_body_that_stops_arriving_times_out(single_model, monkeypatch):
    running, _ = single_model
    monkeypatch.setattr(bodies, "IDLE_SECONDS", 0.2)
    with announce_body(running, 1000, sent=b"{") as connection:
        said = connection.makefile("rb").read()
    assert said.startswith(b"HTTP/1.1 408 ") and b"the body stalled for 0.2 seconds: send it again" in said
    monkeypatch.setattr(bodies, "BODY_SECONDS", 0.1)
    with announce_body(running, 1000, sent=b"{") as connection:
        said = connection.makefile("rb").read()
    assert b"the body did not arrive within 0.1 seconds" in said


def test_bodies_that_arrive_share_the_memory_limit(start, bodies_started, monkeypatch):
    """There is room for eight of the longest; more is refused until they are gone."""
    monkeypatch.setattr(bodies, "IDLE_SECONDS", 30.0)
    running = start(both=False, limits={"bytes": 30_000})
    with running.client() as client, ExitStack() as stack:

        def sent() -> int:
            said = client.post("/translate", content=b"x" * 11_000, headers={"Content-Type": "application/json"})
            return said.status_code

        late = stack.enter_context(announce_body(running, 30_000))  # it has sent nothing: there is room for others
        wait_until(lambda: len(bodies_started) == 1)
        assert sent() == 400
        held = [stack.enter_context(announce_body(running, 30_000, sent=b"x" * 29_000)) for _ in range(8)]
        wait_until(lambda: sent() == 503)
        late.sendall(b"x" * 15_000)
        said = late.recv(2000)
        assert said.startswith(b"HTTP/1.1 503 ") and b"too many uploads at once: try again later" in said
        assert translated(client) == 200  # a short one fits
        for connection in held:
            connection.close()
        wait_until(lambda: sent() == 400)


def test_a_body_that_has_no_room_is_forgotten_before_the_rest_of_it_is_dropped():
    parts = iter([b"x" * 10, b"x" * 10])

    async def receive():
        return {"type": "http.request", "body": next(parts), "more_body": True}

    async def refuse():
        await body()
        assert middleware.bytes == 10
        with pytest.raises(TooManyBytes):
            await body()

    with closing(
        Service([], Settings(limits=Limits(bytes=2)))
    ) as service:  # of all bodies at once, eight times as many
        middleware = ServiceMiddleware(None, service)
        body = _CountedBody(middleware, receive)
        asyncio.run(refuse())
    assert middleware.bytes == 0


PLACES = {
    "/translate": {"q": HELLO, "source": "ko", "target": "en"},
    "/v1/translate": ASKED,
    "/v1/alternatives": ASKED | {"translation": "a b", "word": 0},
}
MANY = {f"낱말 {i}": f"word {i}" for i in range(5_001)}
LINES = "\n".join("\t".join(one) for one in MANY.items())


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"glossary": MANY}, "the glossary has 5,001 terms"),
        ({"glossary": LINES}, "the glossary has 5,001 terms"),
        ({"glossary": json.dumps(MANY)}, "the glossary has 5,001 terms"),
        ({"glossary": "{" + '"a": "b", ' * 6000 + '"a": "b"}'}, "the glossary has 6,001 terms"),
        ({"glossary": "[" + '{"a": "b"}, ' * 6000 + "1]"}, "the glossary has 6,000 terms"),
        ({"keep": list(MANY)}, "keep has 5,001 terms"),
        ({"keep": "\n".join(MANY)}, "keep has 5,001 terms"),
        ({"glossary": {"a": "b", "c": "d"}, "keep": list(MANY)[1:]}, "the glossary and keep have 5,002 terms"),
    ],
    ids=["object", "lines", "json", "again", "list", "names", "lines of names", "both"],
)
def test_too_many_terms_are_counted_before_they_are_read(single_model, given, sentence, monkeypatch):
    monkeypatch.setattr("heed.text.glossary._checked", None)
    for place, asked in PLACES.items():
        said = single_model[1].post(place, json=asked | given)
        assert said.status_code == 400, said.text
        assert said.json()["error"] == f"{sentence}; the limit per request is 5,000"


@pytest.mark.parametrize("place", PLACES)
def test_a_long_glossary_is_read_once_and_not_by_the_thread_that_answers(single_model, place, monkeypatch):
    threads, parse = [], glossary.parse

    def noted(*given, **more):
        threads.append(threading.current_thread().name)
        return parse(*given, **more)

    monkeypatch.setattr(glossary, "parse", noted)
    lines = "".join(f"낱말 {i}\tword {i}\n" for i in range(1_000))
    assert single_model[1].post(place, json=PLACES[place] | {"glossary": lines}).status_code == 200
    assert threads == ["heed-terms_0"]


@pytest.mark.parametrize("given", [{"glossary": {"a": "b" * 5_000}}, {"keep": ["b" * 5_000]}])
def test_a_long_term_is_not_read_by_the_thread_that_answers_either(single_model, given, monkeypatch):
    threads, clean = set(), glossary._checked
    monkeypatch.setattr(glossary, "_checked", lambda *own: threads.add(threading.current_thread().name) or clean(*own))
    for place, asked in PLACES.items():
        said = single_model[1].post(place, json=asked | given)
        assert said.status_code == 400 and "has 5000 characters; a term has at most 200" in said.json()["error"]
    assert threads == {"heed-terms_0"}


@pytest.mark.parametrize("place", PLACES)
def test_nothing_of_a_glossary_is_read_without_a_key(start, tmp_path, place):
    (tmp_path / "keys").write_text("known\n")
    asked = PLACES[place] | {"glossary": "no tab"}
    with start(both=False, keys=read_keys(tmp_path / "keys")).client() as client:
        assert client.post(place, json=asked).status_code == 403
        assert "1 columns" in client.post(place, json=asked | {"api_key": "known"}).json()["error"]


def test_alternatives_are_charged_to_a_key_once(start, tmp_path):
    (tmp_path / "keys").write_text("one 1\n")
    asked = PLACES["/v1/alternatives"] | {"api_key": "one"}
    with start(both=False, keys=read_keys(tmp_path / "keys")).client() as client:
        assert [client.post("/v1/alternatives", json=asked).status_code for _ in range(2)] == [200, 429]


def test_terms_in_a_sentence_are_bounded(single_model, monkeypatch):
    """Before the model sees any of it; the same number in several sentences is allowed."""
    running, client = single_model
    model = running.service.catalogue.models[0]
    terms = {"glossary": {"책": "book"}}
    monkeypatch.setattr(model.translator, "parts", lambda text: [text])
    for worker in model.workers:
        monkeypatch.setattr(worker, "submit", None)
    sentence = "a sentence has 33 glossary terms, and the limit is 32: split it, or remove terms"
    for place, asked in PLACES.items():
        field = "q" if "q" in asked else "text"
        said = client.post(place, json=asked | {field: "책 " * 33} | terms)
        assert said.status_code == 400, said.text
        assert said.json()["error"] == sentence


def test_a_glossary_is_charged_what_it_costs_and_only_where_its_terms_are(single_model, monkeypatch):
    """And a batch has less of what costs more."""
    running, client = single_model
    model, seen = running.service.catalogue.models[0], []
    submit = model.submit

    def noted(ticket, key, items, sizes, costs=None):
        if key[0] != "align":
            seen.extend((key[0], size, cost) for size, cost in zip(sizes, costs or sizes, strict=True))
        return submit(ticket, key, items, sizes, *([costs] if costs else []))

    monkeypatch.setattr(model, "submit", noted)
    texts = ["나는 책을 읽어요.", HELLO]
    usual = running.service.catalogue.models[0].translator.decoding.beam
    glossary = {"책": "book"}
    said = client.post("/v1/translate", json={"text": texts, "source": "ko", "target": "en", "glossary": glossary})
    assert said.status_code == 200, said.text
    assert {(kind, cost / size) for kind, size, cost in seen} == {("terms", 1 + 2.9), ("translate", 1.0)}
    seen.clear()
    two = {"text": "나는 책을 읽어요. 책 책.", "source": "ko", "target": "en", "glossary": glossary}
    assert client.post("/v1/translate", json=two).status_code == 200
    assert [round(cost / size, 3) for _, size, cost in seen] == [3.9, 4.8]  # each term costs
    seen.clear()
    reranked = {"text": HELLO, "source": "ko", "target": "en", "rerank": "mbr"}
    assert client.post("/v1/translate", json=reranked).status_code == 200
    assert [cost / size for _, size, cost in seen] == [4.8]
    seen.clear()
    asked = {"text": texts[0], "source": "ko", "target": "en", "beam": 4 * usual}
    assert client.post("/v1/translate", json=asked).status_code == 200
    assert [cost / size for _, size, cost in seen] == [4.0]
    plain = client.post("/v1/translate", json=asked | {"text": HELLO}).json()["translations"]
    with_terms = client.post("/v1/translate", json=asked | {"text": HELLO, "glossary": glossary}).json()
    assert with_terms["translations"] == plain  # a glossary without its terms changes nothing


def test_a_short_sentence_does_not_wait_for_a_search_for_terms(single_model, monkeypatch):
    """Which has a thread of its own, and takes one sentence at a time while its speed is not known."""
    running, client = single_model
    model, ran, begun, free = running.service.catalogue.models[0], [], threading.Event(), threading.Event()
    run = model.slow_worker.run

    def wait(key, items):
        ran.append((key[0], len(items)))
        begun.set()
        assert free.wait(60)
        return run(key, items)

    monkeypatch.setattr(model.slow_worker, "run", wait)
    model.slow_worker.speed = {"call": 1000.0}  # that of a search for terms is not known
    text, found = "\n".join(f"나는 책을 {i}번 읽어요." for i in range(9)), []

    def ask() -> None:
        with running.client(60) as other:
            asked = ASKED | {"text": text, "glossary": {"책": "book"}}
            found.append(other.post("/v1/translate", json=asked).status_code)

    thread = threading.Thread(target=ask)
    thread.start()
    assert begun.wait(20)
    assert client.post("/v1/translate", json=ASKED).status_code == 200  # while the other still waits
    assert not found and ran == [("terms", 1)]
    free.set()
    thread.join(60)
    assert found == [200]


def test_reranking_by_samples_and_a_glossary_are_refused_together(single_model, monkeypatch, ko_en):
    running, client = single_model
    (served,) = running.service.models
    for translator in (ko_en, served.slow_worker.run.__self__.translator):  # terms are searched for by its twin
        monkeypatch.setattr(translator, "decoding", replace(ko_en.decoding, candidates_from="samples"))
    asked = ASKED | {"rerank": "mbr"}
    said = client.post("/v1/translate", json=asked | {"text": "나는 책을 읽어요.", "glossary": {"책": "book"}})
    assert said.status_code == 400 and "terms need beam search" in said.json()["error"]
    kept = client.post("/v1/translate", json=asked | {"text": "나는 {n}을 읽어요."}).json()
    assert "{n}" in kept["translations"][0]["text"]  # what is protected is no glossary


def test_who_asks_is_who_is_connected_unless_a_proxy_is_trusted(start):
    """Anyone can write X-Forwarded-For: it is believed only of a proxy that the operator names."""
    for trusted, status in (((), 429), (("127.0.0.1",), 200), (("10.0.0.0/8",), 429)):
        running = start(both=False, limits={"client_requests": 1}, trusted_proxies=trusted)
        with running.client() as client:
            said = [
                client.post(
                    "/translate", json=PLACES["/translate"], headers={"X-Forwarded-For": f"192.0.2.{i}"}
                ).status_code
                for i in range(2)
            ]
        assert said == [200, status]
        running.stop()
    with pytest.raises(ValueError, match="--trust-proxy is 'proxy': it must be an address or a network"):
        networks(["proxy"])

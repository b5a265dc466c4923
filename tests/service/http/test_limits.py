"""Limits of size, number and time, and API keys."""

import hmac
import socket
import threading
import time
from contextlib import suppress

import pytest

from heed.cli import serve
from heed.cli.main import parse
from heed.service.http.bodies import MAX_FIELDS, _form
from heed.service.http.connections import ConnectionLimits
from heed.service.http.limits import ApiKeys, Gate, Limits, Refusal, read_keys
from heed.service.http.server import bind_socket

HELLO = "한국어는 쉬웠어요."


@pytest.fixture
def start_with_client(request, start):
    """Starts a service and returns it with a client."""

    def begin(**settings):
        running = start(both=False, **settings)
        client = running.client()
        request.addfinalizer(client.close)
        return running, client

    return begin


def wait_until(holds) -> None:
    for _ in range(24_000):
        if holds():
            return
        time.sleep(0.005)
    raise AssertionError("it never came")


def translate(client, q=HELLO, **more):
    return client.post("/translate", json={"q": q, "source": "ko", "target": "en", **more})


def block_model(running, monkeypatch):
    """Block the model until `free` is set; `begun` is set when it is called."""
    free, begun = threading.Event(), threading.Event()
    model = running.service.catalogue.models[0]
    run = model.worker.run

    def wait(key, items):
        begun.set()
        assert free.wait(60)
        return run(key, items)

    monkeypatch.setattr(model.worker, "run", wait)
    return free, begun


def test_a_full_queue_refuses_at_once_and_says_when_to_come_back(start_with_client, monkeypatch, ko_en):
    running, client = start_with_client(limits={"requests": 2})
    free, begun = block_model(running, monkeypatch)
    found = []
    threads = [threading.Thread(target=lambda: found.append(_post(running, HELLO))) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert begun.wait(10)
    while len(running.service.gate.active) < 2:
        time.sleep(0.005)
    refused = translate(client)
    assert refused.status_code == 503 and int(refused.headers["retry-after"]) >= 1
    assert "try again later" in refused.json()["error"]
    assert client.get("/health").status_code == 200  # the loop is free while the model works
    assert translate(client, q=12).status_code == 503  # nothing of it is even read
    free.set()
    for thread in threads:
        thread.join(20)
    assert found == [ko_en.translate(HELLO).text] * 2
    assert translate(client).status_code == 200


def _post(running, text):
    with running.client() as client:
        return translate(client, text).json()["translatedText"]


def test_a_request_that_takes_too_long_is_cancelled_with_its_jobs(start_with_client, monkeypatch):
    running, client = start_with_client(limits={"seconds": 0.3})
    free, _begun = block_model(running, monkeypatch)
    late = translate(client, [HELLO, "나는 책을 읽어요.", "그는 학교에 가요."])
    assert late.status_code == 503 and "timed out after 0.3 seconds" in late.json()["error"]
    wait_until(lambda: not running.service.gate.active)  # though the model is still held
    assert running.service.catalogue.models[0].worker.waiting_tokens == 0
    free.set()


def test_a_client_that_disconnects_cancels_its_jobs(start_with_client, monkeypatch):
    running, client = start_with_client()
    free, begun = block_model(running, monkeypatch)
    asked = client.build_request(
        "POST", "/translate", json={"q": [f"{HELLO} {i}" for i in range(90)], "source": "ko", "target": "en"}
    )
    head = "".join(f"{name}: {value}\r\n" for name, value in asked.headers.items())
    with socket.create_connection(("127.0.0.1", running.port)) as leaving:
        leaving.sendall(f"POST /translate HTTP/1.1\r\n{head}\r\n".encode() + asked.content)
        assert begun.wait(20)
    wait_until(lambda: not running.service.gate.active)  # though the model is still held
    assert running.service.catalogue.models[0].worker.waiting_tokens == 0
    free.set()
    with running.client() as other:
        assert translate(other).status_code == 200
        assert "heed_gone_total 1" in other.get("/metrics").text
        wait_until(lambda: 'path="/translate",status="499"} 1' in other.get("/metrics").text)


def test_the_limits_of_the_command_are_those_of_the_library():
    service = serve._service(parse("serve", []), [])
    assert service.limits == Limits() and service.settings.connections == ConnectionLimits()
    service.close()


def test_sizes_are_limited(start_with_client):
    _, client = start_with_client(limits={"characters": 20, "texts": 2, "bytes": 1000})
    assert translate(client, "가" * 20).status_code == 200
    assert translate(client, "가" * 21).json()["error"] == "there are 21 characters; the limit per request is 20"
    assert translate(client, ["가"] * 3).json()["error"] == "there are 3 texts; the limit per request is 2"
    large = translate(client, "가" * 900)
    assert large.status_code == 413 and "exceeds the limit of 1,000 bytes" in large.json()["error"]

    def chunks():
        for _ in range(20):
            yield b"x" * 100

    streamed = client.post("/translate", content=chunks(), headers={"content-type": "application/json"})
    assert streamed.status_code == 413


def test_a_long_text_of_one_request_does_not_hold_up_a_short_one(start_with_client, monkeypatch):
    running, _ = start_with_client(batch_tokens=64)
    worker, ran, answered = running.service.catalogue.models[0].worker, [], threading.Event()
    begun, come, run = threading.Event(), threading.Event(), worker.run

    def wait(key, items):
        """The first batch ends when the sentence has been submitted; after four, none begins before it is answered."""
        ran.append(items)
        begun.set()
        assert come.wait(20) and (len(ran) < 5 or answered.wait(20))
        return run(key, items)

    monkeypatch.setattr(worker, "run", wait)
    book = threading.Thread(
        target=_post, args=(running, "\n\n".join(f"{HELLO} {i}번 책을 읽었어요." for i in range(60)))
    )
    book.start()
    assert begun.wait(20)
    waiting = worker.waiting_tokens
    sentence = threading.Thread(target=lambda: _post(running, "나는 학교에 가요.") and answered.set())
    sentence.start()
    wait_until(lambda: worker.waiting_tokens > waiting)
    come.set()
    sentence.join(60)
    book.join(60)
    assert answered.is_set() and len(ran) > 8


def test_a_service_with_keys_refuses_requests_without_one(start_with_client, tmp_path):
    path = tmp_path / "keys"
    path.write_text("first-key\nsecond 2 1000  # a slow one\nthird - 12\n")
    _, client = start_with_client(keys=read_keys(path))
    assert translate(client).json()["error"].startswith("this service needs an api_key")
    assert translate(client, api_key="first").status_code == 403
    assert translate(client, api_key="first-key").status_code == 200
    assert (
        client.post("/translate", data={"q": "가", "source": "ko", "target": "en", "api_key": "first-key"}).status_code
        == 200
    )
    assert (
        client.post("/v1/translate", json={"text": "가"}, headers={"Authorization": "Bearer first-key"}).status_code
        == 200
    )
    assert client.get("/v1/runs").status_code == 403
    assert client.get("/languages").status_code == 200
    assert [translate(client, api_key="second").status_code for _ in range(3)] == [200, 200, 429]
    assert [translate(client, api_key="third").status_code for _ in range(2)] == [200, 429]
    assert int(translate(client, api_key="third").headers["retry-after"]) >= 1


def test_every_key_is_compared_in_constant_time(tmp_path, monkeypatch):
    """Whichever key is given, the same comparisons are made, with hmac.compare_digest."""
    path = tmp_path / "keys"
    path.write_text("first\nsecond\nthird\n")
    keys, compared = read_keys(path), []
    compare = hmac.compare_digest
    monkeypatch.setattr("hmac.compare_digest", lambda a, b: compared.append((len(a), len(b))) or compare(a, b))
    for shown in ("first", "third", "x", "first" * 1000):
        compared.clear()
        with suppress(Refusal):
            keys.find(shown)
        assert compared == [(32, 32)] * 3
    assert b"first" not in b"".join(key.digest for key in keys.keys)  # keys themselves are not kept


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "has no keys"),
        ("a\na\n", "line 2: this key occurs twice"),
        ("a b\n", "line 1: a line is a key"),
        ("a 0", "line 1"),
    ],
)
def test_a_file_of_keys_is_checked(tmp_path, text, sentence):
    path = tmp_path / "keys"
    path.write_text(text)
    with pytest.raises(ValueError, match=sentence):
        read_keys(path)


def test_a_file_of_keys_that_cannot_be_read_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="none: the keys cannot be read: No such file or directory"):
        read_keys(tmp_path / "none")
    (tmp_path / "keys").write_bytes(b"k\xff\n")
    with pytest.raises(ValueError, match="keys is not UTF-8: write one key per line"):
        read_keys(tmp_path / "keys")


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_port_out_of_range_is_an_error(port):
    with pytest.raises(
        ValueError, match=rf"{port} is not a valid port: --port must be from 0 \(any free port\) to 65535"
    ):
        bind_socket("127.0.0.1", port)


def test_the_quota_of_a_key_is_per_minute(tmp_path):
    path = tmp_path / "keys"
    path.write_text("k 1\n")
    keys: ApiKeys = read_keys(path)
    key = keys.find("k")
    key.charge(5, 100.0)
    with pytest.raises(Refusal) as refused:
        key.charge(5, 130.0)
    assert refused.value.status == 429 and refused.value.retry_after == 30
    key.charge(5, 160.0)


def test_all_threads_are_started_in_advance(start):
    service = start(both=False, limits={"requests": 5}).service
    service.warm()
    assert len(service.pool._threads) == 13


def test_half_of_the_room_is_left_for_short_ones():
    gate = Gate(Limits(requests=4))
    first, _ = gate.enter(2001), gate.enter(2001)
    with pytest.raises(Refusal, match="try again later"):
        gate.enter(2001)
    gate.enter(2000)
    gate.leave(first)
    gate.enter(2001)


def test_a_gate_counts_characters_but_lets_one_in():
    gate = Gate(Limits(waiting=10))
    ticket = gate.enter(100)
    with pytest.raises(Refusal):
        gate.enter(1)
    gate.leave(ticket)
    gate.enter(1)
    gate.closing = True
    with pytest.raises(Refusal, match="shutting down"):
        gate.enter(1)
    with pytest.raises(ValueError, match="the limit of texts is 0"):
        Limits(texts=0)


def test_a_form_has_a_limited_number_of_fields():
    assert len(_form(b"&".join(b"%d=1" % number for number in range(MAX_FIELDS)))) == MAX_FIELDS
    with pytest.raises(Refusal, match="the form has more than 2,000 fields"):
        _form(b"&".join(b"%d=1" % number for number in range(MAX_FIELDS + 1)))
    with pytest.raises(Refusal, match="the form is not UTF-8"):
        _form(b"q=\xff")

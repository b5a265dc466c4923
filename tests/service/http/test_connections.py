"""What a connection may do before anything of a request is looked at."""

import socket
from contextlib import ExitStack, suppress
from dataclasses import replace
from types import SimpleNamespace

import pytest

from heed.service.http.connections import (
    MAX_HEADERS,
    MAX_PIPELINED,
    BoundedProtocol,
    ConnectionLimits,
    Connections,
    client_name,
)
from heed.service.http.limits import ClientQuotas, Limits, Quota, Refusal
from heed.service.http.server import _within_open_files
from heed.service.http.service import Service, Settings
from tests.service.http.conftest import RunningService
from tests.service.http.test_limits import wait_until

HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"


@pytest.fixture
def begin(request):
    """Starts a service without models, with limits of connections."""

    def start(limits=None, **connections) -> RunningService:
        settings = Settings(limits=limits or Limits(), connections=ConnectionLimits(**connections))
        running = RunningService(Service([], settings))
        request.addfinalizer(running.stop)
        return running

    return start


def connect(running, sent=b"") -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", running.port), timeout=120)
    connection.sendall(sent)
    return connection


def hurry(running, received=0, **limits) -> None:
    """Shorten the limits of the open connection once the server has got so much: a busy machine must not be late itself."""
    wait_until(lambda: [one.unparsed for one in tuple(running.server.connections.open)] == [received])
    for one in tuple(running.server.connections.open):
        one.limits = replace(one.limits, **limits)


def read_all(connection) -> bytes:
    """What is answered until the server closes the connection."""
    said = b""
    with suppress(ConnectionResetError):
        while part := connection.recv(1 << 16):
            said += part
    return said


def read_answer(connection) -> bytes:
    """One answer with its JSON; the connection stays open."""
    said = b""
    while not said.endswith(b"}"):
        said += connection.recv(1 << 16) or pytest.fail("it was closed")
    return said


@pytest.mark.parametrize(
    "head",
    [
        HEALTH + b"a: " + b"b" * 3_000,
        HEALTH + b"".join(b"a%d: %s\r\n" % (i, b"b" * 100) for i in range(30)) + b"\r\n",
        b"GET /?" + b"a" * 3_000,
    ],
    ids=["one without end", "many", "address"],
)
def test_headers_are_bounded_while_they_arrive(begin, head):
    running = begin(header_bytes=2_000)
    with connect(running, head[:100]) as connection:
        connection.sendall(head[100:1_900])
        connection.sendall(head[1_900:])
        said = read_all(connection)
    assert said.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
    assert b"the limit is 2,000 bytes, in at most 200 headers" in said
    wait_until(lambda: not running.server.connections.open)
    with connect(running, HEALTH + b"Connection: close\r\n\r\n") as connection:
        assert read_all(connection).startswith(b"HTTP/1.1 200 ")


def test_trailers_of_a_body_are_bounded_too(begin):
    head = HEALTH.replace(b"GET", b"POST") + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n"
    with connect(begin(header_bytes=2_000), head) as connection:
        assert read_answer(connection).startswith(b"HTTP/1.1 405 ")
        connection.sendall(b"b: " + b"c" * 3_000)
        assert read_all(connection).startswith(b"HTTP/1.1 431 ")


def test_headers_are_counted_with_their_colons_and_line_ends(begin):
    running, short = begin(header_bytes=1_300), b"a: b\r\n"
    with connect(running, HEALTH + short * 195 + b"Connection: close\r\n\r\n") as connection:  # 1,245 bytes
        assert read_all(connection).startswith(b"HTTP/1.1 200 ")


def test_who_stops_the_server_waits_longer_than_a_request_may_take(begin):
    assert begin(Limits(seconds=7)).server.config.timeout_graceful_shutdown > 7


def test_many_short_headers_are_refused_though_their_bytes_are_few(begin):
    running = begin()
    with connect(running, HEALTH + b"a:\r\n" * (MAX_HEADERS - 2) + b"Connection: close\r\n\r\n") as connection:
        assert read_all(connection).startswith(b"HTTP/1.1 200 ")
    with connect(running, HEALTH + b"a:\r\n" * (MAX_HEADERS + 2)) as connection:
        assert read_all(connection).startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize("sent", [b"", b"\r\n", b"GET / HT", HEALTH], ids=["nothing", "line end", "method", "header"])
def test_a_request_that_does_not_come_ends_the_connection(begin, sent):
    running = begin(header_seconds=600)
    with connect(running, sent) as connection:
        hurry(running, len(sent), header_seconds=0.05)
        said = read_all(connection)
    assert said.startswith(b"HTTP/1.1 408 ") and b"did not arrive within 0.05 seconds: send it again" in said


@pytest.mark.parametrize("sent", [b"", b"G"])
def test_a_connection_ends_after_its_answer_if_nothing_more_comes(begin, sent):
    """By the idle time, or by that of headers if a next request has begun."""
    running = begin(idle_seconds=600 if sent else 1, header_seconds=600)
    with connect(running, HEALTH + b"\r\n") as connection:
        assert read_answer(connection).startswith(b"HTTP/1.1 200 ")
        connection.sendall(sent)
        if sent:
            hurry(running, len(sent), header_seconds=0.05)
        assert (b"408" in read_all(connection)) == bool(sent)


def test_a_body_that_nobody_reads_does_not_hold_a_connection(begin):
    running = begin(header_seconds=600, idle_seconds=600)
    head = b"POST /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n"
    with connect(running, head) as connection:
        assert read_answer(connection).startswith(b"HTTP/1.1 404 ")
        connection.sendall(b"a")
        hurry(running, header_seconds=0.05)
        read_all(connection)
    wait_until(lambda: not running.server.connections.open)


def test_an_answer_that_is_not_read_is_dropped(begin, monkeypatch):
    running = begin(idle_seconds=600)
    monkeypatch.setattr("heed.service.page.asset", lambda name: (b"a" * (8 << 20), "text/plain"))
    with connect(running, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n") as connection:
        wait_until(lambda: any(one.unsent for one in tuple(running.server.connections.open)))
        hurry(running, idle_seconds=0.1)
        wait_until(lambda: not running.server.connections.open)
        said = read_all(connection)
    assert len(said) < 8 << 20, "what the client had not read was sent on"
    assert not running.server.connections.of_client


@pytest.mark.parametrize(("sent", "dropped"), [(2047, True), (2048, False)])
def test_an_answer_must_be_read_at_a_kilobyte_a_second(sent, dropped):
    """Two seconds are given, and this much of 10,000 bytes is read in them."""
    aborted, waiting, clock = [], [10_000], [0.0]
    transport = SimpleNamespace(get_write_buffer_size=lambda: waiting[0], abort=lambda: aborted.append(True))
    own = SimpleNamespace(
        loop=SimpleNamespace(time=lambda: clock[0]), limits=ConnectionLimits(idle_seconds=2), head_since=None,
        transport=transport, unsent=0, unsent_since=0.0,
    )  # fmt: skip
    BoundedProtocol.close_if_overdue(own)
    clock[0], waiting[0] = 2.0, 10_000 - sent
    BoundedProtocol.close_if_overdue(own)
    assert not aborted  # the two seconds are not over
    clock[0] = 2.1
    BoundedProtocol.close_if_overdue(own)
    assert bool(aborted) == dropped and (own.unsent, own.unsent_since) == (10_000 - sent, 2.1)


def test_connections_are_counted_in_all_and_by_client(begin):
    running = begin(connections=5, client_connections=3)
    with ExitStack() as stack:
        held = [stack.enter_context(connect(running)) for _ in range(3)]
        wait_until(lambda: len(running.server.connections.open) == 3)
        said = read_all(stack.enter_context(connect(running)))
        assert said.startswith(b"HTTP/1.1 503 ") and b"\r\nRetry-After: 1\r\n" in said
        assert b"127.0.0.1 has 3 open connections" in said
        held[0].close()
        wait_until(lambda: len(running.server.connections.open) == 2)
        held[1].sendall(HEALTH + b"Connection: close\r\n\r\n")
        assert read_all(held[1]).startswith(b"HTTP/1.1 200 ")
    wait_until(lambda: not running.server.connections.open)
    assert not running.server.connections.of_client


def test_all_clients_together_have_a_limit():
    table = Connections(ConnectionLimits(connections=2, client_connections=2))
    protocols = [object(), object(), object()]
    found = [table.add(one, f"10.0.0.{i}") for i, one in enumerate(protocols)]
    assert found == [None, None, "too many connections are open: try again later"]
    table.remove(protocols[2])  # it was never counted
    table.remove(protocols[0])
    assert table.add(protocols[2], "10.0.0.2") is None


def test_pipelined_requests_are_bounded(begin):
    running = begin()
    with connect(running, (HEALTH + b"\r\n") * (MAX_PIPELINED + 1)) as connection:
        said = b""
        while said.count(b"HTTP/1.1 200 ") < MAX_PIPELINED + 1:
            said += connection.recv(1 << 16) or pytest.fail("it was closed")
    with connect(running, (HEALTH + b"\r\n") * 1_000) as connection:
        assert read_all(connection).count(b"HTTP/1.1 200 ") <= MAX_PIPELINED + 1


@pytest.mark.parametrize(
    ("address", "name"),
    [("10.0.0.1", "10.0.0.1"), ("2001:db8::1", "2001:db8::/64"), ("::ffff:10.0.0.1", "10.0.0.1"), ("x", "x")],
)
def test_a_client_is_known_by_its_address_or_its_network(address, name):
    assert client_name(address) == name
    if "::1" in address:
        assert client_name("2001:db8::ffff:1") == name != client_name("2001:db8:0:1::1")


def test_requests_of_one_client_are_limited_before_its_key_and_its_body_are_read(begin):
    running = begin(Limits(client_requests=2))
    with running.client() as client:
        codes = [client.post("/nowhere", content=b"{").status_code for _ in range(3)]
        assert codes == [404, 404, 429]
        refused = client.post("/translate", json={})
        assert refused.json()["error"] == "one client may send 2 requests per minute: try again later"
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert client.get("/health").status_code == 200  # pages are not counted


def test_characters_of_one_client_are_limited(start):
    with start(both=False, limits={"client_characters": 12}).client() as client:
        asked = {"q": "가" * 10, "source": "ko", "target": "en"}
        assert [client.post("/translate", json=asked).status_code for _ in range(2)] == [200, 429]


def test_a_quota_forgets_after_a_minute_and_keeps_one_entry_a_second():
    quota = Quota("you", 1_000, 10_000)
    for number in range(1_000):
        quota.charge(1, 10, 100 + number / 100)
    assert len(quota.recent) <= 10
    with pytest.raises(Refusal, match="you may send 1,000 requests per minute"):
        quota.charge(1, 0, 120.0)
    with pytest.raises(Refusal, match="you may send 10,000 characters per minute"):
        quota.charge(0, 1, 120.0)
    quota.charge(0, 0, 120.0)  # nothing is over nothing
    quota.charge(1_000, 10_000, 180.0)


def test_clients_are_limited_each_for_itself_and_the_oldest_are_forgotten(monkeypatch):
    monkeypatch.setattr("heed.service.http.limits.MAX_CLIENTS", 2)
    quotas = ClientQuotas(Limits(client_requests=1))
    quotas.charge("10.0.0.1", 1, 0, 0.0)
    quotas.charge("10.0.0.2", 1, 0, 0.0)
    with pytest.raises(Refusal):
        quotas.charge("10.0.0.1", 1, 0, 1.0)
    quotas.charge("10.0.0.3", 1, 0, 1.0)
    assert list(quotas.quotas) == ["10.0.0.1", "10.0.0.3"]


@pytest.mark.parametrize(
    "name", ["header_bytes", "header_seconds", "idle_seconds", "connections", "client_connections"]
)
def test_a_limit_is_above_0(name):
    with pytest.raises(ValueError, match=f"the limit of {name.replace('_', ' ')} is 0; it must be above 0"):
        ConnectionLimits(**{name: 0})


@pytest.mark.parametrize(
    ("soft", "hard", "found"), [(200, 200, 72), (200, 10_000, 1024), (5_000, 5_000, 1024), (24, 24, 1)]
)
def test_there_are_no_more_connections_than_files_that_may_be_open(monkeypatch, soft, hard, found):
    """One more would fail when it is accepted; the system's limit is raised as far as it can be."""
    raised = []
    monkeypatch.setattr("resource.getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr("resource.setrlimit", lambda _, limits: raised.append(limits))
    assert _within_open_files(ConnectionLimits()).connections == found
    assert raised == ([] if soft > 1_152 else [(min(1_152, hard), hard)])

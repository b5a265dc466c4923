"""The names that a service answers to: a page that makes its own name lead here (DNS rebinding) reads nothing."""

import pytest

from heed.service.http.hosts import check_host, host_name, is_loopback
from heed.service.http.limits import Refusal
from heed.service.http.service import Service, Settings
from tests.service.http.conftest import RunningService


def status(host, *allowed) -> int:
    """What a request with this Host is answered with."""
    try:
        check_host(scope(host), allowed)
    except Refusal as refused:
        assert "is not allowed: start heed serve with --allowed-host NAME" in str(refused)
        return refused.status
    return 200


def scope(*hosts, server=("10.0.0.7", 80)):
    return {"headers": [(b"host", host.encode("latin-1")) for host in hosts], "server": server}


@pytest.mark.parametrize(
    "host",
    ["localhost", "LocalHost:8000", "localhost.", "a.localhost", "127.0.0.1:8000", "127.9.9.9", "[::1]:80", "[::1]", "10.0.0.7:80",
     "mine.example", "Mine.Example.:80", "[2001:db8::1]:80"],
)  # fmt: skip
def test_loopback_names_the_address_reached_and_allowed_names_are_answered(host):
    assert status(host, "mine.example", "2001:db8::1") == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "localhost.evil.example", "notlocalhost", "127.0.0.1.evil.example", "10.0.0.8", "", "a b", "localhost:x",
     "localhost@evil.example", "x\"><script>", "0.0.0.0", "[::1", "::1", "é"],
)  # fmt: skip
def test_every_other_host_is_refused(host):
    assert (status(host, "mine.example"), status(host, "*")) == (421, 200)


def test_a_request_has_one_host_and_programs_may_send_none():
    with pytest.raises(Refusal, match="several Host headers"):
        check_host(scope("localhost", "evil.example"), ("*",))
    check_host(scope(), ())
    check_host(scope("localhost", server=None), ())


def test_a_host_is_read_without_its_port():
    assert [host_name(own) for own in ("A.b:1", "[::1]:1", "a:b:1", "a:")] == ["a.b", "::1", "", "a"]


def test_nothing_is_read_under_another_name_whatever_is_asked_for():
    running = RunningService(Service([], Settings()))
    with running.client() as client:
        for method, place in (
            ("GET", "/"),
            ("GET", "/v1/models"),
            ("GET", "/metrics"),
            ("POST", "/translate"),
            ("GET", "/x"),
        ):
            said = client.request(method, place, headers={"Host": "evil.example"})
            assert said.status_code == 421 and "evil" not in said.text + str(said.headers)
            assert client.request(method, place).status_code != 421
    running.stop()


@pytest.mark.parametrize(
    ("host", "right"),
    [("localhost", True), ("a.localhost", True), ("127.0.0.9", True), ("::1", True), ("10.0.0.1", False), ("local.host", False)],
)  # fmt: skip
def test_only_these_always_lead_to_the_machine_that_asks(host, right):
    assert is_loopback(host) is right

"""What `bench.soak` calls a failure."""

import pytest
from bench.soak import failures, summary
from bench.soak_clients import Client


def row(client="short", p99=0.01, answered=1000, **more):
    return {
        "client": client,
        "answered": answered,
        "refused": 0,
        "wrong": [],
        "broken": [],
        "p50": p99,
        "p99": p99,
        **more,
    }


STEADY = [(float(i), 400.0 + i % 3) for i in range(40)]


def test_nothing_is_wrong_with_a_service_that_holds():
    assert failures(row(), [row(p99=0.029), row("long", 2.0)], STEADY) == []


@pytest.mark.parametrize(
    ("rows", "held", "said"),
    [
        ([row(p99=0.031)], STEADY, "short requests took 3.1 times as long under load"),
        ([row(), row("files", wrong=["x"])], STEADY, "1 answers to files were wrong: x"),
        ([row(), row("attack", broken=["500 at /"])], STEADY, "1 answers to attack were broken: 500 at /"),
        ([row(refused=20)], STEADY, "20 short requests were refused"),
        ([row()], [(float(i), 400.0 + 10 * i) for i in range(40)], "memory grew from 500 to 790 MB"),
        ([row(answered=0, p99=None)], STEADY, "no short request was answered"),
    ],
)
def test_each_failure_is_told(rows, held, said):
    (one,) = failures(row(), rows, held)
    assert one.startswith(said)


def test_an_answer_is_right_wrong_refused_or_broken():
    client = Client("short", 0, lambda _: None, 0.0, 1)
    for status, right in ((200, True), (200, False), (503, False), (429, False), (500, False)):
        client.judge(status, right, "shown", 0.5)
    found = summary("short", [client])
    assert (found["answered"], found["refused"], found["wrong"], found["broken"]) == (1, 2, ["shown"], ["500: shown"])
    assert found["p99"] == 0.5 and found["statuses"] == {"200": 2, "503": 1, "429": 1, "500": 1}

"""The clients of `bench.soak`. Each asks until the time is up; what is answered is compared with what one thread says alone."""

import http.client
import json
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

REFUSED = (429, 503)
BOUNDARY = "soak-boundary"


@dataclass
class Expected:
    """Requests with their only right answers."""

    pair: tuple[str, str]
    short: list[tuple[str, str]]
    long: list[tuple[str, str]]
    kept: list[tuple[str, str]]  # with numbers and placeholders
    terms: list[tuple[str, dict[str, str], str]]
    files: list[tuple[str, bytes, bytes]]


@dataclass
class Found:
    """What came of one kind of client."""

    seconds: list[float] = field(default_factory=list)
    answered: int = 0
    refused: int = 0
    wrong: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    statuses: Counter = field(default_factory=Counter)


class Client:
    """One client in a thread; `work` asks once."""

    def __init__(self, name: str, port: int, work: Callable[["Client"], None], pause: float, seed: int):
        self.name, self.port, self.work, self.pause = name, port, work, pause
        self.found, self.chance = Found(), random.Random(seed)

    def run(self, over: threading.Event) -> None:
        while not over.is_set():
            try:
                self.work(self)
            except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
                self.found.broken.append(f"{type(error).__name__}: {error}"[:200])
            over.wait(self.pause)

    def post(self, path: str, body: bytes, kind: str = "application/json") -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.request("POST", path, body, {"Content-Type": kind})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def get(self, path: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def judge(self, status: int, right: bool, shown: Any, seconds: float) -> None:
        """Count an answer: right, wrong, refused as too many may be, or broken."""
        self.found.statuses[status] += 1
        if status == 200 and right:
            self.found.answered += 1
            self.found.seconds.append(seconds)
        elif status == 200:
            self.found.wrong.append(str(shown)[:200])
        elif status in REFUSED:
            self.found.refused += 1
        else:
            self.found.broken.append(f"{status}: {shown}"[:200])


def body_of(expected: Expected, text: str, field_name: str = "q", **more: Any) -> bytes:
    source, target = expected.pair
    return json.dumps({field_name: text, "source": source, "target": target, **more}, ensure_ascii=False).encode()


def texts(expected: Expected, kind: str) -> Callable[[Client], None]:
    """Short or long texts."""

    def work(client: Client) -> None:
        text, right = client.chance.choice(getattr(expected, kind))
        start = time.perf_counter()
        status, said = client.post("/translate", body_of(expected, text))
        seconds = time.perf_counter() - start
        client.judge(status, status == 200 and json.loads(said)["translatedText"] == right, said.decode(), seconds)

    return work


def glossaries(expected: Expected) -> Callable[[Client], None]:
    def work(client: Client) -> None:
        text, terms, right = client.chance.choice(expected.terms)
        start = time.perf_counter()
        status, said = client.post("/v1/translate", body_of(expected, text, "text", glossary=terms))
        seconds = time.perf_counter() - start
        found = json.loads(said)["translations"][0]["text"] if status == 200 else ""
        client.judge(status, found == right, said.decode(), seconds)

    return work


def files(expected: Expected) -> Callable[[Client], None]:
    def work(client: Client) -> None:
        name, data, right = client.chance.choice(expected.files)
        parts = [b'--%s\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % (BOUNDARY.encode(), one.encode(), two.encode())
                 for one, two in zip(("source", "target"), expected.pair, strict=True)]  # fmt: skip
        head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode()
        body = b"".join(parts) + head + data + f"\r\n--{BOUNDARY}--\r\n".encode()
        start = time.perf_counter()
        status, said = client.post("/translate_file", body, f"multipart/form-data; boundary={BOUNDARY}")
        if status == 200:
            place = json.loads(said)["translatedFileUrl"]
            status, said = client.get(place[place.index("/download_file/") :])
        client.judge(status, said == right, said[:200], time.perf_counter() - start)

    return work


def slow_readers(expected: Expected) -> Callable[[Client], None]:
    """Send a request in pieces, and read its answer in pieces."""

    def work(client: Client) -> None:
        text, right = client.chance.choice(expected.long)
        body = body_of(expected, text)
        head = f"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        start, found = time.perf_counter(), b""
        with socket.create_connection(("127.0.0.1", client.port), timeout=120) as link:
            for part in (head.encode(), body[:100], body[100:]):
                link.sendall(part)
                time.sleep(0.3)
            while part := link.recv(512):
                found += part
                time.sleep(0.05)
        top, _, said = found.partition(b"\r\n\r\n")
        status = int(top.split()[1])
        whole = status == 200 and json.loads(said)["translatedText"] == right
        client.judge(status, whole, said[:200], time.perf_counter() - start)

    return work


def leaving(expected: Expected) -> Callable[[Client], None]:
    """Leave before the answer."""

    def work(client: Client) -> None:
        text, _ = client.chance.choice(expected.long)
        body = body_of(expected, text)
        head = f"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", client.port), timeout=120) as link:
            link.sendall(head.encode() + body[: client.chance.choice((20, len(body)))])
            time.sleep(client.chance.random() * 0.2)
        client.found.answered += 1

    return work


def attacker(expected: Expected) -> Callable[[Client], None]:
    """What takes memory or time, or breaks parsers. Any answer will do that is no failure of the service."""
    heavy = " ".join(word for text, _ in expected.short for word in text.split())[:20_000]
    terms = {word: word.upper() + "x" for word in heavy.split()[:30]}
    bodies = [
        b'{"q": ' + b"[" * 50_000, b"\xff" * 1000, b"{}", b"null", json.dumps({"q": ["a"] * 501}).encode(),
        body_of(expected, heavy), body_of(expected, "(" * 50_000), body_of(expected, "`" * 20_000 + "{" * 20_000),
        body_of(expected, heavy[:300], "text", beam=16, nbest=10, glossary=terms), body_of(expected, heavy[:500], "text", rerank="mbr"),
    ]  # fmt: skip

    def work(client: Client) -> None:
        kind = client.chance.randrange(4)
        if kind == 0:
            links = [socket.create_connection(("127.0.0.1", client.port), timeout=30) for _ in range(20)]
            for link in links:
                link.sendall(b"POST /translate HTTP/1.1\r\nHost: x\r\nX-A: ")
            time.sleep(0.5)
            for link in links:
                link.close()
            return
        if kind == 1:
            with socket.create_connection(("127.0.0.1", client.port), timeout=30) as link:
                link.sendall(b"GET / HTTP/1.1\r\n" + b"X-Long: " + b"a" * 200_000)
                link.recv(1000)
            return
        path = client.chance.choice(("/translate", "/v1/translate", "/v1/look", "/detect", "/v1/completions"))
        status, _ = client.post(path, client.chance.choice(bodies))
        client.found.statuses[status] += 1
        client.found.answered += 1
        if status >= 500 and status not in REFUSED:
            client.found.broken.append(f"{status} at {path}")

    def forgiving(client: Client) -> None:
        try:
            work(client)
        except (OSError, http.client.HTTPException):  # it was thrown out
            client.found.statuses["closed"] += 1

    return forgiving

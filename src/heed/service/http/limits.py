"""Request limits: sizes, concurrency, and API keys with quotas."""

import hashlib
import hmac
import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from heed.service.http.connections import client_name
from heed.service.http.queue import Ticket

SHORT_SLOTS = 1  # threads that process short texts at once: each more delays the event loop
MAX_CLIENTS = 10_000  # whose last minute is remembered
LONG_REQUEST = 2_000  # characters: longer requests have a slot of their own, so that short ones do not wait for them


class Refusal(Exception):
    """An error response: a status, a message for the user, and the seconds after which to retry. `details` are added
    to the message, for pages.
    """

    def __init__(
        self, status: int, message: str, retry_after: int | None = None, details: dict[str, Any] | None = None
    ):
        super().__init__(message)
        self.status, self.message, self.retry_after, self.details = status, message, retry_after, details or {}


@dataclass(frozen=True)
class Limits:
    """Per request: characters, texts, bytes, seconds. In total: `requests`, and `waiting` characters in them. Per
    client and minute: `client_requests` and `client_characters`; None is unlimited.
    """

    characters: int = 100_000
    texts: int = 500
    bytes: int = 10 << 20
    seconds: int | float = 60.0
    requests: int = 64
    waiting: int = 1_000_000
    client_requests: int | None = None
    client_characters: int | None = None

    @property
    def text_bytes(self) -> int:
        """Bytes of a body without a file: enough for the characters in any encoding, and for a glossary."""
        return min(self.bytes, 12 * self.characters + (1 << 20))

    @property
    def all_bytes(self) -> int:
        """Bytes of the bodies of all requests at once."""
        return 8 * self.bytes

    def __post_init__(self):
        for one in fields(self):
            if (value := getattr(self, one.name)) is not None and value <= 0:
                raise ValueError(f"the limit of {one.name.replace('_', ' ')} is {value}; it must be above 0")

    def check(self, texts: Iterable[str]) -> int:
        """The number of characters; too many texts or characters are refused."""
        texts = list(texts)
        if len(texts) > self.texts:
            raise Refusal(400, f"there are {len(texts):,} texts; the limit per request is {self.texts:,}")
        return self.check_size(sum(map(len, texts)))

    def check_size(self, characters: int) -> int:
        if characters > self.characters:
            raise Refusal(400, f"there are {characters:,} characters; the limit per request is {self.characters:,}")
        return characters


class Gate:
    """Admission control of requests. Used by the event loop only, so it needs no lock."""

    def __init__(self, limits: Limits):
        self.limits = limits
        self.active: dict[Ticket, int] = {}  # the characters of each admitted request
        self.characters = 0
        self.finished: deque[tuple[float, int]] = deque(maxlen=50)  # when the last requests ended, and their characters
        self.closing = False
        self.short_slots, self.long_slots = threading.Semaphore(SHORT_SLOTS), threading.Semaphore(1)

    def check(self, characters: int = 0) -> None:
        """Refuse a request if there is no room for it."""
        if self.closing:
            raise Refusal(503, "the service is shutting down: try again later", 5)
        full = self.active and self.characters + characters > self.limits.waiting
        most = self.limits.requests
        if characters > LONG_REQUEST:  # half of the room is left for short ones
            full = full or sum(size > LONG_REQUEST for size in self.active.values()) >= max(1, most // 2)
        if len(self.active) >= most or full:
            raise Refusal(503, "the service is overloaded: try again later", self._retry_after())

    def enter(self, characters: int, long: bool = False) -> Ticket:
        """Admit a request, or refuse it; `long` ones never take the slots of short ones."""
        self.check(characters)
        ticket = Ticket(self.long_slots if long or characters > LONG_REQUEST else self.short_slots)
        self.active[ticket] = characters
        self.characters += characters
        return ticket

    def leave(self, ticket: Ticket) -> None:
        self.characters -= self.active[ticket]
        self.finished.append((time.monotonic(), self.active.pop(ticket)))

    def _retry_after(self) -> int:
        """Seconds until the active requests may be done, at the recent speed."""
        if len(self.finished) < 2:
            return 1
        speed = sum(size for _, size in self.finished) / max(1e-3, time.monotonic() - self.finished[0][0])
        return min(60, max(1, math.ceil(self.characters / max(speed, 1.0))))


class Quota:
    """Requests and characters allowed per minute; None is unlimited."""

    def __init__(self, who: str, requests: int | None, characters: int | None):
        self.who, self.requests, self.characters = who, requests, characters
        self.recent: deque[list[int | float]] = deque()  # of the last minute, by second: a time, requests, characters

    def charge(self, requests: int, characters: int, now: float) -> None:
        """Count requests and characters; those over the quota are refused."""
        if self.requests is None and self.characters is None:
            return
        while self.recent and self.recent[0][0] <= now - 60:
            self.recent.popleft()
        retry = max(1, math.ceil(self.recent[0][0] + 60 - now)) if self.recent else 1
        _, sent, read = map(sum, zip((0, requests, characters), *self.recent, strict=True))
        if requests and self.requests is not None and sent > self.requests:
            raise Refusal(429, f"{self.who} may send {self.requests:,} requests per minute: try again later", retry)
        if characters and self.characters is not None and read > self.characters:
            raise Refusal(429, f"{self.who} may send {self.characters:,} characters per minute: try again later", retry)
        if not self.recent or now - self.recent[-1][0] >= 1:
            self.recent.append([now, 0, 0])
        self.recent[-1][1] += requests
        self.recent[-1][2] += characters


class ClientQuotas:
    """What each client has sent in the last minute, by address. Used only by the event loop, so it needs no lock."""

    def __init__(self, limits: Limits):
        self.limits = limits
        self.quotas: OrderedDict[str, Quota] = OrderedDict()  # the client that was here last is the last

    def charge(self, address: str, requests: int, characters: int, now: float) -> None:
        """Count requests and characters of a client; those over its quota are refused."""
        if self.limits.client_requests is None and self.limits.client_characters is None:
            return
        name = client_name(address)
        if name not in self.quotas:
            self.quotas[name] = Quota("one client", self.limits.client_requests, self.limits.client_characters)
        self.quotas.move_to_end(name)
        if len(self.quotas) > MAX_CLIENTS:
            self.quotas.popitem(last=False)
        self.quotas[name].charge(requests, characters, now)


class ApiKey:
    """A key, by its digest, and its quota of requests and characters per minute; None is unlimited."""

    def __init__(self, digest: bytes, requests: int | None, characters: int | None):
        self.digest, self.quota = digest, Quota("this key", requests, characters)

    def charge(self, characters: int, now: float) -> None:
        """Count a request; one over the quota is refused."""
        self.quota.charge(1, characters, now)


class ApiKeys:
    """The keys of a file. A given key is compared by digest with all of them, in constant time."""

    def __init__(self, keys: list[ApiKey]):
        self.keys = keys

    def find(self, given: str | None) -> ApiKey:
        if not given:
            raise Refusal(403, "this service needs an api_key: send one with the request")
        digest, found = _digest(given), None
        for key in self.keys:
            if hmac.compare_digest(key.digest, digest):
                found = key
        if found is None:
            raise Refusal(403, "this api_key is invalid")
        return found


def read_keys(path: Path) -> ApiKeys:
    """One key per line, optionally followed by requests and characters per minute ("-" is no limit). # begins a comment."""
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise ValueError(f"{path}: the keys cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8: write one key per line, as plain text") from None
    keys, seen = [], set()
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        quotas = [
            None if word == "-" else int(word) if word.isdecimal() and len(word) < 19 else -1 for word in words[1:]
        ]
        if len(words) > 3 or any(value is not None and value < 1 for value in quotas):
            raise ValueError(
                f"{path}, line {number}: a line is a key, optionally followed by requests and characters per minute, "
                "as in 'KEY 60 10000'"
            )
        key = ApiKey(_digest(words[0]), *[*quotas, None, None][:2])
        if key.digest in seen:
            raise ValueError(f"{path}, line {number}: this key occurs twice")
        seen.add(key.digest)
        keys.append(key)
    if not keys:
        raise ValueError(f"{path} has no keys: write one per line")
    return ApiKeys(keys)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()

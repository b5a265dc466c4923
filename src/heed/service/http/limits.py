"""Who may come in, and with how much: sizes, the number of requests at once, keys."""

import hashlib
import hmac
import math
import threading
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from heed.service.http.queue import Ticket

TURNS = 1  # threads that work at short texts at once: each more keeps the event loop longer from its turn
LONG = (
    2_000  # characters: a request that has more takes its turns among its like, so that short ones do not wait for it
)


class Refusal(Exception):
    """An answer that is no success: a status, a sentence, and after how many seconds it is worth trying again."""

    def __init__(self, status: int, sentence: str, retry_after: int | None = None):
        super().__init__(sentence)
        self.status, self.sentence, self.retry_after = status, sentence, retry_after


@dataclass(frozen=True)
class Limits:
    """Of one request (characters, texts, bytes, seconds), and of all at once (requests, and the characters in them)."""

    characters: int = 100_000
    texts: int = 500
    bytes: int = 10 << 20
    seconds: int | float = 60.0
    requests: int = 64
    waiting: int = 1_000_000

    @property
    def text_bytes(self) -> int:
        """Of a body that is no file: as long as the characters can be written, and room for a glossary."""
        return min(self.bytes, 12 * self.characters + (1 << 20))

    @property
    def all_bytes(self) -> int:
        """Of the bodies of all requests at once."""
        return 8 * self.bytes

    def __post_init__(self):
        for name in ("characters", "texts", "bytes", "seconds", "requests", "waiting"):
            if getattr(self, name) <= 0:
                raise ValueError(f"the limit of {name} is {getattr(self, name)}; it must be above 0")

    def check(self, texts: Iterable[str]) -> int:
        """How many characters these are; too many are refused."""
        texts = list(texts)
        if len(texts) > self.texts:
            raise Refusal(400, f"there are {len(texts):,} texts; one request may have {self.texts:,}")
        return self.check_size(sum(map(len, texts)))

    def check_size(self, characters: int) -> int:
        if characters > self.characters:
            raise Refusal(400, f"there are {characters:,} characters; one request may have {self.characters:,}")
        return characters


class Gate:
    """Counts who is in. Asked by the event loop alone, so it needs no lock."""

    def __init__(self, limits: Limits):
        self.limits = limits
        self.inside: dict[Ticket, int] = {}
        self.characters = 0
        self.done: deque[tuple[float, int]] = deque(maxlen=50)  # when requests ended, and how long they were
        self.closing = False
        self.turns, self.long_turns = threading.Semaphore(TURNS), threading.Semaphore(1)

    def check(self, characters: int = 0) -> None:
        """A refusal at once, if there is no room."""
        if self.closing:
            raise Refusal(503, "the service is closing: come back when it is there again", 5)
        full = self.inside and self.characters + characters > self.limits.waiting
        room = self.limits.requests
        if characters > LONG:  # half of the room is left for short ones
            full = full or sum(size > LONG for size in self.inside.values()) >= max(1, room // 2)
        if len(self.inside) >= room or full:
            raise Refusal(503, "more is waiting than the service can take: come back later", self._seconds())

    def enter(self, characters: int, long: bool = False) -> Ticket:
        """A ticket, as long as there is room. Who is long takes its turns among its like."""
        self.check(characters)
        ticket = Ticket(self.long_turns if long or characters > LONG else self.turns)
        self.inside[ticket] = characters
        self.characters += characters
        return ticket

    def leave(self, ticket: Ticket) -> None:
        self.characters -= self.inside[ticket]
        self.done.append((time.monotonic(), self.inside.pop(ticket)))

    def _seconds(self) -> int:
        """In how long what is inside may be done, as fast as the last ones were."""
        if len(self.done) < 2:
            return 1
        speed = sum(size for _, size in self.done) / max(1e-3, time.monotonic() - self.done[0][0])
        return min(60, max(1, math.ceil(self.characters / max(speed, 1.0))))


@dataclass(eq=False)
class Key:
    """What one key may ask for in a minute; None is as much as it likes."""

    digest: bytes
    requests: int | None
    characters: int | None

    def __post_init__(self):
        self.used: deque[tuple[float, int]] = deque()

    def spend(self, characters: int, now: float) -> None:
        """Note a request; one that is too much is refused."""
        while self.used and self.used[0][0] <= now - 60:
            self.used.popleft()
        retry = max(1, math.ceil(self.used[0][0] + 60 - now)) if self.used else 1
        if self.requests is not None and len(self.used) >= self.requests:
            raise Refusal(429, f"this key may ask {self.requests:,} times a minute: come back later", retry)
        if self.characters is not None and sum(size for _, size in self.used) + characters > self.characters:
            raise Refusal(429, f"this key may send {self.characters:,} characters a minute: come back later", retry)
        if self.requests is not None or self.characters is not None:
            self.used.append((now, characters))


class Keys:
    """The keys of a file. Of a key that is shown, digests are compared, all of them and in constant time."""

    def __init__(self, keys: list[Key]):
        self.keys = keys

    def of(self, shown: str | None) -> Key:
        if not shown:
            raise Refusal(403, "this service needs an api_key: send one with the request")
        digest, found = _digest(shown), None
        for key in self.keys:
            if hmac.compare_digest(key.digest, digest):
                found = key
        if found is None:
            raise Refusal(403, "this api_key is not known here")
        return found


def read_keys(path: Path) -> Keys:
    """A key a line; after it, if wanted, requests a minute and characters a minute ("-" is no limit). # begins a comment."""
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise ValueError(f"{path}: the keys cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8: write a key a line, as plain text") from None
    keys, seen = [], set()
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        numbers = [None if word == "-" else int(word) if word.isdecimal() else -1 for word in words[1:]]
        if len(words) > 3 or any(value is not None and value < 1 for value in numbers):
            raise ValueError(
                f"{path}, line {number}: a line is a key and, if wanted, requests and characters a minute, as in 'KEY 60 10000'"
            )
        key = Key(_digest(words[0]), *[*numbers, None, None][:2])
        if key.digest in seen:
            raise ValueError(f"{path}, line {number}: this key stands there twice")
        seen.add(key.digest)
        keys.append(key)
    if not keys:
        raise ValueError(f"{path} has no keys: write one a line")
    return Keys(keys)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()

"""Connection limits, applied before a request is parsed: headers, time, and number of connections."""

import ipaddress
import json
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from http import HTTPStatus

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
MAX_HEADERS = 200  # of one request: many short ones take more memory than their bytes
MAX_PIPELINED = 16  # requests that a connection may send before the first is answered
MIN_BYTES_PER_SECOND = 1024  # at which a client must at least read its answer


@dataclass(frozen=True)
class ConnectionLimits:
    """What a client may do before, between and after its requests."""

    header_bytes: int = 64 << 10  # the address and the headers of one request
    header_seconds: int | float = 10.0  # for the address and the headers to arrive
    idle_seconds: int | float = 30.0  # for the next request, and for an answer to be read on
    connections: int = 1024  # of all clients
    client_connections: int = 256  # of one client

    def __post_init__(self):
        for one in fields(self):
            if getattr(self, one.name) <= 0:
                name = one.name.replace("_", " ")
                raise ValueError(f"the limit of {name} is {getattr(self, one.name)}; it must be above 0")


def client_name(address: str) -> str:
    """The client at an address: for IPv6 the first 64 bits, since one client has the whole prefix."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if found.version == 4:
        return address
    return str(found.ipv4_mapped or ipaddress.ip_network((int(found) >> 64 << 64, 64)))


def networks(addresses: Sequence[str]) -> list[Network]:
    """Addresses and networks, of which one may be wrong."""
    found = []
    for address in addresses:
        try:
            found.append(ipaddress.ip_network(address.strip()))
        except ValueError:
            raise ValueError(
                f"--trust-proxy is {address!r}: it must be an address or a network, such as 127.0.0.1 or 10.0.0.0/8"
            ) from None
    return found


class Connections:
    """The open connections of a server. Used by the event loop only, so it needs no lock."""

    def __init__(self, limits: ConnectionLimits, proxies: Sequence[Network] = ()):
        self.limits, self.proxies = limits, proxies
        self.open: dict[BoundedProtocol, str] = {}  # and whose they are
        self.of_client: Counter[str] = Counter()

    def add(self, protocol: "BoundedProtocol", client: str) -> str | None:
        """Count a connection; returns why there is no room for it, or None."""
        if len(self.open) >= self.limits.connections:
            return "too many connections are open: try again later"
        if self.of_client[client] >= self.limits.client_connections and not self._is_proxy(client):
            return f"{client} has {self.of_client[client]} open connections, which is the limit: close some"
        self.open[protocol] = client
        self.of_client[client] += 1
        return None

    def _is_proxy(self, client: str) -> bool:
        """Whether a trusted proxy is connected, which forwards the requests of many clients."""
        if not self.proxies:
            return False
        with suppress(ValueError):
            address = ipaddress.ip_network(client).network_address
            return any(address in network for network in self.proxies)
        return False

    def remove(self, protocol: "BoundedProtocol") -> None:
        if (client := self.open.pop(protocol, None)) is not None:
            self.of_client[client] -= 1
            if not self.of_client[client]:
                del self.of_client[client]

    def close_overdue(self) -> None:
        """Close the connections that have timed out."""
        for protocol in tuple(self.open):
            protocol.close_if_overdue()


class BoundedProtocol(HttpToolsProtocol):
    """Uvicorn's protocol with limits. Violations are refused with one sentence, and the connection is closed."""

    def __init__(self, *args, table: Connections, **kwargs):
        super().__init__(*args, **kwargs)
        self.table, self.limits = table, table.limits
        self.refusal = HTTPStatus.BAD_REQUEST, "this is not HTTP"  # if parsing fails
        self.head_size, self.unparsed = 0, 0  # bytes of headers, and of what the parser still gathers
        self.between = True  # no request has begun
        self.first = False  # the next request is the first in the bytes just received
        # since when a request has been awaited; None while one is being answered, and before the next
        self.head_since: float | None = None
        self.unsent, self.unsent_since = 0, 0.0  # bytes that the client had not read, and when

    def connection_made(self, transport) -> None:
        super().connection_made(transport)
        self.head_since = self.unsent_since = self.loop.time()
        if reason := self.table.add(self, client_name(self.client[0] if self.client else "")):
            self.refusal = HTTPStatus.SERVICE_UNAVAILABLE, reason
            self.send_400_response("")

    def connection_lost(self, exc: Exception | None) -> None:
        self.table.remove(self)
        super().connection_lost(exc)

    @property
    def answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def data_received(self, data: bytes) -> None:
        self.unparsed += len(data)
        self.first = self.between
        super().data_received(data)
        if not self.answering and self.head_since is None:
            self.head_since = self.loop.time()
        if self.unparsed > self.limits.header_bytes and not self.transport.is_closing():
            self._refuse_head()
            self.send_400_response("")

    def on_message_begin(self) -> None:
        if not self.first:  # what came before it belongs to others
            self.unparsed = 0
        self.head_size, self.between, self.first = 0, False, False
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value) + 4)
        super().on_header(name, value)
        if len(self.headers) > MAX_HEADERS:
            self._refuse_head()
            raise ValueError

    def on_headers_complete(self) -> None:
        self.unparsed, self.head_since = 0, None
        if len(self.pipeline) >= MAX_PIPELINED:
            raise ValueError
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self.unparsed = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self.unparsed, self.between = 0, True
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self.head_since = None
        super().on_response_complete()

    def _count(self, size: int) -> None:
        """Count bytes of a head, or of the trailers of a body; an error ends the parsing."""
        self.head_size += size
        if self.head_size > self.limits.header_bytes:
            self._refuse_head()
            raise ValueError

    def _refuse_head(self) -> None:
        most = f"{self.limits.header_bytes:,} bytes, in at most {MAX_HEADERS} headers"
        self.refusal = (
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
            f"the URL and the headers are too long: the limit is {most}",
        )

    def send_400_response(self, msg: str) -> None:
        """Uvicorn's name: send the refusal, unless another response has begun, and close the connection."""
        if not self.answering:
            status, message = self.refusal
            body = json.dumps({"error": message}).encode()
            retry = "Retry-After: 1\r\n" if status == HTTPStatus.SERVICE_UNAVAILABLE else ""
            head = f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: application/json\r\n{retry}"
            head += f"X-Content-Type-Options: nosniff\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            self.transport.write(head.encode("ascii") + body)
        self.pipeline.clear()
        self.transport.close()

    def close_if_overdue(self) -> None:
        """Close the connection if a request does not arrive, or a response is not read."""
        now = self.loop.time()
        late = self.head_since is not None and now - self.head_since > self.limits.header_seconds
        if late and not self.transport.is_closing():
            seconds = f"{self.limits.header_seconds:g} seconds"
            self.refusal = HTTPStatus.REQUEST_TIMEOUT, f"the request did not arrive within {seconds}: send it again"
            self.send_400_response("")
        unsent = self.transport.get_write_buffer_size()
        if not unsent:
            self.unsent, self.unsent_since = 0, now
        elif not self.unsent:
            self.unsent = unsent
        elif now - self.unsent_since > self.limits.idle_seconds:
            if self.unsent - unsent < MIN_BYTES_PER_SECOND * self.limits.idle_seconds:
                self.transport.abort()
            self.unsent, self.unsent_since = unsent, now

    def resume_writing(self) -> None:
        self.unsent, self.unsent_since = 0, self.loop.time()
        super().resume_writing()

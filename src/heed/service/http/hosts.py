"""The allowed host names. A page of another site could point its own name here (DNS rebinding) and read the
responses.
"""

import ipaddress
from collections.abc import Iterable

from starlette.types import Scope

from heed.service.http.limits import Refusal

MISDIRECTED = 421


def check_host(scope: Scope, allowed: Iterable[str]) -> None:
    """Refuse a request for another host than this machine, the address that the client reached, or an allowed one."""
    hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
    if not hosts:  # no browser sends none
        return
    if len(hosts) > 1:
        raise Refusal(400, "the request has several Host headers; it must have one")
    allowed = [own.lower().strip("[]").rstrip(".") for own in allowed]
    host = host_name(hosts[0])
    reached = ((scope.get("server") or ("",))[0] or "").lower()
    if (host and (is_loopback(host) or host == reached or host in allowed)) or "*" in allowed:
        return
    raise Refusal(MISDIRECTED, "this Host is not allowed: start heed serve with --allowed-host NAME to add one")


def host_name(header: str) -> str:
    """The name or address in a Host header, without its port; "" if it is neither."""
    host, _, port = header.rpartition(":") if not header.endswith("]") and ":" in header else (header, "", "")
    if port and not (port.isascii() and port.isdigit()):
        return ""
    bracketed = host.startswith("[") and host.endswith("]")
    name = host[1:-1] if bracketed else host
    valid = all(char.isascii() and (char.isalnum() or char in ".-_" or (bracketed and char == ":")) for char in name)
    return name.lower().rstrip(".") if valid else ""


def is_loopback(host: str) -> bool:
    """Whether a name or address always refers to the local machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

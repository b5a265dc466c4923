"""A server that shuts down gracefully: on SIGTERM it finishes running requests, refuses new ones and exits with 0."""

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial

import uvicorn
from fastapi import FastAPI

from heed.service.http.connections import BoundedProtocol, ConnectionLimits, Connections, networks
from heed.service.http.service import Service

BACKLOG = 1024
OTHER_FILES = 128  # open beside the connections


class Server(uvicorn.Server):
    """Uvicorn's server, except that connections are limited, and a handled signal is not raised again."""

    def __init__(self, app: FastAPI, service: Service):
        limits = _within_open_files(service.settings.connections)
        proxies = service.settings.trusted_proxies
        self.connections = Connections(limits, networks(proxies))
        # who asks is who is connected, unless that is a proxy that the operator trusts: anyone can write X-Forwarded-For
        forwarded = {"proxy_headers": bool(proxies), "forwarded_allow_ips": ",".join(proxies)}
        config = uvicorn.Config(
            app, log_config=None, access_log=False, server_header=False, timeout_keep_alive=limits.idle_seconds, ws="none",
            http=partial(BoundedProtocol, table=self.connections), timeout_graceful_shutdown=int(service.limits.seconds) + 5, backlog=BACKLOG,
            **forwarded,
        )  # fmt: skip
        super().__init__(config)
        self.service = service

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        previous = {sig: signal.signal(sig, self.handle_exit) for sig in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for sig, handler in previous.items():
                signal.signal(sig, handler)

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second."""
        self.connections.close_overdue()
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame) -> None:
        self.service.gate.closing = True
        super().handle_exit(sig, frame)


def _within_open_files(limits: ConnectionLimits) -> ConnectionLimits:
    """The limits, with at most as many connections as this process may open files: accepting one more would fail."""
    if os.name != "posix":
        return limits
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = limits.connections + OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        most = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            soft = most
        return replace(limits, connections=max(1, min(limits.connections, soft - OTHER_FILES)))
    return limits


def bind_socket(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 is any free one."""
    if not 0 <= port <= 65535:
        raise ValueError(f"{port} is not a valid port: --port must be from 0 (any free port) to 65535")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        bound.listen(BACKLOG)  # already now: a client may connect as soon as the address is printed
    except OSError as error:
        bound.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise ValueError(f"{host}, port {port}: {reason}; choose others with --host and --port") from None
    bound.set_inheritable(True)
    return bound

"""A server that ends well: on SIGTERM it finishes what it has, refuses what comes, and leaves with 0."""

import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from heed.service.http.service import Service

BACKLOG = 1024


class Server(uvicorn.Server):
    """Uvicorn's, but a signal that was obeyed is not sent again."""

    def __init__(self, app: FastAPI, service: Service):
        config = uvicorn.Config(
            app, log_config=None, access_log=False, server_header=False, timeout_keep_alive=30,
            timeout_graceful_shutdown=int(service.limits.seconds) + 5, backlog=BACKLOG, h11_max_incomplete_event_size=64 << 10,
        )  # fmt: skip
        super().__init__(config)
        self.service = service

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {sig: signal.signal(sig, self.handle_exit) for sig in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for sig, own in before.items():
                signal.signal(sig, own)

    def handle_exit(self, sig: int, frame) -> None:
        self.service.gate.closing = True
        super().handle_exit(sig, frame)


def listening(host: str, port: int) -> socket.socket:
    """A socket at an address; port 0 is any that is free."""
    if not 0 <= port <= 65535:
        raise ValueError(f"there is no port {port}: --port is from 0 (any that is free) to 65535")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
        found.listen(BACKLOG)  # who is told the address may come at once
    except OSError as error:
        found.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise ValueError(f"{host}, port {port}: {reason}; choose others with --host and --port") from None
    found.set_inheritable(True)
    return found

"""A service with two small models, ko to en and en to de, listening on this machine."""

import threading
import time

import httpx
import pytest

from heed.service.http.app import create_app
from heed.service.http.limits import Limits
from heed.service.http.models import ServedModel
from heed.service.http.server import Server, bind_socket
from heed.service.http.service import Service, Settings


class RunningService:
    """A service in a thread, and its address."""

    def __init__(self, service: Service):
        self.service = service
        self.server, found = Server(create_app(service), service), bind_socket("127.0.0.1", 0)
        self.port = found.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.server.run, args=([found],), daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)

    def client(self, timeout: float = 20) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=timeout, verify=False)

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join(20)
        assert not self.thread.is_alive()


@pytest.fixture(scope="session")
def ko_en(make):
    return make(16, max_source=48, facts={"trained": {"valid_bleu": 1.5}})


@pytest.fixture(scope="session")
def en_de(make):
    return make(17, max_source=48)


@pytest.fixture(scope="session")
def start(ko_en, en_de):
    """Starts services; all are stopped after the tests."""
    started = []

    def begin(keys=None, both=True, limits=None, **settings) -> RunningService:
        models = [ServedModel("ko-en", "ko", "en", ko_en), *([ServedModel("en-de", "en", "de", en_de)] if both else [])]
        settings = Settings(limits=Limits(**(limits or {})), **settings)
        started.append(RunningService(Service(models, settings, keys)))
        return started[-1]

    yield begin
    for one in started:
        if one.thread.is_alive():
            one.stop()


@pytest.fixture(scope="session")
def running(start):
    return start()


@pytest.fixture(scope="session")
def client(running):
    with running.client() as client:
        yield client

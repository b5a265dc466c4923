"""A request computes in one slot: it gives it up once while it waits, and has it again afterwards."""

import threading
from concurrent.futures import Future

import pytest

from heed.service.http import segmenter_pool
from heed.service.http.queue import Cancelled, Ticket, wait_for_results
from heed.service.http.segmenter import TextTask
from heed.service.http.segmenter_pool import SegmenterPool


class Watched(Future):
    """A result that counts the free slots while it is waited for."""

    def __init__(self, slots: threading.Semaphore):
        super().__init__()
        self.slots, self.free = slots, 0

    def result(self, timeout=None):
        while self.slots.acquire(blocking=False):
            self.free += 1
        for _ in range(self.free):
            self.slots.release()
        return super().result(timeout)


@pytest.fixture
def ticket():
    own = Ticket(threading.BoundedSemaphore(1))
    with own.slots:
        yield own
        assert not own.slots.acquire(blocking=False), "it has its slot again"


@pytest.mark.parametrize("error", [None, Cancelled()])
def test_who_waits_for_results_lends_one_slot(ticket, error):
    future = Watched(ticket.slots)
    future.set_exception(error) if error else future.set_result("found")
    if error:
        with pytest.raises(Cancelled):
            wait_for_results([future], ticket)
    else:
        assert wait_for_results([future], ticket) == ["found"]
    assert future.free == 1


def test_who_waits_for_a_process_lends_one_slot(ticket, monkeypatch):
    future = Watched(ticket.slots)
    future.set_result("taken apart")
    monkeypatch.setattr(segmenter_pool.SegmenterPool, "_run_in_process", lambda *_: future.result())
    pool = SegmenterPool(1)
    assert pool.run_step(TextTask("document", name="a.html"), {}, ticket) == "taken apart"
    assert future.free == 1
    assert pool.available.acquire(blocking=False) and not pool.available.acquire(blocking=False)

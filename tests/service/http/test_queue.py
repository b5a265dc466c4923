"""Batches: what goes together, whose turn it is, and what is cancelled."""

import os
import sys
import threading
import time

import pytest

from heed.service.http import queue
from heed.service.http.queue import BatchWorker, Cancelled, Ticket, wait_for_results


class Model:
    """Doubles its items; it can be blocked, and records its batches."""

    def __init__(self):
        self.batches, self.free = [], threading.Event()
        self.free.set()
        self.begun = threading.Event()

    def __call__(self, key, items):
        self.begun.set()
        assert self.free.wait(10)
        self.batches.append(list(items))
        if "bad" in items:
            raise ValueError("bad is bad")
        return [item * 2 for item in items]


@pytest.fixture
def model():
    return Model()


@pytest.fixture
def worker(model):
    made = BatchWorker("test", model, max_wait=0.0, max_tokens=10, max_jobs=4)
    yield made
    model.free.set()
    made.close()


def hold(worker, model):
    """Keep the worker busy until `model.free` is set."""
    model.free.clear()
    model.begun.clear()
    first = worker.submit(Ticket(), "a", [0], [1])
    assert model.begun.wait(10)
    return first


def test_waiting_jobs_share_batches_within_the_limits_of_jobs_and_tokens(worker, model):
    hold(worker, model)
    many = [worker.submit(Ticket(), "a", [i], [1])[0] for i in range(1, 6)]
    long = worker.submit(Ticket(), "a", [6, 7], [8, 8])
    model.free.set()
    assert wait_for_results([*many, *long]) == [2, 4, 6, 8, 10, 12, 14]
    assert model.batches == [[0], [1, 2, 3, 4], [5, 6], [7]]


def test_only_jobs_with_the_same_key_share_a_batch(worker, model):
    hold(worker, model)
    asked = [worker.submit(Ticket(), key, [i], [1])[0] for i, key in enumerate("abab", 1)]
    model.free.set()
    assert wait_for_results(asked) == [2, 4, 6, 8]
    assert model.batches == [[0], [1, 3], [2, 4]]


def test_a_sentence_overtakes_a_book_and_the_book_goes_on(worker, model):
    hold(worker, model)
    book = worker.submit(Ticket(), "a", list(range(100, 120)), [5] * 20)
    one = worker.submit(Ticket(), "a", [1], [5])
    two = worker.submit(Ticket(), "a", [2], [5])
    model.free.set()
    assert wait_for_results([*one, *two, *book])
    place = {item: number for number, batch in enumerate(model.batches) for item in batch}
    assert place[1] <= 2 and place[2] <= 2 < place[119]
    assert place[100] <= 2


def test_shares_are_counted_in_tokens_not_in_sentences(worker, model):
    hold(worker, model)
    long = worker.submit(Ticket(), "a", [10, 11, 12, 13], [3] * 4)
    short = worker.submit(Ticket(), "a", list(range(1, 7)), [1] * 6)
    model.free.set()
    wait_for_results([*long, *short])
    assert sorted(model.batches[1]) == [1, 2, 3, 10]


def shared(steps: int, size: float) -> float:
    """The jobs of a book that ideal sharing among all waiting requests would have run, with a new request at each step."""
    done, others = 0.0, []
    for _ in range(steps):
        others.append(size)
        left = size
        while left > 1e-9:
            each = min(left / (len(others) + 1), *others) if others else left
            left -= each * (len(others) + 1)
            others = [own - each for own in others if own - each > 1e-9]
            done += each
    return done / size


@pytest.mark.parametrize("steps", [30, 200])
def test_new_requests_do_not_starve_an_old_one(worker, model, steps):
    hold(worker, model)
    worker.submit(Ticket(), "a", list(range(1000, 1060)), [9] * 60)
    order = []
    for number in range(steps):  # one comes for each that is done: more and more wait
        worker.submit(Ticket(), "a", [number], [9])
        with worker.changed:
            order += [job.item for job in worker._take_batch()]
    assert len(order) == steps
    assert sum(item >= 1000 for item in order) >= shared(steps, 9.0) - 1
    others = [item for item in order if item < 1000]
    assert others == sorted(others)  # and among equals who came first is first


def test_finished_requests_do_not_delay_later_ones(worker, model):
    hold(worker, model)
    book = Ticket()
    worker.submit(book, "a", list(range(1000, 1400)), [3] * 400)
    for number in range(200):  # long ones, each with room for the book beside it
        worker.submit(Ticket(), "a", [number], [7])
        with worker.changed:
            worker._take_batch()
    worker.submit(Ticket(), "a", [-1], [3])
    before = 0
    while -1 not in (items := [job.item for job in worker._take_batch()]):
        before += len(items)
    assert before <= 6  # the book is not owed all that they were given


def test_cancelled_jobs_are_not_run(worker, model):
    hold(worker, model)
    gone, stays = Ticket(), Ticket()
    left = worker.submit(gone, "a", list(range(50, 60)), [1] * 10)
    kept = worker.submit(stays, "a", [1], [1])
    gone.cancel()
    model.free.set()
    assert wait_for_results(kept) == [2]
    with pytest.raises(Cancelled):
        wait_for_results(left)
    with pytest.raises(Cancelled):
        worker.submit(gone, "a", [1], [1])
    assert model.batches == [[0], [1]] and worker.waiting_tokens == 0


def test_a_job_that_fails_does_not_fail_its_batch(worker, model):
    hold(worker, model)
    good, bad, other = (worker.submit(Ticket(), "a", [item], [1])[0] for item in ("x", "bad", "y"))
    model.free.set()
    assert good.result(10) == "xx" and other.result(10) == "yy"
    with pytest.raises(ValueError, match="bad is bad"):
        bad.result(10)


def test_a_failed_batch_is_retried_in_halves_not_one_by_one(model):
    worker = BatchWorker("test", model, max_wait=0.0, max_tokens=1000, max_jobs=64)
    hold(worker, model)
    found = [worker.submit(Ticket(), "a", [item], [1])[0] for item in ("x",) * 20 + ("bad",) + ("x",) * 43]
    model.free.set()
    assert [future.exception(10) is None for future in found] == [True] * 20 + [False] + [True] * 43
    assert len(model.batches) <= 14
    worker.close()


def test_a_job_cancelled_before_its_batch_runs_is_not_run(worker, model):
    """Taken from the queue, not yet given to the model."""
    hold(worker, model)
    gone, stays = Ticket(), Ticket()
    left, kept = worker.submit(gone, "a", [5], [1]), worker.submit(stays, "a", [6], [1])
    do = worker._run_batch

    def late(jobs):
        gone.cancel()
        do(jobs)

    worker._run_batch = late
    model.free.set()
    assert wait_for_results(kept) == [12]
    with pytest.raises(Cancelled):
        wait_for_results(left)
    assert model.batches == [[0], [6]]


def test_a_job_cancelled_while_its_batch_runs_ends_at_once(worker, model):
    gone = Ticket()
    model.free.clear()
    left = worker.submit(gone, "a", [7], [1])
    assert model.begun.wait(10)
    gone.cancel()
    with pytest.raises(Cancelled):  # though the model is still held
        wait_for_results(left)
    other = worker.submit(Ticket(), "a", [1], [1])
    model.free.set()
    assert wait_for_results(other) == [2]


def test_a_request_cancelled_while_submitting_leaves_no_jobs(worker, model):
    class Late(set):
        def add(self, own):
            if not ticket.cancelled:
                ticket.cancel()
            super().add(own)

    hold(worker, model)
    ticket = Ticket(workers=Late())
    with pytest.raises(Cancelled):
        worker.submit(ticket, "a", [1], [1])
    assert not worker.waiting and worker.waiting_tokens == worker.waiting_jobs == 0


def test_an_error_outside_the_model_does_not_end_the_worker(model, caplog):
    def on_batch(*_):
        raise KeyError("secret")

    worker = BatchWorker("test", model, max_wait=0.0, max_tokens=10, on_batch=on_batch)
    assert wait_for_results(worker.submit(Ticket(), "a", [1], [1])) == [2]
    assert wait_for_results(worker.submit(Ticket(), "a", [2], [1])) == [4]

    def leave(key, items):
        raise SystemExit(3)

    worker.on_batch, worker.run = None, leave
    with pytest.raises(RuntimeError, match="SystemExit"):
        wait_for_results(worker.submit(Ticket(), "a", [1], [1]))
    worker.run = model
    assert wait_for_results(worker.submit(Ticket(), "a", [3], [1])) == [6]
    worker.close()
    assert "KeyError in the worker of test" in caplog.text and "secret" not in caplog.text


def test_speed_is_measured_by_kind_of_job(model):
    worker = BatchWorker("test", model, max_wait=0.0, max_tokens=5000)
    worker._update_speed(("align",), 1e6)
    worker._update_speed(("translate", 1), 400.0)
    worker._update_speed(("translate", 2), 800.0)
    assert worker._token_budget(("align",)) == 5000
    assert worker._token_budget(("translate", 3)) == pytest.approx(120.0)
    assert worker._token_budget(("call",)) == 64  # little, since it may be slower than what is known
    assert len(worker.speed) == 2
    worker.arrivals.extend(
        [time.monotonic()] * queue.BUSY_REQUESTS
    )  # many ask: nobody waits long for a batch of others
    assert worker._token_budget(("align",)) == 5000
    assert worker._token_budget(("translate", 3)) == 64
    worker.arrivals.extend([time.monotonic() - 60] * queue.BUSY_REQUESTS)
    assert worker._token_budget(("translate", 3)) == pytest.approx(120.0)
    worker.close()


def test_requests_that_come_at_once_are_counted_once_each(model):
    worker, ticket = BatchWorker("test", model, max_wait=0.0, max_tokens=5000), Ticket()
    hold(worker, model)
    before = list(worker.arrivals)
    futures = [*worker.submit(ticket, "a", [1], [1]), *worker.submit(ticket, "a", [2], [1])]
    assert len(worker.arrivals) == len(before) + 1
    model.free.set()
    assert wait_for_results(futures) == [2, 4]
    worker.close()


def test_a_job_waits_a_little_for_others(model):
    worker = BatchWorker("test", model, max_wait=5.0, max_tokens=2, max_jobs=4)
    first = worker.submit(Ticket(), "a", [1], [1])
    time.sleep(0.05)
    assert not model.batches
    second = worker.submit(Ticket(), "a", [2], [1])  # now there is enough for a batch
    assert wait_for_results([*first, *second]) == [2, 4] and model.batches == [[1, 2]]
    worker.close()
    unbatched = BatchWorker("test", model, max_wait=600.0, max_tokens=100, max_jobs=1)  # a batch of one is full
    assert unbatched.submit(Ticket(), "a", [3], [1])[0].result(10) == 6
    unbatched.close()


def test_closing_cancels_waiting_jobs(worker, model):
    hold(worker, model)
    waiting = worker.submit(Ticket(), "a", [1], [1])

    def let_go():
        while not worker.closed:
            time.sleep(0.001)
        model.free.set()

    threading.Thread(target=let_go).start()
    worker.close()
    with pytest.raises(Cancelled):
        wait_for_results(waiting)
    assert worker.submit.__self__ is worker and not worker.thread.is_alive()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has priorities of threads")
@pytest.mark.parametrize("yielding", [False, True])
def test_a_yielding_worker_has_a_lower_priority_than_the_process(yielding):
    found = []

    def run(key, items):
        found.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        return items

    worker = BatchWorker("own", run, max_wait=0, max_tokens=100, yielding=yielding)
    try:
        wait_for_results(worker.submit(Ticket(), "a", ["x"], [1]))
    finally:
        worker.close()
    usual = os.getpriority(os.PRIO_PROCESS, 0)
    assert found == [min(19, usual + queue.YIELDING_NICE) if yielding else usual]

"""Segmentation of texts: short ones in the request's own thread, long ones and documents in a separate process. A
regular expression can take minutes on an adversarial text, and blocks every thread meanwhile. A process does not, and
it can be killed when its time is up or the request is cancelled.
"""

import subprocess
import sys
import threading
from contextlib import suppress

from heed.service.http import segmenter
from heed.service.http.limits import LONG_REQUEST
from heed.service.http.queue import Cancelled, Ticket
from heed.service.http.segmenter import Answers, StepResult, TextTask

COMMAND = [sys.executable, "-P", "-m", "heed.service.http.segmenter"]
# Ctrl-C must not reach the processes
OWN_GROUP = {"start_new_session": True, "creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)}
STEP_SECONDS = 20.0
MAX_PROCESSES = 2


class SegmenterProcess:
    """One process. It works for one ticket at a time, and is killed if that is cancelled."""

    def __init__(self):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(COMMAND, **pipes, **OWN_GROUP)
        self.ticket: Ticket | None = None
        self.killed, self.lock = False, threading.Lock()

    def run_step(self, task: TextTask, answers: Answers, ticket: Ticket, seconds: int | float) -> StepResult:
        timer = threading.Timer(seconds, self.cancel, [ticket])
        timer.daemon = True
        self.ticket = ticket
        ticket.workers.add(self)
        timer.start()
        try:
            if ticket.cancelled:
                raise Cancelled
            segmenter.send_step(self.process.stdin, task, answers)
            return segmenter.receive_result(self.process.stdout)
        except (EOFError, OSError):
            self.cancel(ticket)
            if ticket.cancelled:
                raise Cancelled from None
            raise ValueError("this takes too much time or memory to process: send less at once") from None
        finally:
            timer.cancel()
            ticket.workers.discard(self)
            with self.lock:
                self.ticket = None

    def cancel(self, ticket: Ticket) -> None:
        """Kill the process if it still works for this ticket."""
        with self.lock:
            if self.ticket is ticket:
                self.killed = True
                self.process.kill()

    def close(self) -> None:
        self.process.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(OSError):
                pipe.close()
        self.process.wait()


class SegmenterPool:
    """A few processes, started when long texts need them."""

    def __init__(self, max_processes: int = MAX_PROCESSES, seconds: int | float = STEP_SECONDS):
        self.seconds, self.lock = seconds, threading.Lock()
        self.available = threading.Semaphore(max_processes)
        self.idle: list[SegmenterProcess] = []

    def run_step(self, task: TextTask, answers: Answers, ticket: Ticket) -> StepResult:
        """A step of a task, here or in a process. The ticket releases its slot while it waits."""
        if task.size <= LONG_REQUEST and task.kind != "document":
            return segmenter.run_step(task, answers)
        ticket.slots.release()
        try:
            while not self.available.acquire(timeout=0.1):
                if ticket.cancelled:
                    raise Cancelled
            try:
                return self._run_in_process(task, answers, ticket)
            finally:
                self.available.release()
        finally:
            ticket.slots.acquire()

    def _run_in_process(self, task: TextTask, answers: Answers, ticket: Ticket) -> StepResult:
        if ticket.cancelled:
            raise Cancelled
        with self.lock:
            worker = self.idle.pop() if self.idle else None
        if worker and worker.process.poll() is not None:
            worker.close()
            worker = None
        worker = worker or SegmenterProcess()
        try:
            return worker.run_step(task, answers, ticket, self.seconds)
        finally:
            if worker.killed:
                worker.close()
            else:
                with self.lock:
                    self.idle.append(worker)

    def close(self) -> None:
        """End the idle processes; the others end with their tickets."""
        with self.lock:
            while self.idle:
                self.idle.pop().close()

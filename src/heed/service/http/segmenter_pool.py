"""Who takes texts apart: short ones where they are asked for, long ones and documents in a process of their own.

A rule for text can take minutes over what was made to be hard for it, and holds up every thread meanwhile. A process does not, and it
can be ended: when its time is up, and when nobody waits for it any more.
"""

import subprocess
import sys
import threading
from contextlib import suppress

from heed.service.http import segmenter
from heed.service.http.limits import LONG
from heed.service.http.queue import Cancelled, Ticket
from heed.service.http.segmenter import Known, Step, Task

COMMAND = [sys.executable, "-P", "-m", "heed.service.http.segmenter"]
SECONDS = 20.0  # for one step
MOST = 2  # processes


class Reader:
    """One process. It works for one ticket at a time, and is ended with it."""

    def __init__(self):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(COMMAND, **pipes, start_new_session=True)  # a Ctrl-C is not for it
        self.ticket: Ticket | None = None
        self.ended, self.lock = False, threading.Lock()

    def step(self, task: Task, known: Known, ticket: Ticket, seconds: int | float) -> Step:
        late = threading.Timer(seconds, self.drop, [ticket])
        late.daemon = True
        self.ticket = ticket
        ticket.workers.add(self)
        late.start()
        try:
            if ticket.cancelled:
                raise Cancelled
            segmenter.ask_for(self.process.stdin, task, known)
            return segmenter.answer_of(self.process.stdout)
        except (EOFError, OSError):
            self.drop(ticket)
            if ticket.cancelled:
                raise Cancelled from None
            raise ValueError("this takes too long, or too much, to be read: send less at once") from None
        finally:
            late.cancel()
            ticket.workers.discard(self)
            with self.lock:
                self.ticket = None

    def drop(self, ticket: Ticket) -> None:
        """Nobody waits any more, or has waited too long."""
        with self.lock:
            if self.ticket is ticket:
                self.ended = True
                self.process.kill()

    def close(self) -> None:
        self.process.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(OSError):
                pipe.close()
        self.process.wait()


class Readers:
    """As many processes as are needed, but few; they begin with the first long text."""

    def __init__(self, most: int = MOST, seconds: int | float = SECONDS):
        self.seconds, self.room, self.lock = seconds, threading.Semaphore(most), threading.Lock()
        self.free: list[Reader] = []

    def step(self, task: Task, known: Known, ticket: Ticket) -> Step:
        """A step of a task, here or elsewhere. Who waits lets others have their turn."""
        if task.size <= LONG and task.what != "document":
            return segmenter.step(task, known)
        ticket.turns.release()
        try:
            while not self.room.acquire(timeout=0.1):
                if ticket.cancelled:
                    raise Cancelled
            try:
                return self._elsewhere(task, known, ticket)
            finally:
                self.room.release()
        finally:
            ticket.turns.acquire()

    def _elsewhere(self, task: Task, known: Known, ticket: Ticket) -> Step:
        if ticket.cancelled:
            raise Cancelled
        with self.lock:
            reader = self.free.pop() if self.free else None
        if reader and reader.process.poll() is not None:
            reader.close()
            reader = None
        reader = reader or Reader()
        try:
            return reader.step(task, known, ticket, self.seconds)
        finally:
            if reader.ended:
                reader.close()
            else:
                with self.lock:
                    self.free.append(reader)

    def close(self) -> None:
        """End those that nobody uses; the others end with their tickets."""
        with self.lock:
            while self.free:
                self.free.pop().close()

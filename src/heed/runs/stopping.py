"""Signals that ask a run to stop: the first saves and ends it, the second ends it at once."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class GivenUp(BaseException):
    """Raised when the run was asked to stop during work that can be repeated later. No `except Exception` may catch
    it.
    """


class Stopping:
    """The handling of SIGINT, SIGTERM and SIGHUP. `request` asks the loop to stop after the current step."""

    def __init__(self, request: Callable[[], None]):
        self.request, self.asked, self.may_give_up = request, False, False

    def handle(self, number: int, frame: Any) -> None:
        if self.asked:
            for each in _signals():
                signal.signal(each, signal.SIG_DFL)  # a third one needs no Python code to run
            raise KeyboardInterrupt
        self.asked = True
        self.request()
        if self.may_give_up:
            raise GivenUp

    @contextmanager
    def given_up_if_asked(self) -> Iterator[None]:
        """Context for long work that writes nothing: a signal ends it with `GivenUp`, an earlier one before it
        begins.
        """
        self.may_give_up = True
        try:
            if self.asked:
                raise GivenUp
            yield
        finally:
            self.may_give_up = False

    @contextmanager
    def obeyed(self) -> Iterator[None]:
        """Context in which the signals are handled here."""
        before = {number: signal.signal(number, self.handle) for number in _signals()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _signals() -> list[int]:
    signals = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup ignores SIGHUP
        signals.append(signal.SIGHUP)
    if hasattr(signal, "SIGBREAK"):  # Ctrl-Break, and a closed console, on Windows
        signals.append(signal.SIGBREAK)
    return signals

"""Python's searches for reference cycles while a command starts and ends: torch alone has 260,000 objects, and hardly any is garbage."""

import atexit
import gc
from collections.abc import Mapping

OBJECTS = 400_000  # some more than the modules of any verb have, so that a command which ends soon is never searched


def postpone() -> None:
    """The first search waits until there are many objects, and passes over those; all others are as usual. At the end of the process
    there is none.
    """
    usual = gc.get_threshold()

    def first(phase: str, facts: Mapping[str, int]) -> None:
        gc.callbacks.remove(first)
        gc.set_threshold(*usual)
        gc.freeze()
        gc.unfreeze()  # what was frozen is old now, which takes no time

    def last() -> None:
        if first in gc.callbacks:
            gc.callbacks.remove(first)
        gc.freeze()

    gc.set_threshold(OBJECTS, *usual[1:])
    gc.callbacks.append(first)
    atexit.register(last)

"""The device that a model runs on, and the threads of a child process."""

import os
import signal
import time

import pytest
import torch

import heed.device  # noqa: F401 (what it registers is tested)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12 warns of threads in the parent
def test_a_forked_child_computes_alone_and_does_not_wait_for_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        numbers = torch.ones(64, 200, 200)
        torch.softmax(numbers, -1) @ numbers  # starts the threads
        child = os.fork()
        if child == 0:
            torch.softmax(numbers, -1) @ numbers
            os._exit(7 if torch.get_num_threads() == 1 else 8)
        assert _exit_code(child) == 7
    finally:
        torch.set_num_threads(before)


def _exit_code(child: int) -> int | None:
    """None if it hangs: then it is killed."""
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None

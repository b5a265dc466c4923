"""A memory limit for a process, enforced by the system if possible, otherwise by polling."""

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

SECONDS = 0.05  # between two looks


def limit_memory(most: int) -> None:
    """Limit this process to this many bytes. Linux refuses more; elsewhere the process ends itself."""
    if sys.platform == "linux":
        import resource

        with suppress(ValueError, OSError):  # it has a lower limit already
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
    elif (used := _used()) is not None:
        threading.Thread(target=end_above, args=(most, used), daemon=True).start()


def end_above(most: int, used: Callable[[], int], leave: Callable[[int], None] = os._exit) -> None:
    """End the process as soon as it exceeds the limit, without cleaning up, which might take memory too."""
    never = threading.Event()
    while used() <= most:
        never.wait(SECONDS)
    leave(1)


def _used() -> Callable[[], int] | None:
    """A function that returns the peak memory of this process in bytes."""
    if sys.platform == "win32":
        return _used_on_windows
    try:
        import resource
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, others kilobytes
    return lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _used_on_windows() -> int:
    import ctypes
    from ctypes import wintypes

    sizes = ("peak", "working", "quota_peak_paged", "quota_paged", "quota_peak", "quota", "pagefile", "pagefile_peak")
    fields = [("size", wintypes.DWORD), ("faults", wintypes.DWORD), *((name, ctypes.c_size_t) for name in sizes)]
    counters = type("Counters", (ctypes.Structure,), {"_fields_": fields})()  # PROCESS_MEMORY_COUNTERS
    counters.size = ctypes.sizeof(counters)
    kernel = ctypes.WinDLL("kernel32")
    kernel.GetCurrentProcess.restype = wintypes.HANDLE
    kernel.K32GetProcessMemoryInfo.argtypes = [wintypes.HANDLE, ctypes.c_void_p, wintypes.DWORD]
    kernel.K32GetProcessMemoryInfo(kernel.GetCurrentProcess(), ctypes.byref(counters), counters.size)
    return counters.pagefile_peak

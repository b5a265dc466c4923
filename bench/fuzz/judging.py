"""What reading a damaged file may end with: a result, or one sentence of Heed's own.

The command line makes one line of it, and not a long one, whatever of the file it quotes (`heed.cli.main.one_line`).
"""

import dis
import traceback
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import heed

HEED = str(Path(heed.__file__).parent)
RAISE = dis.opmap["RAISE_VARARGS"]


class Failure(NamedTuple):
    """`kind` is what went wrong and where, the same for all cases with one cause; `details` are for whoever mends it."""

    kind: str
    details: str


class OutOfTime(BaseException):
    """More than the seconds that a case may take. No `except Exception` takes it."""


def judge(error: BaseException) -> Failure | None:
    """None for an error that says in one sentence what is wrong."""
    why = _why_not(error)
    if why is None:
        return None
    return Failure(f"{why} at {_place(error.__traceback__)}", "".join(traceback.format_exception(error)))


def _why_not(error: BaseException) -> str | None:
    if isinstance(error, OutOfTime):
        return "too slow"
    if _is_of_memory(error):
        return "too much memory"
    name, text = type(error).__name__, str(error)
    if isinstance(error, OSError):
        return None if error.filename is not None else f"{name} without a file"
    if type(error) is not ValueError or not _is_raised_by_heed(error.__traceback__):
        return name
    return None if text.strip() else "ValueError without words"


def _is_of_memory(error: BaseException | None) -> bool:
    """Whether an error, or what led to it, is that there was not enough memory; torch has no class for that."""
    while error is not None:
        if isinstance(error, MemoryError) or "allocate memory" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _last(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace


def _is_raised_by_heed(trace: TracebackType | None) -> bool:
    """Whether the error comes from a `raise` in Heed's code, and not from what it calls."""
    last = _last(trace)
    if last is None or not last.tb_frame.f_code.co_filename.startswith(HEED):
        return False
    return last.tb_frame.f_code.co_code[last.tb_lasti] == RAISE


def _place(trace: TracebackType | None) -> str:
    """The last place in Heed's code, without line numbers, so that it stays the same while files are edited."""
    frames = [frame for frame, _ in traceback.walk_tb(trace) if frame.f_code.co_filename.startswith(HEED)]
    if not frames:
        return "no place in heed"
    code = frames[-1].f_code
    return f"{code.co_filename.removeprefix(HEED + '/')}:{code.co_name}"

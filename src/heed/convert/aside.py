"""A folder that appears only when it is complete."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def refuse_existing(folder: Path) -> None:
    """Nothing of the user's is written over."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} exists already: choose another folder to write to")


@contextmanager
def aside(folder: Path) -> Iterator[Path]:
    """A folder beside `folder` to write into; it takes that name at the end, and is gone if something fails."""
    refuse_existing(folder)
    folder = folder.resolve()  # "." has a name too
    part = folder.with_name(f"{folder.name}.{os.getpid()}.part")  # a name that no one has given
    shutil.rmtree(part, ignore_errors=True)  # what a killed process may have left
    part.mkdir(parents=True)
    try:
        yield part
        refuse_existing(folder)
        if folder.is_dir():  # it stays the one that it is: someone may be in it
            for path in list(part.iterdir()):
                shutil.move(path, folder)
        else:
            os.replace(part, folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)

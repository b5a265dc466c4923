"""A file that cannot be written leaves the one before it as it was."""

import errno
import os

import pytest

from heed.lab.canvas import Canvas
from heed.lab.fonts import find_fonts


def test_a_full_disk_leaves_the_picture_before(tmp_path, monkeypatch):
    path = tmp_path / "look.png"
    canvas = Canvas(1, 1, find_fonts("a"))
    canvas.save(path)
    before = path.read_bytes()

    def full(part, **options):
        part.write_bytes(before[:20])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(canvas.figure, "savefig", full)
    with pytest.raises(OSError, match=r"look\.png could not be written: No space left on device; free some disk space"):
        canvas.save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["look.png"]

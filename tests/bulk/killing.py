"""A verb that dies between two blocks of nine lines in chunks of four, and goes on."""

import pytest

from heed.bulk import recorded
from heed.cli.main import main


class Killed(BaseException):
    """What no code catches."""


def killed_and_resumed(words, monkeypatch):
    """Run a command that dies at its second block, and go on; the chunks that were left."""
    plain, count = recorded.RecordedFile.append, []

    def append(self, chunk, data, note=None):
        if len(count) == 1:
            raise Killed
        count.append(chunk)
        plain(self, chunk, data, note)

    with monkeypatch.context() as patch:
        patch.setattr(recorded.RecordedFile, "append", append)
        with pytest.raises(Killed):
            main(words)
    left = []
    with monkeypatch.context() as patch:
        patch.setattr(recorded.RecordedFile, "append", lambda *of: (left.append(of[1].start), plain(*of))[1])
        assert main([*words, "--resume"]) == 0
    assert left == [4, 8]

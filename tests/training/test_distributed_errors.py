"""An error of one of several processes."""

from types import SimpleNamespace

import pytest

from heed.training.distributed import MultiProcess


def test_other_processes_end_as_failed_without_a_report_of_their_own():
    """The first process reports the error."""
    other = MultiProcess.__new__(MultiProcess)
    other.rank, other.long_group = 1, None
    other.dist = SimpleNamespace(broadcast_object_list=lambda message, **_: message.__setitem__(1, True))
    with pytest.raises(SystemExit) as ended:
        other.broadcast(lambda: pytest.fail("only the first makes it"))
    assert ended.value.code == 1

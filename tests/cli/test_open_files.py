"""The limit of open files under which heed serve starts."""

import pytest

from heed.cli.main import main
from heed.cli.serve import OPEN_FILES, _allow_open_files

resource = pytest.importorskip("resource")


@pytest.fixture
def limited(monkeypatch):
    """Sets what the system allows; returns what is asked of it."""
    asked = []

    def limit(soft, hard):
        monkeypatch.setattr(resource, "getrlimit", lambda kind: (soft, hard))
        monkeypatch.setattr(resource, "setrlimit", lambda kind, own: asked.append(own))
        return asked

    return limit


def test_too_few_are_refused_with_what_is_needed(limited):
    asked = limited(24, 24)
    says = r"^this process may open only 24 files, and 64 concurrent requests need 128: raise the limit \(ulimit -n\), or lower"
    with pytest.raises(ValueError, match=says):
        _allow_open_files(64)
    assert not asked


@pytest.mark.parametrize("hard", [4096, OPEN_FILES + 64, resource.RLIM_INFINITY])
def test_a_limit_that_may_be_raised_is_raised(limited, hard):
    asked = limited(24, hard)
    _allow_open_files(64)
    assert asked == [(OPEN_FILES + 64, hard)]


@pytest.mark.parametrize("soft", [OPEN_FILES + 64, resource.RLIM_INFINITY])
def test_enough_is_left_alone(limited, soft):
    asked = limited(soft, soft)
    _allow_open_files(64)
    assert not asked


def test_heed_serve_begins_with_that(limited, tmp_path, capsys):
    limited(24, 24)
    assert main(["serve", str(tmp_path), "--queue", "64"]) == 1
    assert "only 24 files may be open here, and 64 concurrent requests need 128" in capsys.readouterr().err

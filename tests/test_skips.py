"""`--no-skips`, with which `make check-clusters` runs: a test that cannot run is a failure there."""

import os
import subprocess
import sys

import pytest

from tests.documented import ROOT

TESTS = """
import pytest

@pytest.fixture
def missing():
    pytest.importorskip("heed_has_no_such_module")

def test_with_it(missing): pass

def test_without(): pass

@pytest.mark.xfail(reason="known")
def test_known(): assert False
"""


@pytest.mark.parametrize(("options", "code", "words"), [([], 0, "1 skipped"), (["--no-skips"], 1, "1 error")])
def test_a_skipped_test_is_a_failure_when_asked(tmp_path, options, code, words):
    (tmp_path / "test_one.py").write_text(TESTS, "utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.conftest",
        "-p",
        "no:cacheprovider",
        *options,
        "test_one.py",
    ]
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert (done.returncode, words in done.stdout) == (code, True), done.stdout + done.stderr
    assert "1 passed" in done.stdout and "1 xfailed" in done.stdout
    assert ("could not import 'heed_has_no_such_module'" in done.stdout) == (options == ["--no-skips"])

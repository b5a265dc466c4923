"""CTranslate2 is told once how its threads wait, and nobody else is."""

import os
import sys

import pytest

from heed.convert import patient


@pytest.mark.parametrize(
    ("machine", "before", "loaded", "seen"),
    [
        ("aarch64", None, False, "passive"),
        ("arm64", None, False, "passive"),
        ("x86_64", None, False, None),
        ("aarch64", "active", False, "active"),
        ("aarch64", None, True, None),
    ],
)
def test_its_threads_sleep_where_they_would_be_in_each_others_way(monkeypatch, machine, before, loaded, seen):
    asked = []
    monkeypatch.setattr(patient.platform, "machine", lambda: machine)
    monkeypatch.setattr(patient.importlib, "import_module", lambda name: asked.append((name, os.environ.get(patient.POLICY))) or sys)  # fmt: skip
    monkeypatch.delenv(patient.POLICY, raising=False)
    if before is not None:
        monkeypatch.setenv(patient.POLICY, before)
    if loaded:
        monkeypatch.setitem(sys.modules, "ctranslate2", sys)
    else:
        monkeypatch.delitem(sys.modules, "ctranslate2", raising=False)
    assert patient.ctranslate2() is sys
    assert asked == [("ctranslate2", seen)] and os.environ.get(patient.POLICY) == before


def test_a_package_that_is_missing_leaves_nothing_behind(monkeypatch):
    monkeypatch.setattr(patient.platform, "machine", lambda: "aarch64")
    monkeypatch.delenv(patient.POLICY, raising=False)
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    monkeypatch.delitem(sys.modules, "ctranslate2")

    def gone(name):
        raise ImportError(name)

    monkeypatch.setattr(patient.importlib, "import_module", gone)
    with pytest.raises(ImportError):
        patient.ctranslate2()
    assert patient.POLICY not in os.environ

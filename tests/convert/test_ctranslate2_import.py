"""CTranslate2 is told once how its threads wait, and nobody else is."""

import os
import sys

import pytest

from heed.convert import ctranslate2_import


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
    monkeypatch.setattr(ctranslate2_import.platform, "machine", lambda: machine)
    monkeypatch.setattr(ctranslate2_import.importlib, "import_module", lambda name: asked.append((name, os.environ.get(ctranslate2_import.POLICY))) or sys)  # fmt: skip
    monkeypatch.delenv(ctranslate2_import.POLICY, raising=False)
    if before is not None:
        monkeypatch.setenv(ctranslate2_import.POLICY, before)
    if loaded:
        monkeypatch.setitem(sys.modules, "ctranslate2", sys)
    else:
        monkeypatch.delitem(sys.modules, "ctranslate2", raising=False)
    assert ctranslate2_import.ctranslate2() is sys
    assert asked == [("ctranslate2", seen)] and os.environ.get(ctranslate2_import.POLICY) == before


def test_a_package_that_is_missing_leaves_nothing_behind(monkeypatch):
    monkeypatch.setattr(ctranslate2_import.platform, "machine", lambda: "aarch64")
    monkeypatch.delenv(ctranslate2_import.POLICY, raising=False)
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    monkeypatch.delitem(sys.modules, "ctranslate2")

    def gone(name):
        raise ImportError(name)

    monkeypatch.setattr(ctranslate2_import.importlib, "import_module", gone)
    with pytest.raises(ImportError):
        ctranslate2_import.ctranslate2()
    assert ctranslate2_import.POLICY not in os.environ

"""CTranslate2's package, imported so that its threads sleep while they wait for each other."""

import importlib
import os
import platform
import sys
from types import ModuleType

POLICY = "OMP_WAIT_POLICY"


def ctranslate2() -> ModuleType:
    """The package. Where it computes with two kinds of threads (on ARM: Ruy's and OpenMP's) those that wait would otherwise take
    the cores from those that work, and a sentence take three times as long. OpenMP reads this once, when it is loaded.
    """
    told = POLICY in os.environ or "ctranslate2" in sys.modules
    if told or platform.machine().lower() not in ("aarch64", "arm64"):
        return importlib.import_module("ctranslate2")
    os.environ[POLICY] = "passive"
    try:
        return importlib.import_module("ctranslate2")
    finally:
        del os.environ[POLICY]  # it is not meant for other libraries and processes

"""Import CTranslate2 so that its threads sleep while waiting for each other."""

import importlib
import os
import platform
import sys
from types import ModuleType

POLICY = "OMP_WAIT_POLICY"


def ctranslate2() -> ModuleType:
    """Import the package. On ARM it uses two thread pools (Ruy's and OpenMP's): spinning threads would take cores
    from working ones, and a sentence would take three times as long. OpenMP reads the policy when it is loaded.
    """
    decided = POLICY in os.environ or "ctranslate2" in sys.modules
    if decided or platform.machine().lower() not in ("aarch64", "arm64"):
        return importlib.import_module("ctranslate2")
    os.environ[POLICY] = "passive"
    try:
        return importlib.import_module("ctranslate2")
    finally:
        del os.environ[POLICY]  # it is not meant for other libraries and processes

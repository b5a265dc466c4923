"""A first look at many faults: the nearest tests are collected once, and each fault is tried in a fork of that process."""

import inspect
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import jaxtyping
import pytest

from bench.faulty_copy import LOADED, Copy, Selection, put
from bench.mutations import Mutant
from bench.near_tests import ROOT

UNTIL_THE_END = 6  # times the seconds of a look
NOT_LOADED = 97  # the fault is in no function that is loaded already: it takes another look


class Look(NamedTuple):
    """A fault, the test files nearest to it, and what their tests may mention."""

    path: Path
    mutant: Mutant
    tests: Sequence[Path]


class FirstLook:
    """A plugin of pytest: instead of the tests, runs a loop over faults."""

    def __init__(self, copy: Copy, loop: Callable[["FirstLook"], None], seconds: float):
        self.copy, self.loop, self.seconds, self.items = copy, loop, seconds, defaultdict(list)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        for item in session.items:
            self.items[item.path].append(item)
        self.loop(self)
        return True

    def killer(self, look: Look) -> str | None:
        """The first test that fails with the fault, in so many seconds of each file, and passes without it."""
        for test in look.tests:
            items = self._ordered(test, look)
            while found := self._noticed(items, look):
                alone = [item for item in items if item.nodeid == found]
                if alone and self._passes(alone):
                    return found
                items = [item for item in items if item not in alone] if alone else []
        return None

    def _noticed(self, items: Sequence[pytest.Item], look: Look) -> str | None:
        with self.copy.faulty(look.path, look.mutant):
            return self._failed(items)

    def _ordered(self, test: Path, look: Look) -> list[pytest.Item]:
        """The tests of a file, those first that mention the place."""
        about = [*look.mutant.inside[-1:], look.path.stem]
        return sorted(self.items[test], key=lambda one: -sum(name in inspect.getsource(one.function) for name in about))

    def _passes(self, items: Sequence[pytest.Item]) -> bool:
        """Without a fault a test may take longer: it does not end where it would fail."""
        answer, seconds = self.copy.folder / "failed", UNTIL_THE_END * self.seconds
        return self.copy.in_a_fork(lambda: self._run(items, answer), seconds, 40 * seconds) == 0

    def _failed(self, items: Sequence[pytest.Item]) -> str | None:
        answer = self.copy.folder / "failed"
        answer.unlink(missing_ok=True)
        self.copy.in_a_fork(lambda: self._run(items, answer), self.seconds, 40 * self.seconds)
        return answer.read_text("utf-8") if answer.exists() else None

    def _run(self, items: Sequence[pytest.Item], answer: Path) -> int:
        if not items or (self.copy.fault is not None and not put(*self.copy.fault)):
            return NOT_LOADED
        items[0].config.pluginmanager.register(Selection((), (), answer))
        for item, after in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        return 0


def look_at(copy: Copy, looks: Sequence[Look], seconds: float, minutes: float, tell: Callable[[int, str | None], None]):
    """Tells for each fault by number which test noticed it, until the time is over."""
    ends = time.monotonic() + 60 * minutes

    def loop(first: FirstLook) -> None:
        for number, look in enumerate(looks):
            if time.monotonic() > ends:
                break
            tell(number, first.killer(look))

    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    jaxtyping.install_import_hook = lambda *_: None
    files = sorted({str(test) for look in looks for test in look.tests})
    arguments = ["-q", "-s", "-m", "not long", "-p", "no:cacheprovider", "--continue-on-collection-errors", *LOADED]
    pytest.main([*arguments, *files], plugins=[FirstLook(copy, loop, seconds)])

"""Which lines of src/heed each test runs: recorded once for a test file, in a copy of the source, and kept.

All processes of a test append to one stream, so that commands and workers that a test starts count too, also killed ones. A line
of a fixture that several tests share is a line of each of them.
"""

import hashlib
import json
import os
import sys
import threading
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

import pytest

STREAM, SOURCE = "HEED_REACH_STREAM", "HEED_REACH_SOURCE"  # the variables that tell other processes
CALLS = 30  # of a function in one test whose lines are looked at: more would take much longer and rarely find another
HOOK = f"""import os
if {STREAM!r} in os.environ:
    import sys
    sys.path.append({str(Path(__file__).parent.parent)!r})
    from bench.reach import Tracer
    Tracer(os.environ[{STREAM!r}], os.environ[{SOURCE!r}]).start()
    sys.path.pop()
"""  # sitecustomize.py of the copy


class Tracer:
    """Writes each line of the source that runs, once, into a stream."""

    def __init__(self, stream: str, source: str):
        self.file = os.open(stream, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self.source, self.seen, self.calls = source, set(), Counter()

    def start(self) -> None:
        threading.settrace(self._called)
        sys.settrace(self._called)

    def write(self, *mark) -> None:
        os.write(self.file, (json.dumps(mark) + "\n").encode())

    def _called(self, frame, event, arg):
        code = frame.f_code
        if code.co_filename.startswith(self.source) and self.calls[code] < CALLS:
            self.calls[code] += 1
            return self._ran

    def _ran(self, frame, event, arg):
        if event == "line" and (place := (frame.f_code.co_filename, frame.f_lineno)) not in self.seen:
            self.seen.add(place)
            self.write(place[0][len(self.source) :], place[1])
        return self._ran


class Recorder(Tracer):
    """A plugin of pytest: says in the stream which test or shared fixture the lines are of, and what passed."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        self.seen, self.calls = set(), Counter()
        self.write("test", item.nodeid, item.fixturenames)
        self.start()  # not before: what runs at an import is of no test
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef, request):
        if fixturedef.scope == "function":
            return (yield)
        before, self.seen, self.calls = self.seen, set(), Counter()
        self.write("fixture", fixturedef.argname, fixturedef.scope)
        try:
            return (yield)
        finally:
            self.seen = before
            self.write("end of", "fixture", fixturedef.argname)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self):
        os._exit(0)

    def pytest_runtest_logreport(self, report):
        self.write("report", report.nodeid, [report.when, report.outcome, report.duration])


class Reached(NamedTuple):
    """What a test file runs: for each of its tests that pass, the seconds and the lines of each file."""

    seconds: dict[str, float]
    lines: dict[str, dict[str, frozenset[int]]]

    def tests(self, file: str, reach: range | None) -> list[str]:
        """The tests that run one of these lines, the quickest first; without lines, those that run any of the file's."""
        found = [
            test
            for test, files in self.lines.items()
            if file in files and (reach is None or not files[file].isdisjoint(reach))
        ]
        if reach is None and not found:
            found = list(self.seconds)
        return sorted(found, key=self.seconds.__getitem__)


def read(stream: Path) -> Reached:
    """The lines and seconds of the tests that passed."""
    shared, own, outcomes = defaultdict(set), defaultdict(set), defaultdict(list)
    fixtures: dict[str, list[str]] = {}
    test, now = "", own[""]
    for text in stream.read_text("utf-8").splitlines():
        kind, what, *more = json.loads(text)
        if kind == "test":
            test, now, fixtures[what] = what, own[what], more[0]
        elif kind == "fixture":
            now = shared[what]
        elif kind == "end of":
            now = own[test]
        elif kind == "report":
            outcomes[what].append(more[0])
        else:
            now.add((kind, what))
    seconds, lines = {}, {}
    for name, reports in outcomes.items():
        if len(reports) == 3 and all(outcome == "passed" for _, outcome, _ in reports):
            seconds[name] = round(sum(duration for *_, duration in reports), 3)
            by_file = defaultdict(set)
            for file, line in own[name].union(*(shared[fixture] for fixture in fixtures[name])):
                by_file[file].add(line)
            lines[name] = {file: frozenset(found) for file, found in by_file.items()}
    return Reached(seconds, lines)


class Kept:
    """A folder of such records; one counts while the test file and all files that it ran are as they were."""

    def __init__(self, folder: Path, source: Path):
        self.folder, self.source = folder, source

    def read(self, test: Path) -> Reached | None:
        if not (path := self._path(test)).is_file():
            return None
        kept = json.loads(path.read_text("utf-8"))
        if kept["test"] != _hash(test) or any(_hash(self.source / file) != own for file, own in kept["files"].items()):
            return None
        lines = {
            name: {file: frozenset(lines) for file, lines in files.items()} for name, files in kept["lines"].items()
        }
        return Reached(kept["seconds"], lines)

    def write(self, test: Path, reached: Reached) -> None:
        files = {file: _hash(self.source / file) for own in reached.lines.values() for file in own}
        lines = {name: {file: sorted(found) for file, found in own.items()} for name, own in reached.lines.items()}
        self.folder.mkdir(parents=True, exist_ok=True)
        kept = {"test": _hash(test), "files": files, "seconds": reached.seconds, "lines": lines}
        self._path(test).write_text(json.dumps(kept), "utf-8")

    def _path(self, test: Path) -> Path:
        return self.folder / f"{test.parent.name}-{test.stem}-{hashlib.sha256(bytes(test)).hexdigest()[:8]}.json"


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16] if path.is_file() else ""

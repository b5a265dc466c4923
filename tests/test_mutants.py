"""Faults by a tool: each is one change, each is another, and the tests that are tried for it are near."""

import ast
import gc
import sys
import tomllib

import pytest
from bench.faulty_copy import Copy, put
from bench.first_look import Look, look_at
from bench.mutants import EQUIVALENT, Fault, Judge, Results, Verdict, draw, equivalent, sources
from bench.mutations import count, mutant
from bench.near_tests import ROOT, SOURCE, TESTS, nearest
from bench.reach import Kept, Reached, Recorder, read
from bench.sample import drawn, keep
from bench.verdicts import Looked


@pytest.mark.parametrize(
    ("line", "faults"),
    [
        ("x = a < b", ["a <= b"]),
        ("x = a is not b", ["a is b"]),
        ("x = a - b", ["a + b"]),
        ("x = a and b", ["a or b"]),
        ("x = not a", ["a"]),
        ("x = y[2]", ["3"]),
        ("x = True", ["False"]),
        ("f(x)", ["pass"]),
        ("a.b = c", ["pass"]),
        ("x += y", ["pass", "x -= y"]),
        ("if a: b = c", ["if not a: …"]),
        ("def f(): return x", ["return None"]),
        ("raise a", ["pass"]),
        ("x = f'{a}' + b", []),
        ("def f(x: 3 = y) -> 3: 'text'", []),
        ("log.info(x + 1)", []),
        ("if TYPE_CHECKING: f(3)", []),
        ("x = option(help=3, most=4)", ["5"]),
        ("CHUNK_SIZE = 3", []),
        ("CHUNKED = 3", ["4"]),
        ("raise NotImplementedError", []),
        ("if x.is_cuda: y = 3", ["if not x.is_cuda: …"]),
        ("if not x.is_cuda: y = 3", ["if not not x.is_cuda: …", "x.is_cuda", "4"]),
    ],
)
def test_the_faults_of_a_line(line, faults):
    found = [mutant(line, number) for number in range(count(line))]
    assert sorted(one.after for one in found) == sorted(faults)
    assert all(one.line == 1 and ast.dump(ast.parse(one.source)) != ast.dump(ast.parse(line)) for one in found)


def test_a_sample_is_of_different_places_and_by_its_seed():
    paths = [path for path in sources(gpu=False) if path.parent.name == "training"]
    assert not {"lab", "page", "kernels"} & {part for path in sources(gpu=False) for part in path.parts}
    faults = draw(paths, 30, seed=1)
    assert len(set(faults)) == 30 and faults == draw(reversed(paths), 30, seed=1) != draw(paths, 30, seed=2)


def test_the_tests_of_a_module_are_those_of_its_name_and_those_that_import_it():
    tests = [TESTS / "training" / name for name in ("test_average.py", "test_meter.py", "test_loop.py")]
    tests += [TESTS / "nn" / "test_layers.py", TESTS / "text" / "test_copies.py"]
    assert nearest(SOURCE / "heed/training/meter.py", tests, 2)[0] == tests[1]
    assert nearest(SOURCE / "heed/nn/transformer.py", tests, 1) == [tests[3]]
    assert tests[4] not in nearest(SOURCE / "heed/training/meter.py", tests, 9)


def test_tests_that_mention_a_rare_word_of_the_place_are_nearer_than_others_of_its_folder():
    tests = sorted(TESTS.rglob("test_*.py"))
    assert TESTS / "cli/test_recommend.py" in nearest(SOURCE / "heed/tasks/recommendation.py", tests, 6, ["check"])
    assert TESTS / "bulk/test_more_verbs.py" in nearest(SOURCE / "heed/cli/answer.py", tests, 3)
    assert not any("page" in test.parts for test in nearest(SOURCE / "heed/service/http/images.py", tests, 99))


@pytest.mark.parametrize(
    ("source", "reach"),
    [
        ("x = 3", None),
        ("class C:\n    x = 3", None),
        ("def f():\n    y = [\n        a,\n        3,\n    ]", range(2, 6)),
        ("def f():\n    for x in g(3):\n        h = x", range(2, 3)),
        ("def f(x=3):\n    y = x\n    z = y", range(2, 4)),
    ],
)
def test_the_lines_that_a_test_must_run(source, reach):
    assert mutant(source, 0).reach == reach


NOTICES, PASSES = "tests/test_x.py::test_notices", "tests/test_x.py::test_passes"


def test_what_tests_run_is_read_from_the_marks_of_all_processes(tmp_path):
    recorder = Recorder(str(tmp_path / "stream"), "/copy/")
    marks = [
        ("test", PASSES, ["shared"]),
        ("fixture", "shared", "module"), ("heed/a.py", 1), ("end of", "fixture", "shared"), ("heed/a.py", 2),
        *(("report", PASSES, [when, "passed", 0.5]) for when in ("setup", "call", "teardown")),
        ("test", NOTICES, ["shared", "own"]), ("heed/b.py", 3),
        *(("report", NOTICES, [when, "passed", 0.25]) for when in ("setup", "call", "teardown")),
        ("test", "fails", []), ("heed/b.py", 3), ("report", "fails", ["setup", "failed", 0.5]),
        ("test", "killed", []), ("heed/b.py", 3),
    ]  # fmt: skip
    for mark in marks:
        recorder.write(*mark)
    found = read(tmp_path / "stream")
    assert found.seconds == {PASSES: 1.5, NOTICES: 0.75}
    assert found.lines[PASSES] == {"heed/a.py": {1, 2}} and found.lines[NOTICES] == {"heed/a.py": {1}, "heed/b.py": {3}}
    assert found.tests("heed/a.py", range(1, 3)) == [NOTICES, PASSES] and found.tests("heed/a.py", range(2, 3)) == [
        PASSES
    ]
    assert found.tests("heed/b.py", None) == [NOTICES] and found.tests("heed/c.py", range(9)) == []


def test_what_was_recorded_counts_until_a_file_changes(tmp_path):
    (tmp_path / "heed").mkdir()
    own, test = tmp_path / "heed/a.py", tmp_path / "test_a.py"
    own.write_text("x = 1"), test.write_text("")
    kept, reached = Kept(tmp_path / "kept", tmp_path), Reached({"t": 1.0}, {"t": {"heed/a.py": frozenset({1})}})
    assert kept.read(test) is None
    kept.write(test, reached)
    assert kept.read(test) == reached
    own.write_text("x = 2")
    assert kept.read(test) is None


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A package of one module instead of Heed, and the file of its tests."""
    for name in ("SOURCE", "ROOT"):
        monkeypatch.setattr(f"bench.faulty_copy.{name}", tmp_path / ("src" if name == "SOURCE" else ""))
    monkeypatch.setattr("bench.faulty_copy.LIBRARIES", ())
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in [name for name in sys.modules if name.split(".")[0] == "heed"]:
        monkeypatch.delitem(sys.modules, name)
    own, test = tmp_path / "src/heed/own.py", tmp_path / "tests/test_own.py"
    for path, text in (
        (own, "LEAST = 1\ndef f(x):\n    if x >= LEAST:\n        return 5\n    return 7\n"),
        (test, "from heed.own import f\ndef test_one(): assert f(1) == 5\ndef test_two(): assert f(0) == 7\n"),
    ):
        path.parent.mkdir(parents=True)
        path.write_text(text)
    (own.parent / "__init__.py").write_text("")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = long\n")
    (tmp_path / "copy").mkdir()
    yield own, test
    sys.modules.pop("heed.own", None)
    gc.unfreeze()


def test_a_test_is_recorded_run_and_seen_to_fail(small, tmp_path):
    (own, test), copy = small, Copy(tmp_path / "copy")
    one, two = "tests/test_own.py::test_one", "tests/test_own.py::test_two"
    found = copy.record(test)
    assert found.lines == {one: {"heed/own.py": {3, 4}}, two: {"heed/own.py": {3, 5}}}
    assert copy.failed(test, [two, one], 1) is None
    faults = {made.after: made for made in (mutant(own.read_text(), i) for i in range(count(own.read_text())))}
    with copy.faulty(own, faults["8"]):  # in a function that is loaded
        assert copy.failed(test, [one], 1) is None and copy.failed(test, [one, two], 1) == two
        assert copy.failed_soon(test, ["two"], 30) == two
    with copy.faulty(own, faults["2"]):  # in the module itself
        assert copy.failed(test, [two, one], 1) == one
    with copy.faulty(own, faults["8"]._replace(source="nonsense(")):
        assert copy.failed(test, [one], 1) == "tests/test_own.py (as a whole)"
    assert copy.failed(test, [one, two], 1) is None


def test_a_first_look_tries_faults_in_functions_with_tests_that_were_collected_once(small, tmp_path, monkeypatch):
    monkeypatch.setattr("bench.first_look.ROOT", tmp_path)
    (own, test), copy, told = small, Copy(tmp_path / "copy"), tmp_path / "told"
    faults = {made.after: made for made in (mutant(own.read_text(), i) for i in range(count(own.read_text())))}
    looks = [Look(own, faults[after], [test]) for after in ("8", "2", "x > LEAST", "6")]

    def work() -> int:
        with told.open("a") as file:
            look_at(copy, looks, 30, 9, lambda number, killer: print(number, killer, file=file, flush=True))
        return 0

    assert copy.in_a_fork(work, 60, 600) == 0
    one, two = "tests/test_own.py::test_one", "tests/test_own.py::test_two"
    assert told.read_text().splitlines() == [
        f"0 {two}",
        "1 None",
        f"2 {one}",
        f"3 {one}",
    ]  # the second is in no function


def test_a_fault_is_noticed_by_a_test_that_passes_without_it(tmp_path, monkeypatch):
    copy = Copy.__new__(Copy)
    copy.source, copy.times = tmp_path, 0
    fault = Fault(ROOT / "src/heed/training/duration.py", 8)
    (tmp_path / "heed/training").mkdir(parents=True)
    own, clean = tmp_path / "heed/training/duration.py", fault.path.read_text("utf-8")
    lines = {"heed/training/duration.py": frozenset(range(1, 300))}
    judge, ran = Judge(copy, Kept(tmp_path, tmp_path), soon=0), []
    judge.known = {
        "elsewhere": Reached({"a": 1.0}, {"a": {}}),
        "passes": Reached({"b": 3.0, "c": 1.0}, {"b": lines, "c": lines}),
        "always fails": Reached({"d": 1.0}, {"d": lines}),
        "notices": Reached({"e": 1.0}, {"e": lines}),
    }

    def failed(test, names, seconds):
        faulty = own.is_file() and own.read_text("utf-8") != clean
        ran.append((test, names, faulty))
        return {"always fails": "as a whole", "notices": "e" if faulty else None}.get(test)

    monkeypatch.setattr(copy, "failed", failed)
    assert judge.verdict(fault, list(judge.known), 9, 9.0) == Verdict(fault.key(), fault.told(), "e", 3)
    tried = [("passes", ["c", "b"], True), ("always fails", ["d"], True), ("always fails", ["d"], False)]
    assert ran == [*tried, ("notices", ["e"], True)] and own.read_text("utf-8") == clean
    assert judge.verdict(fault, list(judge.known), 1, 9.0).killer is None  # one file
    assert judge.verdict(fault, list(judge.known), 9, 3.0).killer is None  # three seconds


def test_the_nearest_files_are_tried_before_anything_is_recorded(tmp_path, monkeypatch):
    copy, fault = Copy.__new__(Copy), Fault(ROOT / "src/heed/training/duration.py", 8)
    copy.source, copy.times = tmp_path, 0
    (tmp_path / "heed/training").mkdir(parents=True)
    judge = Judge(copy, Kept(tmp_path, tmp_path), soon=4)
    monkeypatch.setattr(judge, "recorded", lambda test: None)
    monkeypatch.setattr(judge, "reached", lambda test: Reached({}, {}))
    soon = {"chance": "chance::a", "near": "near::b"}
    monkeypatch.setattr(copy, "failed_soon", lambda test, about, seconds: soon.get(test) and copy.fault and soon[test])
    monkeypatch.setattr(copy, "failed", lambda test, names, seconds: names[0] if test == "chance" else None)
    assert judge.verdict(fault, ["chance", "near"], 1, 9.0).killer == "near::b"  # the other fails without the fault too
    assert judge.verdict(fault, ["chance", "far", "farther", "near"], 1, 9.0) == Verdict(
        fault.key(), fault.told(), None, 0
    )


def test_results_are_kept_and_the_last_counts(tmp_path):
    results = Results(tmp_path)
    results.add(Verdict("a", "told", None, 1)), results.add(Verdict("b", "told", "x", 1))
    results.add(Verdict("a", "told", "y", 2))
    assert {key: one.killer for key, one in Results(tmp_path).known.items()} == {"a": "y", "b": "x"}


def test_a_listed_fault_is_known_by_its_line_and_change():
    fault = Fault(ROOT / "src/heed/training/duration.py", 0)
    own, line = fault.mutant(), fault.path.read_text("utf-8").splitlines()[fault.mutant().line - 1].strip()
    listed = {"path": "src/heed/training/duration.py", "line": line, "change": f"{own.before} -> {own.after}"}
    assert equivalent(fault, [{**listed, "reason": "because"}]) == "because"
    assert equivalent(fault, [{**listed, "line": line + " ", "reason": "because"}]) is None


def test_all_listed_faults_are_of_lines_in_the_source():
    for one in tomllib.loads(EQUIVALENT.read_text("utf-8"))["fault"]:
        lines = [line.strip() for line in (ROOT / one["path"]).read_text("utf-8").splitlines()]
        assert one["line"] in lines and one["reason"] and " -> " in one["change"], one


def test_a_look_is_taken_again_only_with_other_tests_or_for_longer(tmp_path):
    test = tmp_path / "test_a.py"
    test.write_text("assert 1", "utf-8")
    assert not Looked(tmp_path).holds("key", [test], 4)
    Looked(tmp_path).add("key", [test], 4)
    assert Looked(tmp_path).holds("key", [test], 4) and not Looked(tmp_path).holds("key", [test], 5)
    assert not Looked(tmp_path).holds("other", [test], 4)
    test.write_text("assert 2", "utf-8")
    assert not Looked(tmp_path).holds("key", [test], 4)


def test_a_function_that_has_lost_its_super_is_loaded_anew(tmp_path):
    path, source = (
        tmp_path / "own_module.py",
        "class A(list):\n    def __init__(self):\n        super().__init__('ab')\n",
    )
    namespace = {"__name__": "own_module"}
    exec(compile(source, str(path), "exec"), namespace)
    [fault] = [made for made in (mutant(source, i) for i in range(count(source))) if made.after == "pass"]
    assert put(path, fault) is False and namespace["A"]() == ["a", "b"]
    longer = fault._replace(source=source.replace("'ab'", "'abc'"))
    assert put(path, longer) is True and namespace["A"]() == ["a", "b", "c"]


def test_a_kept_sample_is_drawn_again_and_what_is_gone_is_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr("bench.sample.FOLDER", tmp_path / "samples")
    monkeypatch.setattr("bench.sample.ROOT", tmp_path)
    own, other = tmp_path / "a.py", tmp_path / "b.py"
    own.write_text("x = 1\ny = 2\nx = 1\n", "utf-8"), other.write_text("z = 3\n", "utf-8")
    assert sorted(drawn([other, own], 9, seed=0)) == [(own, 0), (own, 1), (own, 2), (other, 0)]
    keep([(own, 2), (other, 0)], seed=0)
    assert drawn([own, other], 2, seed=0) == [(own, 2), (other, 0)] and drawn([own], 1, seed=0) == [(own, 2)]
    own.write_text("import os\nw = 0\nx = 1\nx = 1\n", "utf-8")  # another line before it
    assert drawn([own, other], 2, seed=0) == [(own, 2), (other, 0)]
    other.write_text("z = 4\n", "utf-8")
    found = drawn([own, other], 3, seed=0)
    assert found[0] == (own, 2) and len(set(found)) == 3

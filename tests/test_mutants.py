"""Faults by a tool: each is one change, each is another, and the tests that are tried for it are near."""

import ast

import pytest
from bench.mutants import ROOT, SOURCE, TESTS, Copy, Judge, draw, nearest, sources
from bench.mutations import count, mutant


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
        ("log.info(x)", []),
        ("if TYPE_CHECKING: f(3)", []),
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


def test_a_fault_is_noticed_by_a_test_that_passes_without_it(tmp_path, monkeypatch):
    copy = Copy.__new__(Copy)
    copy.source, copy.times = tmp_path, 0
    judge, [fault] = Judge(copy, tmp_path), draw([ROOT / "src/heed/training/duration.py"], 1, seed=0)
    (tmp_path / "heed/training").mkdir(parents=True)
    own, clean = tmp_path / "heed/training/duration.py", fault.path.read_text("utf-8")
    ran = []

    def passes(test, folder):
        faulty = own.is_file() and own.read_text("utf-8") != clean
        ran.append((test, faulty))
        return test == "passes" or (test == "notices" and not faulty)

    monkeypatch.setattr(copy, "passes", passes)
    monkeypatch.setattr("bench.mutants.ROOT", tmp_path)
    judge.sound["broken"] = False
    assert judge.killer(fault, ["passes", "broken", "notices", "later"]) == "notices"
    assert ran == [("passes", True), ("notices", True), ("notices", False)]
    assert judge.killer(fault, ["passes"]) is None and own.read_text("utf-8") == clean

"""make check-faults itself: would it notice?"""

import errno
import io
import os
from argparse import Namespace

import pytest
from bench.fault_children import KILLED, Answer, Shim, Stop
from bench.fault_damage import damages
from bench.fault_records import Found, begin, end, read, write_down
from bench.faults import State, judge

RIGHT = State(Answer(0, "a\n", ""), {"model": "1"})


def test_every_damage_changes_a_file_each_in_its_own_way(tmp_path):
    path, content, found = tmp_path / "state.json", b'{"step": 4, "seed": 1}\n' * 9, set()
    for damage in damages(path, content, b"another", "seed"):
        path.write_bytes(content)
        damage.apply(path, content)
        found.add(path.read_bytes() if path.is_file() else None)
    assert content not in found and {None, b"", b"another", bytes(len(content)), content[:-1]} <= found
    assert len(found) == len(list(damages(path, content, b"another", "seed")))


@pytest.mark.parametrize(
    ("answer", "results", "good"),
    [
        (Answer(0, "a\n", ""), "1", True),
        (Answer(0, "a\n", "It is prepared again."), "1", True),
        (Answer(0, "a\n", ""), "2", False),
        (Answer(0, "b\n", ""), "1", False),
        (Answer(0, "b\n", "It is prepared again."), "1", False),
        (Answer(1, "", "heed: it is damaged"), "1", True),
        (Answer(1, "", ""), "1", False),
        (Answer(1, "", "heed: one\nheed: two"), "1", False),
        (Answer(99, "", "Traceback (most recent call last):"), "1", False),
        (Answer(-14, "", ""), "1", False),
    ],
)
def test_only_the_same_or_one_sentence_is_right(answer, results, good):
    assert judge(State(answer, {"model": results}), RIGHT)[1] is good


def test_an_interrupted_run_goes_on_with_the_next_case(tmp_path):
    def find(done):
        for number in range(done, 4):
            if number == 2 and not done:
                raise KeyboardInterrupt
            yield Found("a scene", str(number), "the same")

    path = tmp_path / "a scene.jsonl"
    with pytest.raises(KeyboardInterrupt):
        write_down(path, find)
    assert [own.case for own in read(tmp_path)] == ["0", "1"] and not path.exists()
    with open(path.with_suffix(".part"), "a", encoding="utf-8") as file:
        file.write('["a scene", "2"')  # the end of a process that was killed
    write_down(path, find)
    assert [own.case for own in read(tmp_path)] == ["0", "1", "2", "3"]
    write_down(path, lambda done: pytest.fail("it is complete"))


def test_a_run_with_other_options_begins_anew(tmp_path):
    given = Namespace(out=tmp_path / "out", every=1, shown=40)
    for every, left in ((1, True), (2, False)):
        begin(given)
        write_down(given.out / "a scene.jsonl", lambda done: [Found("a scene", "case", "the same")])
        given.every, given.shown = every, 10
        begin(given)
        assert bool(read(given.out)) is left
    write_down(given.out / "a scene.jsonl", lambda done: [Found("a scene", "case", "the same")])
    end(given.out)
    begin(given)
    assert not read(given.out)


def in_child(folder, stop):
    """Writes in a child under the shim: its exit code, and how many writes it counted."""
    child = os.fork()
    if not child:
        code = 99
        try:
            with Shim(stop, folder / "count"):
                with io.open(folder / "part", "w", encoding="utf-8") as file:  # noqa: UP020 (what the shim replaces)
                    file.write("12345678")
                os.replace(folder / "part", folder / "whole")
            code = 0
        except OSError as error:
            code = error.errno
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize(
    ("stop", "code", "left"),
    [
        (None, 0, {"whole": "12345678"}),
        (Stop(1, "kill"), KILLED, {"part": "1234"}),
        (Stop(2, "kill"), KILLED, {"part": "12345678"}),
        (Stop(2, "fail"), errno.ENOSPC, {"part": "12345678"}),
        (Stop(3, "kill"), 0, {"whole": "12345678"}),
        (Stop(1, "full"), errno.ENOSPC, {"part": ""}),
    ],
)
def test_a_write_is_stopped_where_it_should_be(tmp_path, stop, code, left):
    assert in_child(tmp_path, stop) == code
    found = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert found.pop("count", "2") in ("1", "2")
    assert found == left

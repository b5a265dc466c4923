"""Chunks whose stages overlap: order, errors, and how much is in memory."""

import gc
import sys
import threading
from contextlib import nullcontext

import pytest

from heed.data.staged import GIVE_WAY, Chunk, Stages, chunks, run


def upper(**changed):
    """Stages that upper-case lines."""
    stages = {
        "prepare": lambda chunk: [item.strip() for item in chunk.items],
        "work": lambda items: [item.upper() for item in items],
        "finish": lambda items, found: "".join(f"{item}\n" for item in found).encode(),
    }
    return Stages(**stages | changed)


LINES = [f"line {number} " for number in range(23)]


@pytest.mark.parametrize("ahead", [0, 1, 2])
@pytest.mark.parametrize("size", [1, 4, 23, 100])
def test_everything_comes_out_in_order(ahead, size):
    written = []
    run(chunks(iter(LINES), size), upper(), lambda chunk, data: written.append((chunk, data)), ahead)
    assert b"".join(data for _, data in written).decode().splitlines() == [line.strip().upper() for line in LINES]
    assert [chunk.start for chunk, _ in written] == list(range(0, len(LINES), size))
    assert [item for chunk, _ in written for item in chunk.items] == LINES


def test_no_lines_are_no_chunks():
    run(chunks([], 3), upper(), lambda chunk, data: pytest.fail("nothing to write"))


def test_the_stages_overlap():
    """The second chunk is prepared, and the first written, while the model works: with one thread this would wait for ever."""
    prepared, written = threading.Event(), threading.Event()

    def prepare(chunk):
        if chunk.start == 2:
            prepared.set()
        return chunk.items

    def work(items):
        if items[0] == LINES[0]:
            assert prepared.wait(60)
        if items[0] == LINES[2]:
            assert written.wait(60)
        return items

    run(chunks(LINES[:4], 2), upper(prepare=prepare, work=work), lambda chunk, data: written.set())


def test_the_work_is_done_by_the_thread_of_the_caller():
    own = []
    run(chunks(LINES, 4), upper(work=lambda items: own.append(threading.current_thread()) or items), lambda *of: None)
    assert set(own) == {threading.current_thread()}


def test_no_more_is_read_than_a_few_chunks_ahead():
    read = []

    def lines():
        for line in range(1000):
            read.append(line)
            yield str(line)

    most = []
    stages = upper(work=lambda items: most.append(len(read) - int(items[0])) or items)
    run(chunks(lines(), 10), stages, lambda *of: None)
    assert len(read) == 1000
    assert max(most) <= 10 * (1 + 2 + 2)  # being worked on; waiting; being prepared, and the next being read


@pytest.mark.parametrize("stage", ["prepare", "work", "finish", "write"])
@pytest.mark.parametrize("ahead", [0, 2])
def test_an_error_of_any_stage_is_that_of_the_whole(stage, ahead):
    """And what came before it is written."""

    def fails(*of):
        text = str(of)
        if "line 9" in text or "LINE 9" in text:
            raise ValueError("no nines")
        return {
            "prepare": lambda chunk: chunk.items,
            "work": lambda items: items,
            "finish": lambda *own: str(own).encode(),
        }[stage](*of)

    written = []

    def write(chunk, data):
        if stage == "write" and chunk.start == 8:
            raise ValueError("no nines")
        written.append(chunk.start)

    stages = upper() if stage == "write" else upper(**{stage: fails})
    before = threading.active_count()
    with pytest.raises(ValueError, match="lines 9 to 12: no nines" if stage == "prepare" else "^no nines"):
        run(chunks(LINES, 4), stages, write, ahead)
    assert written[:2] == [0, 4]
    assert 8 not in written
    assert threading.active_count() == before


def test_an_error_in_the_first_chunk_needs_no_place():
    def refuse(chunk):
        raise ValueError("text 1 is too long")

    with pytest.raises(ValueError, match=r"^text 1 is too long$"):
        run([Chunk(0, ["a"])], upper(prepare=refuse), lambda *of: None)


@pytest.mark.parametrize("enabled", [True, False])
def test_searches_for_reference_cycles_pause_and_go_on_as_before(enabled):
    seen, was = [], gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        stages = Stages(
            lambda chunk: chunk.items, lambda own: seen.append(gc.isenabled()) or own, lambda own, found: found
        )
        run(chunks(range(6), 2), stages, lambda chunk, own: None)
        assert seen == [False] * 3 and gc.isenabled() is enabled
        with pytest.raises(ValueError, match="broken"):
            run(chunks(range(6), 2), stages._replace(work=_broken), lambda chunk, own: None)
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if was else gc.disable)()


@pytest.mark.parametrize("fails", [None, "prepare", "begin", "late", "finish"])
def test_the_next_chunk_is_begun_before_the_last_is_complete(fails):
    """What was finished before an error is written all the same, in order."""
    told, written = [], []

    def prepare(chunk):
        if fails == "prepare" and chunk.start == 6:
            raise ValueError("broken")
        return chunk.start

    def begin(own, meanwhile):
        told.append(f"begin {own}")
        if fails == "begin" and own == 6:
            raise ValueError("broken")
        meanwhile()

        def late():
            told.append(f"late {own}")
            if fails == "late" and own == 6:
                raise ValueError("broken")
            return own

        return late

    def finish(prepared, found):
        if fails == "finish" and found == 6:
            raise ValueError("broken")
        return found

    stages = Stages(prepare, None, finish, begin=begin)
    with pytest.raises(ValueError, match="broken") if fails else nullcontext():
        run(chunks(range(12), 2), stages, lambda chunk, own: written.append((chunk.start, own)))
    every = [(start, start) for start in range(0, 12, 2)]
    assert written == (every[:3] if fails else every)
    assert told[:5] == ["begin 0", "begin 2", "late 0", "begin 4", "late 2"]


def test_a_begun_chunk_is_complete_when_the_next_did_not_ask():
    told = []
    stages = Stages(
        lambda chunk: chunk.start, None, lambda own, found: found, begin=lambda own, more: lambda: told.append(own)
    )
    run(chunks(range(6), 2), stages, lambda chunk, own: None)
    assert told == [0, 2, 4]


def test_threads_take_short_turns_while_stages_overlap():
    """Until the last of several jobs is done."""
    was, seen = sys.getswitchinterval(), []
    stages = Stages(
        lambda chunk: chunk.items, lambda own: seen.append(sys.getswitchinterval()), lambda own, found: None
    )

    def within(own):
        run(chunks(range(2), 1), stages, lambda chunk, own: None)
        seen.append(sys.getswitchinterval())

    run(chunks(range(2), 2), stages._replace(work=within), lambda chunk, own: None)
    assert seen == pytest.approx([GIVE_WAY] * 3) and was > GIVE_WAY
    with pytest.raises(ValueError, match="broken"):
        run(chunks(range(2), 2), stages._replace(work=_broken), lambda chunk, own: None)
    assert sys.getswitchinterval() == was


def _broken(own):
    raise ValueError("broken")

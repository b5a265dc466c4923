"""A file with a journal: killed at any moment, damaged anywhere, it ends as it would have without."""

import json
import os

import pytest

from heed.bulk.recorded import RecordedFile, line_hash
from heed.data.staged import Chunk, chunks

LINES = [f"줄 {number}" for number in range(11)]
SETTINGS = {"weights": ["abc"], "beam": 5}
HEAD = b"\x93HEAD"


def made(chunk: Chunk) -> bytes:
    return "".join(f"<{item}>\n" for item in chunk.items).encode()


WHOLE = HEAD + b"".join(made(chunk) for chunk in chunks(LINES, 3))


@pytest.fixture
def out(tmp_path):
    return tmp_path / "folder" / "out.txt"


def begin(out, blocks, warn=lambda sentence: None, **changed):
    """Write some blocks, and stop."""
    with RecordedFile(out, SETTINGS | changed, HEAD, warn) as file:
        for chunk in list(chunks(LINES, 3))[:blocks]:
            file.append(chunk, made(chunk), note=chunk.start)
    return file


def resume(out, lines=LINES, **changed):
    """Go on to the end; how many blocks were kept, and what was said."""
    said = []
    with RecordedFile(out, SETTINGS | changed, HEAD, said.append) as file:
        source = chunks(lines, 3)
        kept = file.resume(source) if file.begun else 0
        for chunk in source:
            file.append(chunk, made(chunk), note=chunk.start)
        file.finish()
    assert file.notes == [0, 3, 6, 9]
    assert os.listdir(out.parent) == [out.name]
    return kept, said


@pytest.mark.parametrize("blocks", range(5))
def test_it_goes_on_where_it_stopped(out, blocks):
    begin(out, blocks)
    assert not out.exists()
    assert resume(out) == (blocks, [])
    assert out.read_bytes() == WHOLE


def test_killed_between_a_block_and_its_record(out):
    file = begin(out, 2)
    with open(file.part, "ab") as part:
        part.write(b"<half a bl")
    assert resume(out) == (2, [])
    assert out.read_bytes() == WHOLE


@pytest.mark.parametrize("cut", [1, 5, 60])
def test_killed_while_a_record_is_written(out, cut):
    file = begin(out, 3)
    os.truncate(file.journal, file.journal.stat().st_size - cut)
    assert resume(out) == (2, [])
    assert out.read_bytes() == WHOLE


@pytest.mark.parametrize(("at", "kept"), [(0, 0), (len(HEAD), 0), (len(HEAD) + 40, 1), (-1, 2)])
def test_damage_is_noticed_and_made_again(out, at, kept):
    file = begin(out, 3)
    raw = bytearray(file.part.read_bytes())
    raw[at] ^= 1
    file.part.write_bytes(raw)
    found, said = resume(out)
    assert found == kept
    assert len(said) == 1 and str(file.part) in said[0] and "is damaged" in said[0]
    assert out.read_bytes() == WHOLE


def test_a_cut_file_is_damaged(out):
    file = begin(out, 3)
    os.truncate(file.part, len(HEAD) + len(made(Chunk(0, LINES[:3]))))
    assert resume(out)[0] == 1
    assert out.read_bytes() == WHOLE


@pytest.mark.parametrize("damaged", ["", "{}", "[1]", "null", '{"format": 1'])
def test_a_journal_that_says_nothing_is_not_believed(out, damaged):
    file = begin(out, 3)
    file.journal.write_text(damaged + "\n", encoding="utf-8", newline="\n")
    with (
        pytest.raises(ValueError, match=r"out\.txt\.part was started with "),
        RecordedFile(out, SETTINGS, HEAD) as other,
    ):
        other.resume(chunks(LINES, 3))


def change_block(file, damage, hashed):
    """Change the second block of a journal; `hashed`: and its hash too."""
    first, *blocks = file.journal.read_text("utf-8").splitlines()
    block = json.loads(blocks[1]) | damage
    blocks[1] = json.dumps(block | {"sha256": line_hash(block)} if hashed else block)
    file.journal.write_text("\n".join([first, *blocks]) + "\n", encoding="utf-8", newline="\n")


@pytest.mark.parametrize(
    "damage",
    [{"bytes": -1}, {"bytes": "9"}, {"bytes": 1 << 50}, {"inputs": True}, {"read": None}, {"written": 3}],
    ids=str,
)
def test_a_record_that_makes_no_sense_ends_the_journal(out, damage):
    change_block(begin(out, 3), damage, hashed=True)
    assert resume(out)[0] == 1
    assert out.read_bytes() == WHOLE


@pytest.mark.parametrize("damage", [{"note": 4}, {"note": None}, {"other": 1}, {"sha256": None}], ids=str)
def test_a_record_that_was_changed_ends_the_journal(out, damage):
    """Sums and counts of whole files are made from the notes."""
    change_block(begin(out, 3), damage, hashed=False)
    assert resume(out)[0] == 1
    assert out.read_bytes() == WHOLE


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (
            {"beam": 4},
            r"was started with beam 5, which is now 4: restore that, choose another --out, or leave out --resume",
        ),
        ({"weights": ["other"]}, r"was started with other weights"),
        ({"more": 1}, r"was started with more None, which is now 1"),
    ],
)
def test_other_settings_are_refused(out, changed, words):
    begin(out, 1)
    with pytest.raises(ValueError, match=words):
        resume(out, **changed)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([*LINES[:4], "other", *LINES[5:]], r"the input has changed from line 4 on since .*out\.txt\.part was started"),
        (LINES[:3], "the input has changed and is shorter"),
        (LINES[:5], "from line 4 on"),
    ],
)
def test_another_input_is_refused(out, lines, words):
    begin(out, 3)
    with pytest.raises(ValueError, match=words):
        resume(out, lines)


def test_notes_of_any_kind_come_back(out):
    with RecordedFile(out, SETTINGS, HEAD) as file:
        for chunk, note in zip(chunks(LINES, 3), ({10: 1, 9: 2}, (0.1, 2)), strict=False):
            file.append(chunk, made(chunk), note=note)
    with RecordedFile(out, SETTINGS, HEAD) as other:
        assert other.resume(chunks(LINES, 3)) == 2 and other.notes == [{"10": 1, "9": 2}, [0.1, 2]]


def test_two_processes_do_not_write_one_file(out):
    read, write = os.pipe()
    with RecordedFile(out, SETTINGS):
        child = os.fork()  # a lock is of a process
        if not child:
            try:
                with RecordedFile(out, SETTINGS):
                    os.write(write, b"locked")
            except ValueError as error:
                os.write(write, str(error).encode())
            os._exit(0)
        os.waitpid(child, 0)
    os.close(write)
    assert b"out.txt.part is being written by another process" in os.read(read, 1000)
    os.close(read)


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="names of open files are needed")
def test_new_names_are_on_disk_before_a_block_counts_and_before_the_journal_goes(out, monkeypatch):
    done, fsync, replace = [], os.fsync, os.replace

    def synced(handle):
        done.append(os.path.basename(os.readlink(f"/proc/self/fd/{handle}")))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", lambda *paths: (done.append("renamed"), replace(*paths)))
    with RecordedFile(out, SETTINGS, HEAD) as file:
        chunk = next(chunks(LINES, 3))
        file.append(chunk, made(chunk))
        file.finish()
    part, journal, folder = "out.txt.part", "out.txt.part.journal", out.parent.name
    assert done == [part, journal, folder, part, journal, "renamed", folder]


def test_an_empty_input_is_the_beginning_alone(out):
    with RecordedFile(out, SETTINGS, HEAD) as file:
        file.finish()
    assert out.read_bytes() == HEAD
    assert os.listdir(out.parent) == [out.name]

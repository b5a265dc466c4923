"""Files through a verb: overlapped, killed and resumed, with the same result."""

import json
import os
import signal
import subprocess
import sys

import pytest

from heed.bulk import recorded
from heed.cli import translate

LINES = [
    "나는 너를 사랑해.",
    "",
    "우리는 학교에 가.",
    "나는 책을 읽어요.",
    "너는 가.",
    "우리는 책을 읽어요.",
    "나는 가.",
]


@pytest.fixture
def text(tmp_path, monkeypatch):
    monkeypatch.setattr(translate, "CHUNK", 2)
    path = tmp_path / "in.ko"
    path.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8", newline="\n")
    return path


@pytest.mark.parametrize("options", [[], ["--nbest", "2", "--scores"], ["--align"], ["--sentences"]], ids=str)
def test_a_file_is_translated_as_its_chunks_are(heed, trained, text, tmp_path, options):
    expected = "".join(heed("translate", trained, *options, *LINES[at : at + 2])[1] for at in range(0, len(LINES), 2))
    assert heed("translate", trained, *options, "--input", text)[:2] == (0, expected)
    out = tmp_path / "out"
    assert heed("translate", trained, *options, "--input", text, "--out", out)[:2] == (0, "")
    assert out.read_text("utf-8") == expected
    assert sorted(os.listdir(tmp_path)) == ["cache", "in.ko", "out"]


class Killed(BaseException):
    """What no code catches."""


@pytest.mark.parametrize("blocks", [1, 2, 3])
def test_a_killed_run_goes_on_and_nothing_is_lost_or_doubled(heed, trained, text, tmp_path, monkeypatch, blocks):
    words = ["translate", trained, "--input", text, "--out", tmp_path / "out"]
    expected = heed("translate", trained, "--input", text)[1]
    plain, count = recorded.RecordedFile.append, []

    def append(self, chunk, data, note=None):
        if len(count) == blocks:
            raise Killed
        count.append(chunk)
        plain(self, chunk, data, note)

    monkeypatch.setattr(recorded.RecordedFile, "append", append)
    with pytest.raises(Killed):
        heed(*words)
    assert not (tmp_path / "out").exists()
    redone = []
    monkeypatch.setattr(recorded.RecordedFile, "append", lambda *of: (redone.append(of[1].start), plain(*of))[1])
    code, _, err = heed(*words, "--beam", "2", "--resume")
    assert code == 1
    assert "out.part was started with " in err and "or leave out --resume to start again" in err
    assert heed(*words, "--resume")[0] == 0
    assert redone == list(range(2 * blocks, len(LINES), 2))
    assert (tmp_path / "out").read_text("utf-8") == expected
    assert sorted(os.listdir(tmp_path)) == ["cache", "in.ko", "out"]


def interrupted(heed, words, monkeypatch):
    """A file of which two chunks are written; the chunks that are written from then on."""
    plain, written = recorded.RecordedFile.append, []

    def append(self, chunk, data, note=None):
        if len(written) == 2:
            raise Killed
        written.append(chunk)
        plain(self, chunk, data, note)

    monkeypatch.setattr(recorded.RecordedFile, "append", append)
    with pytest.raises(Killed):
        heed(*words)
    redone = []
    monkeypatch.setattr(recorded.RecordedFile, "append", lambda *of: (redone.append(of[1].start), plain(*of))[1])
    return redone


def test_a_resumed_file_keeps_the_chunks_that_it_was_begun_with(heed, trained, text, tmp_path, monkeypatch):
    """Also where an engine or a later version would have others, as for a file that was begun on a GPU with 2,000 lines at once."""
    words = ["translate", trained, "--input", text, "--out", tmp_path / "out"]
    expected = heed("translate", trained, "--input", text)[1]
    redone = interrupted(heed, words, monkeypatch)
    monkeypatch.setattr(translate, "CHUNK", 3)
    assert heed(*words, "--resume")[::2] == (0, "")
    assert redone == [4, 6]
    assert (tmp_path / "out").read_text("utf-8") == expected


def test_a_chunk_size_that_the_chunks_deny_is_not_believed(heed, trained, text, tmp_path, monkeypatch):
    words = ["translate", trained, "--input", text, "--out", tmp_path / "out"]
    interrupted(heed, words, monkeypatch)
    journal = tmp_path / "out.part.journal"
    first, rest = journal.read_text("utf-8").split("\n", 1)
    for wrong in (3, 10**18, 0, -1, True, "2", None):
        journal.write_text(f"{json.dumps({**json.loads(first), 'chunk': wrong})}\n{rest}", "utf-8")
        assert recorded.begun_chunk(tmp_path / "out") is None
        code, _, err = heed(*words, "--resume")
        assert code == 1 and f"out.part was started with chunk {wrong!r}, which is now 2: restore that" in err
    journal.write_text("", "utf-8")
    assert recorded.begun_chunk(tmp_path / "out") is None


def test_without_resume_it_starts_again(heed, trained, text, tmp_path):
    part = tmp_path / "out.part"
    part.write_text("left by another\n", encoding="utf-8", newline="\n")
    assert heed("translate", trained, "--input", text, "--out", tmp_path / "out")[0] == 0
    assert not part.exists()
    code, _, err = heed("translate", trained, "--input", text, "--out", tmp_path / "out", "--resume")
    assert code == 1
    assert err.endswith("out already exists and is complete: choose another --out, or leave out --resume")


@pytest.mark.parametrize("how", ["shortened", "split"])
def test_what_is_wrong_with_a_later_line_names_its_place_and_loses_nothing(heed, trained, text, tmp_path, how):
    long = "나는 가. " * 60
    text.write_text("".join(f"{line}\n" for line in [*LINES, long]), encoding="utf-8", newline="\n")
    words = ["translate", trained, "--input", text, "--out", tmp_path / "out", "--too-long"]
    code, _, err = heed(*words, "refuse")
    assert code == 1
    assert err.startswith("heed: lines 7 to 8: text 2 has ")
    assert err.endswith(f"(finished lines are kept in {tmp_path / 'out.part'}; continue with --resume)")
    assert not (tmp_path / "out").exists() and (tmp_path / "out.part").read_text("utf-8").count("\n") == 6
    if how == "shortened":
        text.write_text("".join(f"{line}\n" for line in [*LINES, "나는 가."]), encoding="utf-8", newline="\n")
    assert heed(*words, "refuse" if how == "shortened" else "split", "--resume")[0] == 0
    assert (tmp_path / "out").read_text("utf-8") == heed("translate", trained, "--input", text)[1]
    assert sorted(os.listdir(tmp_path)) == ["cache", "in.ko", "out"]


def test_what_is_wrong_with_the_first_lines_leaves_nothing(heed, trained, text, tmp_path):
    text.write_text("나는 가. " * 60 + "\n", encoding="utf-8", newline="\n")
    code, _, err = heed("translate", trained, "--input", text, "--out", tmp_path / "out", "--too-long", "refuse")
    assert code == 1 and "kept" not in err
    assert not [name for name in os.listdir(tmp_path) if "out" in name]


@pytest.mark.parametrize(
    "words", [["--resume", "나는 가."], ["--resume", "--out", "out"], ["--resume", "--input", "in.ko"]], ids=str
)
def test_resume_needs_files(heed, trained, text, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    code, _, err = heed("translate", trained, *words)
    assert (code, err) == (1, "heed: --resume continues an output file: it needs --input FILE and --out FILE")


PROGRAM = """
import os, signal, sys
from heed.bulk import recorded
from heed.cli import translate
from heed.cli.main import main
translate.CHUNK = 2
plain, left = recorded.RecordedFile.append, [int(sys.argv[1])]
def append(self, *of):
    plain(self, *of)
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
recorded.RecordedFile.append = append
main(sys.argv[2:])
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_a_process_that_is_killed_goes_on(heed, trained, text, tmp_path):
    words = ["translate", str(trained), "--input", str(text), "--out", str(tmp_path / "out"), "--resume"]
    done = subprocess.run([sys.executable, "-c", PROGRAM, "2", *words], check=False)
    assert done.returncode == -signal.SIGKILL
    assert (tmp_path / "out.part").read_text("utf-8").count("\n") == 4
    assert heed(*words)[0] == 0
    assert (tmp_path / "out").read_text("utf-8") == heed("translate", trained, "--input", text)[1]

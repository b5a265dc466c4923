"""What flows through a verb: lines in and out, all of them, in their order, and nothing left behind."""

import codecs
import io
import json
import os
import shutil
import sys
import types

import pytest

import heed as package
from heed.bulk.command import AHEAD, read_ahead
from heed.cli import common, translate
from heed.cli.main import main

LONG = "나는 학교에 가. " * 30


@pytest.fixture
def model(trained, tmp_path):
    """A copy of the model, to be changed."""
    return shutil.copytree(trained / "model", tmp_path / "model")


def change(folder, **facts):
    path = folder / "config.json"
    changed = {**json.loads(path.read_text("utf-8")), **facts}
    del changed["sha256"]  # as somebody must who changes the file
    path.write_text(json.dumps(changed), "utf-8")


def pairs(column: str) -> list[tuple[int, int]]:
    return [tuple(int(number) for number in link.split("-")) for link in column.split()]


def test_only_a_file_is_read_ahead_since_others_wait_for_their_answers(tmp_path, monkeypatch):
    (tmp_path / "lines").write_text("a\n", "utf-8")
    with (tmp_path / "lines").open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        assert [read_ahead(None), read_ahead("-"), read_ahead("lines")] == 3 * [AHEAD]
    reading, writing = os.pipe()
    with os.fdopen(writing, "w"), os.fdopen(reading) as pipe:
        monkeypatch.setattr(sys, "stdin", pipe)
        assert [read_ahead(None), read_ahead("-"), read_ahead("lines")] == [0, 0, AHEAD]
    monkeypatch.setattr(sys, "stdin", io.StringIO("a\n"))
    assert read_ahead(None) == 0


def test_each_of_the_best_of_a_text_in_parts_is_aligned_part_by_part(heed, model):
    whole = json.loads((model / "config.json").read_text("utf-8"))["model"]
    change(model, model=whole | {"max_length": 44})  # room for a part, not for the translation of the text
    code, out, err = heed("translate", model, "--engine", "torch", "--nbest", 3, "--align", LONG, "나는 가.")
    assert (code, err) == (0, "")
    rows = [line.split("\t") for line in out.splitlines()]
    assert [len(row) for row in rows] == [2] * 6
    translator = package.load(model, "cpu", "torch")
    found = translator.translate(LONG.strip(), nbest=3, beam=5)
    assert len(found.parts) > 3
    for k, (text, links) in enumerate(rows[:3]):
        each = [part.nbest[k].text for part in found.parts]
        assert text == " ".join(each)
        links, lengths = pairs(links), [len(one.split()) for one in each]
        assert [j for _, j in links] == list(range(sum(lengths)))
        sources = [part.source for part in found.parts]
        own = translator.align_pairs(sources, each)
        before = [sum(len(one.split()) for one in sources[:i]) for i in range(len(sources))]
        assert [i for i, _ in links] == [i + start for start, part in zip(before, own, strict=True) for i, _ in part]


def test_what_cannot_be_aligned_has_an_empty_column_and_the_rest_is_written(heed, trained, monkeypatch):
    from heed.products.translator.translator import Translator

    texts, plain = ["나는 가.", "우리는 학교에 가."], Translator.encode_pairs
    lines = heed("translate", trained, "--align", *texts)[1].splitlines()

    def narrow(self, sources, targets):
        if texts[0] in sources:
            raise ValueError("target 1 has 90 subwords; the model allows 63")
        return plain(self, sources, targets)

    monkeypatch.setattr(Translator, "encode_pairs", narrow)
    code, out, _ = heed("translate", trained, "--align", *texts)
    assert code == 0
    assert out.splitlines() == [lines[0].split("\t")[0] + "\t", lines[1]]


LINES = ["나는 너를 사랑해.", "", "우리는 학교에 가."]


@pytest.fixture
def stdin(monkeypatch):
    """Standard input that holds these bytes."""

    def put(raw: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8"))

    return put


def test_a_mark_of_the_order_of_bytes_is_no_letter_of_the_first_line(heed, trained, stdin, tmp_path):
    raw = codecs.BOM_UTF8 + "\r\n".join(LINES).encode()
    (tmp_path / "in").write_bytes(raw)
    stdin(raw)
    code, out, _ = heed("translate", trained)
    assert code == 0 and out == heed("translate", trained, *LINES)[1]
    assert out == heed("translate", trained, "--input", tmp_path / "in")[1]
    stdin(raw)
    assert common.read_lines("-") == LINES
    stdin(b"")
    assert heed("translate", trained)[:2] == (0, "")


@pytest.mark.parametrize("verb", ["translate", "serve", "classify", "generate"])
@pytest.mark.parametrize("threads", ["-3", "0", "two"])
def test_threads_are_a_number_of_at_least_one(verb, threads, capsys):
    with pytest.raises(SystemExit) as done:
        main([verb, "runs/none", "--threads", threads])
    assert done.value.code == 2
    assert f"--threads: it is {threads}; it must be an integer, at least 1" in capsys.readouterr().err


def test_output_is_utf8_whatever_the_locale(monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    common.write_lines(["a", "학교", "b"], None)
    assert raw.getvalue() == "a\n학교\nb\n".encode()


class Told(io.BytesIO):
    """A stream that remembers in which pieces it was written."""

    def __init__(self, pieces):
        super().__init__()
        self.pieces = pieces

    def write(self, piece):
        self.pieces.append(bytes(piece))
        return super().write(piece)


def test_what_is_read_comes_out_before_more_is_read(heed, trained, stdin, monkeypatch):
    lines = [f"나는 {number}." for number in range(7)]
    whole = heed("translate", trained, *lines)[1]
    monkeypatch.setattr(translate, "CHUNK", 3)
    events = []

    def endless():
        for line in lines:
            events.append("read")
            yield (line + "\n").encode()

    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=endless()))
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BufferedWriter(Told(events)), encoding="utf-8"))
    assert main(["translate", str(trained)]) == 0
    told = [event if event == "read" else len(event.decode().splitlines()) for event in events]
    assert told == ["read"] * 3 + [3] + ["read"] * 3 + [3] + ["read", 1]
    assert b"".join(event for event in events if event != "read").decode() == whole


def test_all_of_a_file_is_looked_at_before_anything_is_written(heed, trained, stdin, tmp_path, monkeypatch):
    monkeypatch.setattr(translate, "CHUNK", 2)
    (tmp_path / "in").write_bytes("하나\n둘\n셋\n".encode() + b"\xff\n")
    code, out, err = heed("translate", trained, "--input", tmp_path / "in")
    assert (code, out) == (1, "") and "in, line 4 is not UTF-8" in err
    for given in ("gone", "in"):
        code, _, err = heed("translate", trained, "--input", tmp_path / given, "--out", tmp_path / "new" / "out")
        assert code == 1 and not (tmp_path / "new").exists()
    stdin((tmp_path / "in").read_bytes())
    code, out, err = heed("translate", trained)
    assert (code, len(out.splitlines())) == (1, 2) and "standard input, line 4 is not UTF-8" in err


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_nothing_is_left_behind_and_what_was_there_stays(tmp_path, error):
    out, theirs = tmp_path / "out", tmp_path / "out.part"
    out.write_text("before")
    theirs.write_text("mine")

    def lines():
        yield "one"
        raise error

    for chunks in ([lines()], [["zero"], lines()]):
        with pytest.raises(error):
            common.write_chunks(chunks, str(out))
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"out": "before", "out.part": "mine"}
    common.write_lines(["one", "둘"], str(out))
    assert {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()} == {
        "out": "one\n둘\n",
        "out.part": "mine",
    }
    common.write_lines([], str(out))
    assert out.read_text() == ""


def test_a_folder_is_no_file_to_write_to_and_that_is_said_first(tmp_path):
    def lines():
        raise AssertionError("much work for nothing")
        yield

    with pytest.raises(ValueError, match=r"--out .* is a folder: give the name of a file"):
        common.write_lines(lines(), str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_device_is_written_to_as_it_is(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        common.write_lines(["one"], str(pipe))
        assert os.read(reader, 100) == b"one\n"
    finally:
        os.close(reader)
    assert pipe.is_fifo() and [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_a_text_is_not_written_over_by_its_translation(heed, trained, tmp_path):
    (tmp_path / "in").write_text("나는 가.\n", "utf-8")
    code, _, err = heed("translate", trained, "--input", tmp_path / "in", "--out", tmp_path / "." / "in")
    assert (code, "--out is the input file itself" in err) == (1, True)
    assert (tmp_path / "in").read_text("utf-8") == "나는 가.\n"

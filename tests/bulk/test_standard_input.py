"""Standard input of the verbs that read lines: what a file gives, chunk by chunk, and before the input ends."""

import io
import os
import sys
import threading

import numpy as np
import pytest

from heed.cli import answer, generate, score_lines, summarize, translate
from heed.cli.main import main
from heed.products import text_batches
from heed.products.embedder import Embedder

CHUNK = 4
TEXTS = ["the dog sees", "a", "she never finds the street", "the street", "who", "red house", "나는 책을", "she", "dog"]
LONG = "한 " * 900
AT_MOST = 120  # seconds that a test waits for what should come at once, so that it fails where it does not


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch, tmp_path):
    monkeypatch.setenv("HEED_CACHE", str(tmp_path / "cache"))
    for module in (answer, generate, score_lines, summarize, text_batches, translate):
        monkeypatch.setattr(module, "CHUNK", CHUNK)


@pytest.fixture
def verbs(folders, classifier_folder, encoder_folder, translator_folder, tmp_path):
    """By name: the words of a command, and its lines. INPUT is the name of what they are read from."""
    (tmp_path / "searched").write_text("the house\na dog\n", "utf-8")
    (tmp_path / "target").write_text("".join(f"{text}\n" for text in TEXTS), "utf-8")
    context = "the dog sees a red house. she never finds the street."
    return {
        "translate": (["translate", translator_folder, "--engine", "torch", "--input", "INPUT", "--scores"], TEXTS),
        "classify": (["classify", classifier_folder, "--input", "INPUT", "--scores"], TEXTS),
        "search": (["embed", encoder_folder, "--input", "INPUT", "--search", tmp_path / "searched"], TEXTS),
        "tag": (["tag", folders / "tagger", "--input", "INPUT", "--format", "json"], TEXTS),
        "fill": (["fill", folders / "filler", "--input", "INPUT"], [f"{text} [MASK]" for text in TEXTS]),
        "answer": (["answer", folders / "answerer", "--input", "INPUT"], [f"{text}\t{context}" for text in TEXTS]),
        "generate": (["generate", folders / "gpt2", "--input", "INPUT", "--one-line", "--length", 12], TEXTS),
        "summarize": (["summarize", folders / "summarizer", "--lines", "INPUT"], TEXTS),
        "score": (["score", translator_folder, "--source", "INPUT", "--target", tmp_path / "target"], TEXTS),
        "score --text": (["score", folders / "gpt2", "--text", "INPUT"], TEXTS),
    }


NAMES = ["translate", "classify", "search", "tag", "fill", "answer", "generate", "summarize", "score", "score --text"]


def command(words, source) -> list[str]:
    """The words with the name of the input; "" is standard input where that is the default."""
    words = [str(source if word == "INPUT" else word) for word in words]
    if not source:
        at = words.index("")
        words[at - 1 : at + 1] = [] if words[at - 1] == "--input" else [words[at - 1]]
    return [*words, "--device", "cpu"]


def of_standard_input(name: str) -> str:
    return "-" if name in ("generate", "score", "score --text") else ""


def put(monkeypatch, lines, end: bytes = b"") -> None:
    raw = "".join(f"{line}\n" for line in lines).encode() + end
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8"))


@pytest.mark.parametrize("name", NAMES)
def test_standard_input_gives_what_a_file_gives(verbs, name, tmp_path, monkeypatch, capsys):
    words, lines = verbs[name]
    (tmp_path / "in").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    assert main(command(words, tmp_path / "in")) == 0
    out, err = capsys.readouterr()
    put(monkeypatch, lines)
    assert main(command(words, of_standard_input(name))) == 0
    assert capsys.readouterr() == (out, err) and out


def test_vectors_of_standard_input_are_those_of_a_file(encoder_folder, tmp_path, monkeypatch, capsys):
    words = ["embed", str(encoder_folder), "--device", "cpu", "--too-long", "cut", "--out"]
    for count in (0, 1, CHUNK, 9):
        lines = [*TEXTS[:-1], LONG][:count]
        put(monkeypatch, lines)
        assert main([*words, str(tmp_path / "stdin.npy")]) == 0
        assert ("1 of 9 texts were cut" in capsys.readouterr().err) == (count == 9)
        vectors = np.load(tmp_path / "stdin.npy")
        assert len(vectors) == count
        if count:
            (tmp_path / "in").write_text("".join(f"{line}\n" for line in lines), "utf-8")
            assert main([*words, str(tmp_path / "file.npy"), "--input", str(tmp_path / "in")]) == 0
            assert (tmp_path / "stdin.npy").read_bytes() == (tmp_path / "file.npy").read_bytes()
        np.save(tmp_path / "all.npy", vectors)
        assert (tmp_path / "stdin.npy").read_bytes() == (tmp_path / "all.npy").read_bytes()


class Told(io.StringIO):
    """Standard output that calls what it is given when something is written."""

    def __init__(self, tell):
        super().__init__()
        self.tell = tell

    def flush(self):
        if self.getvalue():
            self.tell()


class Producer(threading.Thread):
    """Writes the first lines to a pipe, and the others when it is told to; `early` says whether that was before the end."""

    def __init__(self, pipe: int, lines: list[str], first: int):
        super().__init__(daemon=True)
        self.pipe, self.lines, self.first = pipe, lines, first
        self.go, self.early = threading.Event(), False

    def run(self):
        with os.fdopen(self.pipe, "wb") as pipe:
            pipe.write("".join(f"{line}\n" for line in self.lines[: self.first]).encode())
            pipe.flush()
            self.early = self.go.wait(AT_MOST)
            pipe.write("".join(f"{line}\n" for line in self.lines[self.first :]).encode())


@pytest.fixture
def pipe(monkeypatch):
    """Puts lines into a pipe, of which the first chunk at once."""
    opened = []

    def pipe(lines) -> Producer:
        reading, writing = os.pipe()
        opened.append(os.fdopen(reading, encoding="utf-8"))
        monkeypatch.setattr(sys, "stdin", opened[0])
        producer = Producer(writing, lines, CHUNK)
        producer.start()
        return producer

    yield pipe
    for own in opened:
        own.close()


@pytest.mark.parametrize("name", NAMES)
def test_the_first_lines_are_answered_before_a_pipe_ends(verbs, name, tmp_path, pipe, monkeypatch, capsys):
    words, lines = verbs[name]
    (tmp_path / "in").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    assert main(command(words, tmp_path / "in")) == 0
    expected, producer = capsys.readouterr().out, pipe(lines)
    told = Told(producer.go.set)
    monkeypatch.setattr(sys, "stdout", told)
    assert main(command(words, of_standard_input(name))) == 0
    producer.join()
    assert producer.early and told.getvalue() == expected


def test_vectors_are_made_before_a_pipe_ends(encoder_folder, tmp_path, pipe, monkeypatch):
    producer, plain = pipe(TEXTS), Embedder.embed_ids
    monkeypatch.setattr(Embedder, "embed_ids", lambda *of: (plain(*of), producer.go.set())[0])
    assert main(["embed", str(encoder_folder), "--device", "cpu", "--out", str(tmp_path / "out.npy")]) == 0
    assert producer.early and len(np.load(tmp_path / "out.npy")) == len(TEXTS)


@pytest.mark.parametrize("name", ["translate", "classify", "search", "generate"])
def test_each_line_of_a_terminal_is_answered_before_the_next(verbs, name, monkeypatch, capsys):
    pty = pytest.importorskip("pty")  # Windows has none
    words, lines = verbs[name]
    main_end, terminal = pty.openpty()
    left = [*lines[1:3], None]

    def type_next():
        line = left.pop(0) if left else None
        os.write(main_end, b"\x04" if line is None else f"{line}\n".encode())

    seen = []
    with os.fdopen(terminal, encoding="utf-8") as stdin, os.fdopen(main_end, "wb", 0):
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(sys, "stdout", Told(lambda: (seen.append(len(left)), type_next()) if left else None))
        os.write(main_end, f"{lines[0]}\n".encode())
        late = threading.Timer(AT_MOST, lambda: [os.write(main_end, b"\x04") for _ in range(3)])
        late.daemon = True
        late.start()
        assert main(command(words, of_standard_input(name))) == 0
        late.cancel()
    assert seen == [3, 2, 1]


@pytest.mark.parametrize(
    ("name", "last", "says"),
    [
        ("classify", LONG, "text 9 has "),
        ("search", LONG, "text 9 has "),
        ("fill", "no mask", "text 9 has no [MASK]"),
        ("answer", "no tab", "line 9 has no tab"),
        ("score", None, "- has 8 lines and "),
    ],
)
def test_an_error_in_a_later_line_names_it_and_keeps_what_came_before(
    verbs, name, last, says, tmp_path, monkeypatch, capsys
):
    words, lines = verbs[name]
    put(monkeypatch, lines[:8])
    (tmp_path / "target").write_text("".join(f"{text}\n" for text in TEXTS[:8]), "utf-8")
    assert main(command(words, of_standard_input(name))) == 0
    expected = capsys.readouterr().out
    (tmp_path / "target").write_text("".join(f"{text}\n" for text in TEXTS), "utf-8")
    put(monkeypatch, [*lines[:8], *filter(None, [last])])
    assert main(command(words, of_standard_input(name))) == 1
    out, err = capsys.readouterr()
    assert out == expected and err.startswith(f"heed: {says}")
    if last:
        put(monkeypatch, lines[:8], b"\xff\n")
        assert main(command(words, of_standard_input(name))) == 1
        out, err = capsys.readouterr()
        assert out == expected[: len(out)] and out
        assert err.startswith("heed: standard input, line 9 is not UTF-8")


def test_vectors_with_an_error_leave_no_file(encoder_folder, tmp_path, monkeypatch, capsys):
    put(monkeypatch, [*TEXTS, LONG])
    assert main(["embed", str(encoder_folder), "--device", "cpu", "--out", str(tmp_path / "out.npy")]) == 1
    assert capsys.readouterr().err.startswith("heed: text 10 has ")
    assert not list(tmp_path.glob("*out*"))


def test_only_one_side_of_pairs_is_standard_input(translator_folder, capsys):
    assert main(["score", str(translator_folder), "--source", "-", "--target", "-"]) == 1
    assert capsys.readouterr().err.startswith("heed: --source and --target are both standard input: give a file for")


def test_what_is_odd_about_prompts_of_standard_input_is_told_of_all(folders, monkeypatch, capsys):
    put(monkeypatch, [*TEXTS, "the dog " * 12])
    words = ["generate", str(folders / "gpt2"), "--input", "-", "--length", "9", "--device", "cpu"]
    assert main(words) == 0
    assert "2 of the 10 texts do not fit" in capsys.readouterr().err
    put(monkeypatch, [])
    assert main(words) == 0
    assert capsys.readouterr() == ("", "")

"""heed translate with a glossary, and of documents."""

import io
import zipfile
from pathlib import Path

import pytest

from heed.text.docx import NAMESPACES
from heed.text.glossary import Glossary

GLOSSARY = '{"책": "Tobigs"}'


def test_a_term_is_in_the_output(heed, trained, tmp_path):
    table = tmp_path / "terms.tsv"
    table.write_text("책\tTobigs\n우유\tmilk\n", "utf-8")
    for given in (GLOSSARY, table):
        code, out, err = heed("translate", trained, "--glossary", given, "나는 책을 읽어요.", "학교")
        assert (code, err) == (0, "")
        assert Glossary({"Tobigs": "x"}).matches(out.splitlines()[0])
        assert len(out.splitlines()) == 2
    code, out, _ = heed("translate", trained, "--keep", "Heed", "--keep", "없는 말", "Heed는 좋아요.", "--nbest", "2")
    assert code == 0
    assert [Glossary({"Heed": "x"}).matches(line) != [] for line in out.splitlines()] == [True, True]


def test_a_term_without_room_is_told_and_the_rest_is_written(heed, trained):
    code, out, err = heed(
        "translate", trained, "--glossary", '{"책": "a very long name of a book", "우유": "milk"}', "--max-length", "9",
        "책 우유", "책",
    )  # fmt: skip
    assert code == 0
    assert "milk" in out.splitlines()[0].lower()
    assert len(out.splitlines()) == 2
    assert err == "heed: 'a very long name of a book' (for '책') is missing, 2 times: it could not be placed"


def test_a_document_is_translated_into_another(heed, trained, tmp_path):
    source, out = tmp_path / "a.md", tmp_path / "new" / "b.md"
    source.write_text("# 책\n\n- 나는 책을 읽어요. {name}\n\n```\n책\n```\n", "utf-8")
    code, said, err = heed("translate", trained, "--file", source, "--out", out, "--glossary", GLOSSARY)
    assert (code, said, err) == (0, "", "")
    first, *lines = out.read_text("utf-8").split("\n")
    assert first.startswith("# ") and "Tobigs" in first
    assert lines[1].startswith("- ") and "Tobigs" in lines[1] and "{name}" in lines[1]
    assert lines[2:] == ["", "```", "책", "```", ""]
    assert [path.name for path in out.parent.iterdir()] == ["b.md"]
    before = out.read_bytes()
    code, _, err = heed("translate", trained, "--file", source, "--out", out)
    assert (code, err) == (1, f"heed: --out {out} already exists: choose another name, or use --force to overwrite it")
    assert out.read_bytes() == before
    assert heed("translate", trained, "--file", source, "--out", out, "--force")[0] == 0
    assert out.read_bytes() != before


def test_one_column_and_a_format_that_is_said(heed, trained, tmp_path):
    source, out = tmp_path / "a.dat", tmp_path / "b.dat"
    source.write_text("1\t책\n2\t우유\n", "utf-8")
    code, _, err = heed("translate", trained, "--file", source, "--format", "tsv", "--column", 2, "--out", out)
    assert (code, err) == (0, "")
    assert [line.split("\t")[0] for line in out.read_text("utf-8").split("\n")] == ["1", "2", ""]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--file", "a.md"], "--file needs --out: the name of the file to write"),
        (["--file", "a.md", "--out", "."], "--out . is a folder; it must be the name of a file"),
        (["--file", "a.md", "--out", "a.md"], "--out is the input document itself, a.md: give it another name"),
        (["--file", "none.md", "--out", "b.md"], "none.md cannot be read: No such file or directory"),
        (["--file", "a.md", "--out", "b.md", "--nbest", "2"], "--file translates a document, and --nbest is for lines: leave it out"),
        (["--file", "a.md", "--out", "b.md", "Hello"], "--file translates a document, and a sentence is for lines: leave it out"),
        (["--file", "a.md", "--out", "b.md", "--column", "1"], "a.md has no columns: column 1 is for .tsv files"),
        (["--file", "a.tsv", "--out", "b.tsv"], "a.tsv: choose the column to translate, counted from 1"),
        (["--file", "a.tsv", "--out", "b.tsv", "--column", "3"], "a.tsv, line 1 has 2 columns; column 3 was to be translated"),
        (["--file", "a.tsv", "--out", "b.tsv", "--column", "0"], "a.tsv: column is 0; columns are counted from 1"),
        (["--file", "a.pdf", "--out", "b.pdf"], "a.pdf ends in .pdf; heed translates .txt"),
        (["--file", "a.md", "--out", "b.docx"], "--out ends in .docx, and a.md in .md: the format cannot change"),
        (["--file", "a.md", "--out", "a.tsv/b.md"], "--out a.tsv/b.md cannot be written:"),
        (["--file", "none.md", "--out", "a.md"], "--out a.md already exists: choose another name, or use --force"),
        (["--file", ".", "--format", "md", "--out", "b.md"], ". cannot be read: Is a directory"),
        (["--file", "a.md", "--format", "docx", "--out", "b.md"], "a.md is not a Word document, or is damaged"),
        (["--glossary", '["a"]', "Hello"], '["a"]: the glossary cannot be read: No such file or directory'),
        (["--column", "1", "Hello"], "--column is for documents: add --file"),
        (["--glossary", "none.tsv", "Hello"], "none.tsv: the glossary cannot be read: No such file or directory"),
        (["--glossary", "a.tsv", "--keep", "x", "Hello"], "'x' is to be kept and also translated as 'y': a term can be in keep or in the glossary, not both"),
        (["--glossary", '{"a": 1}', "Hello"], "--glossary, 'a': a term must be a string, not 1"),
        (["--glossary", "a.md", "Hello"], "a.md, line 1 has 1 columns; it must be a term, a tab and its translation"),
        (["--glossary", GLOSSARY, "--sample", "책"], "sample is true, but glossary terms need beam search"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_a_sentence(heed, trained, tmp_path, monkeypatch, words, sentence):
    monkeypatch.chdir(tmp_path)
    for name, text in {"a.md": "책\n", "a.tsv": "x\ty\n", "a.pdf": ""}.items():
        (tmp_path / name).write_text(text, "utf-8")
    code, out, err = heed("translate", trained, *words)
    assert (code, out) == (1, "")
    assert err.startswith(f"heed: {sentence}")
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "cache") == ["a.md", "a.pdf", "a.tsv"]


class Full(OSError):
    pass


def test_what_goes_wrong_leaves_nothing_half_written(heed, trained, tmp_path, monkeypatch):
    source, out = tmp_path / "a.txt", tmp_path / "new" / "b.txt"
    source.write_text("책\n", "utf-8")

    def full(self, data):
        with open(self, "wb") as file:
            file.write(data[:1])
        raise Full("no space left on device")

    def broken(*_, **__):
        raise ValueError("the model is broken")

    monkeypatch.setattr(Path, "write_bytes", full)
    code, _, err = heed("translate", trained, "--file", source, "--out", out)
    assert (code, err) == (1, "heed: no space left on device")
    assert not list(out.parent.iterdir())
    monkeypatch.undo()
    out.write_text("before", "utf-8")
    monkeypatch.setattr("heed.products.translator.translator.Translator.translate", broken)
    code, _, err = heed("translate", trained, "--file", source, "--out", out, "--force")
    assert (code, err) == (1, "heed: the model is broken")
    assert [path.name for path in out.parent.iterdir()] == ["b.txt"]
    assert out.read_text("utf-8") == "before"


def word(text):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        body = f"<w:body><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:body>"
        archive.writestr("word/document.xml", f'<w:document xmlns:w="{NAMESPACES[0]}">{body}</w:document>')
    return made.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "kept"),
    [
        ("a.txt", "  - 책 https://a.example %s\r\n\r\n".encode(), [b"  - ", b"https://a.example", b"%s", b"\r\n\r\n"]),
        ("a.html", "<p>책 <b>값</b><br>{n}개</p>".encode(), [b"<p>", b"<b>", b"</b>", b"<br>", b"{n}"]),
        ("a.srt", "1\n00:00:01,000 --> 00:00:02,000\n<i>책</i>\n".encode(), [b"--> 00:00:02,000\n<i>", b"</i>\n"]),
        ("a.docx", word("책"), [b"word/document.xml"]),
    ],
)
def test_every_kind_of_document_is_translated(heed, trained, tmp_path, name, data, kept):
    source, out = tmp_path / name, tmp_path / f"b{Path(name).suffix}"
    source.write_bytes(data)
    code, said, err = heed("translate", trained, "--file", source, "--out", out, "--glossary", GLOSSARY)
    assert (code, said, err) == (0, "", "")
    made = out.read_bytes()
    assert all(part in made for part in kept)
    if name == "a.docx":
        with zipfile.ZipFile(out) as archive:
            made = archive.read("word/document.xml")
    assert b"Tobigs" in made

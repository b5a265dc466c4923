"""Lines and pairs from files of all kinds."""

import gzip
import lzma

import pytest

from heed.data import readers, tables
from heed.data.readers import Line

TEXT = "eins\nzwei Bäume\n세 나무\n"
LINES = ["eins", "zwei Bäume", "세 나무"]


def file(folder, name, content):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("plain", TEXT.encode()),
        ("packed.gz", gzip.compress(TEXT.encode(), mtime=0)),
        ("packed.xz", lzma.compress(TEXT.encode())),
        ("two-parts.gz", gzip.compress(TEXT[:9].encode(), mtime=0) + gzip.compress(TEXT[9:].encode(), mtime=0)),
        ("without-an-end", TEXT.rstrip("\n").encode()),
        ("windows", TEXT.replace("\n", "\r\n").encode()),
        ("byte-order-mark", TEXT.encode("utf-8-sig")),
    ],
)
def test_a_file_gives_its_lines(tmp_path, name, content):
    assert list(readers.lines(file(tmp_path, name, content))) == LINES


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\r"])
def test_only_a_line_feed_ends_a_line(tmp_path, mark):
    assert list(readers.lines(file(tmp_path, "a", f"one{mark}still one\ntwo\n"))) == [f"one{mark}still one", "two"]


def test_a_mark_inside_a_text_is_text(tmp_path):
    assert list(readers.lines(file(tmp_path, "a", "one\n\ufefftwo"))) == ["one", "\ufefftwo"]


def test_empty_lines_are_lines(tmp_path):
    assert list(readers.lines(file(tmp_path, "a", "\n\none\n\n"))) == ["", "", "one", ""]


def test_pairs_come_file_by_file_in_order_with_their_location(tmp_path):
    sources = [file(tmp_path, "a.en", "1\n2\n"), file(tmp_path, "b.en.gz", gzip.compress(b"3\n", mtime=0))]
    targets = [file(tmp_path, "a.de", "eins\nzwei\n"), file(tmp_path, "b.de", "drei")]
    assert list(readers.pairs(sources, targets)) == [
        Line("1", "eins", "a.en:1"),
        Line("2", "zwei", "a.en:2"),
        Line("3", "drei", "b.en.gz:1"),
    ]


def test_columns_of_a_table_are_counted_from_one(tmp_path):
    content = "id\tone\teins\nid\ttwo\tzwei\r\n"
    for path in (file(tmp_path, "a.tsv", content), file(tmp_path, "a.tsv.gz", gzip.compress(content.encode()))):
        assert [line[:2] for line in tables.table(path, [2, 3])] == [("one", "eins"), ("two", "zwei")]
        assert [line[:2] for line in tables.table(path, [3, 2])] == [("eins", "one"), ("zwei", "two")]
    assert next(tables.table(path, [1, 2])).location == "a.tsv.gz:1"


def assert_says(words, read, *arguments):
    with pytest.raises(ValueError, match=words):
        list(read(*arguments))


def test_a_missing_file_is_named(tmp_path):
    assert_says(r"nowhere\.en: no such file", readers.lines, tmp_path / "nowhere.en")
    assert_says(r" is a folder: give a file", readers.lines, tmp_path)


@pytest.mark.parametrize(
    ("name", "content"), [("a.en", b""), ("a.gz", gzip.compress(b"", mtime=0)), ("a.xz", lzma.compress(b""))]
)
def test_an_empty_file_is_named(tmp_path, name, content):
    assert_says(rf"{name} is empty", readers.lines, file(tmp_path, name, content))


def test_what_is_not_utf_8_is_named_with_its_line(tmp_path):
    path = file(tmp_path, "latin.de", b"gut\n" * 2 + "Bäume\n".encode("latin-1"))
    assert_says(r"latin\.de, line 3 is not UTF-8 \(byte 0xe4 at 1\): convert the file first", readers.lines, path)
    path = file(tmp_path, "wide.de", "Bäume\n".encode("utf-16"))
    assert_says(r"wide\.de, line 1 is not UTF-8", readers.lines, path)


def test_different_numbers_of_lines_are_told(tmp_path):
    short, long = file(tmp_path, "short.en", "a\n" * 1200), file(tmp_path, "long.de", "b\n" * 13000)
    words = r"short\.en has 1,200 lines and .*long.de has 13,000: each line must be the translation of the same line in"
    assert_says(words, readers.pairs, [short], [long])
    assert_says(words, readers.pairs, [long], [short])


def test_a_file_more_on_one_side_is_told(tmp_path):
    one = file(tmp_path, "a", "a\n")
    assert_says(r"2 source files and 1 target files: there must be as many of both", readers.pairs, [one, one], [one])


def test_too_few_columns_are_told_with_the_line(tmp_path):
    path = file(tmp_path, "a.tsv", "1\t2\t3\n1\t2\n")
    assert_says(r"a\.tsv, line 2 has 2 columns; 1 and 3 are needed", tables.table, path, [1, 3])


BODY = "".join(f"line {i * i}\n" for i in range(5000)).encode()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("short.gz", gzip.compress(BODY, mtime=0)[:-200]),
        ("short.xz", lzma.compress(BODY)[:-200]),
        ("other.gz", BODY),
        ("other.xz", BODY),
        ("wrong-sum.gz", gzip.compress(BODY, mtime=0)[:-8] + b"\0" * 8),
        ("wrong-block.gz", gzip.compress(BODY, mtime=0)[:10] + b"\xff" + gzip.compress(BODY, mtime=0)[11:]),
        ("wrong-block.xz", lzma.compress(BODY)[:100] + b"\0" * 20 + lzma.compress(BODY)[120:]),
    ],
)
def test_a_damaged_file_is_named(tmp_path, name, content):
    assert_says(
        rf"{name} is damaged after line \d+ \(.+\): copy it again", readers.lines, file(tmp_path, name, content)
    )

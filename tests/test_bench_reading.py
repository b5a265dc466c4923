"""`python -m bench.reading`: one text for pre-training out of several."""

import pytest
from bench import reading

from heed.data.readers import lines

WIKI = """
 = Cats =

 Cats are well @-@ known , soft animals ( mostly ) . They are <unk> .

 = = Food = =

 They eat mice , and 1 @,@ 000 other things .

 = Dogs =

 A dog 's food is meat .
"""


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return str(path)


def documents(path):
    text = "\n".join(lines(path))
    return [part.splitlines() for part in text.strip().split("\n\n")]


def test_each_kind_of_file_keeps_its_documents(tmp_path):
    table = write(tmp_path / "docs.tsv", "".join(f"page\ttext {n}\t글 {n}\n" for n in range(reading.PART + 1)))
    command = [
        "--prose", write(tmp_path / "prose.txt", "One.\nTwo.\n\n\nThree.\n"),
        "--wiki", write(tmp_path / "wiki.txt", WIKI),
        "--rows", f"{table}:1",
        "--sentences", write(tmp_path / "alone.txt", "a cat\na dog\na cat\n"),
        "--out", str(tmp_path / "out" / "text.xz"),
    ]  # fmt: skip
    assert reading.main(command) == 0
    found = documents(tmp_path / "out" / "text.xz")
    assert found[:2] == [["One.", "Two."], ["Three."]]
    assert found[2] == [f"text {n}" for n in range(reading.PART)] and found[3] == [f"text {reading.PART}"]
    assert found[4:6] == [["a cat"], ["a dog"]]
    assert found[6] == ["Cats are well-known, soft animals (mostly).", "They eat mice, and 1,000 other things."]
    assert found[7] == ["A dog's food is meat."]


def test_every_third_long_document_is_put_aside(tmp_path, capsys):
    long = ["\n".join(f"{name} {n} {'x' * 1000}" for n in range(31)) for name in "abcdefg"]
    path = write(tmp_path / "prose.txt", "\n\n".join([*long, "short"]))
    command = ["--prose", path, "--long", str(tmp_path / "long.xz"), "--out", str(tmp_path / "text.xz")]
    assert reading.main(command) == 0
    assert [document[0][0] for document in documents(tmp_path / "long.xz")] == ["c", "f"]
    assert [document[0][0] for document in documents(tmp_path / "text.xz")] == ["a", "b", "d", "e", "g", "s"]
    assert "2 documents, 62 sentences" in capsys.readouterr().out


def test_sentences_of_other_texts_are_left_out(tmp_path):
    valid, prose = write(tmp_path / "valid.txt", "Two.\n"), write(tmp_path / "prose.txt", "One.\nTwo.\n\nTwo.\n")
    assert reading.main(["--prose", prose, "--without", valid, "--out", str(tmp_path / "text.xz")]) == 0
    assert documents(tmp_path / "text.xz") == [["One."]]


def test_short_documents_are_left_out(tmp_path):
    prose = write(tmp_path / "prose.txt", "One.\nTwo.\n\nThree.\nOne.\n\nThree.\n")
    without = write(tmp_path / "without.txt", "Two.\n")
    command = ["--prose", prose, "--without", without, "--least", "10", "--out", str(tmp_path / "text.xz")]
    assert reading.main(command) == 0
    assert documents(tmp_path / "text.xz") == [["Three.", "One."]]


def test_a_missing_column_is_named(tmp_path):
    table = write(tmp_path / "docs.tsv", "a\tb\nc\n")
    with pytest.raises(SystemExit, match=r"docs\.tsv:2 has 1 columns; there is no column 1"):
        reading.main(["--rows", f"{table}:1", "--out", str(tmp_path / "text.xz")])

"""`python -m bench.corpora`: parallel files out of a table."""

import pytest
from bench import corpora

from heed.data.readers import lines


def table(folder, rows):
    path = folder / "pairs.tsv"
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def read(path):
    return list(lines(path))


def test_columns_become_files(tmp_path, capsys):
    path = table(tmp_path, [("docs", "a cat", "고양이"), ("docs", "a dog", "개")])
    assert corpora.main([path, "--columns", "1", "2", "--names", "en", "ko", "--out", str(tmp_path / "out")]) == 0
    assert read(tmp_path / "out" / "pairs.en.xz") == ["a cat", "a dog"]
    assert read(tmp_path / "out" / "pairs.ko.xz") == ["고양이", "개"]
    assert capsys.readouterr().out == "pairs 2\n"


def test_rows_with_the_same_sentence_stay_together(tmp_path):
    rows = [(f"sentence {n // 2}", f"Satz {n}") for n in range(2000)]
    path = table(tmp_path, rows)
    command = [path, "--columns", "0", "1", "--names", "en", "de", "--held-out", "0.1", "--out", str(tmp_path)]
    assert corpora.main(command) == 0
    parts = {name: read(tmp_path / f"{name}.en.xz") for name in ("train", "valid", "test")}
    pairs = [pair for name in parts for pair in zip(parts[name], read(tmp_path / f"{name}.de.xz"), strict=True)]
    assert sorted(pairs) == sorted(rows), "each row once, with its own translation"
    assert not set(parts["train"]) & set(parts["valid"]) and not set(parts["train"]) & set(parts["test"])
    assert not set(parts["valid"]) & set(parts["test"])
    assert 140 < len(parts["valid"]) < 260 and 140 < len(parts["test"]) < 260


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--columns", "0", "2", "--names", "en", "de"], "pairs.tsv:1 has 2 columns; there is no column 2"),
        (["--columns", "0", "1", "--names", "en"], "2 columns have 1 names"),
        (["--columns", "0", "1", "--names", "en", "de", "--held-out", "0.5"], "--held-out is 0.5; it must be above 0"),
    ],
)
def test_what_is_wrong_is_named(options, words, tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        corpora.main([table(tmp_path, [("a", "b")]), *options, "--out", str(tmp_path / "out")])
    assert words in f"{stopped.value}{capsys.readouterr().err}"

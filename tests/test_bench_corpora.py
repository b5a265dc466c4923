"""`python -m bench.corpora`: parallel files out of a table."""

import lzma
import tomllib
from pathlib import Path

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


def packed(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with lzma.open(path, "wt", encoding="utf-8") as file:
        file.writelines("\t".join(row) + "\n" for row in rows)


@pytest.fixture
def tables(tmp_path):
    """The four corpora, with few rows."""
    folder = tmp_path / "tables"
    for name, size in (("train", 8), ("dev", 2), ("test", 2)):
        packed(folder / f"ko-en-docs/{name}.tsv.xz", [("python", f"{name} {n}", f"문서 {n}") for n in range(size)])
    packed(folder / "tatoeba/kor-eng.tsv.xz", [(f"go {n}", f"가 {n // 2}", "by whom") for n in range(300)])
    verses = [(f"Genesis.{n // 4}.{n % 4}", f"verse {n}", f"절 {n}") for n in range(1600)]
    packed(folder / "ko-en-bible/bible.tsv.xz", verses)
    for name, first, size in (("train", 0, 300), ("dev", 300, 100)):
        # each row shares a sentence with the next one, in groups of four rows
        texts = [(n + n // 4, n + n // 4 + 1) for n in range(first, first + size)]
        own = [("captions", "file", "2012", *map(str, pair)) for pair in texts]
        head = [("a head",) * 10]
        rows = [
            (str(n), *row[:3], "old", "none", "none", f"cat {row[3]}", f"cat {row[4]}", "5")
            for n, row in enumerate(own)
        ]
        packed(folder / f"glue/STS-B/{name}.tsv.xz", head + rows)
        rows = [(*row[:3], str(n), "5", f"고양이 {row[3]}", f"고양이 {row[4]}") for n, row in enumerate(own)]
        packed(folder / f"kor-nlu/KorSTS-sts-{name}.tsv.xz", head + rows)
    return folder


def test_the_files_of_the_korean_recipe_are_made(tables, tmp_path, capsys):
    assert corpora.main(["ko-en", str(tables), "--out", str(tmp_path / "ko-en")]) == 0
    said = capsys.readouterr().out
    assert "docs.train 8, docs.valid 2, docs.test 2, tatoeba.train " in said
    recipe = tomllib.loads(Path("recipes/ko-en.toml").read_text("utf-8"))
    fields = ("source", "target", "valid_source", "valid_target")
    named = [corpus[field] for corpus in recipe["data"]["corpora"] for field in fields]
    assert all((tmp_path / name).is_file() for (name,) in named)
    sizes = {"docs": 12, "tatoeba": 300, "bible": 1600, "sts": 800}
    for corpus, size in sizes.items():
        parts = [
            list(zip(*(read(tmp_path / f"ko-en/{corpus}.{part}.{name}.xz") for name in ("en", "ko")), strict=True))
            for part in ("train", "valid", "test")
        ]
        assert sum(map(len, parts)) == size
        kept = [{text for pair in part for text in pair} for part in parts]
        if corpus in ("tatoeba", "sts"):
            assert not kept[0] & kept[1] and not kept[0] & kept[2] and not kept[1] & kept[2]
        if corpus == "bible":  # whole chapters
            chapters = [{int(pair[0].split()[1]) // 4 for pair in part} for part in parts]
            assert sum(map(len, chapters)) == 400
        if corpus == "sts":
            assert all(english.split()[1] == korean.split()[1] for part in parts for english, korean in part)


def test_tables_that_do_not_belong_together_are_refused(tables, tmp_path):
    packed(
        tables / "kor-nlu/KorSTS-sts-dev.tsv.xz",
        [("a head",) * 7, *[("news", "file", "2013", "1", "5", "가", "나")] * 100],
    )
    with pytest.raises(SystemExit, match="the dev rows of STS-B and KorSTS do not match: copy both again"):
        corpora.main(["ko-en", str(tables), "--out", str(tmp_path / "ko-en")])
    assert not (tmp_path / "ko-en").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--columns", "0", "2", "--names", "en", "de"], "pairs.tsv:1 has 2 columns; there is no column 2"),
        (["--columns", "0", "1", "--names", "en"], "2 columns have 1 names"),
        (["--columns", "0", "1", "--names", "en", "de", "--held-out", "0.5"], "--held-out is 0.5; it must be above 0"),
        (["ko-en"], "a folder is for ko-en, which has no other option than --out"),
        ([], "--columns is missing"),
    ],
)
def test_what_is_wrong_is_named(options, words, tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        corpora.main([table(tmp_path, [("a", "b")]), *options, "--out", str(tmp_path / "out")])
    assert words in f"{stopped.value}{capsys.readouterr().err}"

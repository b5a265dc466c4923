"""`python -m bench.cleaning`: planted faults are found in a table and in two files."""

import pytest
from bench import cleaning


@pytest.mark.parametrize("kind", ["table", "files"])
def test_planted_numbers_are_found(kind, tmp_path, monkeypatch, capsys):
    pairs = [(f"There are {n} cats.", f"Es gibt {n} Katzen.") for n in range(10, 210)] + [("In 1984.", "Damals.")]
    given = ["--tsv", str(tmp_path / "table.tsv"), "--columns", "1", "2"]
    (tmp_path / "table.tsv").write_text("".join("\t".join(pair) + "\n" for pair in pairs), encoding="utf-8")
    if kind == "files":
        given = []
        for name, texts in zip(("source", "target"), zip(*pairs, strict=True), strict=True):
            (tmp_path / name).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
            given += [f"--{name}", str(tmp_path / name)]
    monkeypatch.setattr("sys.argv", ["cleaning", *given, "--languages", "en", "de", "--rules", "numbers"])
    monkeypatch.setattr(cleaning.sentencepiece, "learn", lambda *given: None)  # the rule needs no subwords
    cleaning.main()
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "201 pairs" and said[2].split()[:4] == ["numbers", "0.498", "%", "100.0"]

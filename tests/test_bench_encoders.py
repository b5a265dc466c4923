"""The comparisons of encoders run, and say what they could not measure."""

import json
import math
import random

import pytest
import torch
from bench import bigbird, encode, long_documents, long_labels, packed

from heed.cli.main import main


def rows(full, ours, sparse=True):
    """Rows of lengths 8, 16, 32, ...; a number that is None stands for an error."""
    each = [({"error": "out of memory"} if own is None else {"seconds": own}) for own in (*full, *ours)]
    cells = zip(each[: len(full)], each[len(full) :], strict=True)
    return [
        {"length": 8 << i, "sparse": sparse or i > 0, "systems": {"full": {"layer": {"both": a}}, "gathered": {"layer": {"both": b}}}}
        for i, (a, b) in enumerate(cells)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("full", "ours", "expected"),
    [
        ([1.0, 2.0, 8.0], [2.0, 2.0, 4.0], 16.0),  # as fast at 16
        ([1.0, 2.0, 8.0], [2.0, 4.0, 4.0], 16 * math.sqrt(2)),
        ([1.0, 2.0, None], [2.0, 4.0, 4.0], 32.0),
        ([2.0, 4.0, 8.0], [1.0, 2.0, 4.0], 8.0),  # from the shortest on
        ([2.0, 4.0, 4.0], [1.0, 2.0, 8.0], None),
        ([2.0, 4.0, 4.0], [1.0, 2.0, None], None),
    ],
)
def test_blocks_are_faster_from_the_crossing_on(full, ours, expected):
    found = bigbird.crossing(rows(full, ours), "layer", "both", "gathered")
    assert found == (None if expected is None else pytest.approx(expected))


def test_lengths_of_full_attention_are_no_crossing():
    assert bigbird.crossing(rows([2.0, 4.0], [1.0, 2.0], sparse=False), "layer", "both", "gathered") == 16


@pytest.mark.long
def test_blocks_are_measured_beside_full_attention_and_failures_are_rows(tmp_path, capsys, monkeypatch):
    build = bigbird.build

    def short_of_memory(part, system, own):
        if (part, system) == ("model", "full"):
            raise torch.OutOfMemoryError("tried to allocate")
        return build(part, system, own)

    monkeypatch.setattr(bigbird, "build", short_of_memory)
    found, picture = tmp_path / "found.json", tmp_path / "found.png"
    words = ["--quick", "--lengths", "64", "16", "--rounds", "2", "--json", str(found), "--out", str(picture)]
    assert bigbird.main(words) == 0
    facts = json.loads(found.read_text("utf-8"))
    short, long = facts["rows"]
    assert (short["length"], short["texts"], short["sparse"], long["length"], long["texts"]) == (16, 4, False, 64, 1)
    assert long["systems"]["full"]["model"]["both"] == {"error": "out of memory"}
    assert len(long["systems"]["gathered"]["model"]["both"]["rounds"]) == 2 and facts["memory"] is False
    assert facts["crossings"]["model"]["both"]["gathered"] == 64
    assert picture.read_bytes().startswith(b"\x89PNG") and "out of memory" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_a_table_has_every_system_with_its_time_and_memory(tmp_path):
    path = tmp_path / "table.md"
    words = ["--quick", "--lengths", "64", "--rounds", "1", "--parts", "layer", "--systems", *bigbird.SYSTEMS]
    assert bigbird.main([*words, "--markdown", str(path)]) == 0
    head, _, row = path.read_text("utf-8").splitlines()
    titles, cells = ([cell.strip() for cell in line.strip("|").split("|")] for line in (head, row))
    assert titles[1:4] == [f"one attention layer, forward: {one}" for one in bigbird.SYSTEMS]
    assert len(cells) == len(titles) == 7 and cells[0] == "64" and all(cell.endswith(" ms") for cell in cells[1:6])
    assert "FlexAttention does not support backward on CPU" in cells[6]
    measured = {"seconds": 0.0047, "memory": 3 * bigbird.GIB}
    systems = {one: {"layer": dict.fromkeys(bigbird.PASSES, measured)} for one in bigbird.SYSTEMS}
    facts = {"parts": ["layer"], "systems": bigbird.SYSTEMS, "rows": [{"length": 1024, "systems": systems}]}
    assert bigbird.table(facts)[2] == "| 1,024 |" + " 4.70 ms · 3.00 GiB |" * 6


def test_every_system_computes_the_same(monkeypatch):
    own = bigbird.plan(bigbird.parser().parse_args(["--quick"]))
    full, gathered = (bigbird.build("model", system, own).eval() for system in ("full", "gathered"))
    tokens = torch.arange(16)[None]
    torch.testing.assert_close(full.encode_text(tokens), gathered.encode_text(tokens))


def test_vectors_and_labels_are_measured_beside_transformers(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("HEED_CACHE", str(tmp_path))
    monkeypatch.setitem(encode.PRESETS, "tiny", {"dim": 16, "heads": 2, "hidden": 24, "layers": 1})
    threads = torch.get_num_threads()
    words = ["--preset", "tiny", "--texts", "9", "--rounds", "1", "--threads", str(threads)]
    assert encode.main([*words, "--json", str(tmp_path / "found.json")]) == 0
    facts = json.loads((tmp_path / "found.json").read_text("utf-8"))
    assert list(facts["classify"])[:2] == ["heed", "transformers"] and "heed, torch" in facts["classify"]
    assert all(own["difference"] < 1e-5 for verb in ("embed", "classify") for own in facts[verb].values())
    assert "largest difference" in capsys.readouterr().out


def test_packed_steps_are_measured_beside_padded_ones(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(packed, "VOCABULARY", 60)
    words = ["--preset", "tiny", "--texts", "60", "--median", "5", "--steps", "1", "--rounds", "1", "--batch-tokens", "128", "--threads", "1"]  # fmt: skip
    assert packed.main([*words, "--json", str(tmp_path / "found.json")]) == 0
    found = json.loads((tmp_path / "found.json").read_text("utf-8"))["rows"]
    assert list(found) == ["classification", "tagging", "question-answering", "embedding", "masked", "masked, pairs"]
    assert all(0 <= own["padding"] < 1 and own["padded"][0] > 0 and own["packed"][0] > 0 for own in found.values())
    assert capsys.readouterr().out.count("tokens/s") == 6
    for row in packed.rows(60, 5, 0.8, 128).values():
        assert packed.padding([next(row.batches(True))]) == 0


def test_made_up_documents_tell_their_label_near_their_end_alone(tmp_path):
    long_labels.write(tmp_path, {"train": 40, "test": 4}, cut=20, words=(120, 140))
    rows = [line.split("\t") for line in (tmp_path / "train.tsv").read_text("utf-8").splitlines()]
    beginnings = [line.split("\t") for line in (tmp_path / "cut-train.tsv").read_text("utf-8").splitlines()]
    assert rows[0] == beginnings[0] == ["text", "label"] and not (tmp_path / "cut-test.tsv").exists()
    known, first = {word: label for label, words in long_labels.LABELS.items() for word in words}, []
    for (text, label), (beginning, same) in zip(rows[1:], beginnings[1:], strict=True):
        judged = [known[word] for word in text.split() if word in known]
        assert judged[1:] == [label] == [same] and text.index("in the end") > len(text) / 2
        assert text.startswith(beginning) and len(beginning.split()) == 20 and "in the end" not in beginning
        first.append(judged[0] == label)
    assert 10 < sum(first) < 30  # which says nothing
    again = list(long_labels.documents(40, "train", (120, 140)))
    assert [list(row) for row in again] == rows[1:]


@pytest.fixture
def filler(tmp_path):
    """A BERT with weights by chance."""
    text = tmp_path / "text.txt"
    draw = random.Random(0)
    rows = [" ".join(draw.choices("abcdefgh", k=12)) for _ in range(60)]
    text.write_text("\n".join([*rows[:30], "", *rows[30:56], "", *rows[56:]]) + "\n", encoding="utf-8")
    settings = ["model.name=bert", "model.dim=16", "model.heads=2", "model.hidden=32", "model.layers=1", "model.max_length=66",
                "task.name=masked", "task.length=32", "training.steps=1", "training.batch_tokens=64"]  # fmt: skip
    words = [part for setting in settings for part in ("--set", setting)]
    where = ["--source", str(text), "--out", str(tmp_path / "run"), "--device", "cpu", "--no-report", "--quiet"]
    assert main(["train", *where, *words, "--set", "data.holdout=4"]) == 0
    return str(tmp_path / "run"), str(text)


def test_the_same_words_are_masked_whatever_the_length(filler, tmp_path, capsys):
    run, text = filler
    command = [run, "--text", text, "--lengths", "16", "32", "64", "--device", "cpu"]
    found = []
    for margin in (0, 3):
        assert long_documents.main([*command, "--margin", str(margin), "--json", str(tmp_path / "found.json")]) == 0
        found.append(json.loads((tmp_path / "found.json").read_text("utf-8")))
    every, inner = found
    assert every["documents"] == 2 and every["stretches"] == 360 // 56 + 312 // 56
    for one in found:
        first, *rest = one["rows"]
        assert len({row["masked"] for row in one["rows"]}) == 1 and all(row["loss"] != first["loss"] for row in rest)
        assert first["less"] == first["low"] == first["high"] == 0
        assert [row["less"] for row in rest] == pytest.approx([first["loss"] - row["loss"] for row in rest])
        assert all(row["low"] <= row["less"] <= row["high"] for row in rest)
    assert 0 < inner["rows"][0]["masked"] < every["rows"][0]["masked"]
    command += ["--margin", "0"]
    assert long_documents.main([*command, "--only", "32", "--json", str(tmp_path / "found.json")]) == 0
    (only,) = json.loads((tmp_path / "found.json").read_text("utf-8"))["rows"]
    assert only == {**every["rows"][1], "less": 0.0, "low": 0.0, "high": 0.0}
    for wrong in (["--margin", "7"], ["--only", "48"], ["--lengths", "16", "24"], ["--lengths", "512", "4096"]):
        with pytest.raises(SystemExit):
            long_documents.main([*command, *wrong])
        assert "error:" in capsys.readouterr().err


def test_words_near_a_cut_are_masked_and_do_not_count():
    counted = long_documents.inside(12, 6, 2)
    assert counted.tolist() == [False, False, True, True, False, False] * 2
    assert long_documents.inside(12, 6, 0).all()

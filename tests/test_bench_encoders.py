"""The comparisons of encoders run, and say what they could not measure."""

import json
import math

import pytest
import torch
from bench import bigbird, encode, packed


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

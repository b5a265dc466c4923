"""The comparison of recommenders runs, and says what it could not measure."""

import json

import pytest
import torch
from bench import recommend, recommend_search, recommend_train

from heed.models.sasrec import SASRec, SASRecConfig


def test_all_of_it_runs_at_toy_sizes_and_is_written(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(recommend_train, "find_spec", lambda name: None)
    monkeypatch.setattr(recommend_search, "find_spec", lambda name: None)
    threads = torch.get_num_threads()
    words = ["--quick", "--rounds", "1", "--threads", str(threads), "--json", str(tmp_path / "found.json")]
    assert recommend.main(words) == 0
    facts = json.loads((tmp_path / "found.json").read_text("utf-8"))
    assert [(row["what"], row.get("objective"), row["items"]) for row in facts["rows"]] == [
        ("search", None, 100), ("search", None, 3000), ("train", "bce", 50), ("train", "cross-entropy", 50),
    ]  # fmt: skip
    for row in facts["rows"]:
        assert all(own["rate"] > 0 and len(own["rates"]) == 1 for own in row["systems"].values())
    assert all(own["as heed"] == 1 for row in facts["rows"][:2] for own in row["systems"].values())
    assert set(facts["rows"][2]["systems"]) == {"heed", "plain torch"}
    out = " ".join(capsys.readouterr().out.split())
    assert "RecTools (rectools[torch]) is not installed here: it is not measured." in out
    assert "faiss (faiss-cpu) is not installed here: it is not measured." in out


def test_the_reference_is_the_model_that_heed_trains():
    """With the same weights and without dropout, both have the same states."""
    task = recommend_train.Task(recommend_train.made_up_log(3, 20), 20, length=6, dim=8, dropout=0.0)
    config = SASRecConfig(20, dim=8, heads=2, hidden=8, layers=2, max_length=6, norm="paper", activation="relu")
    ours, plain = SASRec(config).double().eval(), recommend_train.PlainSASRec(task).double().eval()
    with torch.no_grad():
        for weight in ours.parameters():
            weight.normal_(std=0.3)
        plain.items.weight[1:] = ours.items.weight[:20]
        plain.positions.weight.copy_(next(ours.positions.parameters()))
        plain.norm.load_state_dict(ours.stack.norm.state_dict())
        for one, other in zip(plain.layers, ours.stack.layers, strict=True):
            _copy_layer(one, other)
        items = torch.tensor([[3, 1, 19, 7, 7, 0]])
        found = plain(items + 1)
        torch.testing.assert_close(found, ours.item_states(items), rtol=0, atol=1e-10)


def _copy_layer(plain, ours):
    attention, mlp = ours.attention, ours.mlp
    for name in ("weight", "bias"):
        parts = [getattr(getattr(attention.body, part), name) for part in "qkv"]
        getattr(plain.attention, f"in_proj_{name}").copy_(torch.cat(parts))
    plain.attention.out_proj.load_state_dict(attention.body.out.state_dict())
    plain.norms[0].load_state_dict(attention.norm.state_dict())
    plain.norms[1].load_state_dict(mlp.norm.state_dict())
    plain.up.load_state_dict(mlp.body.up.state_dict())
    plain.down.load_state_dict(mlp.body.down.state_dict())


def test_a_log_of_the_user_is_read(tmp_path):
    rows = [f"u{user},i{(user + place) % 7},{place}\n" for user in range(9) for place in range(6)]
    (tmp_path / "log.csv").write_text("user,item,time\n" + "".join(rows), "utf-8", newline="\n")
    found, items = recommend.read_log(tmp_path / "log.csv")
    assert items == 7 and found.lengths.tolist() == [6] * 9


def test_only_what_there_is_can_be_asked_for():
    with pytest.raises(SystemExit):
        recommend.main(["everything"])

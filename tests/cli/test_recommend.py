"""heed train, recommend and evaluate with a log in which each item has its successor."""

import json

import pytest
import torch

import heed
from heed.cli.main import main

ITEMS = [f"item {i}" for i in range(12)]
SETTINGS = ["data.core=0", "task.objective=cross-entropy", "model.name=sasrec", "model.dim=16", "model.heads=2", "model.hidden=16",
            "model.layers=1", "model.max_length=6", "model.dropout=0.0", "model.attention_dropout=0.0", "training.device=cpu",
            "training.threads=1", "training.steps=50", "training.valid_every=50", "training.batch_tokens=400", "training.rate=0.03",
            "training.warmup=5", "task.name=recommendation"]  # fmt: skip


def history(user):
    return [ITEMS[(user + place) % 12] for place in range(5 + user % 4)]


def run(*words):
    return main([*map(str, words)])


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recommender")
    rows = [f"u{user},{item},{place}\n" for user in range(40) for place, item in enumerate(history(user))]
    (folder / "log.csv").write_text("user,item,time\n" + "".join(rows))
    sets = [word for one in [f"data.interactions={folder}/log.csv", *SETTINGS] for word in ("--set", one)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("HEED_CACHE", str(folder / "cache"))
        patched.chdir(folder)
        (folder / "empty.toml").write_text("")
        assert run("train", "empty.toml", "--out", folder / "run", "--quiet", "--no-report", *sets) == 0
    return folder


def test_it_has_learned_what_follows_what(trained, capsys):
    user = 13
    assert run("recommend", trained / "run", "--user", f"u{user}", "--n", 2) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    following = ITEMS[(ITEMS.index(history(user)[-1]) + 1) % 12]
    assert lines[0][:3] == ["u13", "1", following] and len(lines) == 2
    assert run("recommend", trained / "run", "--items", "item 3,item 4", "--format", "json", "--n", 1) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["history"] == 1 and [one["item"] for one in found["items"]] == ["item 5"]


def test_seen_items_are_excluded_on_request_and_the_best_are_those_of_all_scores(trained, capsys):
    own = heed.load(trained / "run", "cpu")
    seen = ["item 3", "item 4"]
    everything = own.recommend([seen], 100)[0]
    assert len(everything) == 12 and [one.score for one in everything] == sorted(
        (one.score for one in everything), reverse=True
    )
    with torch.inference_mode():
        scores = own.model.item_scores(own.model.item_states(torch.tensor([own.items.encode(seen)])))[0, -1]
    assert {one.item: pytest.approx(float(scores[own.items.ids[one.item]]), abs=1e-5) for one in everything} == {
        one.item: one.score for one in everything
    }
    rest = own.recommend([seen], 100, exclude_seen=True)[0]
    assert [one.item for one in rest] == [one.item for one in everything if one.item not in seen]


def test_files_of_users_and_of_histories_become_a_table(trained, tmp_path, capsys):
    (tmp_path / "users").write_text("u1\nu2\n")
    assert (
        run("recommend", trained / "run", "--users", tmp_path / "users", "--n", 3, "--out", tmp_path / "out.tsv") == 0
    )
    lines = [line.split("\t") for line in (tmp_path / "out.tsv").read_text().splitlines()]
    assert [line[:2] for line in lines] == [[user, str(rank)] for user in ("u1", "u2") for rank in (1, 2, 3)]
    (tmp_path / "carts").write_text('item 1,item 2\n"item 7"\nitem 2,unknown\n')
    assert run("recommend", trained / "run", "--histories", tmp_path / "carts", "--n", 1, "--leave-out-unknown") == 0
    out, err = capsys.readouterr()
    assert [line.split("\t")[2] for line in out.splitlines()] == ["item 3", "item 8", "item 3"]
    assert "1 unknown items were skipped" in err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "choose one of --user, --items, --users FILE or --histories FILE"),
        (["--user", "u1", "--items", "item 1"], "choose one of"),
        (
            ["--user", "nobody"],
            "'nobody' is not one of the 40 users the model was trained on: give items",
        ),
        (["--items", "item1"], "'item1' is not one of the 12 items the model was trained on; did you mean item 1"),
        (
            ["--items", "x", "--leave-out-unknown"],
            "history 1 has no items that the model knows",
        ),
        (["--user", "u1", "--n", "0"], "0 items requested; it must be at least 1"),
    ],
)
def test_what_cannot_be_answered_is_said_in_a_sentence(trained, words, says, capsys):
    assert run("recommend", trained / "run", *words) == 1
    assert says in capsys.readouterr().err


def test_scores_are_those_of_what_was_held_out_beside_baselines(trained, tmp_path, capsys):
    words = ["--at", 1, 5, "--samples", 20, "--json", tmp_path / "scores.json"]
    assert run("evaluate", trained / "run", *words) == 0
    out = capsys.readouterr().out
    assert "leave-one-out" in out and "full ranking of 12 items, items of the history excluded" in " ".join(out.split())
    facts = json.loads((tmp_path / "scores.json").read_text())
    assert facts["users"] == 40 and set(facts["scores"]) == {"model", "popularity", "item-kNN"}
    own = heed.load(trained / "run", "cpu")
    hits = sum(
        own.recommend([history(user)[:-1]], 1, exclude_seen=True)[0][0].item == history(user)[-1] for user in range(40)
    )
    assert facts["scores"]["model"]["hr@1"]["value"] == pytest.approx(100 * hits / 40) and hits > 30
    assert facts["scores"]["popularity"]["hr@1"]["value"] < 40


def test_another_log_and_another_model_and_sampled_negatives(trained, tmp_path, capsys):
    (tmp_path / "new.csv").write_text(
        "user,item,time\nann,item 7,1\nann,item 8,2\nbob,item 1,1\nbob,what,2\nbob,item 2,3\n"
    )
    words = ["--interactions", tmp_path / "new.csv", "--at", 1, "--samples", 20, "--json", tmp_path / "scores.json"]
    assert run("evaluate", trained / "run", *words, "--against", trained / "run") == 0
    facts = json.loads((tmp_path / "scores.json").read_text())
    assert facts["users"] == 2 and facts["scores"]["model"]["hr@1"]["value"] == 100
    assert facts["differences"]["hr@1"] == {"value": 0.0, "p_value": 1.0}
    capsys.readouterr()
    assert run("evaluate", trained / "run", "--negatives", 3, "--samples", 20) == 0
    out, err = capsys.readouterr()
    assert "3 sampled negatives" in " ".join(out.split()) and "Scores with sampled negatives can mislead" in " ".join(
        err.split()
    )
    (tmp_path / "other.csv").write_text("user,item,time\nann,x,1\nann,y,2\n")
    assert run("evaluate", trained / "run", "--interactions", tmp_path / "other.csv") == 1
    assert "have no items in common" in capsys.readouterr().err


def test_a_folder_tells_what_it_holds(trained, capsys):
    assert run("info", trained / "run", "--all") == 0
    out = capsys.readouterr().out
    assert "12" in out and "leave-one-out" in out
    card = (trained / "run" / "model" / "README.md").read_text()
    assert "| NDCG@10 |" in card and "12 items" in card and "| held out | leave-one-out" in card


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        (["task.contrastive=0.1", "model.name=bert4rec"], "task.contrastive is 0.1, but bert4rec is trained on masked items"),
        (["task.contrastive=0.1", "training.accumulate=2"], "training.accumulate does not work with"),
        (["task.augmentations=[\"crop\",\"turn\"]"], "task.augmentations is ['crop', 'turn']; choose from crop, mask and reorder"),
        (["task.temperature=0.0"], "task.temperature is 0.0; it must be above 0"),
        (["task.mask_share=0.0"], "task.mask_share is 0.0"),
        (["task.negatives=-1"], "task.negatives is -1; it must be at least 0"),
        (["data.interactions=nowhere.csv"], "data.interactions: nowhere.csv: no such file"),
    ],
)  # fmt: skip
def test_settings_that_contradict_each_other_are_refused(trained, setting, says, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sets = [word for one in [f"data.interactions={trained}/log.csv", "task.name=recommendation", "model.name=sasrec", *setting]
            for word in ("--set", one)]  # fmt: skip
    assert run("train", trained / "empty.toml", "--out", tmp_path / "run", *sets) == 1
    assert says in capsys.readouterr().err
    (tmp_path / "folder").mkdir()
    assert run("train", trained / "empty.toml", "--from", tmp_path / "folder", "--out", tmp_path / "run", *sets) == 1

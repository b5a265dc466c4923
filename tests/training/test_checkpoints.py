"""Checkpoints: what was written comes back, and what is damaged is skipped."""

import json

import pytest
import torch
from torch import nn

from heed.training import checkpoints
from heed.training.checkpoints import (
    MODEL,
    STATE,
    TRAINING,
    list_checkpoints,
    optimizer_tensors,
    prune,
    read,
    read_newest,
    restore_optimizer,
)

WEIGHTS = {"a.weight": torch.arange(6.0).view(2, 3), "b": torch.tensor(3)}


def save(folder, *steps, **state):
    for step in steps:
        moments = {"optimizer.exp_avg.a.weight": torch.full((2, 3), float(step))}
        checkpoints.write(folder, step, WEIGHTS, moments, {"place": [0, step], "note": "세 나무", **state})


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def last(folder):
    """The step of the newest intact checkpoint, and the warnings."""
    warnings = []
    kept = read_newest(folder, warnings.append)
    return kept and kept.step, warnings


def test_what_was_written_comes_back(tmp_path):
    save(tmp_path, 500)
    kept = read(tmp_path / "step-000500")
    assert (kept.step, kept.state["place"], kept.state["note"]) == (500, [0, 500], "세 나무")
    assert kept.model.keys() == WEIGHTS.keys()
    assert all(torch.equal(kept.model[name], weight) for name, weight in WEIGHTS.items())
    assert kept.training["optimizer.exp_avg.a.weight"].eq(500).all()


def test_a_step_written_again_replaces_the_first(tmp_path):
    save(tmp_path, 5, note="one")
    save(tmp_path, 5, note="two")
    assert read(tmp_path / "step-000005").state["note"] == "two"
    assert names(tmp_path) == ["step-000005"]


def stepped(model, optimizer, steps):
    for step in steps:
        torch.manual_seed(step)
        optimizer.zero_grad()
        model(torch.randn(4, 3)).square().sum().backward()
        optimizer.step()


def optimized(model, fused):
    return torch.optim.AdamW(model.parameters(), lr=0.01, betas=(0.9, 0.98), weight_decay=0.1, fused=fused)


@pytest.mark.parametrize("fused", [False, True])
def test_an_optimizer_goes_on_as_if_it_had_never_stopped(tmp_path, fused):
    torch.manual_seed(0)
    model, other = (nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2)) for _ in range(2))
    weights = [name for name, _ in model.named_parameters()]
    optimizer, fresh = optimized(model, fused), optimized(other, fused)
    stepped(model, optimizer, [1, 2])
    checkpoints.write(tmp_path, 2, model.state_dict(), optimizer_tensors(optimizer, weights), {})
    kept = read_newest(tmp_path, pytest.fail)
    other.load_state_dict(kept.model)
    restore_optimizer(fresh, {**kept.training, "ema.0.weight": torch.zeros(1)}, weights)
    stepped(model, optimizer, [3])
    stepped(other, fresh, [3])
    assert all(map(torch.equal, model.parameters(), other.parameters()))
    for key, value in optimizer.state_dict()["state"].items():
        assert all(torch.equal(value[name], fresh.state_dict()["state"][key][name]) for name in value)


def flip(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def half(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def in_a_letter(path):
    content = path.read_bytes()
    path.write_bytes(content[: content.index("세".encode()) + 1])


def changed(**values):
    """Puts other values into a state.json."""
    return lambda path: path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **values}), "utf-8")


def not_finite(path):
    """A whole checkpoint, as written, of weights that are no numbers."""
    moments = {"optimizer.exp_avg.a.weight": torch.zeros(2, 3)}
    checkpoints.write(path.parent.parent, 300, {**WEIGHTS, "a.weight": torch.full((2, 3), torch.nan)}, moments, {})


@pytest.mark.parametrize(
    ("name", "damage", "says"),
    [
        (MODEL, flip, "model.safetensors is damaged (its hash does not match state.json)"),
        (MODEL, half, "model.safetensors is damaged (its hash does not match state.json)"),
        (TRAINING, flip, "training.safetensors is damaged (its hash does not match state.json)"),
        (STATE, half, "state.json is damaged ("),
        (STATE, in_a_letter, "state.json is damaged ("),
        (STATE, lambda path: path.write_text(""), "state.json is damaged ("),
        (STATE, lambda path: path.write_text("null"), "state.json is damaged ("),
        (STATE, lambda path: path.write_text("{}"), "state.json is damaged (it lacks 'sha256')"),
        (STATE, lambda path: path.write_text("[" * 100_000), "state.json is damaged ("),
        (STATE, changed(place=[0, 7]), "state.json is damaged (its hash does not match the recorded one)"),
        (STATE, changed(note=None), "state.json is damaged (its hash does not match the recorded one)"),
        (STATE, changed(sha256=None), "state.json is damaged ("),
        (STATE, changed(sha256={}), "state.json is damaged (it lacks hashes of the other files)"),
        (STATE, changed(sha256={MODEL: "0", TRAINING: "0"}), "model.safetensors is damaged ("),
        (
            STATE,
            lambda path: path.write_bytes((path.parent.parent / "step-000100" / STATE).read_bytes()),
            "it is from step 100",
        ),
        (MODEL, not_finite, "a.weight has weights that are not finite"),
        (MODEL, lambda path: path.unlink(), "step-000300 has no model.safetensors"),
        (TRAINING, lambda path: path.unlink(), "step-000300 has no training.safetensors"),
        (STATE, lambda path: path.unlink(), "state.json is damaged ("),
    ],
)
def test_of_a_damaged_checkpoint_one_goes_back_to_the_one_before(tmp_path, name, damage, says):
    save(tmp_path, 100, 200, 300)
    damage(tmp_path / "step-000300" / name)
    step, said = last(tmp_path)
    assert step == 200
    assert len(said) == 1
    assert says in said[0]
    assert said[0].endswith("; using the checkpoint before it")


def test_what_the_run_cannot_continue_from_is_passed_over_too(tmp_path):
    def check(state):
        if state["place"] == [0, 200]:
            raise KeyError("record")

    save(tmp_path, 100, 200)
    warnings = []
    assert read_newest(tmp_path, warnings.append, check).step == 100
    assert "step-000200/state.json is damaged (it lacks 'record'); using" in warnings[0]


def test_a_checkpoint_of_an_earlier_version_is_read_and_that_it_cannot_be_verified_is_told(tmp_path):
    save(tmp_path, 100)
    path = tmp_path / "step-000100" / STATE
    state = json.loads(path.read_text("utf-8"))
    del state["sha256"][STATE]
    path.write_text(json.dumps(state), "utf-8")
    step, (said,) = last(tmp_path)
    assert step == 100
    assert said.endswith("state.json was written by an earlier version without a hash: it cannot be verified")


def test_the_weights_alone_are_verified_too(tmp_path):
    save(tmp_path, 100, 200)
    prune(tmp_path, 200, keep=1, weights_of=[100])
    path = tmp_path / "step-000100"
    assert torch.equal(checkpoints.read_weights(path)["a.weight"], WEIGHTS["a.weight"])
    flip(path / MODEL)
    with pytest.raises(ValueError, match=r"model\.safetensors is damaged \(its hash does not match state\.json\)"):
        checkpoints.read_weights(path)


def test_where_all_are_damaged_there_is_none(tmp_path):
    save(tmp_path, 100, 200)
    for path in list_checkpoints(tmp_path):
        half(path / STATE)
    step, said = last(tmp_path)
    assert step is None
    assert ["step-000200" in said[0], "step-000100" in said[1]] == [True, True]


def test_where_nothing_was_written_there_is_none(tmp_path):
    assert last(tmp_path / "nowhere") == (None, [])


def test_what_was_only_half_written_is_never_found(tmp_path):
    save(tmp_path, 100, 200)
    (tmp_path / "step-000200").rename(tmp_path / ".step-000200.part")
    assert [path.name for path in list_checkpoints(tmp_path)] == ["step-000100"]
    assert last(tmp_path) == (100, [])
    save(tmp_path, 200)
    assert names(tmp_path) == ["step-000100", "step-000200"]


def test_a_checkpoint_that_fails_leaves_the_one_before(tmp_path, monkeypatch):
    save(tmp_path, 100, note="first")
    monkeypatch.setattr(checkpoints, "write_json", lambda path, values: (_ for _ in ()).throw(OSError("disk full")))
    for step in (100, 200):
        with pytest.raises(OSError, match="disk full"):
            save(tmp_path, step)
    kept = read_newest(tmp_path, pytest.fail)
    assert (kept.step, kept.state["note"]) == (100, "first")


def test_what_is_not_a_step_is_left_alone(tmp_path):
    save(tmp_path, 100)
    (tmp_path / "step-000900-copy").mkdir()
    (tmp_path / "step-000800").write_text("a file")
    assert last(tmp_path) == (100, [])


def test_steps_are_ordered_as_numbers(tmp_path):
    save(tmp_path, 999_999, 1_000_000, 2_000)
    assert [checkpoints.step_of(path) for path in list_checkpoints(tmp_path)] == [2_000, 999_999, 1_000_000]
    assert last(tmp_path) == (1_000_000, [])
    prune(tmp_path, 1_000_000, keep=1, weights_of=[])
    assert names(tmp_path) == ["step-1000000"]


def test_pruning_keeps_the_newest_whole_and_of_others_the_weights(tmp_path):
    save(tmp_path, 100, 200, 300, 400, 500)
    (tmp_path / ".step-000600.part").mkdir()
    prune(tmp_path, 500, keep=2, weights_of=[200, 500])
    assert names(tmp_path) == ["step-000200", "step-000400", "step-000500"]
    assert names(tmp_path / "step-000200") == [MODEL, STATE]
    for step in (400, 500):
        assert read(tmp_path / f"step-000{step}").step == step
    prune(tmp_path, 500, keep=2, weights_of=[200])
    assert names(tmp_path) == ["step-000200", "step-000400", "step-000500"]
    prune(tmp_path, 500, keep=2, weights_of=[])
    assert names(tmp_path) == ["step-000400", "step-000500"]


def test_later_steps_are_deleted_when_a_run_has_gone_back(tmp_path):
    save(tmp_path, 100, 200, 300, 400)
    prune(tmp_path, 250, keep=2, weights_of=[400], whole=[300])
    assert names(tmp_path) == ["step-000100", "step-000200"]


def test_fewer_than_are_to_be_kept_are_all_kept(tmp_path):
    save(tmp_path, 100, 200)
    prune(tmp_path, 500, keep=5, weights_of=[])
    assert names(tmp_path) == ["step-000100", "step-000200"]


def test_the_state_is_plain_json_with_the_hashes(tmp_path):
    save(tmp_path, 100)
    state = json.loads((tmp_path / "step-000100" / STATE).read_text("utf-8"))
    assert state["step"] == 100
    assert set(state["sha256"]) == {MODEL, TRAINING, STATE}

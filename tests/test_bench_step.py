"""`python -m bench.step`: the kernels of a training step, in groups."""

import json

import pytest
from bench import step
from bench.step import Kernel


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNT", "matrix products"),
        ("_feed_forward_backward", "matrix products"),
        ("_attention_backward", "attention"),
        ("_norm_backward", "norms and residuals"),
        ("_r_drop_and_cross_entropy", "loss"),
        ("_adam", "optimizer"),
        ("_accumulate_split_runs", "embeddings"),
        ("_activation_backward", "activations and column sums"),
        ("Memcpy DtoD (Device -> Device)", "copies"),
        ("something of tomorrow", "others"),
    ],
)
def test_kernels_belong_to_groups(name, title):
    assert step.group(name) == title


def test_groups_and_idle_time_add_up_to_the_step():
    kernels = [Kernel("_adam", 1, 0.002), Kernel("a_gemm", 30, 0.05), Kernel("b_gemm", 10, 0.01)]
    found = step.shares(kernels, 0.070)
    assert found[0] == ("matrix products", 40, pytest.approx(0.06))
    assert found[-1] == ("idle", 0, pytest.approx(0.008))
    assert sum(own.seconds for own in found) == pytest.approx(0.070)
    assert step.table(found, 0.07)[2] == "| matrix products | 40 | 60.00 | 85.7% |"


@pytest.mark.parametrize("row", ["base-32", "gpt2"])
def test_a_step_is_taken_apart(row, capfd, tmp_path):
    assert step.main([row, "--quick", "--steps", "1", "--warmup", "1", "--json", str(tmp_path / "found.json")]) == 0
    shown, found = capfd.readouterr().out, json.loads((tmp_path / "found.json").read_text("utf-8"))
    assert shown.startswith(f"{row}, ") and "| matrix products |" in shown and "| idle | 0 |" in shown
    assert found["step"] > 0 and any("mm" in name for name, *_ in found["kernels"])


@pytest.mark.parametrize("row", ["huge-32", "base", "big-x"])
def test_an_unknown_row_is_named(row, capsys):
    with pytest.raises(SystemExit):
        step.main([row])
    assert f"no row is called {row}: base-N, big-N or gpt2" in capsys.readouterr().err

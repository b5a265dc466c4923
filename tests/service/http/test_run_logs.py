"""A log of a run that was killed while it wrote, and resumed."""

from heed.service.http.runs import _read_log


def test_what_stands_behind_a_broken_line_is_read(tmp_path):
    (tmp_path / "log.jsonl").write_text(
        '{"kind": "step", "step": 1, "loss": 2.5}\n{"kind": "st\n[1]\n{"step": 2}\n{"kind": "step", "step": 2, "loss": NaN}\n{"ki'
    )
    assert _read_log(tmp_path) == [
        {"kind": "step", "step": 1, "loss": 2.5},
        {"kind": "step", "step": 2, "loss": None},
    ]

"""validation.json: what was written, or one sentence."""

import pytest

from heed.runs import final_validation
from heed.runs.final_validation import FinalValidation

FOUND = FinalValidation({"bleu": 12.5}, [("a", "b", "c")], {"data": "d"}, {"ko-en": 1})


@pytest.fixture
def run(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.safetensors").write_bytes(b"weights")
    final_validation.write(tmp_path, FOUND)
    return tmp_path


def test_it_is_read_as_it_was_written(run):
    assert final_validation.read(run) == FOUND


def test_results_of_other_weights_are_none(run):
    (run / "model" / "model.safetensors").write_bytes(b"others")
    assert final_validation.read(run) is None


@pytest.mark.parametrize(("before", "after"), [("12.5", "12.4"), ('"c"', '"d"'), ("ko-en", "ko-fr"), ("{", "[")])
def test_other_results_are_refused(run, before, after):
    path = run / final_validation.FILE
    path.write_text(path.read_text("utf-8").replace(before, after, 1), "utf-8")
    with pytest.raises(ValueError, match=r"validation\.json is damaged: remove it, and heed report will translate"):
        final_validation.read(run)


def test_an_earlier_version_wrote_no_hash(run):
    path = run / final_validation.FILE
    lines = path.read_text("utf-8").split("\n")
    kept = [line for line in lines if '"sha256"' not in line]
    path.write_text("\n".join(kept).replace("],\n}", "]\n}"), "utf-8")
    assert final_validation.read(run) == FOUND

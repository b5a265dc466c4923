"""Encoders train on packed texts, on a CPU too, and resume to the bit."""

import pytest

from heed.runs import recipe as recipes
from tests.contract.contract import check_log, check_same, resume, train, values
from tests.contract.test_contract import sections

MODELS = {
    "classification": "bert", "tagging": "roberta", "question-answering": "bigbird", "masked": "albert",
    "replaced-tokens": "electra", "embedding": "bert",
}  # fmt: skip


@pytest.mark.parametrize("task", MODELS)
def test_a_task_trains_on_packed_texts(task, corpus, tmp_path):
    given = values(MODELS[task], task, sections(task, corpus))
    given["training"] = given["training"] | {"packed": True}
    if task == "masked":
        given["task"]["length"] = 32
    recipe = recipes.parse(given)
    assert train(recipe, tmp_path / "whole").how == "finished"
    check_log(task, tmp_path / "whole")
    if task in ("masked", "embedding"):  # the others share their batches with classification
        resume(recipe, tmp_path / "whole", tmp_path / "resumed")
        check_same(tmp_path / "whole", tmp_path / "resumed")

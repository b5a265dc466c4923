"""Folders of sentence-transformers, in both directions."""

import json
import shutil

import numpy as np
import pytest

from heed.convert import huggingface
from heed.loading import load
from tests.convert.encoders import package

TEXTS = ["나는 책을 읽어요.", "the cat reads a book"]
FACTS = {"pooling": "cls", "normalize": True, "max_source": 30}


@pytest.fixture
def folder(tmp_path):
    own = package("roberta", "none")._replace(task="embedding", facts=FACTS)
    huggingface.write(own, tmp_path / "model")
    return tmp_path / "model"


def change(path, **values):
    facts = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    path.write_text(json.dumps({**facts, **values}), "utf-8")


def test_what_heed_writes_comes_back_as_it_was(folder):
    modules = json.loads((folder / "modules.json").read_text("utf-8"))
    assert [(one["path"], one["type"].rpartition(".")[2]) for one in modules] == [
        ("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize"),
    ]  # fmt: skip
    assert (folder / "2_Normalize").is_dir()
    own = load(folder, "cpu")
    assert (own.pooling, own.normalize, own.most) == ("cls", True, 30)
    assert np.allclose(np.linalg.norm(own.embed(TEXTS), axis=1), 1, atol=1e-6)
    assert "SentenceTransformer" in (folder / "README.md").read_text("utf-8")


def test_the_names_of_newer_versions_are_read(folder):
    modules = json.loads((folder / "modules.json").read_text("utf-8"))[:2]
    modules[1]["type"] = "sentence_transformers.sentence_transformer.modules.pooling.Pooling"
    (folder / "modules.json").write_text(json.dumps(modules), "utf-8")
    settings = {"embedding_dimension": 24, "pooling_mode": "max", "include_prompt": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(settings), "utf-8")
    (folder / "sentence_bert_config.json").unlink()
    change(folder / "tokenizer_config.json", model_max_length=20)
    own = load(folder, "cpu")
    assert (own.pooling, own.normalize, own.most) == ("max", False, 20)


def test_the_model_in_a_folder_of_its_own_is_found(folder, tmp_path):
    expected = load(folder, "cpu").embed(TEXTS)
    old = tmp_path / "old"
    shutil.copytree(folder, old / "0_Transformer")
    for name in ("1_Pooling", "2_Normalize", "modules.json"):
        shutil.move(old / "0_Transformer" / name, old / name)
    modules = json.loads((old / "modules.json").read_text("utf-8"))
    modules[0]["path"] = "0_Transformer"
    (old / "modules.json").write_text(json.dumps(modules), "utf-8")
    assert np.array_equal(load(old, "cpu").embed(TEXTS), expected)


def test_what_heed_cannot_do_is_refused(folder):
    pooling = folder / "1_Pooling" / "config.json"
    change(pooling, pooling_mode_mean_tokens=True)
    with pytest.raises(ValueError, match=r"1_Pooling/config\.json pools by mean and cls; heed has mean, cls, max"):
        load(folder, "cpu")
    change(pooling, pooling_mode_mean_tokens=False, pooling_mode_cls_token=False, pooling_mode_lasttoken=True)
    with pytest.raises(ValueError, match="pools by lasttoken; heed has"):
        load(folder, "cpu")
    change(pooling, pooling_mode_cls_token=True, pooling_mode_lasttoken=False)
    change(folder / "config_sentence_transformers.json", default_prompt_name="query")
    with pytest.raises(ValueError, match="every text starts with the prompt 'query', which heed does not add"):
        load(folder, "cpu")
    change(folder / "config_sentence_transformers.json", default_prompt_name=None)
    change(folder / "sentence_bert_config.json", do_lower_case=True)
    with pytest.raises(ValueError, match="do_lower_case is true"):
        load(folder, "cpu")
    modules = json.loads((folder / "modules.json").read_text("utf-8"))
    modules[2]["type"] = "sentence_transformers.models.Dense"
    (folder / "modules.json").write_text(json.dumps(modules), "utf-8")
    with pytest.raises(ValueError, match="has the modules Transformer, Pooling, Dense; heed supports Transformer and"):
        load(folder, "cpu")
    (folder / "modules.json").write_text("{", "utf-8")
    with pytest.raises(ValueError, match=r"modules\.json is not a list of modules"):
        load(folder, "cpu")

"""Folders of encoders: what published ones hold besides, the code on their cards, the commands, and what is refused."""

import json

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from heed.convert import huggingface
from heed.convert.labels import names
from heed.loading import load, open_package, write_package
from heed.models.package import Package
from heed.runs.recipe import parse
from heed.vocabularies import files
from tests.contract.contract import train
from tests.convert.encoders import draw, package
from tests.data.mixed import training


def written(folder, system, head, **changes):
    own = package(system, head, **changes)
    huggingface.write(own, folder)
    return own


def rewritten(folder, change):
    """The weights of a folder, changed."""
    weights = change(load_file(folder / "model.safetensors"))
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def reset(folder, **settings):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))


def test_weights_as_berts_first_code_named_them_are_read(tmp_path):
    own = written(tmp_path / "out", "bert", "masked")

    def old(weights):
        norms = {name for name in weights if "LayerNorm" in name}
        endings = {"weight": "gamma", "bias": "beta"}
        kept = {name: weight for name, weight in weights.items() if name not in norms}
        return kept | {f"{name.rpartition('.')[0]}.{endings[name.rpartition('.')[2]]}": weights[name] for name in norms}

    rewritten(tmp_path / "out", old)
    back = open_package(tmp_path / "out").model.state_dict()
    assert all(torch.equal(weight, back[name]) for name, weight in own.model.state_dict().items())


@pytest.mark.parametrize(("system", "prefix"), [("bert", "bert"), ("roberta", "roberta"), ("albert", "albert")])
def test_a_published_masked_model_may_hold_a_pooler_and_a_head_for_pairs(tmp_path, system, prefix):
    own = written(tmp_path / "out", system, "masked")
    more = {f"{prefix}.pooler.dense.weight": torch.zeros(2), f"{prefix}.embeddings.position_ids": torch.zeros(1, 2)}
    more |= {"cls.seq_relationship.weight": torch.zeros(2)} if system == "bert" else {}
    rewritten(tmp_path / "out", lambda weights: weights | more)
    back = open_package(tmp_path / "out").model.state_dict()
    assert all(torch.equal(weight, back[name]) for name, weight in own.model.state_dict().items())
    rewritten(tmp_path / "out", lambda weights: weights | {"classifier.weight": torch.zeros(2)})
    with pytest.raises(ValueError, match=r"the weights hold classifier\.weight, which this model does not have"):
        open_package(tmp_path / "out")


def test_a_body_without_the_names_of_a_head_is_read(tmp_path):
    own = written(tmp_path / "out", "electra", "none")
    rewritten(tmp_path / "out", lambda weights: {name.removeprefix("electra."): own for name, own in weights.items()})
    back = open_package(tmp_path / "out").model
    assert torch.equal(back.encode_text(draw(1, 5)), own.model.encode_text(draw(1, 5)))


@pytest.mark.parametrize(
    "case", [("bert", "masked"), ("albert", "tokens"), ("bigbird", "answer"), ("roberta", "classification")]
)
def test_a_folder_of_heed_comes_back_and_info_and_convert_know_it(case, tmp_path, capsys):
    from heed.cli.main import main

    own = written(tmp_path / "theirs", *case)
    assert main(["convert", str(tmp_path / "theirs"), "--out", str(tmp_path / "ours")]) == 0
    said = capsys.readouterr().err
    verbs = {"classification": "classify", "masked": "fill", "tokens": "tag", "answer": "answer"}
    assert f"heed {verbs.get(case[1], 'info')}" in said
    assert main(["info", str(tmp_path / "ours"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["model"]["name"], found["model"]["head"]) == case
    assert found["text"].get("labels") == (own.processors["labels"].names if "labels" in own.processors else None)
    assert main(["convert", str(tmp_path / "ours"), "--out", str(tmp_path / "again"), "--to", "huggingface"]) == 0
    first, second = (load_file(tmp_path / name / "model.safetensors") for name in ("theirs", "again"))
    assert first.keys() == second.keys() and all(torch.equal(weight, second[name]) for name, weight in first.items())
    first, second = (json.loads((tmp_path / name / "config.json").read_text()) for name in ("theirs", "again"))
    assert first == second
    capsys.readouterr()
    if case[1] == "classification":
        assert main(["classify", str(tmp_path / "ours"), "the dog sees a red house ."]) == 0
        assert capsys.readouterr().out.startswith("label ")
    else:
        assert main(["classify", str(tmp_path / "ours"), "a"]) == 1
        says = {"masked": "a masked language model", "tokens": "a tagger", "answer": "a question-answering model"}
        expected = f"is {says[case[1]]}: it cannot classify" if case[1] in says else "its task is '"
        assert expected in capsys.readouterr().err


def test_labels_that_config_json_leaves_out_are_two(tmp_path):
    config = transformers.BertConfig(
        vocab_size=500, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
    )
    transformers.BertForSequenceClassification(config).save_pretrained(tmp_path)
    assert "id2label" not in json.loads((tmp_path / "config.json").read_text())
    files.write(tmp_path, package("bert", "masked").processors["text"].files)
    back = open_package(tmp_path)
    assert back.processors["labels"].names == ["LABEL_0", "LABEL_1"] and back.model.config.labels == 2
    assert names({}) == ["LABEL_0", "LABEL_1", "LABEL_2"]  # of a BART


@pytest.mark.parametrize(
    ("case", "settings", "says"),
    [
        (("bert", "masked"), {"is_decoder": True}, "is_decoder is True; heed's Bert supports only False"),
        (("bert", "masked"), {"position_embedding_type": "relative_key"}, "position_embedding_type is 'relative_key'"),
        (("bert", "masked"), {"hidden_act": "tanh"}, "hidden_act is 'tanh'; heed's Bert knows 'gelu', 'gelu_new'"),
        (("bert", "masked"), {"pad_token_id": 7}, "pad_token_id is 7, but in this vocabulary it is 0"),
        (("bert", "masked"), {"classifier_dropout": "x"}, "classifier_dropout is 'x'; it must be a number, or null"),
        (("bert", "classification"), {"problem_type": "regression"}, "problem_type is 'regression'; heed's regression predicts one"),
        (("bert", "classification"), {"problem_type": "multi_label_classification"}, "problem_type is 'multi_label_classification'"),
        (("bert", "classification"), {"id2label": {}}, "id2label is {}; a classifier needs"),
        (("bert", "tokens"), {"id2label": {"0": "a"}}, "id2label is {'0': 'a'}; a classifier needs"),
        (("electra", "choice"), {"summary_type": "mean"}, "summary_type is 'mean'; heed's Electra supports only 'first'"),
        (("bigbird", "masked"), {"use_bias": False}, "use_bias is False; heed's BigBird supports only True"),
        (("bigbird", "masked"), {"attention_type": "x"}, "attention_type is 'x'; heed's BigBird knows 'block_sparse', "),
    ],
)  # fmt: skip
def test_what_heed_does_not_compute_is_refused_by_name(case, settings, says, tmp_path):
    written(tmp_path / "out", *case)
    reset(tmp_path / "out", **settings)
    with pytest.raises(ValueError) as error:
        open_package(tmp_path / "out")
    assert says in str(error.value)


def test_a_head_that_transformers_does_not_have_stays_with_heed(tmp_path):
    with pytest.raises(
        ValueError,
        match="transformers has no equivalent of a Bert with such a head or a prompt: it cannot be exported",
    ):
        huggingface.write(package("bert", "replaced"), tmp_path / "out")
    own = package("bert", "replaced")
    write_package(own._replace(task="replaced-tokens"), tmp_path / "ours")
    back = open_package(tmp_path / "ours")
    assert torch.equal(back.model.detect_replaced(draw(2, 9)), own.model.detect_replaced(draw(2, 9)))
    with pytest.raises(
        ValueError, match=r"ours has no language-modelling head \(its head is 'replaced'\): it cannot fill masks"
    ):
        load(tmp_path / "ours", "cpu")


def test_what_was_trained_jointly_is_written_as_its_discriminator_and_its_generator_by_itself(tmp_path):
    own = package("electra", "joint", heads=4, generator_fraction=0.5)
    generator, discriminator = own.model.split()
    huggingface.write(own, tmp_path / "joint")
    huggingface.write(Package(generator, "masked", own.processors, {}), tmp_path / "generator")
    names = ("model.safetensors", "config.json", "vocab.txt")
    assert all(
        (tmp_path / "joint/generator" / n).read_bytes() == (tmp_path / "generator" / n).read_bytes() for n in names
    )
    tokens = draw(2, 9)
    with torch.inference_mode():
        theirs = transformers.ElectraForPreTraining.from_pretrained(tmp_path / "joint").eval()(tokens).logits
        torch.testing.assert_close(discriminator.eval().detect_replaced(tokens), theirs, rtol=0, atol=1e-5)
        theirs = transformers.ElectraForMaskedLM.from_pretrained(tmp_path / "generator").eval()(tokens).logits
        words = torch.nn.functional.linear(own.model.generator_states(tokens), *own.model.generator_weights())
        torch.testing.assert_close(words, theirs, rtol=0, atol=1e-4)


@pytest.mark.parametrize("system", ["bert", "roberta", "albert", "electra", "bigbird"])
def test_the_proportions_of_the_published_base_give_their_numbers(system, tmp_path):
    sizes = {"dim": 256, "heads": 4, "hidden": 1024, "layers": 2, "max_length": 128}  # heads of width 64, as there
    sizes |= {"albert": {"embedding": 128, "group_layers": 2}, "electra": {"embedding": 128}}.get(system, {})
    own = written(tmp_path / "out", system, "masked", **sizes)
    theirs = transformers.AutoModelForMaskedLM.from_pretrained(
        tmp_path / "out", dtype=torch.float64, attn_implementation="eager"
    ).eval()
    tokens = draw(2, 70)
    with torch.inference_mode():
        torch.testing.assert_close(own.model.double().predict_words(tokens), theirs(tokens).logits, rtol=0, atol=1e-10)


@pytest.fixture
def labelled(tmp_path):
    """A recipe that fine-tunes a model on labelled sentences for two steps."""
    for name, texts in (("train", training(1, 40)[20:]), ("valid", training(2, 20)[20:])):
        (tmp_path / f"{name}.text").write_text("".join(f"{text}\n" for text in texts))
        (tmp_path / f"{name}.labels").write_text("".join("yes\n" if "a" in text else "no\n" for text in texts))
    data = {side: [str(tmp_path / f"train.{ending}")] for side, ending in (("source", "text"), ("target", "labels"))}
    data |= {f"valid_{side}": [path.replace("train.", "valid.") for path in paths] for side, paths in data.items()}
    steps = {"steps": 2, "valid_every": 2, "threads": 1, "device": "cpu", "samples": 0}
    return lambda folder: parse(
        {
            "model": {"folder": str(folder)}, "task": {"name": "classification"}, "data": data, "training": steps,
            "filters": {"max_length": 60},
        }
    )  # fmt: skip


def test_a_masked_model_is_fine_tuned_as_a_classifier_and_written_as_one(labelled, tmp_path):
    own = written(tmp_path / "base", "electra", "masked")
    assert train(labelled(tmp_path / "base"), tmp_path / "run").how == "finished"
    back = open_package(tmp_path / "run")
    assert (back.model.config.head, back.model.config.labels, back.processors["labels"].names) == (
        "classification",
        2,
        ["no", "yes"],
    )
    change = back.model.tokens.weight - own.model.tokens.weight
    assert 0 < change.abs().max() < 0.1
    assert huggingface.write(back, tmp_path / "out").name == "ElectraForSequenceClassification"


def test_a_model_with_labels_of_another_task_is_refused_as_a_base(labelled, tmp_path):
    written(tmp_path / "base", "bert", "tokens")
    with pytest.raises(
        ValueError, match=r"base is a tagger: it cannot learn classification; set task\.name to 'tagging'"
    ):
        train(labelled(tmp_path / "base"), tmp_path / "run")

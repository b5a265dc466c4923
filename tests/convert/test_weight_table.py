"""Tables of weights: what older files hold, and what is refused by name."""

import pytest
import torch

from heed.convert import bart, marian, pegasus
from heed.models.bart import Bart, BartConfig
from heed.models.marian import Marian, MarianConfig
from heed.models.pegasus import Pegasus, PegasusConfig
from heed.nn.positions import sinusoids_in_halves

SMALL = {
    "vocab_size": 11,
    "dim": 8,
    "heads": 2,
    "hidden": 12,
    "encoder_layers": 1,
    "decoder_layers": 2,
    "max_length": 7,
}
COPIES = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight")
POSITIONS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")


def written(model_class, config, weight_table):
    """A model of ours, its table, and its weights under their names."""
    torch.manual_seed(0)
    model = model_class(config)
    for weight in model.state_dict().values():
        weight.normal_(std=0.2)
    table = weight_table(config)
    return model, table, table.to_theirs(model.state_dict())


MARIAN = (Marian, MarianConfig(**SMALL), marian.weight_table)
TWO = (Marian, MarianConfig(**SMALL, source_vocab_size=13, tied="target"), marian.weight_table)
BART = (Bart, BartConfig(**SMALL), bart.weight_table)
CLASSIFIER = (Bart, BartConfig(**SMALL, labels=3), bart.classifier_weight_table)
PEGASUS = (Pegasus, PegasusConfig(**SMALL), pegasus.weight_table)
EVERY = pytest.mark.parametrize(
    "system",
    [MARIAN, TWO, BART, CLASSIFIER, PEGASUS],
    ids=["marian", "two vocabularies", "bart", "classifier", "pegasus"],
)
ONE_MATRIX = pytest.mark.parametrize("system", [MARIAN, BART, PEGASUS], ids=["marian", "bart", "pegasus"])


def assert_read(table, theirs, model):
    back = table.to_ours(theirs, model.state_dict())
    assert back.keys() == model.state_dict().keys()
    for name, tensor in model.state_dict().items():
        assert torch.equal(back[name], tensor), name


@ONE_MATRIX
def test_copies_of_the_one_matrix_in_older_files_are_passed_over(system):
    model, table, theirs = written(*system)
    assert_read(table, theirs | {name: theirs["model.shared.weight"].clone() for name in COPIES}, model)


@ONE_MATRIX
@pytest.mark.parametrize("name", COPIES)
def test_the_one_matrix_is_found_under_any_of_its_names(system, name):
    model, table, theirs = written(*system)
    theirs[name] = theirs.pop("model.shared.weight")
    assert_read(table, theirs, model)


@ONE_MATRIX
@pytest.mark.parametrize("name", COPIES)
def test_a_copy_that_is_none_is_refused(system, name):
    model, table, theirs = written(*system)
    theirs[name] = theirs["model.shared.weight"] + 1e-6
    with pytest.raises(
        ValueError, match=rf"{name} and model\.shared\.weight differ; in this model they are the same matrix"
    ):
        table.to_ours(theirs, model.state_dict())


def test_with_two_vocabularies_the_output_is_a_copy_of_the_targets_matrix():
    model, table, theirs = written(*TWO)
    assert "model.shared.weight" not in theirs
    assert_read(table, theirs | {"lm_head.weight": theirs["model.decoder.embed_tokens.weight"].clone()}, model)
    with pytest.raises(ValueError, match=r"lm_head\.weight and model\.decoder\.embed_tokens\.weight differ"):
        table.to_ours(theirs | {"lm_head.weight": torch.ones(11, 8)}, model.state_dict())


@EVERY
def test_names_without_their_prefix_are_read(system):
    model, table, theirs = written(*system)
    assert_read(table, {name.removeprefix("model."): tensor for name, tensor in theirs.items()}, model)


@pytest.mark.parametrize("system", [MARIAN, TWO, BART, PEGASUS])
def test_a_bias_left_out_is_zero(system):
    model, table, theirs = written(*system)
    del theirs["final_logits_bias"]
    assert torch.equal(table.to_ours(theirs, model.state_dict())["bias"], torch.zeros(11))


@pytest.mark.parametrize("prefix", ["", "model."])
@pytest.mark.parametrize("system", [BART, CLASSIFIER])
def test_the_version_numbers_of_the_first_barts_are_passed_over(system, prefix):
    model, table, theirs = written(*system)
    versions = {f"{prefix}{side}.version": torch.tensor([3.0]) for side in ("encoder", "decoder")}
    assert_read(table, theirs | versions, model)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("system", [MARIAN, TWO, PEGASUS])
def test_sinusoids_in_a_file_are_passed_over_where_they_are_ours(system, dtype):
    model, table, theirs = written(*system)
    sinusoids = sinusoids_in_halves(7, 8)
    assert_read(table, theirs | {name: sinusoids.to(dtype) for name in POSITIONS}, model)
    with pytest.raises(ValueError, match=r"model\.decoder\.embed_positions\.weight does not match the sinusoidal"):
        table.to_ours(theirs | {POSITIONS[1]: sinusoids.flip(1).to(dtype)}, model.state_dict())
    with pytest.raises(
        ValueError, match=r"encoder\.embed_positions\.weight has shape \(6, 8\), but according to the settings it s"
    ):
        table.to_ours(theirs | {POSITIONS[0].removeprefix("model."): sinusoids[:6]}, model.state_dict())


def test_only_pegasus_keeps_its_sinusoids_in_the_file():
    assert not set(POSITIONS) & set(written(*MARIAN)[2])
    theirs = written(*PEGASUS)[2]
    assert torch.equal(theirs[POSITIONS[0]], sinusoids_in_halves(7, 8))
    assert theirs[POSITIONS[0]].data_ptr() != theirs[POSITIONS[1]].data_ptr()  # safetensors refuses one memory twice


def test_sinusoids_are_written_in_the_kind_of_the_weights():
    model, table, _ = written(*PEGASUS)
    assert {tensor.dtype for tensor in table.to_theirs(model.half().state_dict()).values()} == {torch.float16}


def test_the_rows_before_the_first_place_of_bart_are_kept():
    model, _, theirs = written(*BART)
    assert theirs[POSITIONS[0]].shape == (9, 8)
    assert torch.equal(theirs[POSITIONS[1]], model.positions.places.weight)


@EVERY
@pytest.mark.parametrize("name", [
    "adapter.weight",
    "model.encoder.layers.1.fc1.weight",  # this model has one layer
    "model.encoder.layers.0.encoder_attn.q_proj.weight",
    "model.encoder.layers.0.fc1.weight_scale",
    "qa_outputs.bias",
])  # fmt: skip
def test_an_unknown_weight_is_refused_by_name(system, name):
    model, table, theirs = written(*system)
    with pytest.raises(ValueError, match=rf"the weights hold {name}, which this model does not have"):
        table.to_ours(theirs | {name: torch.zeros(12, 8)}, model.state_dict())


def test_the_head_of_a_classifier_is_not_dropped_from_a_bart():
    model, table, _ = written(*BART)
    theirs = written(*CLASSIFIER)[2]
    names = "classification_head.dense.weight, classification_head.dense.bias, .* and 1 more"
    with pytest.raises(ValueError, match=rf"the weights hold {names}, which"):
        table.to_ours(theirs, model.state_dict())


@EVERY
@pytest.mark.parametrize("name", ["model.decoder.layers.1.fc2.bias", "model.encoder.layers.0.self_attn.q_proj.weight"])
def test_a_missing_weight_is_told_by_their_name(system, name):
    model, table, theirs = written(*system)
    del theirs[name]
    with pytest.raises(ValueError, match=rf"the weights lack {name}: they belong to another model, or are incomplete"):
        table.to_ours(theirs, model.state_dict())


def test_no_weights_at_all_are_told():
    model, table, _ = written(*BART)
    with pytest.raises(ValueError, match=r"the weights lack model\.shared\.weight, final_logits_bias, "):
        table.to_ours({}, {"tokens.weight": 0, "bias": 0, **model.state_dict()})


def test_a_weight_of_ours_that_no_row_is_for_is_told():
    _, table, _ = written(*BART)
    with pytest.raises(ValueError, match=r"the table has no entry for head\.dense\.weight"):
        table.to_theirs({"head.dense.weight": torch.zeros(1)})

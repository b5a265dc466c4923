"""Tables of settings: their config.json to our configs and back, and what is refused by name."""

import dataclasses
import json

import pytest

from heed.convert import bart, marian, pegasus
from heed.models.bart import BartConfig
from heed.models.marian import MarianConfig
from heed.models.pegasus import PegasusConfig

hf = pytest.importorskip("transformers")

SIZES = {"dim": 24, "heads": 3, "hidden": 30, "encoder_layers": 3, "decoder_layers": 1, "max_length": 33}
RATES = {"dropout": 0.25, "attention_dropout": 0.5, "hidden_dropout": 0.125, "init_std": 0.5, "activation": "relu"}
CONFIGS = [
    (marian.CONFIG_TABLE, MarianConfig(vocab_size=77, **SIZES, **RATES, scaled=False)),
    (marian.CONFIG_TABLE, MarianConfig(vocab_size=77, source_vocab_size=99, tied="target")),
    (marian.CONFIG_TABLE, MarianConfig(vocab_size=77, source_vocab_size=99, tied="none", activation="gelu")),
    (marian.CONFIG_TABLE, MarianConfig(vocab_size=77, tied="target")),
    (bart.CONFIG_TABLE, BartConfig(vocab_size=77, **SIZES, **RATES, scaled=True)),
    (bart.CONFIG_TABLE, BartConfig(vocab_size=77, activation="swish")),
    (pegasus.CONFIG_TABLE, PegasusConfig(vocab_size=77, **SIZES, **RATES, scaled=False)),
    (pegasus.CONFIG_TABLE, PegasusConfig(vocab_size=77)),
    (
        bart.CLASSIFIER_CONFIG_TABLE,
        BartConfig(vocab_size=77, **SIZES, **RATES, labels=5, first=4, last=6, classifier_dropout=0.75),
    ),
    (bart.CLASSIFIER_CONFIG_TABLE, BartConfig(vocab_size=77, labels=2)),
]
FAMILIES = [marian.CONFIG_TABLE, bart.CONFIG_TABLE, bart.CLASSIFIER_CONFIG_TABLE, pegasus.CONFIG_TABLE]
EACH = pytest.mark.parametrize("table", FAMILIES, ids=lambda table: table.name)
THEIRS = {"marian": hf.MarianConfig, "bart": hf.BartConfig, "pegasus": hf.PegasusConfig}


@pytest.mark.parametrize(("table", "config"), CONFIGS)
def test_settings_go_there_and_back(table, config):
    assert table.to_ours(json.loads(json.dumps(table.to_theirs(config)))) == config


@pytest.mark.parametrize(("table", "config"), CONFIGS)
def test_their_library_understands_every_setting_we_write(table, config):
    said = table.to_theirs(config)
    theirs = THEIRS[said["model_type"]].from_dict(said)
    known = theirs.to_dict()
    said.pop("id2label", None)  # theirs has numbers for keys, which JSON has not
    assert {name: known[name] for name in said} == said
    assert table.to_ours(known) == config


def test_a_bart_without_sizes_is_the_published_base_and_what_a_folder_leaves_out_is_what_their_library_takes():
    own = BartConfig(vocab_size=9)
    sizes = own.dim, own.heads, own.hidden, own.encoder_layers, own.decoder_layers, own.max_length
    assert sizes == (768, 12, 3072, 6, 6, 1024)
    left_out, theirs = {"architectures": ["BartForSequenceClassification"], "num_labels": 3}, hf.BartConfig()
    found = bart.CLASSIFIER_CONFIG_TABLE.to_ours({**theirs.to_dict(), **left_out})
    known = {**theirs.to_dict(), **left_out}
    for name in ("decoder_start_token_id", "eos_token_id", "classifier_dropout"):
        known.pop(name)
    assert bart.CLASSIFIER_CONFIG_TABLE.to_ours(known) == found


@EACH
def test_every_setting_of_ours_is_in_the_table(table):
    """A setting of ours that no row reads would silently keep its default, as those of a classifier do in what writes."""
    unused = {"labels", "first", "last", "classifier_dropout"} if table is bart.CONFIG_TABLE else set()
    read = {row[0] for row in table.rows}.union(*(rule.ours({}) for rule in table.rules))
    assert read | unused == {field.name for field in dataclasses.fields(table.config)}


@EACH
def test_what_config_json_leaves_out_is_as_their_library_has_it(table):
    theirs = THEIRS[table.constants["model_type"]]()
    assert table.to_ours({}) == table.to_ours(theirs.to_dict())


@EACH
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("model_type", "mbart"),
        ("is_encoder_decoder", False),
        ("is_decoder", True),
        ("normalize_before", None),
        ("normalize_embedding", None),
        ("add_final_layer_norm", None),
        ("static_position_embeddings", None),
    ],
)
def test_what_our_model_is_not_made_for_is_refused_by_name(table, name, value):
    value = (not table.required[name]) if value is None else value
    assert table.to_ours({name: table.required[name]}) == table.to_ours({})
    message = rf"{name} is {value!r}; heed's {table.name} supports only {table.required[name]!r}"
    with pytest.raises(ValueError, match=message):
        table.to_ours({name: value})


@pytest.mark.parametrize("table", [bart.CONFIG_TABLE, bart.CLASSIFIER_CONFIG_TABLE, pegasus.CONFIG_TABLE])
def test_matrices_that_are_not_tied_are_refused(table):
    with pytest.raises(ValueError, match=r"tie_word_embeddings is False; heed's .* supports only True"):
        table.to_ours({"tie_word_embeddings": False})


@pytest.mark.parametrize("table", [bart.CONFIG_TABLE, bart.CLASSIFIER_CONFIG_TABLE])
@pytest.mark.parametrize(("name", "value"), [("extra_pos_embeddings", 1), ("do_blenderbot_90_layernorm", True)])
def test_positions_and_norms_of_barts_cousins_are_refused(table, name, value):
    with pytest.raises(ValueError, match=f"{name} is {value}; heed's"):
        table.to_ours({name: value})


@EACH
@pytest.mark.parametrize("word", ["gelu_new", "tanh", "GELU"])
def test_another_activation_is_refused_by_name(table, word):
    message = f"activation_function is '{word}'; heed's {table.name} knows 'gelu', 'relu', 'swish', 'silu'"
    with pytest.raises(ValueError, match=message):
        table.to_ours({"activation_function": word})


def test_silu_is_another_word_for_swish():
    assert marian.CONFIG_TABLE.to_ours({"activation_function": "silu"}).activation == "swish"


@EACH
@pytest.mark.parametrize(
    ("encoder", "decoder", "ours"),
    [("encoder_attention_heads", "decoder_attention_heads", "heads"), ("encoder_ffn_dim", "decoder_ffn_dim", "hidden")],
)
def test_an_encoder_and_a_decoder_of_different_widths_are_refused(table, encoder, decoder, ours):
    message = f"{decoder} is 32 and {encoder} is 64; heed's {table.name} has one {ours} for both"
    with pytest.raises(ValueError, match=message):
        table.to_ours({encoder: 64, decoder: 32})


@EACH
@pytest.mark.parametrize(
    ("name", "other", "ours"),
    [("encoder_layers", "num_hidden_layers", "encoder_layers"), ("d_model", "hidden_size", "dim")],
)
def test_two_names_of_one_setting_must_agree(table, name, other, ours):
    assert getattr(table.to_ours({other: 256}), ours) == 256
    assert getattr(table.to_ours({name: 256, other: 256}), ours) == 256
    with pytest.raises(ValueError, match=f"{other} is 6, but {name} is 256: they are two names for the same setting"):
        table.to_ours({name: 256, other: 6})


@EACH
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("d_model", "512", "d_model is '512'; it must be an integer"),
        ("dropout", None, "dropout is None; it must be a number"),
        ("scale_embedding", 1, "scale_embedding is 1; it must be true or false"),
        ("vocab_size", 97.0, "vocab_size is 97.0; it must be an integer"),
        ("dropout", 1.5, "dropout is 1.5; it must be at least 0 and below 1"),
    ],
)
def test_a_value_of_another_kind_is_told(table, name, value, message):
    with pytest.raises(ValueError, match=message):
        table.to_ours({name: value})


def test_a_whole_number_will_do_for_a_rate():
    assert bart.CONFIG_TABLE.to_ours({"dropout": 0}).dropout == 0.0


def test_a_marian_with_one_matrix_has_one_vocabulary():
    with pytest.raises(
        ValueError, match="decoder_vocab_size is 7 and vocab_size 9, but share_encoder_decoder_embeddings"
    ):
        marian.CONFIG_TABLE.to_ours({"vocab_size": 9, "decoder_vocab_size": 7})
    assert marian.CONFIG_TABLE.to_ours({"vocab_size": 9, "decoder_vocab_size": None}).vocab_size == 9


def test_a_marian_with_one_matrix_but_for_the_output_is_refused():
    with pytest.raises(ValueError, match="tie_word_embeddings is False, but share_encoder_decoder_embeddings is True"):
        marian.CONFIG_TABLE.to_ours({"tie_word_embeddings": False})


@pytest.mark.parametrize(
    ("settings", "labels"),
    [
        ({}, 3),
        ({"num_labels": 4}, 4),
        ({"_num_labels": 5}, 5),
        ({"id2label": {"0": "no", "1": "yes"}, "num_labels": 2}, 2),
    ],
)
def test_labels_are_counted(settings, labels):
    assert bart.CLASSIFIER_CONFIG_TABLE.to_ours(settings).labels == labels


def test_several_end_tokens_are_refused():
    with pytest.raises(ValueError, match=r"eos_token_id is \[2, 3\]; it must be an integer"):
        bart.CLASSIFIER_CONFIG_TABLE.to_ours({"eos_token_id": [2, 3]})


@pytest.mark.parametrize(
    ("table", "noise"),
    [
        (
            marian.CONFIG_TABLE,
            {"add_bias_logits": False, "classif_dropout": 0.0, "bad_words_ids": [[58100]], "num_beams": 6,
             "encoder_layerdrop": 0.1, "_name_or_path": "x", "gradient_checkpointing": False, "max_length": 512},
        ),
        (pegasus.CONFIG_TABLE, {"extra_pos_embeddings": 1, "length_penalty": 0.8, "task_specific_params": {"a": 1}}),
        (bart.CONFIG_TABLE, {"extra_pos_embeddings": 2, "force_bos_token_to_be_generated": True, "id2label": {"0": "a"}}),
    ],
)  # fmt: skip
def test_settings_that_change_no_number_are_passed_over(table, noise):
    assert table.to_ours(noise) == table.to_ours({})

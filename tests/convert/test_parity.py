"""Our models give the numbers of Hugging Face's from the same weights, and write the weights back.

In float64, with no bias left at zero and no norm at one: then a wrong epsilon, a GELU of the other kind or a forgotten
mask shows.
"""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from heed.convert import bart, m2m100, marian, mbart, pegasus
from heed.models.bart import Bart
from heed.models.m2m100 import M2M100
from heed.models.marian import Marian
from heed.models.mbart import MBart
from heed.models.pegasus import Pegasus
from heed.nn.attention import record

hf = pytest.importorskip("transformers")
hf.utils.logging.disable_progress_bar()

SHAPE = {
    "vocab_size": 97,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 20,
    "attn_implementation": "eager",
    "pad_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
    "forced_eos_token_id": 2,
}
OPUS = {"activation_function": "swish", "scale_embedding": True, "dropout": 0.3}
OTHER = {"encoder_layers": 3, "decoder_layers": 1, "d_model": 18, "encoder_attention_heads": 3,
         "decoder_attention_heads": 3, "encoder_ffn_dim": 30, "decoder_ffn_dim": 30}  # fmt: skip
TWO = {"decoder_vocab_size": 71, "share_encoder_decoder_embeddings": False}
MARIAN = (hf.MarianMTModel, hf.MarianConfig, Marian, marian.CONFIG_TABLE, marian.weight_table)
BART = (hf.BartForConditionalGeneration, hf.BartConfig, Bart, bart.CONFIG_TABLE, bart.weight_table)
PEGASUS = (hf.PegasusForConditionalGeneration, hf.PegasusConfig, Pegasus, pegasus.CONFIG_TABLE, pegasus.weight_table)
MBART = (hf.MBartForConditionalGeneration, hf.MBartConfig, MBart, mbart.CONFIG_TABLE, mbart.weight_table)
M2M = (hf.M2M100ForConditionalGeneration, hf.M2M100Config, M2M100, m2m100.CONFIG_TABLE, m2m100.weight_table)
CLASSIFIER = (
    hf.BartForSequenceClassification, hf.BartConfig, Bart, bart.CLASSIFIER_CONFIG_TABLE, bart.classifier_weight_table,
)  # fmt: skip
WRITERS = {
    "marian": (MARIAN, OPUS),
    "marian with two vocabularies": (MARIAN, OPUS | TWO),
    "marian with an output of its own": (MARIAN, OPUS | TWO | {"tie_word_embeddings": False}),
    "marian of another shape": (MARIAN, OTHER | {"activation_function": "relu", "attention_dropout": 0.2}),
    "bart": (BART, {"activation_function": "gelu", "activation_dropout": 0.1}),
    "bart of another shape": (BART, OTHER | {"activation_function": "relu", "scale_embedding": True}),
    "pegasus": (PEGASUS, {"activation_function": "relu", "scale_embedding": True, "init_std": 0.03}),
    "pegasus of another shape": (PEGASUS, OTHER | {"activation_function": "gelu"}),
    "mbart": (MBART, {"scale_embedding": True, "activation_dropout": 0.1}),
    "mbart of another shape": (MBART, OTHER | {"activation_function": "relu"}),
    "m2m100": (M2M, {"dropout": 0.2}),
    "m2m100 of another shape": (M2M, OTHER | {"activation_function": "gelu", "scale_embedding": False}),
}
LABELLED = {
    "classifier": (CLASSIFIER, {"num_labels": 5, "classifier_dropout": 0.2, "decoder_start_token_id": 3}),
    "classifier of another shape": (CLASSIFIER, OTHER | {"num_labels": 4, "activation_function": "relu"}),
}
CASES = WRITERS | LABELLED


def drawn(name):
    """Their model, all weights from N(0, 0.2)."""
    torch.manual_seed(0)
    (theirs, config, *_), changes = CASES[name]
    model = theirs(config(**{**SHAPE, **changes})).eval()
    for weight in [p for p in model.parameters() if p.requires_grad]:
        torch.nn.init.normal_(weight, std=0.2)
    if hasattr(model, "final_logits_bias"):
        model.final_logits_bias.normal_(std=0.2)
    return model


def ours_of(name, weights, settings):
    """Our model of the weights and the settings of theirs."""
    (_, _, kind, config_table, table), _ = CASES[name]
    model = kind(config_table.to_ours(settings)).eval()
    model.load_state_dict(table(model.config).to_ours(weights, model.state_dict()))
    return model


def theirs_of(name, model):
    """The weights and the settings of theirs, out of our model."""
    (_, _, _, config_table, table), _ = CASES[name]
    return table(model.config).to_theirs(model.state_dict()), config_table.to_theirs(model.config)


def pair(name):
    theirs = drawn(name)
    ours = ours_of(name, theirs.state_dict(), theirs.config.to_dict())
    return theirs.double(), ours.double()


def saved(name, folder):
    """What `save_pretrained` writes: its weights and its settings."""
    theirs = drawn(name)
    theirs.save_pretrained(folder)
    return load_file(folder / "model.safetensors"), json.loads((folder / "config.json").read_text())


def same(ours, theirs):
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


def batch(rows, sources, targets):
    torch.manual_seed(1)
    return torch.randint(3, 70, (rows, sources)), torch.randint(3, 70, (rows, targets))


RIGHT = torch.arange(9) < torch.tensor([[9], [6], [1]])
BATCHES = {
    "padding on the right": (batch(3, 9, 7), RIGHT),
    "padding on the left": (batch(3, 9, 7), RIGHT.flip(1)),
    "no padding": (batch(2, 20, 20), torch.ones(2, 20, dtype=torch.bool)),
    "one token": (batch(1, 1, 1), torch.ones(1, 1, dtype=torch.bool)),
}


@torch.no_grad()
@pytest.mark.parametrize("padding", BATCHES)
@pytest.mark.parametrize("name", WRITERS)
def test_logits_memory_and_every_attention_are_theirs(name, padding):
    theirs, ours = pair(name)
    (source, target), valid = BATCHES[padding]
    seen = theirs(source, attention_mask=valid.long(), decoder_input_ids=target, output_attentions=True)
    same(ours(source, target, valid), seen.logits)
    if valid.all():
        same(ours(source, target), seen.logits)
    with record(ours) as maps:
        memory = ours.encode(source, valid)
        ours.decode(target, memory, valid)
    same(memory[valid], seen.encoder_last_hidden_state[valid])
    own = len(seen.encoder_attentions)
    assert len(maps) == own + 2 * len(seen.decoder_attentions) == own + 2 * len(seen.cross_attentions)
    for weights, expected in zip(maps[:own], seen.encoder_attentions, strict=True):
        same(weights.transpose(1, 2)[valid], expected.transpose(1, 2)[valid])
    for weights, expected in zip(maps[own::2], seen.decoder_attentions, strict=True):
        same(weights, expected)
    for weights, expected in zip(maps[own + 1 :: 2], seen.cross_attentions, strict=True):
        same(weights, expected)


@torch.no_grad()
@pytest.mark.parametrize("name", WRITERS)
def test_our_cached_steps_give_what_their_one_pass_gives(name):
    theirs, ours = pair(name)
    (source, target), valid = BATCHES["padding on the right"]
    state = ours.start(source, valid)
    steps = torch.stack([ours.step(target[:, t], state) for t in range(target.shape[1])], dim=1)
    same(steps, theirs(source, attention_mask=valid.long(), decoder_input_ids=target).logits)


@torch.no_grad()
@pytest.mark.parametrize("padding", ["padding on the right", "padding on the left", "no padding", "one token"])
@pytest.mark.parametrize("name", LABELLED)
def test_a_classifier_gives_their_scores_and_attentions(name, padding):
    theirs, ours = pair(name)
    (source, _), valid = BATCHES[padding]
    source = source.masked_fill(~valid, 1)
    last = torch.where(valid, torch.arange(valid.shape[1]), -1).amax(dim=1)
    source[torch.arange(len(source)), last] = 2
    with record(ours) as maps:
        scores = ours.classify_text(source, valid)
    seen = theirs(source, attention_mask=valid.long(), output_attentions=True)
    same(scores, seen.logits)
    for weights, expected in zip(maps[len(seen.encoder_attentions) + 1 :: 2], seen.cross_attentions, strict=True):
        same(weights, expected)


@torch.no_grad()
def test_a_classifier_looks_at_the_last_of_several_end_tokens():
    theirs, ours = pair("classifier")
    source = torch.tensor([[5, 2, 2, 8, 2, 1], [2, 6, 2, 9, 10, 2]])
    same(ours.classify_text(source), theirs(source).logits)


@pytest.mark.parametrize("name", CASES)
def test_a_file_of_theirs_comes_back_to_the_bit(name, tmp_path):
    weights, settings = saved(name, tmp_path)
    model = ours_of(name, weights, settings)
    back, said = theirs_of(name, model)
    assert back.keys() == weights.keys()
    for key, tensor in weights.items():
        assert torch.equal(back[key], tensor), key
    assert said == {key: settings[key] for key in said}


@pytest.mark.parametrize("name", CASES)
def test_a_model_of_ours_comes_back_to_the_bit(name):
    (_, _, kind, config_table, _), changes = CASES[name]
    model = kind(config_table.to_ours({**SHAPE, **changes, **config_table.constants}))
    torch.nn.init.normal_(next(model.parameters()), std=0.2)
    back = ours_of(name, *theirs_of(name, model))
    assert back.config == model.config
    for key, tensor in model.state_dict().items():
        assert torch.equal(back.state_dict()[key], tensor), key


@torch.no_grad()
@pytest.mark.parametrize("name", CASES)
def test_what_we_write_is_loaded_by_transformers_without_a_word(name, tmp_path, capfd):
    theirs = drawn(name)
    weights, settings = theirs_of(name, ours_of(name, theirs.state_dict(), theirs.config.to_dict()))
    save_file(weights, tmp_path / "model.safetensors", {"format": "pt"})
    ids = {key: SHAPE[key] for key in SHAPE if key.endswith("_token_id")}
    (tmp_path / "config.json").write_text(json.dumps(ids | settings))
    capfd.readouterr()
    loaded, told = type(theirs).from_pretrained(tmp_path, output_loading_info=True)
    assert not any(told.values()), told
    assert capfd.readouterr() == ("", "")
    (source, target), valid = BATCHES["padding on the right"]
    given = {} if name in LABELLED else {"decoder_input_ids": target}
    source[:, -1] = 2
    expected = theirs.double()(source, attention_mask=valid.long(), **given).logits
    same(loaded.double().eval()(source, attention_mask=valid.long(), **given).logits, expected)

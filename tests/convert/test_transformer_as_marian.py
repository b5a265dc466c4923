"""Our own Transformer as a Hugging Face Marian: the same logits, or a sentence."""

import dataclasses
import json

import pytest
import torch
from safetensors.torch import save_file

from heed.convert import generation, transformer
from heed.models.transformer import Transformer, TransformerConfig
from heed.vocabularies.sentencepiece import SPECIAL_TOKENS

hf = pytest.importorskip("transformers")
hf.utils.logging.disable_progress_bar()

CONFIG = TransformerConfig(
    vocab_size=97, dim=32, heads=4, hidden=48, encoder_layers=2, decoder_layers=3, max_length=20, dropout=0.3
)
SHAPES = [
    {},
    {"output_bias": True},
    {"tied": "target"},
    {"tied": "target", "source_vocab_size": 71, "output_bias": True, "attention_dropout": 0.1},
    {"tied": "none", "source_vocab_size": 71},
    {"dim": 15, "heads": 3, "hidden": 20, "encoder_layers": 1},  # an odd width has one sine more than cosines
]
VALID = torch.arange(9) < torch.tensor([[9], [6], [1]])


def drawn(**changes):
    """All weights from N(0, 0.2), norms and biases too."""
    torch.manual_seed(0)
    model = Transformer(dataclasses.replace(CONFIG, **changes)).eval()
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.2)
    return model


[MARIAN] = transformer.ARCHITECTURES


def written(model, folder):
    weights, settings = MARIAN.to_theirs(model)
    settings |= generation.ids(SPECIAL_TOKENS) | MARIAN.settings(None)
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    (folder / "config.json").write_text(json.dumps(settings))
    return settings


def batch():
    return torch.randint(0, 71, (3, 9)), torch.randint(0, 71, (3, 7))


@torch.no_grad()
@pytest.mark.parametrize("valid", [VALID, VALID.flip(1), torch.ones_like(VALID)], ids=["right", "left", "none"])
@pytest.mark.parametrize("changes", SHAPES, ids=str)
def test_marian_gives_our_logits_and_our_memory(changes, valid, tmp_path):
    ours = drawn(**changes)
    written(ours, tmp_path)
    theirs, told = hf.AutoModelForSeq2SeqLM.from_pretrained(tmp_path, output_loading_info=True)
    assert type(theirs) is hf.MarianMTModel
    assert not any(told.values()), told
    ours, theirs = ours.double(), theirs.double().eval()
    source, target = batch()
    seen = theirs(source, attention_mask=valid.long(), decoder_input_ids=target)
    torch.testing.assert_close(ours(source, target, valid), seen.logits, rtol=0, atol=1e-10)
    order = torch.arange(ours.config.dim).view(1, -1)
    order = torch.cat([order[:, 0::2], order[:, 1::2]], dim=1)[0]
    memory = ours.encode(source, valid)[..., order]
    torch.testing.assert_close(memory[valid], seen.encoder_last_hidden_state[valid], rtol=0, atol=1e-10)


@torch.no_grad()
def test_the_longest_text_is_the_same_too(tmp_path):
    ours = drawn()
    written(ours, tmp_path)
    theirs = hf.MarianMTModel.from_pretrained(tmp_path).double().eval()
    source, target = torch.randint(0, 97, (1, 20)), torch.randint(0, 97, (1, 20))
    expected = theirs(source, decoder_input_ids=target).logits
    torch.testing.assert_close(ours.double()(source, target), expected, rtol=0, atol=1e-10)


def test_their_config_has_our_special_ids_and_rates(tmp_path):
    written(drawn(attention_dropout=0.1, hidden_dropout=0.2), tmp_path)
    config = hf.AutoConfig.from_pretrained(tmp_path)
    ids = (config.pad_token_id, config.bos_token_id, config.eos_token_id, config.decoder_start_token_id)
    assert ids == (0, 2, 3, 2)
    assert config.forced_eos_token_id is None  # theirs would be 0, our padding
    assert (config.dropout, config.attention_dropout, config.activation_dropout) == (0.3, 0.1, 0.2)
    assert config.activation_function == "relu"


def test_our_weights_stay_as_they_are(tmp_path):
    ours = drawn()
    before = {name: weight.clone() for name, weight in ours.state_dict().items()}
    MARIAN.to_theirs(ours)
    assert all(torch.equal(weight, before[name]) for name, weight in ours.state_dict().items())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"norm": "pre"},
            "norm is 'pre'; a Hugging Face Marian has its norms after each sublayer: train with norm = 'post'",
        ),
        (
            {"positions": "learned"},
            "positions are 'learned'; a Hugging Face Marian has sinusoids: train with positions =",
        ),
        ({"positions": "none"}, "positions are 'none'; a Hugging Face Marian has sinusoids: train with positions ="),
        ({"norm_eps": 1e-6}, "norm_eps is 1e-06; a Hugging Face Marian has 1e-05, which cannot be changed"),
    ],
)
def test_a_part_that_does_not_fit_is_named(changes, message):
    with pytest.raises(ValueError, match=message):
        MARIAN.to_theirs(drawn(**changes))

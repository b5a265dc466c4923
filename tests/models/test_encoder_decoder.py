"""What holds of every encoder-decoder, whatever its parts."""

import pytest
import torch
from torch import nn

from heed.config import dropout_fields
from heed.models import MODELS
from heed.models.bart import BartConfig
from heed.models.encoder_decoder import EncoderDecoder
from heed.models.folder import load, save
from heed.nn import init

SMALL = {
    "vocab_size": 97,
    "dim": 32,
    "heads": 4,
    "hidden": 48,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "max_length": 20,
}
WRITERS = [name for name, system in MODELS.items() if issubclass(system.model, EncoderDecoder)]
KINDS = [*WRITERS, "classifier"]
VALID = torch.arange(11) < torch.tensor([[11], [7]])


def new(name, **settings):
    """A small model of a kind; "classifier" is a BART with labels."""
    if name == "classifier":
        name, settings = "bart", {"labels": 2, **settings}
    return MODELS[name].model(MODELS[name].config(**{**SMALL, **settings}))


def drawn(name):
    torch.manual_seed(0)
    model = new(name)
    for weight in [*model.parameters(), *([model.bias] if torch.is_tensor(getattr(model, "bias", None)) else [])]:
        weight.data.normal_(std=0.2)
    return model.double().eval()


@pytest.fixture(params=WRITERS)
def model(request):
    return drawn(request.param)


def tokens(*shape):
    return torch.randint(3, 97, shape)


def same(ours, theirs):
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


@torch.no_grad()
def test_cached_steps_give_what_one_pass_gives(model):
    source, target = tokens(2, 11), tokens(2, 20)
    state = model.start(source, VALID)
    steps = [model.step(target[:, t], state) for t in range(20)]
    same(torch.stack(steps, dim=1), model(source, target, VALID))


@torch.no_grad()
def test_several_tokens_after_a_cache_give_what_one_pass_gives(model):
    source, target = tokens(2, 11), tokens(2, 9)
    state = model.start(source, VALID)
    parts = [model.decode(part, state.memory, state.valid, state.cache) for part in target.split([1, 5, 3], dim=1)]
    same(model.project(torch.cat(parts, dim=1)), model(source, target, VALID))


@torch.no_grad()
def test_padding_does_not_matter(model):
    source, target = tokens(1, 7), tokens(1, 5)
    padded = torch.cat([source, tokens(1, 4)], dim=1)
    same(model(padded, target, VALID[1:]), model(source, target))


@torch.no_grad()
def test_the_future_does_not_matter(model):
    source, target = tokens(1, 7), tokens(1, 6)
    other = torch.cat([target[:, :4], (target[:, 4:] + 1) % 97], dim=1)
    same(model(source, target)[:, :4], model(source, other)[:, :4])


@torch.no_grad()
def test_the_order_of_words_does_matter(model):
    source, target = tokens(1, 7), tokens(1, 5)
    assert (model(source.flip(1), target) - model(source, target)).abs().max() > 1e-5


@torch.no_grad()
def test_a_text_as_long_as_the_longest_can_be_read(model):
    assert model(tokens(1, 20), tokens(1, 20)).shape == (1, 20, 97)


@pytest.mark.parametrize("name", KINDS)
def test_a_folder_gives_back_the_model(name, tmp_path):
    model = drawn(name).float()
    save(tmp_path, model, {})
    back = load(tmp_path)
    assert type(back) is type(model)
    assert back.config == model.config
    assert all(torch.equal(weight, back.state_dict()[key]) for key, weight in model.state_dict().items())


@pytest.mark.parametrize("name", KINDS)
def test_every_rate_of_dropout_is_at_work(name):
    """In training, each rate alone changes what the model says; in evaluation none does."""
    rates = dropout_fields(new(name).config)
    if name != "classifier":
        rates = [rate for rate in rates if rate != "classifier_dropout"]
    still = dict.fromkeys(rates, 0.0)
    source, target = torch.cat([tokens(2, 6), torch.full((2, 1), 2)], dim=1), tokens(2, 5)

    def output(model):
        return model.classify_text(source) if name == "classifier" else model(source, target)

    torch.manual_seed(0)
    plain = new(name, **still)
    for rate in rates:
        model = new(name, **{**still, rate: 0.5})
        model.load_state_dict(plain.state_dict())
        with torch.no_grad():
            assert not torch.allclose(output(model), output(plain), atol=1e-6), rate
            torch.testing.assert_close(output(model.eval()), output(plain))


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        ("decoder_layers", 0, "decoder_layers is 0; it must be at least 1"),
        ("max_length", -1, "max_length is -1; it must be at least 1"),
        ("hidden_dropout", 1.0, "hidden_dropout is 1.0; it must be at least 0 and below 1"),
    ],
)
def test_impossible_settings_are_told(name, setting, value, words):
    with pytest.raises(ValueError, match=words):
        new(name, **{setting: value})


def test_impossible_settings_of_a_classifier_are_told():
    with pytest.raises(ValueError, match=r"classifier_dropout is -0\.1; it must be at least 0"):
        BartConfig(**SMALL, labels=2, classifier_dropout=-0.1)


@pytest.mark.parametrize("name", ["marian", "bart", "classifier", "pegasus"])
def test_initial_weights_are_narrow_biases_zero_and_norms_one(name):
    torch.manual_seed(0)
    model = new(name, vocab_size=2000, init_std=0.05)
    for key, module in model.named_modules():
        if isinstance(module, nn.LayerNorm):
            assert (module.weight == 1).all(), key
        elif isinstance(module, nn.Linear | nn.Embedding):
            assert module.weight.std().item() == pytest.approx(0.05, rel=0.2), key
            assert module.weight.abs().max().item() < 0.3, key
        if getattr(module, "bias", None) is not None:
            assert (module.bias == 0).all(), key
    assert model.tokens.weight.std().item() == pytest.approx(0.05, rel=0.02)


def test_the_same_generator_draws_the_same_weights():
    one, two = new("bart"), new("bart")
    for model in (one, two):
        init.normal(model, 0.02, torch.Generator().manual_seed(3))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))

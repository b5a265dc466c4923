"""Decoder-only language models between heed and transformers: equal numbers, weights to the bit, the same ids and texts."""

import json
from dataclasses import asdict, replace

import pytest
import torch
import torch.nn.functional as F
import transformers
from torch import nn
from transformers import AutoTokenizer

from heed.convert import huggingface
from heed.data.streams import IGNORED
from heed.loading import open_package
from heed.models import MODELS
from heed.models.package import Package
from heed.nn.attention import record
from heed.products.generator import Generator
from heed.products.prompts import Prompt
from heed.training.loss import chunked_cross_entropy
from heed.vocabularies import ctrl, files, gpt, gpt2
from heed.vocabularies.folder import KINDS
from tests.data.mixed import lines, training

# system, class of transformers, vocabulary, its size
CASES = {
    "gpt": ("gpt", "OpenAIGPTLMHeadModel", gpt, 500),
    "gpt-double": ("gpt", "OpenAIGPTDoubleHeadsModel", gpt, 500),
    "gpt2": ("gpt2", "GPT2LMHeadModel", gpt2, 500),
    "gpt2-double": ("gpt2", "GPT2DoubleHeadsModel", gpt2, 500),
    "ctrl": ("ctrl", "CTRLLMHeadModel", ctrl, 500),
}
SIZES = {"dim": 24, "heads": 3, "hidden": 96, "layers": 2, "max_length": 30}
DOUBLE = [name for name in CASES if name.endswith("double")]


@pytest.fixture(scope="module")
def vocabularies():
    return {module: module.learn(training(), size)[0] for _, _, module, size in CASES.values()}


@pytest.fixture(scope="module", params=CASES)
def pair(request, vocabularies, tmp_path_factory):
    """A model of ours in float64, that of transformers from the folder of ours, and the folder."""
    system, name, module, _ = CASES[request.param]
    own, folder = MODELS[system], tmp_path_factory.mktemp(request.param) / "out"
    config = own.config(vocab_size=len(vocabularies[module]), **SIZES)
    config = replace(config, choices=True) if request.param in DOUBLE else config
    torch.manual_seed(1)
    model = own.model(config).eval().requires_grad_(False)
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.2)
    package = Package(model, "language", {"text": vocabularies[module]}, {})
    huggingface.write(package, folder)
    kind = getattr(transformers, name)
    theirs = kind.from_pretrained(folder, dtype=torch.float64, attn_implementation="eager").eval()
    assert json.loads((folder / "config.json").read_text())["architectures"] == [name]
    return Package(model.double(), "language", {"text": vocabularies[module]}, {}), theirs, folder


def draw(*shape, seed=0):
    return torch.randint(0, 400, shape, generator=torch.Generator().manual_seed(seed))


def close(one, other):
    torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


def test_logits_hidden_states_and_attentions_are_theirs_with_padding(pair):
    package, theirs, _ = pair
    ours, tokens, states = package.model, draw(3, 30), []
    valid = torch.arange(30) < torch.tensor([30, 17, 4])[:, None]
    with torch.inference_mode():
        expected = theirs(tokens, attention_mask=valid.long(), output_hidden_states=True, output_attentions=True)
        parts = [ours.dropout, *ours.stack.layers]  # the embeddings, and what each layer makes of them
        hooks = [part.register_forward_hook(lambda *call: states.append(call[-1])) for part in parts]
        with record(ours) as maps:
            last = ours.hidden_states(tokens)
        [hook.remove() for hook in hooks]
        close(ours.project(last)[valid], expected.logits[valid])
        close(last[valid], expected.hidden_states[-1][valid])
    for state, own in zip(states[:-1], expected.hidden_states[:-1], strict=True):
        close(state[valid], own[valid])
    assert len(maps) == 2
    for own, other in zip(maps, expected.attentions, strict=True):
        close(own.transpose(1, 2)[valid], other.transpose(1, 2)[valid])


def test_cached_steps_give_their_full_pass(pair):
    package, theirs, _ = pair
    ours, tokens = package.model, draw(2, 12)
    with torch.inference_mode():
        expected, state = theirs(tokens).logits, package.model.start(2)
        close(ours.project(ours.hidden_states(tokens[:, :5], state)), expected[:, :5])
        for i in range(5, 12):
            close(ours.step(tokens[:, i], state), expected[:, i])


@pytest.mark.parametrize("pair", [name for name in CASES if name not in DOUBLE], indirect=True)
def test_the_loss_is_theirs_with_padding(pair, monkeypatch):
    package, theirs, _ = pair
    ours, tokens = package.model, draw(3, 30)
    valid = torch.arange(30) < torch.tensor([30, 17, 4])[:, None]
    labels = tokens.masked_fill(~valid, -100)
    with torch.inference_mode():
        with monkeypatch.context() as patch:  # they round the logits to float32 before the loss
            patch.setattr(torch.Tensor, "float", torch.Tensor.double)
            expected = theirs(tokens, attention_mask=valid.long(), labels=labels).loss
        targets = labels[:, 1:].masked_fill(labels[:, 1:] == -100, IGNORED).flatten()
        states = ours.hidden_states(tokens)[:, :-1].flatten(0, 1)
        total, _ = chunked_cross_entropy(states, *ours.output_weights(), targets, 0.0)
    assert int((targets != IGNORED).sum()) == 29 + 16 + 3
    close(total / 48, expected)


@pytest.mark.parametrize("pair", DOUBLE, indirect=True)
def test_scores_of_choices_and_both_losses_are_theirs(pair):
    package, theirs, _ = pair
    ours, tokens, right = package.model, draw(2, 3, 9), torch.tensor([2, 0])
    last = torch.tensor([[8, 5, 3], [1, 8, 0]])
    labels = tokens.masked_fill(torch.arange(9) > last[..., None], -100)
    with torch.inference_mode():
        expected = theirs(tokens, mc_token_ids=last, labels=labels, mc_labels=right)
        states = ours.hidden_states(tokens.flatten(0, 1)).unflatten(0, (2, 3))
        scores = ours.choose(tokens, torch.arange(9) <= last[..., None])
        close(scores, expected.mc_logits)
        close(F.cross_entropy(scores, right), expected.mc_loss)
        targets = labels[..., 1:].masked_fill(labels[..., 1:] == -100, IGNORED).flatten()
        total, _ = chunked_cross_entropy(states[:, :, :-1].flatten(0, 2), *ours.output_weights(), targets, 0.0)
    close(total / (targets != IGNORED).sum(), expected.loss)


@pytest.mark.parametrize("pair", [name for name in CASES if name not in DOUBLE], indirect=True)
@pytest.mark.parametrize("beams", [1, 3])
def test_greedy_and_beam_search_find_their_tokens(pair, beams):
    package, theirs, _ = pair
    generator, last = Generator(package.model, package.processors["text"]), package.processors["text"].special.last
    search = {"sample": False, "beam": beams, "penalty": "length", "length_penalty": 1.0, "stopping": "heuristic"}
    options = {"num_beams": beams, "do_sample": False, "length_penalty": 1.0, "early_stopping": False}
    for prompts in (draw(50, length, seed=length) for length in (1, 4, 9, 16)):
        ids = torch.cat([torch.full((50, 1), last), prompts], dim=1)
        expected = theirs.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=6, pad_token_id=last, **options
        )
        own = [Prompt(row, last) for row in prompts.tolist()]
        found = generator.generate_prompts(own, 10_000, length=6, one_line=True, **search)
        for (first, *_), tokens in zip(found, expected[:, ids.shape[1] :].tolist(), strict=True):
            tokens = tokens[: tokens.index(last) + 1] if last in tokens else tokens
            assert first.tokens == generator.vocabulary.pieces(tokens)


@pytest.mark.parametrize("pair", [name for name in CASES if name not in DOUBLE], indirect=True)
def test_greedy_search_with_penalties_finds_their_tokens(pair):
    """A repetition penalty, and n-grams that are not repeated: both count the prompt, there and here."""
    package, theirs, _ = pair
    generator, last = Generator(package.model, package.processors["text"]), package.processors["text"].special.last
    ids = torch.cat([torch.full((30, 1), last), draw(30, 8, seed=5)], dim=1)
    options = {"do_sample": False, "num_beams": 1, "repetition_penalty": 1.4, "no_repeat_ngram_size": 2}
    expected = theirs.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=12, pad_token_id=last, eos_token_id=10_000, **options
    )
    own = [Prompt(row[1:], last) for row in ids.tolist()]
    plain, found = (
        generator.generate_prompts(own, 10_000, length=12, sample=False, **way)
        for way in ({}, {"repetition_penalty": 1.4, "no_repeat": 2})
    )
    assert [one.tokens for (one,) in found] == [generator.vocabulary.pieces(row) for row in expected[:, 9:].tolist()]
    assert found != plain


@pytest.mark.parametrize("writer", ["heed", "transformers"])
def test_a_folder_is_read_to_the_bit(pair, writer, tmp_path):
    package, theirs, folder = pair
    if writer == "transformers":
        theirs.save_pretrained(tmp_path)
        files.write(tmp_path, package.processors["text"].files)
        folder = tmp_path
    back = open_package(folder)
    assert (back.task, back.model.config, type(back.model)) == ("language", package.model.config, type(package.model))
    weights = package.model.state_dict()
    assert all(torch.equal(weight.double(), weights[name]) for name, weight in back.model.state_dict().items())
    assert back.processors["text"].key() == package.processors["text"].key()
    assert len(Generator.open([back], ["x"]).generate("the", length=2, seed=1)[0].tokens) == 2


@pytest.mark.parametrize("pair", [name for name in CASES if name not in DOUBLE], indirect=True)
def test_ids_are_those_of_their_tokenizer(pair, tmp_path):
    package, _, folder = pair
    theirs, texts = AutoTokenizer.from_pretrained(folder), lines()
    theirs.save_pretrained(tmp_path)
    expected, module = theirs(texts)["input_ids"], KINDS[package.processors["text"].kind]
    for where in (folder, tmp_path):  # as we write it, and as they do
        own = module.read(where)[0]
        assert own.encode(texts) == expected
        assert len(own) == len(theirs) and own.special == package.processors["text"].special
    expected = theirs.batch_decode(expected[::5], skip_special_tokens=True)
    half = "@@" if own.kind == "ctrl" else ""  # they show that a word is not at its end, where an unknown token follows
    assert [own.decode(i) for i in own.encode(texts[::5])] == [text.removesuffix(half) for text in expected]


@pytest.mark.parametrize("pair", ["gpt", "gpt2"], indirect=True)
def test_a_language_model_scores_no_choices(pair):
    with pytest.raises(ValueError, match="the model has no head for labels or choices: it is only a language model"):
        pair[0].model.choose(torch.zeros(1, 2, 3, dtype=torch.long))


@pytest.mark.parametrize("pair", ["gpt"], indirect=True)
def test_a_width_that_their_gpt_does_not_have_is_refused(pair, tmp_path):
    config = replace(pair[0].model.config, hidden=40)
    package = pair[0]._replace(model=type(pair[0].model)(config))
    with pytest.raises(ValueError, match=r"hidden is 40, but transformers' GPT supports only 4 \* dim, 96"):
        huggingface.write(package, tmp_path / "out")


def test_a_head_may_be_new_on_a_trained_body():
    from heed.models import adapt

    for system in (MODELS["gpt"], MODELS["gpt2"]):
        base = system.model(system.config(vocab_size=50, **SIZES))
        new = adapt(base, replace(base.config, choices=True))
        assert asdict(new.config)["choices"] and new.head is not None
        assert torch.equal(new.tokens.weight, base.tokens.weight)

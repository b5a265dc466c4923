"""What holds for every encoder, whatever its head, and what is particular to ALBERT and ELECTRA."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from heed.models import MODELS, adapt, folder
from heed.models.electra import ElectraConfig, generator_config
from heed.models.encoder_heads import HEADS, LABELLED
from heed.nn.attention import Attention, record
from heed.nn.packing import SequenceOffsets
from heed.nn.transformer import Layer, SharedStack

ENCODERS = ("bert", "albert", "roberta", "electra", "bigbird")
SMALL = {"vocab_size": 50, "dim": 12, "heads": 2, "hidden": 20, "layers": 2, "max_length": 40}
BLOCKS = {"bigbird": {"block": 2, "random_blocks": 1, "separator": 4}}
METHODS = {
    "text": "classify_text", "tokens": "classify_tokens", "answer": "find_answer", "replaced": "detect_replaced",
    "words": "predict_words",
}  # fmt: skip


def made(name, head="masked", labels=0, **sizes):
    own = MODELS[name]
    torch.manual_seed(0)
    config = own.config(**{**SMALL, **BLOCKS.get(name, {}), "head": head, "labels": labels, **sizes})
    model = own.model(config).eval().requires_grad_(False)
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.2)
    return model


def draw(*shape):
    tokens = torch.randint(5, 50, shape, generator=torch.Generator().manual_seed(1))
    tokens[..., 3] = 4  # the separator of BigBird
    return tokens


@pytest.mark.parametrize("length", [12, 33])
@pytest.mark.parametrize("name", ENCODERS)
def test_padding_and_what_shares_the_batch_do_not_matter(name, length):
    model = made(name, "tokens", 3).double()
    one, tokens = draw(1, length), draw(3, 35)
    tokens[1] = 1
    tokens[1, :length] = one[0]
    valid = torch.arange(35) < torch.tensor([[35], [length], [20]])
    alone = model.classify_tokens(one)[0]
    if name != "bigbird":  # whose blocks at the end of a text depend on its length
        torch.testing.assert_close(model.classify_tokens(tokens, valid)[1, :length], alone, rtol=0, atol=1e-12)
    whole = torch.ones_like(one, dtype=torch.bool)
    torch.testing.assert_close(model.classify_tokens(one, whole)[0], alone, rtol=0, atol=1e-12)
    torch.testing.assert_close(model.classify_tokens(one, None, torch.zeros_like(one))[0], alone, rtol=0, atol=1e-12)


@pytest.mark.parametrize("sizes", [{}, {"sparse": False}, {"random_blocks": 0}], ids=str)
def test_external_global_tokens_see_a_whole_long_text_and_are_seen(sizes, tmp_path):
    model = made("bigbird", "none", global_tokens=3, **sizes).double()
    tokens = draw(2, 33)
    found = model.encode_text(tokens)
    with record(model) as maps:
        torch.testing.assert_close(model.encode_text(tokens), found, rtol=0, atol=1e-12)  # by dense attention
    assert found.shape == (2, 33, 12) and {own.shape for own in maps} == {(2, 2, 36, 36)}
    assert all((own[..., 33:, :] > 0).all() and (own[..., 33:] > 0).all() for own in maps)
    assert not model.packs(4) and made("bigbird").packs(4)
    model.global_tokens.weight.neg_()
    assert not torch.allclose(model.encode_text(tokens), found)
    folder.save(tmp_path, model, {})
    torch.testing.assert_close(folder.load(tmp_path).double().encode_text(tokens), model.encode_text(tokens))


def test_external_global_tokens_are_refused_where_they_cannot_be():
    with pytest.raises(ValueError, match="in a causal model they would reveal the next words"):
        made("bigbird", "causal", global_tokens=2)
    with pytest.raises(ValueError, match="global_tokens is -1; it must be from 0"):
        made("bigbird", global_tokens=-1)
    offsets = SequenceOffsets(torch.tensor([0, 9], dtype=torch.int32), 9, torch.arange(9))
    with pytest.raises(ValueError, match="needs one text per row: texts cannot be packed"):
        made("bigbird", global_tokens=2).encode_text(draw(1, 9), offsets)


def test_as_a_language_model_bert_predicts_what_it_predicts_as_a_causal_encoder():
    model, tokens = made("bert", "causal").double(), draw(2, 10)
    found = model.project(model.hidden_states(tokens))
    torch.testing.assert_close(found, model.predict_words(tokens), rtol=0, atol=1e-12)
    with pytest.raises(ValueError, match="generate text: its head is 'masked'"):
        made("bert").hidden_states(tokens)
    with pytest.raises(ValueError, match="a text has 41 tokens, but the model has 40 positions"):
        model.hidden_states(draw(1, 41))


@pytest.mark.parametrize("name", ENCODERS)
def test_a_causal_model_does_not_see_what_comes_later(name):
    model, tokens = made(name, "causal").double(), draw(2, 10)
    other = tokens.clone()
    other[:, 6:] = draw(2, 4) // 2 + 5
    before, after = model.predict_words(tokens), model.predict_words(other)
    assert torch.equal(before[:, :6], after[:, :6]) and not torch.equal(before[:, 6:], after[:, 6:])
    both = made(name, "masked").double()
    assert not torch.equal(both.predict_words(tokens)[:, :6], both.predict_words(other)[:, :6])


@pytest.mark.parametrize("head", [head for head in HEADS if head != "joint"])
@pytest.mark.parametrize("name", ENCODERS)
def test_every_encoder_takes_every_head_and_says_which_it_has_not(name, head):
    model = made(name, head, labels=3 if head in LABELLED else 0)
    tokens, shapes = (
        draw(2, 9),
        {"text": (2, 3), "tokens": (2, 9, 3), "answer": (2, 9, 2), "replaced": (2, 9), "words": (2, 9, 50)},
    )
    for part, method in METHODS.items():
        if part in HEADS[head]:
            assert getattr(model, method)(tokens).shape == shapes[part]
        elif (part, head) == ("text", "choice"):  # a text is scored as a choice
            assert model.classify_text(tokens).shape == (2, 1)
        elif part == "text" and "pair" in HEADS[head]:  # a text is classified as a pair
            assert model.classify_text(tokens).shape == (2, 2)
        else:
            with pytest.raises(ValueError, match=f"the model has no head for {part}: its head is '{head}'"):
                getattr(model, method)(tokens)
    if "pair" in HEADS[head]:
        assert model.classify_pair(model.encode_text(tokens)).shape == (2, 2)
    if "choice" in HEADS[head]:
        assert model.choose(draw(2, 3, 9)).shape == (2, 3)


@pytest.mark.parametrize("name", ENCODERS)
def test_a_text_longer_than_the_model_is_refused(name):
    with pytest.raises(ValueError, match="a text has 41 tokens, but the model has 40 positions"):
        made(name).encode_text(draw(1, 41))


@pytest.mark.parametrize("name", ENCODERS)
def test_a_head_may_be_new_and_a_pooler_is_kept_where_both_have_one(name):
    base = made(name, "pretraining")
    new = adapt(base, replace(base.config, labels=3))
    assert new.config.head == "classification" and new.config.labels == 3
    weights, before = new.state_dict(), base.state_dict()
    assert all(torch.equal(weight, before[key]) for key, weight in weights.items() if not key.startswith("head."))
    masked = adapt(base, replace(base.config, head="masked"))
    assert masked.head["words"].bias.equal(base.head["words"].bias) and "pair" not in masked.head
    tagger = made(name, "tokens", 3)
    for labels, kept in ((3, True), (4, False)):
        assert (
            torch.equal(
                adapt(tagger, replace(tagger.config, labels=labels)).head["tokens"].out.bias[:3],
                tagger.head["tokens"].out.bias,
            )
            == kept
        )
    fresh = adapt(made(name, "answer"), replace(made(name, "answer").config, labels=3))
    assert (fresh.pooler is None) == (new.pooler is None)
    with pytest.raises(RuntimeError, match=r"size mismatch for tokens\.weight"):
        adapt(base, replace(base.config, vocab_size=60))


def test_labels_make_a_classifier_of_texts_unless_the_head_classifies_tokens():
    config = MODELS["bert"].config
    assert (
        config(**SMALL, labels=2).head == "classification" and config(**SMALL, labels=2, head="tokens").head == "tokens"
    )
    with pytest.raises(ValueError, match="the head is 'tokens', but there are no labels"):
        config(**SMALL, head="tokens")
    with pytest.raises(ValueError, match=r"the head is 'mask'; there are none, masked, causal, .*, replaced$"):
        config(**SMALL, head="mask")
    with pytest.raises(ValueError, match="segments is 0; it must be at least 1"):
        config(**SMALL, segments=0)


def test_the_layers_of_a_group_are_one_layer_and_are_saved_once(tmp_path):
    model = made("albert", layers=6, groups=2, group_layers=2)
    assert sum(isinstance(part, Layer) for part in model.modules()) == 4
    folder.save(tmp_path, model, {})
    back = folder.load(tmp_path)
    tokens = draw(2, 9)
    assert torch.equal(back.encode_text(tokens), model.encode_text(tokens))
    with pytest.raises(ValueError, match="groups is 7, but there are 6 layers: lower it"):
        replace(model.config, groups=7)


def test_a_shared_stack_is_the_stack_of_its_layers_in_turn():
    model = made("albert", layers=5, groups=2, group_layers=2)
    x, groups = torch.randn(2, 4, 12), model.stack.groups
    expected = x
    for number in (0, 0, 0, 1, 1):
        for layer in groups[number]:
            expected = layer(expected)
    assert torch.equal(model.stack(x), expected)
    assert torch.equal(SharedStack([[groups[0][0]], [groups[0][1]]], 2)(x), groups[0][1](groups[0][0](x)))


def test_generator_and_discriminator_share_their_embeddings_and_can_be_parted(tmp_path):
    model = made("electra", "joint", embedding=6, generator_fraction=0.5)
    tokens, valid = draw(2, 9), torch.arange(9) < torch.tensor([[9], [5]])
    segments = (torch.arange(9) > 3).long().expand(2, 9)
    generator, discriminator = (part.eval() for part in model.split())
    assert (generator.config.dim, generator.config.heads, generator.config.head) == (6, 1, "masked")
    words = model.generator_states(tokens, valid, segments)
    assert torch.equal(words, generator.word_states(generator.encode_text(tokens, valid, segments)))
    assert torch.equal(
        nn.functional.linear(words, *model.generator_weights()), generator.predict_words(tokens, valid, segments)
    )
    assert torch.equal(
        model.detect_replaced(tokens, valid, segments), discriminator.detect_replaced(tokens, valid, segments)
    )
    folder.save(tmp_path, model, {})
    assert torch.equal(folder.load(tmp_path).generator_states(tokens), model.generator_states(tokens))
    names = [name for name in model.state_dict() if "tokens" in name]
    assert names == ["tokens.weight"]
    model.requires_grad_(True)
    for output in (model.generator_states(tokens), model.detect_replaced(tokens)):
        assert torch.autograd.grad(output.sum(), model.tokens.weight)[0].abs().sum() > 0
    assert adapt(model, replace(model.config, labels=2)).generator is None


def test_a_generator_has_a_fraction_of_the_widths():
    base = ElectraConfig(vocab_size=9, **MODELS["electra"].presets["base"])
    found = generator_config(base)
    expected = MODELS["electra"].presets["base-generator"]
    assert {name: getattr(found, name) for name in expected} == expected
    with pytest.raises(ValueError, match=r"generator_fraction is 0\.0; it must be above 0 and at most 1"):
        ElectraConfig(vocab_size=9, generator_fraction=0.0)
    with pytest.raises(ValueError, match="the model has no generator: its head is 'masked', not 'joint'"):
        made("electra").generator_states(draw(1, 5))


@pytest.mark.parametrize("name", ENCODERS)
def test_a_longer_model_reads_short_texts_as_before_and_repeats_its_positions(name):
    model = made(name)
    short, long = draw(2, model.config.max_length), draw(1, 3 * model.config.max_length - 2)
    longer = model.lengthened(long.shape[1]).eval()
    assert longer.config == replace(model.config, max_length=long.shape[1])
    assert torch.equal(longer.encode_text(short), model.encode_text(short))
    first, most = model.positions(0, model.config.max_length), long.shape[1]
    for start in range(0, most, len(first)):
        length = min(len(first), most - start)
        assert torch.equal(longer.positions(start, length), first[:length])
    assert longer.encode_text(long).shape == (*long.shape, model.config.dim)
    assert longer.state_dict().keys() == model.state_dict().keys()


@pytest.mark.parametrize("name", ENCODERS)
def test_keys_that_start_as_queries_let_near_tokens_attend_to_each_other(name):
    own, sizes = MODELS[name], {**SMALL, **BLOCKS.get(name, {}), "dim": 128, "heads": 2, "hidden": 40, "max_length": 64}
    torch.manual_seed(0)
    model = own.model(own.config(**sizes, init_positions="sinusoids", init_keys="queries"))
    layers = [part for part in model.modules() if isinstance(part, Attention)]
    assert layers and all(torch.equal(part.q.weight, part.k.weight) for part in layers)
    x = torch.randn(2000, 128)
    scores = [(part.q(x) * part.k(x)).sum(1).mean().item() / 2 / 64**0.5 for part in layers]  # of a token with itself
    assert scores == pytest.approx([2.5] * len(layers), rel=0.1)
    place = torch.nn.functional.layer_norm(model.positions(0, 64), (model.positions(0, 64).shape[1],))
    near = (place @ place.T).diagonal(1).mean() - (place @ place.T).diagonal(40).mean()
    assert near > 0.2 * place.shape[1]
    usual = own.model(own.config(**sizes))
    assert not any(torch.equal(part.q.weight, part.k.weight) for part in usual.modules() if isinstance(part, Attention))


@pytest.mark.parametrize("name", ENCODERS)
def test_positions_that_start_as_sinusoids_are_as_large_as_usual_and_shifted_by_one_matrix(name):
    own = MODELS[name]
    sizes = {**SMALL, **BLOCKS.get(name, {}), "dim": 32, "hidden": 40, "max_length": 300}
    rows, usual = (
        own.model(own.config(**sizes, init_positions=start)).positions(0, 300).double().detach()
        for start in ("sinusoids", "normal")
    )
    assert rows.square().mean().sqrt().item() == pytest.approx(0.02, rel=1e-5)

    def left(table):
        shift = torch.linalg.lstsq(table[:-1], table[1:], rcond=1e-6, driver="gelsd").solution
        return (table[:-1] @ shift - table[1:]).norm() / table.norm()

    assert left(rows) < 1e-3 and left(usual) > 0.1

"""The forward pass of one sentence as numbers."""

import numpy as np
import pytest
import torch

from heed.nn.attention import Attention, attend
from heed.products.translator.forward_trace import UNITS, Choice, Query, Token
from tests.service.page.recurrent import recurrent


@pytest.fixture(scope="module")
def pair(translator, texts):
    return texts[0], translator.translate(texts[0]).text


@pytest.mark.parametrize("part", ["encoder", "decoder", "cross"])
def test_the_weights_of_a_query_are_those_of_the_attention(translator, pair, part):
    maps = translator.attentions(*pair)[part]
    for layer in range(maps.shape[0]):
        for head, row in ((0, 0), (1, 2), (1, maps.shape[2] - 1)):
            found = translator.trace(*pair, query=Query(part, layer, head, row))["query"]
            assert np.allclose(found["weights"], maps[layer, head, row], atol=6e-5)
            assert found["mask"] == [part != "decoder" or i <= row for i in range(maps.shape[3])]


def test_without_a_translation_it_traces_the_tokens_of_the_search(translator, texts):
    for text in texts:
        look = translator.look(text, beam=2)
        found = translator.trace(text, beam=2, query=Query("cross", 1, 0, 0))
        assert found["decoder"]["tokens"] == look.inputs and found["encoder"]["tokens"] == look.source
        assert np.allclose(found["query"]["weights"], look.cross[1, 0, 0], atol=6e-5)


def test_score_softmax_and_sum_follow_from_q_k_and_v(translator, pair):
    found = translator.trace(*pair, query=Query("cross", 1, 1, 1))["query"]
    q, k, v = (np.array(found[name]) for name in "qkv")
    scores = k @ q / np.sqrt(found["width"])
    weights = np.exp(scores) / np.exp(scores).sum()
    assert np.allclose(found["scores"], scores, atol=5e-3) and np.allclose(found["weights"], weights, atol=5e-3)
    assert np.allclose(found["mixed"], weights @ v, atol=5e-3)


def test_embeddings_and_positions_make_the_first_layer_s_input(translator, pair):
    found = translator.trace(*pair)
    for side in ("encoder", "decoder"):
        own = found[side]
        added = np.array(own["embeddings"]) + np.array(own["positions"])
        assert np.allclose(added, own["layers"][0], atol=2e-4)
        assert len(own["tokens"]) == len(own["ids"]) == len(added) and added.shape[1] == min(UNITS, found["dim"])
    assert (len(found["encoder"]["layers"]), len(found["decoder"]["layers"])) == (2, 3)
    assert found["scale"] == pytest.approx(found["dim"] ** 0.5)


@pytest.mark.parametrize(("part", "names"), [("encoder", ["attention", "feed-forward"]), ("decoder", ["attention", "cross", "feed-forward"])])  # fmt: skip
def test_the_parts_of_a_layer_lead_from_its_input_to_its_output(translator, pair, part, names):
    found = translator.trace(*pair, token=Token(part, 0, 2))
    states, parts = found[part]["layers"], found["token"]
    assert [own["name"] for own in parts] == names
    assert parts[0]["before"] == states[0][2] and parts[-1]["after"] == states[1][2]
    assert [own["after"] for own in parts[:-1]] == [own["before"] for own in parts[1:]]
    for own in parts:
        assert np.allclose(np.array(own["before"]) + own["added"], own["sum"], atol=2e-4)
        assert own["order"] == "pre" and own["after"] == own["sum"]
        if len(own["sum"]) == found["dim"]:
            assert own["norms"]["sum"] == pytest.approx(np.linalg.norm(own["sum"]), abs=1e-3)
            assert own["norm"]["from"]["mean"] == pytest.approx(np.mean(own["before"]), abs=1e-3)
            assert own["norm"]["from"]["deviation"] == pytest.approx(np.std(own["before"]), abs=1e-3)


def test_what_the_heads_give_is_their_part_of_the_output_matrix(translator, pair):
    attention, seen = translator.bundle.model.encoder.layers[0].attention.body, []
    hook = attention.out.register_forward_hook(lambda module, args, output: seen.append((args[0], output)))
    found = translator.trace(*pair, token=Token("encoder", 0, 1))["token"]
    hook.remove()
    given, output = (part[0, 1] for part in seen[-1])
    width, weight = attention.width, attention.out.weight
    parts = [weight[:, i : i + width] @ given[i : i + width] for i in range(0, len(given), width)]
    assert found[0]["heads"] == pytest.approx([part.norm().item() for part in parts], abs=2e-4)
    assert torch.allclose(sum(parts) + attention.out.bias, output, atol=1e-5)


def test_a_token_that_is_not_there_is_said(translator, pair):
    with pytest.raises(ValueError, match=r"layer is 7; there are \d, counted from 0"):
        translator.trace(*pair, token=Token("encoder", 7))
    with pytest.raises(ValueError, match="row is 99; there are"):
        translator.trace(*pair, token=Token("decoder", 0, 99))


def test_a_choice_is_drawn_as_sampling_draws(translator, pair):
    look = translator.look(pair[0], pair[1])
    plain = translator.trace(*pair, choice=Choice(1))["choice"]
    assert [token for token, _, _ in plain["likely"]][:8] == [token for token, _ in look.predictions[1]]
    assert all(own == pytest.approx(drawn) for _, own, drawn in plain["likely"])
    drawn = translator.trace(*pair, choice=Choice(1, temperature=0.5, top_k=3))["choice"]
    three = torch.tensor([own for _, own, _ in plain["likely"][:3]], dtype=torch.double) ** 2
    assert [p for _, _, p in drawn["likely"][:3]] == pytest.approx((three / three.sum()).tolist())
    assert drawn["possible"] == 3 and drawn["likely"][3][2] == 0


def test_a_recurrent_model_has_embeddings_and_choices_and_no_queries(vocabulary, texts):
    translator = recurrent(vocabulary)
    look = translator.look(texts[0], beam=3)
    found = translator.trace(texts[0], beam=3, choice=Choice(1))
    assert found["decoder"]["tokens"] == look.inputs and found["encoder"]["tokens"] == look.source
    table = translator.model.source_tokens or translator.model.tokens
    rows = table.weight[found["encoder"]["ids"]].numpy() * found["scale"]
    assert np.allclose(found["encoder"]["embeddings"], rows, atol=6e-5) and "layers" not in found["encoder"]
    likely = found["choice"]["likely"][: len(look.predictions[1])]
    assert [token for token, _, _ in likely] == [token for token, _ in look.predictions[1]]
    assert [own for _, own, _ in likely] == pytest.approx([own for _, own in look.predictions[1]], abs=1e-6)
    with pytest.raises(ValueError, match="a Seq2Seq has no attention heads"):
        translator.trace(texts[0], query=Query())


def test_it_shows_what_the_model_computes_and_leaves_no_hooks_behind(make, pair, monkeypatch):
    """A model that does something of its own is traced as it does it; a forward pass by hand would miss that."""
    translator = make(16, max_source=48)
    model = translator.model
    before = translator.trace(*pair, query=Query("cross", 0, 1, 0))
    embed = model._embed
    monkeypatch.setattr(model, "_embed", lambda *parts: embed(*parts) + 1)
    after = translator.trace(*pair, query=Query("cross", 0, 1, 0))
    for side in ("encoder", "decoder"):
        assert after[side]["embeddings"] == before[side]["embeddings"]
        added = np.array(after[side]["layers"][0]) - np.array(before[side]["layers"][0])
        assert np.allclose(added, 1, atol=2e-4)
    assert np.allclose(after["query"]["weights"], translator.attentions(*pair)["cross"][0, 1, 0], atol=6e-5)
    with pytest.raises(ValueError, match="head is 9"):
        translator.trace(*pair, query=Query("cross", 0, 9, 0))
    assert not any(module._forward_hooks for module in model.modules())
    assert all(module.kernel is attend for module in model.modules() if isinstance(module, Attention))


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"query": Query("cross", layer=7)}, "layer is 7; there are 2, counted from 0"),
        ({"query": Query("encoder", head=2)}, "head is 2; there are 2, counted from 0"),
        ({"query": Query("decoder", row=99)}, "row is 99; there are "),
        ({"choice": Choice(99)}, "step is 99; there are "),
        ({"choice": Choice(0, temperature=0.0)}, "temperature is 0.0, top_k 0, top_p 1.0; they must be above 0"),
    ],
)
def test_what_is_not_there_is_refused(translator, pair, asked, sentence):
    with pytest.raises(ValueError, match=sentence):
        translator.trace(*pair, **asked)

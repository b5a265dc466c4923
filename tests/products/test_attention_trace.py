"""A look at one translation, and where alignments are read."""

import numpy as np
import pytest
import torch

from heed.lab.attention import PARTS, Look, from_json, to_json
from heed.models.encoder_decoder import Trace
from heed.products.translator import attention_trace
from heed.products.translator.attention_trace import AlignmentRows, choose_rows


def test_a_look_shows_the_translation_that_would_be_given(translator, texts):
    for options in (
        {},
        {"beam": 1},
        {"beam": 5, "length_penalty": 2.0},
        {"max_length": 3},
        {"no_repeat": 1, "min_length": 6},
    ):
        found = translator.translate(texts[0], **options)
        look = translator.look(texts[0], name="a line about it", **options)
        assert look.source_text == texts[0]
        assert look.target_text == found.text
        assert look.source == found.source_tokens
        assert look.target == [token for token in found.tokens if token != "</s>"] + ["</s>"]
        assert look.scores[: len(found.tokens)] == pytest.approx(found.token_scores, abs=1e-10)
        assert look.model == "a line about it"


def test_a_look_at_greedy_search_ends_where_it_ends(translator, texts):
    found = [t for t in translator.translate(texts, beam=1, length_penalty=9.0) if t.tokens[-1] == "</s>"]
    assert found
    for t in found:
        assert translator.look(t.source, beam=1, length_penalty=9.0).target == t.tokens


def test_a_look_at_a_given_translation_shows_that_one(translator, pairs):
    source, target = pairs[0].source, pairs[0].target
    look = translator.look(source, target)
    (score,) = translator.score([source], [target])
    assert (look.target_text, look.target, look.search) == (target, score.tokens, [])
    assert look.scores == pytest.approx(score.token_scores, abs=1e-10)
    assert look.alignment == translator.align_pairs([source], [target])[0]
    for part, maps in translator.attentions(source, target).items():
        np.testing.assert_allclose(getattr(look, part), maps, atol=1e-6)


def test_predictions_are_the_likeliest_tokens_with_their_probabilities(translator, pairs):
    look = translator.look(pairs[1].source, pairs[1].target)
    for token, score, likely in zip(look.target, look.scores, look.predictions, strict=True):
        assert [p for _, p in likely] == sorted((p for _, p in likely), reverse=True)
        if token in dict(likely):
            assert np.log(dict(likely)[token]) == pytest.approx(score)
        else:
            assert np.exp(score) <= likely[-1][1]


def test_the_search_that_is_shown_leads_to_the_translation(translator, texts):
    look = translator.look(texts[2], beam=3, length_penalty=4.0)
    assert len(look.search) == 8
    live, ended = [()], []
    for step in look.search:
        assert all([c.state for c in step].count(state) <= 3 for state in ("kept", "ended"))
        found = [((*live[max(c.parent, 0)], c.token), c) for c in step]
        ended += [(c.score / ((5 + len(tokens)) / 6) ** 4, tokens) for tokens, c in found if c.state == "ended"]
        live = [tokens for tokens, c in found if c.state == "kept"]
    score, tokens = max(ended)
    assert [*tokens, "</s>"][: len(look.target)] == look.target
    assert score == pytest.approx(sum(look.scores[: len(tokens)]) / ((5 + len(tokens)) / 6) ** 4, abs=1e-10)


@pytest.mark.parametrize("target", [None, "We wash the car."])
def test_a_look_is_written_down_and_read_back(translator, texts, target):
    look = translator.look(texts[1], target)
    assert isinstance(look, Look)
    again = from_json(to_json(look))
    assert to_json(again) == to_json(look)
    for part in PARTS:
        np.testing.assert_allclose(getattr(again, part), getattr(look, part), atol=1e-4)
    assert (again.scores, again.predictions, again.search) == (look.scores, look.predictions, look.search)


def test_what_is_too_long_to_look_at_is_refused(translator):
    with pytest.raises(ValueError, match=r"source 1 has \d+ subwords; the model allows 63"):
        translator.look("a " * 99)
    with pytest.raises(ValueError, match=r"target 1 has \d+ subwords; the model allows 63"):
        translator.look("a", "b " * 99)


def test_an_empty_text_can_be_looked_at(translator):
    look = translator.look("")
    assert (look.source, look.alignment) == (["</s>"], [])


def test_alignments_are_read_in_the_rows_that_were_chosen():
    """Two layers of two heads over three inputs, the end of the source last: row i is read for token i, or row i + 1."""
    cross = [torch.arange(2 * 3 * 4.0).reshape(1, 2, 3, 4) + 100 * layer for layer in range(2)]
    mean = np.arange(12.0).reshape(1, 3, 4) + 6
    np.testing.assert_array_equal(AlignmentRows(0, after=False).of(cross), mean[:, :2])
    np.testing.assert_array_equal(AlignmentRows(0, after=True).of(cross), mean[:, 1:])
    np.testing.assert_array_equal(AlignmentRows(1, after=True).of(cross), mean[:, 1:] + 100)


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("after", [False, True])
def test_the_rows_where_words_choose_each_other_are_found(translator, monkeypatch, layer, after):
    """Of maps in which all look at one word but for one place, where each looks at its own."""
    flat = torch.zeros(1, 2, 5, 5)
    flat[..., 0] = 1
    cross = [flat.clone(), flat.clone()]
    for i in range(4):
        cross[layer][0, :, i + after] = torch.eye(5)[i]
    monkeypatch.setattr(
        attention_trace, "trace_batch", lambda model, pairs, special: Trace({"cross": cross}, torch.zeros(1, 5, 2))
    )
    pieces = enumerate(translator.target.pieces(range(len(translator.target))))
    ids = [i for i, piece in pieces if piece.startswith("▁") and piece[1:].isalpha()][:4]
    assert choose_rows(translator.model, [(ids, ids)], (translator.source, translator.target)) == AlignmentRows(
        layer, after
    )

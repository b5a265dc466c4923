"""CTranslate2 gives what heed gives, from every model that it can express."""

import dataclasses
import itertools
import json
import re
import sys
from pathlib import Path

import ctranslate2
import pytest
import torch

from heed.convert import ctranslate2 as out
from heed.convert import huggingface
from heed.decoding.beam import beam_search
from heed.decoding.config import DecodingConfig
from heed.decoding.limits import BanTokens
from heed.decoding.ranking import length_power, stop_exact, stop_first
from heed.models import folder as model_folder
from heed.models.marian import Marian
from heed.models.transformer import Transformer, TransformerConfig
from heed.nn.attention import Attention
from heed.products.translator.model_bundle import ModelBundle
from heed.products.translator.translator import Translator
from tests.convert.small import ENDS, OTHERS, SIZES, classifier, package, pairs, speaking

MOST = 16


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Models this small only lose time by sharing their work."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


SHAPES = list(itertools.product(["post", "pre"], ["sinusoidal", "learned"], ["all", "target", "none"]))
SHAPES.append(("pre", "none", "all"))  # no positions: a table of zeros


def opened(package, folder, quantization=None):
    out.write(package, folder, quantization)
    return ctranslate2.Translator(str(folder), compute_type=quantization or "float32", intra_threads=1)


def logp(package, source, target, banned=()):
    """What heed's model says of each token of a target, its end included; `banned` are out of the question."""
    special = package.vocabularies[1].special
    logits = package.model(
        torch.tensor([[*special.before, *source, special.last]]),
        torch.tensor([[special.first, *special.before, *target]]),
    )[0]
    logits[:, list(banned)] = -torch.inf
    expected = torch.tensor([*special.before, *target, special.last])
    return logits.log_softmax(dim=-1).gather(1, expected[:, None])[:, 0]


def scores_agree(package, folder, pairs, banned=()):
    """The log probability of each token of given targets, in one batch, so that there is padding."""
    theirs = opened(package, folder)
    sides = [own.encode([pair[i] for pair in pairs]) for i, own in enumerate(package.vocabularies)]
    named = [out.names(own) for own in package.vocabularies]
    before = package.vocabularies[1].special.before
    found = theirs.score_batch(
        [[named[0][i] for i in ids] for ids in sides[0]], [[named[1][i] for i in (*before, *ids)] for ids in sides[1]]
    )
    for source, target, score in zip(*sides, found, strict=True):
        ours = logp(package, source, target, banned)
        torch.testing.assert_close(torch.tensor(score.log_probs), ours.float(), rtol=0, atol=1e-4)


@pytest.mark.parametrize("number", range(len(SHAPES)), ids=["-".join(shape) for shape in SHAPES])
def test_every_shape_of_our_transformer_gives_the_same_scores(tmp_path, number):
    norm, positions, tied = SHAPES[number]
    own = package(
        "one" if tied == "all" else "two", norm=norm, positions=positions, tied=tied, output_bias=number % 4 in (0, 3)
    )
    scores_agree(own, tmp_path / "out", pairs()[:6])


def test_heads_of_another_width_are_refused():
    own = package("one")
    own.model.encoder.layers[0].attention.body = Attention(own.model.config.dim, 3, head_dim=5)
    with pytest.raises(ValueError, match="CTranslate2 supports only head_dim = dim / heads"):
        out.write(own, Path("nowhere"))
    assert not out.able(own.model)


def test_another_epsilon_in_the_norms(tmp_path):
    scores_agree(package("one", norm_eps=0.5), tmp_path / "out", pairs()[:3])


def test_weights_in_float64(tmp_path):
    own = package("one")
    own.model.double()
    scores_agree(own, tmp_path / "out", pairs()[:3])


@pytest.mark.parametrize("shape", [{}, {"activation": "relu"}, {"activation": "gelu", "scaled": False}])
def test_marian_gives_the_same_scores_but_never_says_the_pad(tmp_path, shape):
    own = package("marian", **shape)
    scores_agree(own, tmp_path / "out", pairs()[:6], banned=[own.vocabularies[1].special.pad])


@pytest.mark.parametrize("kind", ["bart", "pegasus"])
@pytest.mark.parametrize("shape", [{}, {"activation": "swish", "scaled": True}, {"scaled": False}])
def test_bart_and_pegasus_give_the_same_scores(tmp_path, kind, shape):
    scores_agree(package(kind, **shape), tmp_path / "out", pairs()[:6])


def test_a_model_with_room_for_more_than_its_vocabulary(tmp_path):
    own = package("bart", room=7)
    scores_agree(own, tmp_path / "out", pairs()[:3])
    size = len(own.vocabularies[0])
    names = json.loads((tmp_path / "out" / "shared_vocabulary.json").read_text("utf-8"))
    assert names[size:] == [f"<unused_{i}>" for i in range(size, size + 7)]


def searched(package, ids, **how):
    """Heed's search on ids, with the part of each rule that CTranslate2 has too."""
    special = package.vocabularies[1].special
    state, longest = ModelBundle([package.model], package.vocabularies).start(ids), torch.full((len(ids),), MOST)
    rules = [BanTokens(special.never)] if isinstance(package.model, Marian) else []
    common = {
        "first": special.first,
        "last": special.last,
        "rules": rules,
        "renormalize": True,
        "penalty": length_power,
    }
    return [own[0] for own in beam_search(package.model, state, longest, **common, **how)]


@pytest.fixture(scope="module", params=ENDS)
def both(request, tmp_path_factory):
    """A model that ends now and then, and what CTranslate2 has of it."""
    shape = {} if request.param in OTHERS else {"tied": "none", "norm": "pre", "output_bias": True}
    own = speaking(package(request.param, **shape), ENDS[request.param])
    return own, opened(own, tmp_path_factory.mktemp("out") / "out")


@pytest.mark.parametrize(
    ("beams", "alpha", "stop"), [(1, 0.0, stop_first), (4, 0.0, stop_exact), (4, 1.0, stop_exact), (4, 1.0, stop_first)]
)
def test_a_search_finds_the_same(both, beams, alpha, stop):
    """CTranslate2 stops at as many sequences as it has beams; with patience it looks at all that a beam finds."""
    own, theirs = both
    ids = own.vocabularies[0].encode([source for source, _ in pairs()[:12]])
    named = [out.names(side) for side in own.vocabularies]
    found = theirs.translate_batch(
        [[named[0][i] for i in text] for text in ids], beam_size=beams, length_penalty=alpha, max_decoding_length=MOST,
        min_decoding_length=0, patience=100 if stop is stop_exact else 1, return_scores=True,
    )  # fmt: skip
    ours = searched(own, ids, beams=beams, alpha=alpha, stop=stop)
    last = own.vocabularies[1].special.last
    assert [f.hypotheses[0] for f in found] == [[named[1][i] for i in h.tokens if i != last] for h in ours]
    assert [f.scores[0] for f in found] == pytest.approx([h.score for h in ours], abs=1e-4)
    assert len({tuple(h.tokens) for h in ours}) > 1


@pytest.mark.parametrize("quantization", out.QUANTIZATIONS)
def test_every_kind_of_weights_runs(tmp_path, quantization):
    own = speaking(package("one", output_bias=True))
    out.write(own, tmp_path / "out", quantization)
    theirs = ctranslate2.Translator(str(tmp_path / "out"), intra_threads=1)
    pieces = [own.vocabularies[0].pieces(ids) for ids in own.vocabularies[0].encode([s for s, _ in pairs()[:3]])]
    assert all(found.hypotheses[0] for found in theirs.translate_batch(pieces, max_decoding_length=MOST))


def test_int8_is_smaller_and_near(tmp_path):
    own = package("one", dim=64)
    for name in (None, "int8"):
        out.write(own, tmp_path / str(name), name)
    sizes = [(tmp_path / name / "model.bin").stat().st_size for name in ("None", "int8")]
    assert sizes[1] < 0.4 * sizes[0]
    source, target = own.vocabularies[0].encode(pairs()[0])
    pieces = own.vocabularies[0].pieces
    theirs = ctranslate2.Translator(str(tmp_path / "int8"), compute_type="int8", intra_threads=1)
    [score] = theirs.score_batch([pieces(source)], [pieces(target)])
    error = (torch.tensor(score.log_probs) - logp(own, source, target)).abs()
    assert error.mean() < 0.05 and error.max() < 0.2  # how eight bits are added up depends on the processor


@pytest.mark.parametrize("quantization", [None, "int8", "int16", "float16"])
def test_the_model_itself_is_not_touched(tmp_path, quantization):
    own = package("marian")
    before = {name: weight.clone() for name, weight in own.model.state_dict().items()}
    out.write(own, tmp_path / "out", quantization)
    assert all(torch.equal(weight, before[name]) for name, weight in own.model.state_dict().items())


def test_what_is_tied_is_stored_once(tmp_path):
    sizes = {}
    for tied in ("all", "target", "none"):
        own = package("one", tied=tied)
        out.write(own, tmp_path / tied)
        sizes[tied] = (tmp_path / tied / "model.bin").stat().st_size
    matrix = 4 * len(own.vocabularies[0]) * SIZES["dim"]
    assert sizes["target"] - sizes["all"] == pytest.approx(matrix, abs=200)
    assert sizes["none"] - sizes["target"] == pytest.approx(matrix, abs=200)


@pytest.mark.parametrize("kind", ENDS)
def test_the_program_in_the_readme_says_what_heed_says(tmp_path, capsys, monkeypatch, kind):
    decoding = {"beam": 1, "length_penalty": 1.0, "max_length": MOST, "avoid_loops": False}
    own = package(kind, **({} if kind in OTHERS else {"output_bias": True}))
    own = speaking(own, 0.0)._replace(facts={"decoding": decoding})
    out.write(own, tmp_path / "out")
    [code] = re.findall(r"```python\n(.*?)```", (tmp_path / "out" / "README.md").read_text("utf-8"), re.DOTALL)
    assert "A text." in code
    assert len(code.splitlines()) <= 10
    monkeypatch.chdir(tmp_path / "out")
    text = pairs()[0][0].replace(" ", "\u3000") + "\u1112\u1161\u11ab"  # another space, and a syllable in its parts
    exec(code.replace("A text.", text), {})
    ours = Translator([own.model], own.vocabularies, decoding=DecodingConfig(**decoding)).translate(text)
    assert " ".join(capsys.readouterr().out.split()) == ours.text
    assert ours.text


def test_the_readme_tells_whence_a_model_came(tmp_path):
    origin = {"name": "owner/model", "revision": "ab12", "architecture": "MarianMTModel"}
    facts = {"origin": origin, "languages": {"source": "ko", "target": "en"}}
    out.write(package("marian")._replace(facts=facts), tmp_path / "out", "int8")
    text = (tmp_path / "out" / "README.md").read_text("utf-8")
    assert text.startswith("# Marian, ko to en, for CTranslate2\n\nWritten by heed, with weights in int8.")
    assert "Converted from owner/model at revision ab12." in text


def test_a_classifier_is_refused(tmp_path):
    with pytest.raises(ValueError, match="a classifier generates no text"):
        out.write(classifier(), tmp_path / "out")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["one", *OTHERS])
def test_a_subclass_that_computes_something_else_is_refused(tmp_path, kind):
    own = package(kind)

    class Other(type(own.model)):
        def forward(self, *args):
            return -super().forward(*args)

    other = Other(own.model.config)
    with pytest.raises(ValueError, match="CTranslate2 cannot compute what a Other does: it cannot be exported"):
        out.write(own._replace(model=other), tmp_path / "out")
    assert not any(tmp_path.iterdir())
    assert [out.able(model) for model in (own.model, other, classifier().model)] == [True, False, False]


def test_weights_that_ctranslate2_does_not_know(tmp_path):
    with pytest.raises(ValueError, match=r"quantization is 'int4'; CTranslate2 supports int8, .*float32"):
        out.write(package("one"), tmp_path / "out", "int4")
    assert not any(tmp_path.iterdir())


def test_without_the_package_a_sentence_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(ValueError, match=r"needs the ctranslate2 package: pip install ctranslate2"):
        out.write(package("one"), tmp_path / "out")
    assert not any(tmp_path.iterdir())


def test_a_failure_on_the_way_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("heed.convert.ctranslate2_card.write", lambda *args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        out.write(package("one"), tmp_path / "out")
    assert not any(tmp_path.iterdir())


def test_a_folder_that_holds_something_is_left_alone(tmp_path):
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(ValueError, match="already exists: choose another folder"):
        out.write(package("one"), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_every_setting_of_the_transformer_is_thought_of():
    """A setting that comes later must be looked at here too."""
    told = {"vocab_size", "source_vocab_size", *SIZES, "norm", "positions", "tied", "output_bias", "norm_eps"}
    chance = {"dropout", "attention_dropout", "hidden_dropout"}
    refused = {"encoder", "window", "kernel"}  # unless the encoder attends to all
    assert {field.name for field in dataclasses.fields(TransformerConfig)} == told | chance | refused


@pytest.mark.parametrize("encoder", ["restricted", "convolution"])
def test_an_encoder_that_sees_its_neighbours_alone_is_refused(tmp_path, encoder):
    own = package("one")
    model = Transformer(dataclasses.replace(own.model.config, encoder=encoder))
    with pytest.raises(ValueError, match=f"what a Transformer with encoder = '{encoder}' does: it cannot be exported"):
        out.write(own._replace(model=model), tmp_path / "out")
    assert not any(tmp_path.iterdir())


def test_a_folder_of_ctranslate2_is_told_from_others(tmp_path):
    out.write(package("marian"), tmp_path / "fast")
    model_folder.save(tmp_path / "heeds", package("marian").model, {})
    huggingface.write(package("marian"), tmp_path / "theirs")
    assert out.is_one(tmp_path / "fast")
    for other in ("heeds", "theirs"):
        (tmp_path / other / "model.bin").write_bytes(b"")
        assert not out.is_one(tmp_path / other)
    (tmp_path / "heeds" / "config.json").write_text("{")
    assert not out.is_one(tmp_path / "heeds")
    (tmp_path / "fast" / "model.bin").unlink()
    assert not out.is_one(tmp_path / "fast")
    assert not out.is_one(tmp_path / "nowhere")


@pytest.mark.parametrize("forced", [True, False])
def test_the_readme_makes_a_text_begin_with_its_mark_only_where_heed_does(tmp_path, forced):
    out.write(package("bart")._replace(facts={"decoding": {"force_begin": forced}}), tmp_path / "out")
    text = (tmp_path / "out" / "README.md").read_text("utf-8")
    assert ("target_prefix=[['<s>']]" in text) == forced
    assert ("target_prefix" in text) == forced

"""CTranslate2 behind a translator: what Heed's own search finds, kept on the disk, and left alone where it cannot."""

import dataclasses
import json
import shutil
from itertools import pairwise

import pytest
import torch

import heed
from heed.cli.main import main
from heed.convert.ctranslate2_names import names
from heed.decoding.config import DecodingConfig
from heed.decoding.ranking import PENALTIES
from heed.files import cache_folder
from heed.loading import write_package
from heed.models.package import Package
from heed.models.seq2seq import Seq2Seq, Seq2SeqConfig
from heed.products.translator.engines import cache, ctranslate2, ctranslate2_search
from heed.products.translator.engines.ctranslate2 import CTranslate2
from heed.products.translator.engines.ctranslate2_search import beam_options
from heed.products.translator.engines.engine import TorchEngine
from heed.products.translator.model_bundle import ModelBundle
from heed.products.translator.translator import Translator
from tests.convert.small import ENDS, package, pairs, speaking

TEXTS = [source for source, _ in pairs()[:24]]
SAME = DecodingConfig(
    beam=4, nbest=4, penalty="length", stopping="first", renormalize=True, min_length=1, max_length=16
)


def made(kind, ends=None, **shape):
    """A translator in float32, without CTranslate2 so far."""
    shape = {"tied": "none", "norm": "pre", "output_bias": True, **shape} if kind in ("one", "two") else shape
    own = speaking(package(kind, **shape), ENDS[kind] if ends is None else ends)
    own.model.float()
    return Translator([own.model], own.vocabularies, decoding=DecodingConfig(beam=4, max_length=16))


@pytest.fixture(scope="module", params=ENDS)
def each(request):
    return made(request.param)


@pytest.fixture(scope="module")
def one():
    return made("one")


@pytest.fixture
def empty(monkeypatch, tmp_path):
    """A cache with nothing in it, and how often something is converted into it."""
    monkeypatch.setenv("HEED_CACHE", str(tmp_path / "cache"))
    made, write = [], cache.ctranslate2.write_model
    monkeypatch.setattr(cache.ctranslate2, "write_model", lambda *args: (made.append(args[2]), write(*args)))
    return made


def search(engine, config, texts=TEXTS):
    ids = engine.bundle.source.encode(texts)
    return engine.search(ids, config, [[] for _ in ids], 4096)


def agree(translator, config, texts=TEXTS, best=False):
    """In float32 CTranslate2 finds what Heed's own search finds."""
    found, own = (
        search(e, config, texts) for e in (CTranslate2(translator.bundle, "float32"), TorchEngine(translator.bundle))
    )
    cut = [[h[: 1 if best else None] for h in (a, b)] for a, b in zip(found, own, strict=True)]
    for ours, theirs in cut:
        assert [h.tokens for h in ours] == [h.tokens for h in theirs]
        assert [h.score for h in ours] == pytest.approx([h.score for h in theirs], abs=1e-4)
    assert len({tuple(h.tokens) for h, _ in ((a[0], b) for a, b in cut)}) > 1
    return own


def test_greedy_finds_the_same(each):
    agree(each, dataclasses.replace(SAME, beam=1, nbest=1, penalty="wu"))


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 1.7])
def test_the_first_of_a_beam_are_the_same(each, alpha):
    agree(each, dataclasses.replace(SAME, length_penalty=alpha))


def test_wus_penalty_ranks_what_was_found(each):
    agree(each, dataclasses.replace(SAME, penalty="wu"), best=True)


def test_without_a_penalty_exact_is_exact(each):
    agree(each, dataclasses.replace(SAME, nbest=1, length_penalty=0.0, stopping="exact"))


def test_no_run_twice_and_no_end_too_soon(one):
    own = agree(one, dataclasses.replace(SAME, min_length=9, no_repeat=2))
    assert min(len(h.tokens) for each in own for h in each) >= 10
    for translator in (one, made("bart")):  # no end at all: what a text begins with takes a place
        agree(translator, dataclasses.replace(SAME, min_length=16))


@pytest.mark.parametrize("stopping", ["exact", "heuristic"])
@pytest.mark.parametrize("alpha", [0.6, 1.0])
def test_other_ways_of_stopping_are_come_near_to(one, stopping, alpha):
    """What is found is scored as Heed scores it, no better than its best, and mostly that."""
    config = dataclasses.replace(SAME, nbest=1, stopping=stopping, length_penalty=alpha, penalty="wu", max_length=12)
    found, own = (search(e, config) for e in (CTranslate2(one.bundle, "float32"), TorchEngine(one.bundle)))
    assert all(a[0].score <= b[0].score + 1e-4 for a, b in zip(found, own, strict=True))
    assert sum(a[0].tokens == b[0].tokens for a, b in zip(found, own, strict=True)) >= 0.8 * len(own)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("stopping", ["exact", "heuristic"])
def test_it_does_not_stop_while_the_likeliest_goes_on(alpha, stopping):
    """A model that says the same whatever it reads: mostly one word, and hardly ever the end."""
    same = made("one")
    same.model.output.weight.zero_()
    same.model.bias.fill_(-30.0)
    same.model.bias[[300, 301, same.special[1].last]] = torch.tensor([0.95, 0.01, 0.04]).log()
    config = dataclasses.replace(SAME, nbest=1, penalty="wu", length_penalty=alpha, stopping=stopping)
    found, own, soon = (
        search(engine, how, TEXTS[:1])[0][0].tokens
        for engine, how in (
            (CTranslate2(same.bundle, "float32"), config), (TorchEngine(same.bundle), config), (TorchEngine(same.bundle), dataclasses.replace(config, stopping="first")),
        )
    )  # fmt: skip
    assert found == own == [300] * 16 and len(soon) < 16


@pytest.mark.parametrize("beam", [1, 4])
def test_each_sentence_has_its_own_longest_length(beam):
    """An end that hardly ever comes: all become as long as they may, and those that share a batch may not all the same."""
    long = made("one", ends=-6.0)
    config = dataclasses.replace(SAME, beam=beam, nbest=1, max_length=None, max_growth=0.5)
    sizes = {len(each[0].tokens) for each in agree(long, config)}
    assert len(sizes) > 3 and 64 not in sizes


@pytest.mark.parametrize("kind", ["one", "bart"])
def test_an_end_that_is_forced_costs_nothing(kind):
    long = made(kind, ends=0.0)
    own = agree(long, dataclasses.replace(SAME, max_length=8, force_end=True, nbest=1))
    last = long.special[1].last
    assert {h.tokens[-1] for each in own for h in each} == {last} and any(len(each[0].tokens) == 8 for each in own)


def test_what_shares_a_batch_does_not_matter(one):
    """Nor how many there are, in what order, or how many threads: with two, each takes batches of its own."""
    config, engine = dataclasses.replace(SAME, nbest=2), CTranslate2(one.bundle, "float32")
    whole = search(engine, config)
    torch.set_num_threads(2)
    try:
        two = search(engine, config, TEXTS[::-1])[::-1]
        assert set(engine.shared.pools) == {(1, 1), (2, 1)}
        alone = [search(engine, config, [text])[0] for text in TEXTS[:3]]
        assert set(engine.shared.pools) == {(1, 1), (2, 1), (1, 2)}
    finally:
        torch.set_num_threads(1)
    for found in (two, alone):
        for a, b in zip(found, whole, strict=False):
            assert [h.tokens for h in a] == [h.tokens for h in b]
            assert [h.score for h in a] == pytest.approx([h.score for h in b], abs=1e-4)


@pytest.mark.parametrize(
    ("sentences", "threads", "sizes"),
    [
        (1, 1, (1, 1)),
        (1, 2, (1, 2)),
        (7, 2, (1, 2)),
        (8, 2, (2, 1)),
        (1, 16, (1, 4)),
        (16, 16, (4, 4)),
        (64, 16, (16, 1)),
    ],
)
def test_threads_have_batches_of_their_own_where_there_are_enough(sentences, threads, sizes):
    assert ctranslate2_search.workers_and_threads(sentences, threads) == sizes


def test_batches_are_full_even_and_of_near_equal_lengths():
    ids = [[0] * (i % 40 + 1) for i in range(1000)]
    jobs = ctranslate2_search._jobs(list(range(1000)), ids, [len(own) for own in ids], 4, 3, 10_000)
    sizes = [len(rows) for rows, _ in jobs]
    assert len(jobs) % 3 == 0 and max(sizes) <= 16 and max(sizes) - min(sizes) <= 1
    assert sorted(row for rows, _ in jobs for row in rows) == list(range(1000))
    for (before, most), (after, _) in pairwise(jobs):
        assert min(len(ids[row]) for row in before) >= max(len(ids[row]) for row in after)
        assert most == max(len(ids[row]) for row in before)
    assert all(len(rows) * 41 <= 100 for rows, _ in ctranslate2_search._jobs(list(range(99)), ids, [9] * 99, 4, 1, 100))


CHANGES = {
    "chance": {"sample": True, "nbest": 2},
    "a prefix": {"prefix": "a"},
    "a strong penalty and exact stopping": {"length_penalty": 1.5},
    "a strong penalty and heuristic stopping": {"length_penalty": 1.1, "stopping": "heuristic"},
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_it_cannot_do_torch_does(one, what):
    fast = Translator([one.model], (one.source, one.target), decoding=one.decoding)
    fast.use("ctranslate2")
    found, own = (t.translate(TEXTS[:3], **CHANGES[what]) for t in (fast, one))
    assert [(t.ids, t.score, t.token_scores) for t in found] == [(t.ids, t.score, t.token_scores) for t in own]
    if "prefix" not in CHANGES[what]:
        assert fast.engine(**CHANGES[what]) == "torch" != fast.engine()


def test_a_start_that_is_left_to_the_model_is_not_for_it():
    bart = made("bart")
    bart.use("auto")
    assert bart.engine() == "ctranslate2-int8"
    assert bart.engine(force_begin=False) == "torch"


@pytest.mark.parametrize("change", [lambda m: m.double(), lambda m: m.bfloat16(), lambda m: m.train()])
def test_a_model_in_another_format_or_in_training_is_not_for_it(change):
    own = made("one")
    own.use("auto")
    change(own.model)
    assert own.engine() == "torch"


def test_a_text_of_nothing_is_something_to_torch(one):
    fast = CTranslate2(one.bundle, "float32")
    ids = [[], one.source.encode(TEXTS[:1])[0], []]
    config = dataclasses.replace(SAME, nbest=1)
    found, own = (e.search(ids, config, [[], [], []], 4096) for e in (fast, TorchEngine(one.bundle)))
    assert [each[0].tokens for each in found] == [each[0].tokens for each in own]
    assert fast.search([], config, [], 4096) == []


def test_it_is_converted_once_and_kept(one, empty):
    first = search(CTranslate2(one.bundle), SAME)
    assert search(CTranslate2(one.bundle), SAME) == first
    assert empty == ["int8"]
    search(CTranslate2(one.bundle, "float32"), SAME)
    assert empty == ["int8", "float32"] and len(list(cache_folder().iterdir())) == 2


def damage(path):
    held = bytearray((path / "model.bin").read_bytes())
    held[len(held) // 2] ^= 1
    (path / "model.bin").write_bytes(held)


BROKEN = {
    "gone": shutil.rmtree,
    "cut short": lambda path: (path / "model.bin").write_bytes((path / "model.bin").read_bytes()[:1000]),
    "a bit": damage,
    "without its sums": lambda path: (path / "sums.json").unlink(),
    "sums that are none": lambda path: (path / "sums.json").write_text("{"),
    "without words": lambda path: next(path.glob("*vocabulary*")).unlink(),
}


@pytest.mark.parametrize("how", BROKEN)
def test_what_is_damaged_is_made_anew(one, empty, how):
    first = search(CTranslate2(one.bundle), SAME)
    BROKEN[how](next(cache_folder().iterdir()))
    assert search(CTranslate2(one.bundle), SAME) == first
    assert empty == ["int8", "int8"] and len(list(cache_folder().iterdir())) == 1
    search(CTranslate2(one.bundle), SAME)
    assert len(empty) == 2


def test_where_nothing_can_be_kept_nothing_is(one, empty, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("HEED_CACHE", str(tmp_path / "file"))
    assert len(search(CTranslate2(one.bundle), SAME)) == len(TEXTS)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


def test_only_so_many_are_kept_and_the_last_used_is_one(one, empty, monkeypatch):
    monkeypatch.setattr(cache, "MAX_KEPT", 3)
    search(CTranslate2(one.bundle), SAME)
    kept = next(cache_folder().iterdir())
    other = made("one", norm="post")
    for _ in range(4):
        other.model.bias += 0.01
        search(CTranslate2(other.bundle), SAME)
        search(CTranslate2(one.bundle), SAME)
    assert len(list(cache_folder().iterdir())) == 3 and kept.is_dir()
    assert len(empty) == 5


def listed(translator, ids):
    """A translator that keeps to these subwords, whatever it reads."""
    text = "\t" + " ".join(names(translator.target)[i] for i in ids) + "\n"
    own = Translator([translator.model], (translator.source, translator.target), decoding=SAME, shortlist=text)
    own.use("ctranslate2", "float32")
    return own


def test_a_shortlist_of_all_changes_nothing_and_a_short_one_is_kept_to(one, empty):
    config = dataclasses.replace(SAME, beam=2, nbest=2)
    whole = search(CTranslate2(one.bundle, "float32"), config)
    every = search(listed(one, range(len(one.target))).engines[0], config)
    assert [[h.tokens for h in own] for own in every] == [[h.tokens for h in own] for own in whole]
    assert [h.score for own in every for h in own] == pytest.approx([h.score for own in whole for h in own], abs=1e-4)
    few = set(range(300, 340))
    found = search(listed(one, few).engines[0], config)
    said = {i for own in found for h in own for i in h.tokens}
    assert len(said) > 3 and said <= {*few, one.special[1].last}
    assert len(empty) == 3


def test_a_shortlist_travels_with_its_model(one, tmp_path):
    own = listed(one, range(300, 340))
    write_package(
        Package(own.model, "translation", {"source": own.source, "target": own.target}, {}, own.shortlist),
        tmp_path / "model",
    )
    again = heed.load(tmp_path / "model", "cpu", "ctranslate2")
    assert again.shortlist == own.shortlist
    assert {i for t in again.translate(TEXTS[:4]) for i in t.ids} <= {*range(300, 340), one.special[1].last}
    out = tmp_path / "out"
    assert main(["convert", str(tmp_path / "model"), "--to", "ctranslate2", "--out", str(out)]) == 0
    assert (out / "vmap.txt").read_text("utf-8") == own.shortlist


def test_weights_that_have_changed_are_converted_anew(empty):
    own = made("one")
    own.use("ctranslate2")
    before = [t.ids for t in own.translate(TEXTS)]
    own.model.bias[own.special[1].last] -= 10
    after = [t.ids for t in own.translate(TEXTS)]
    assert len(empty) == 2 and sum(map(len, after)) > sum(map(len, before))


def test_two_models_have_two_keys_and_the_same_has_one(one):
    def key(translator, kind="int8"):
        own = Package(translator.model, "translation", {"source": translator.source, "target": translator.target}, {})
        return cache.key(own, kind)

    other = made("one")
    assert key(one) == key(other) != key(one, "float32")
    other.model.bias[7] += 1e-6
    assert key(one) != key(other)
    assert key(made("bart")) != key(made("pegasus"))


def test_what_breaks_is_said_and_torch_goes_on(one, monkeypatch):
    def breaks(*args):
        raise RuntimeError("no such instruction\nat all")

    monkeypatch.setattr(cache, "with_folder", breaks)
    fast = Translator([one.model], (one.source, one.target), decoding=one.decoding)
    fast.use("auto")
    with pytest.warns(
        UserWarning, match=r"CTranslate2 cannot run this model, using torch instead: no such instruction$"
    ):
        found = fast.translate(TEXTS[:2])
    assert [t.ids for t in found] == [t.ids for t in one.translate(TEXTS[:2])]
    assert fast.engine() == "torch"
    fast.use("ctranslate2")
    with pytest.raises(ValueError, match=r"cannot run this model: no such instruction[^;]*; use engine torch"):
        fast.translate(TEXTS[:2])


def test_who_cannot_have_it_is_told_why(one, make, monkeypatch):
    with pytest.raises(ValueError, match=r"engine is 'fast'; it must be auto, torch or ctranslate2"):
        one.use("fast")
    both = make(16, 131)
    both.use("auto")
    assert both.engine() == "torch"
    with pytest.raises(
        ValueError, match=r"engine is 'ctranslate2', but it does not support ensembles; use auto or torch"
    ):
        both.use("ctranslate2")
    away = Translator([made("one").model.to("meta")], (one.source, one.target))
    with pytest.raises(ValueError, match=r"but it only runs on the CPU here, and the model is on meta"):
        away.use("ctranslate2")
    recurrent = Seq2Seq(Seq2SeqConfig(vocab_size=len(one.target), dim=16, hidden=16)).eval()
    old = Translator([recurrent], (one.source, one.target))
    with pytest.raises(ValueError, match=r"but it does not support this Seq2Seq"):
        old.use("ctranslate2")
    monkeypatch.setattr(ctranslate2, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"its package is not installed \(pip install ctranslate2\)"):
        one.use("ctranslate2")
    one.use("auto")
    assert one.engine() == "torch"


def test_all_that_a_translation_tells_is_there(each):
    """Of n-best, in parts, with alignments and token scores; a text that is empty has none."""
    fast = Translator([each.model], (each.source, each.target), decoding=each.decoding, max_source=60)
    fast.use("ctranslate2", "float32")
    long = " ".join(TEXTS[:12])
    found = fast.translate([TEXTS[0], long, ""], nbest=3)
    assert [bool(t.parts) for t in found] == [False, True, False] and found[2].token_scores == []
    assert [len(t.nbest) for t in found] == [3, 3, 3]
    free = len(each.special[1].before)
    for c in (*found[0].nbest, *(c for part in found[1].parts for c in part.nbest)):
        assert len(c.token_scores) == len(c.tokens) and c.token_scores[:free] == [0.0] * free
        assert c.score == pytest.approx(sum(c.token_scores) / PENALTIES["wu"](len(c.tokens), 0.6), abs=0.1)
    assert found[1].token_scores == [score for part in found[1].parts for score in part.token_scores]
    assert found[0].alignment == each.align_pairs([found[0].source], [found[0].text])[0]
    said = [target for _, target in pairs()[:2]]
    assert fast.score(TEXTS[:2], said) == each.score(TEXTS[:2], said)
    assert fast.look(TEXTS[0]).search


def test_token_scores_are_computed_once_they_are_asked_for_and_a_batch_at_a_time(one, monkeypatch):
    fast = Translator([one.model], (one.source, one.target), decoding=one.decoding)
    fast.use("ctranslate2", "float32")
    calls, score = [], ModelBundle.token_logprobs
    monkeypatch.setattr(ModelBundle, "token_logprobs", lambda self, ids: (calls.append(len(ids)), score(self, ids))[1])
    found = fast.translate(TEXTS, nbest=2, batch_tokens=200, avoid_loops=False)  # a search in torch keeps its scores
    assert calls == []
    kept = found[0].token_scores
    assert len(calls) == 1 and 1 < calls[0] < 2 * len(TEXTS)
    assert [t.nbest[1].token_scores for t in found] and found[0].token_scores is kept
    assert sum(calls) == 2 * len(TEXTS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    own = made("one")
    path = tmp_path_factory.mktemp("models") / "one"
    facts = {"decoding": dataclasses.asdict(own.decoding)}
    write_package(Package(own.model, "translation", {"source": own.source, "target": own.target}, facts), path)
    return path


def test_a_translator_that_is_loaded_has_it(folder):
    assert heed.load(folder, "cpu").engine() == "ctranslate2-int8"
    assert heed.load(folder, "cpu", engine="torch").engine() == "torch"
    assert heed.load([folder, folder], "cpu").engine() == "torch"


def test_the_verbs_take_an_engine(folder, tmp_path, capsys):
    files = tmp_path / "text.ko", tmp_path / "text.en"
    for file in files:
        file.write_text("\n".join(TEXTS[:8]) + "\n", "utf-8")

    def said(*words):
        assert main([str(word) for word in words]) == 0
        return capsys.readouterr().out

    own = [t.text for t in heed.load(folder, "cpu", "torch").translate(TEXTS[:8])]
    assert said("translate", folder, "--engine", "torch", "--input", files[0]).splitlines() == own
    fast = said("translate", folder, "--scores", "--token-scores", "--align", "--input", files[0]).splitlines()
    assert len(fast) == 8 and all(len(line.split("\t")) == 4 for line in fast)
    for words, engine in (([], "torch"), (["--engine", "auto"], "ctranslate2-int8")):
        said("evaluate", folder, "--source", files[0], "--reference", files[1], "--json", tmp_path / "j", *words)
        assert json.loads((tmp_path / "j").read_text())["engine"] == engine
    said("evaluate", files[0], "--reference", files[1], "--json", tmp_path / "j")
    assert "engine" not in json.loads((tmp_path / "j").read_text())


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({"beam": 1}, (0.0, 1, 1.0)),
        ({"beam": 5, "stopping": "first", "length_penalty": 0.8}, (0.8, 5, 1.0)),
        ({"beam": 5, "stopping": "first", "length_penalty": 0.0}, (1e-9, 5, 1.0)),
        ({"beam": 5, "length_penalty": 0.6}, (0.0, 5, 1.0)),
        ({"beam": 5, "nbest": 2, "length_penalty": 0.0}, (0.0, 2, 1.0)),
        ({"beam": 5, "length_penalty": 1.0}, (0.0, 10, 2.0)),
        ({"beam": 5, "length_penalty": 1.1}, None),
    ],
    ids=str,
)
def test_what_ctranslate2_is_asked_for(settings, options):
    found = beam_options(DecodingConfig(**settings))
    assert (found and tuple(found)) == options

"""What a long list gives, however it is batched: the results of one text at a time, with all that belongs to them."""

import copy
import pickle
from dataclasses import asdict, fields, replace

import pytest
import torch

from heed.cli import evaluate, translate
from heed.data.filters import FilterReport
from heed.data.readers import Line
from heed.decoding.cuda import weights
from heed.decoding.cuda.search import Batch, SearchRunner, run
from heed.decoding.hypothesis import Hypothesis
from heed.products.translator import split, stages
from heed.products.translator.engines import cuda as module
from heed.products.translator.engines.cuda import CudaEngine
from heed.products.translator.engines.engine import TorchEngine
from heed.products.translator.guards import Guards
from heed.products.translator.results import Candidate, Translation
from heed.runs import backtranslate, distill
from heed.runs.backtranslate import BackTranslation
from heed.runs.distill_corpus import TaughtCorpus, TaughtText
from heed.runs.distilled_files import Blocks
from heed.text.glossary import Glossary
from heed.vocabularies.sentencepiece import SubwordsConfig, learn

WAYS = [{}, {"nbest": 3}, {"glossary": {"우유": "milk tea"}, "keep": ["Heed"]}]


@pytest.fixture(scope="module")
def mixed(pairs):
    """Empty texts, several sentences, more than fit, names and addresses, odd spaces, and the same again."""
    plain = [pair.source for pair in pairs[:14]]
    odd = ["", " \t", " ".join(plain[:6]), f" {plain[1]}\u3000 {plain[2]}\r", f"{plain[3]}\n{plain[4]}", "e\u0301▁a"]
    return [*plain[:5], *odd, plain[0], f"{{name}} {plain[5]} https://a.b/c?d=1 Heed 우유", *plain[5:], "", plain[0]]


@pytest.fixture
def bulk(make, monkeypatch):
    """A translator with the engine of a GPU, here without one, in small batches and chunks."""
    monkeypatch.setattr(module, "supports_device", lambda device: True)
    monkeypatch.setattr(CudaEngine, "_build", lambda self: SearchRunner(weights.read(self.bundle.model, self.dtype)))
    monkeypatch.setattr(CudaEngine, "_fitting", lambda self, beams, length, asked: min(asked, 3))
    monkeypatch.setattr(CudaEngine, "chunk", 7)
    monkeypatch.setattr(stages, "CHUNK", 2)
    translator = make(16, max_source=30)
    translator.engines = [CudaEngine(translator.bundle, torch.float64), TorchEngine(translator.bundle)]
    return translator


def told(translation):
    """All that is exact: scores of other batches may differ in their last bits."""
    own = [translation.source, translation.text, translation.ids, translation.tokens, translation.source_tokens]
    return [*own, translation.terms, [(c.text, c.tokens) for c in translation.nbest], [*map(told, translation.parts)]]


def scores(translations):
    return [score for t in translations for c in t.nbest for score in (t.score, c.score, *c.token_scores)]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_long_list_gives_what_one_text_at_a_time_gives(bulk, mixed, way):
    found, alone = bulk.translate(mixed, **way), [bulk.translate(text, **way) for text in mixed]
    assert [told(own) for own in found] == [told(own) for own in alone]
    assert scores(found) == pytest.approx(scores(alone), abs=1e-9)
    assert [bool(own.parts) for own in found].count(True) >= 1 and found[0].text == found[-1].text != ""
    assert found[2].alignment == alone[2].alignment


def test_chunks_are_as_large_as_the_engine_needs(bulk, mixed, monkeypatch):
    sizes, plain = [], stages.prepare
    monkeypatch.setattr(
        stages, "prepare", lambda own, texts, *of, **more: sizes.append(len(texts)) or plain(own, texts, *of, **more)
    )
    bulk.translate(mixed)
    assert sizes[:-1] == [7] * (len(mixed) // 7)
    bulk.use("torch")
    assert stages.chunk_size(bulk, bulk.decoding, 5) == 5


def test_texts_that_are_whole_need_no_closer_look(bulk, mixed, monkeypatch):
    whole = [text for text in mixed if text.strip()][:5]
    quick = split.split_texts(whole, bulk.source, 60), split.split_texts(mixed, bulk.source, 30)
    assert quick[0].texts == [bulk.source.clean(text) for text in whole] and quick[0].owners == [0, 1, 2, 3, 4]
    monkeypatch.setattr(split, "_all_whole", lambda *of: False)
    assert quick == (split.split_texts(whole, bulk.source, 60), split.split_texts(mixed, bulk.source, 30))


def test_a_result_is_made_when_somebody_asks(bulk, mixed):
    found = bulk.translate(mixed[:3], nbest=2)
    assert all({"tokens", "nbest"}.isdisjoint(vars(own)) for own in found)
    text, one = found[0].text, found[0]
    assert "tokens" not in vars(one) and one.nbest[0].text == text
    whole = Translation(*(getattr(found[1], field.name) for field in fields(Translation)))
    assert found[1] == whole and repr(found[1]) == repr(whole) and found[2] != whole
    changed = replace(bulk.translate(mixed[1], nbest=2), text="x")
    assert changed.text == "x" and [own.text for own in changed.nbest] == [own.text for own in whole.nbest]
    assert isinstance(changed.nbest[1], Candidate)
    for name in ("nothing", "_rest"):
        with pytest.raises(AttributeError, match=name):
            getattr(whole, name)


def test_a_result_is_copied_whole(bulk, mixed):
    one = bulk.translate(mixed[1])
    one.__dict__["inspector"] = None  # a translator is large
    for other in (copy.copy(one), pickle.loads(pickle.dumps(one))):
        assert "_rest" not in vars(other) and told(other) == told(one)
    assert asdict(one)["tokens"] == one.tokens


def test_lists_are_made_while_the_device_is_busy(bulk):
    """After the first step of a batch, and before the host asks how many sentences are left."""
    runner, events = SearchRunner(weights.read(bulk.model, torch.float64)), []
    for name in ("step", "unfinished", "fetch"):
        plain = getattr(runner, name)
        setattr(runner, name, lambda *of, name=name, plain=plain: events.append(name) or plain(*of))
    rules = module.device_rules(bulk.decoding, bulk.special[1])
    found = run(runner, Batch.of([[5, 6, 3], [7, 3]], [9, 9]), rules, lambda: events.append("meanwhile"))
    assert events[:3] == ["step", "meanwhile", "unfinished"] and events.count("meanwhile") == 1
    assert events[-1] == "fetch"
    first = found.hypotheses()
    run(runner, Batch.of([[9, 8, 3], [5, 3]], [9, 9]), rules)  # in the same buffers
    assert found.hypotheses() == first


def test_the_rest_of_a_chunk_is_done_once_the_next_has_begun(bulk, mixed, monkeypatch):
    events, plain = [], CudaEngine.begin

    def begin(self, sources, *of):
        events.append("begin")
        wait = plain(self, sources, *of)
        events.append("begun")
        return lambda: events.append("complete") or wait()

    monkeypatch.setattr(CudaEngine, "begin", begin)
    found = bulk.translate(mixed[:14])
    assert events == ["begin", "begun", "begin", "complete", "begun", "complete"]
    bulk.use("torch")
    assert [told(own) for own in found] == [told(own) for own in bulk.translate(mixed[:14])]


def test_what_fails_in_the_rest_of_a_chunk_is_told_in_its_place(bulk, mixed, monkeypatch):
    """Also if the device says that there is no memory, which would halve a batch of the next chunk."""
    tried = []

    def full(self, sources, *of):
        tried.append(len(sources))
        if len(tried) == 1:
            raise torch.OutOfMemoryError("no room")
        return {}

    monkeypatch.setattr(Guards, "faulty", full)
    with pytest.raises(torch.OutOfMemoryError, match="no room"):
        bulk.translate(mixed)
    assert len(bulk.translate(mixed)) == len(mixed)


def test_as_many_parts_as_texts_may_belong_to_others(bulk, pairs):
    """One text is empty, and one has two parts."""
    plain = [pair.source for pair in pairs[:20]]
    two = next(text for one in plain for text in [f"{one} {plain[0]}"] if len(bulk.parts(text)) == 2)
    found = bulk.translate(["", two])
    assert [own.text == "" for own in found] == [True, False] and len(found[1].parts) == 2


def test_copies_are_found_in_two_vocabularies_as_in_one(make, pairs, vocabulary):
    texts = [pair.source for pair in pairs[:8]]
    other = learn([pair.target for pair in pairs] + texts, SubwordsConfig(), 500)
    one = make(16)
    config = one.search_config({"beam": 2, "avoid_loops": False, "avoid_overlong": False})
    sources = one.source.encode(texts)
    said = [texts[0], texts[2], texts[2].upper(), pairs[3].target, "", texts[5] + ".", "x", f"{texts[7]} x"]
    for target in (vocabulary, other):
        one.bundle.vocabularies = one.source, target
        guards = Guards(one.bundle, ("ko", "en"))
        one.bundle.__dict__.pop("tables", None)
        found = [[Hypothesis([*ids, 3], -1.0, None)] for ids in target.encode(said)]
        slow = {row: 2 for row in range(8) if any(guards.faults.copies(sources[row], found[row]))}
        assert guards.faulty(sources, found, config) == slow and {0, 2, 5} == {*slow}


def backtranslated(bulk, lines, tmp_path):
    mono, out = tmp_path / "mono", tmp_path / "pairs.tsv"
    mono.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    backtranslate.run(BackTranslation(mono, out), bulk)
    return [line.split("\t")[0] for line in out.read_text("utf-8").splitlines()]


def distilled(bulk, lines, tmp_path):
    text = TaughtText([TaughtCorpus((Line(line, line, "") for line in lines), len(lines))], [], FilterReport())
    plan = distill.read(None, [("distill.teacher", ["teacher"]), ("data.source", ["text"])])
    written = Blocks(tmp_path / "blocks.json", distill.BLOCK)
    distill._translate(plan, bulk, text, tmp_path, written, lambda *of: None)
    again = Blocks(tmp_path / "blocks.json", distill.BLOCK)
    assert again.size == 7 and again.damaged(tmp_path) == []
    return (tmp_path / "target.txt").read_text("utf-8").splitlines()


JOBS = {
    "evaluate": lambda bulk, lines, folder: evaluate._translated(bulk, lines, {}),
    "backtranslate": backtranslated,
    "distill": distilled,
}


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_every_job_goes_the_way_of_translate(bulk, pairs, tmp_path, monkeypatch, job):
    """In chunks of the engine's size, whose searches begin while the host still works on those before."""
    for module_of, name in ((translate, "CHUNK"), (backtranslate, "BLOCK"), (distill, "BLOCK")):
        monkeypatch.setattr(module_of, name, 2)
    texts = [pair.source for pair in pairs[:30]]
    lines = [text for text, fits in zip(texts, stages.fitting(bulk, texts), strict=True) if fits]
    lines = 2 * lines[:14]
    wanted = [own.text for start in range(0, len(lines), 7) for own in bulk.translate(lines[start : start + 7])]
    sizes, plain = [], CudaEngine.begin
    monkeypatch.setattr(CudaEngine, "begin", lambda own, texts, *of: sizes.append(len(texts)) or plain(own, texts, *of))
    monkeypatch.setattr(CudaEngine, "search", lambda *of: pytest.fail("waits for the device"))
    assert job(bulk, lines, tmp_path) == wanted
    assert sizes == [7, 7, 7, 7]


def test_results_do_not_wait_for_the_search_of_the_next_chunk(bulk, pairs, monkeypatch):
    """Where the engine does not work alone, what was found before is passed on first."""
    bulk.use("torch")
    order, plain = [], TorchEngine.search
    monkeypatch.setattr(TorchEngine, "search", lambda *of: order.append("search") or plain(*of))
    work = stages.prepare(bulk, [pairs[0].source], bulk.decoding, Glossary())
    stages.begin(bulk, work, lambda: order.append("before"))()
    assert order == ["before", "search"]

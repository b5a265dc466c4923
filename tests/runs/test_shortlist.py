"""The final model of a run has a shortlist, where one is worth having and it translates as well with it."""

import numpy as np
import pytest
import torch

from heed.convert.ctranslate2_names import names
from heed.data import corpus as corpora
from heed.data import shortlist
from heed.data.filters import FiltersConfig
from heed.data.readers import Line
from heed.data.shortlist import Shortlist, TranslationTable
from heed.decoding.config import DecodingConfig
from heed.decoding.limits import allow_only, apply_rules
from heed.models.transformer import Transformer, TransformerConfig
from heed.products.translator.translator import Translator
from heed.runs.recipe import parse
from heed.runs.run_folder import RunFolder
from heed.tasks import shortlist as choosing
from heed.tasks import translation
from heed.tasks.base import Prepared
from heed.tasks.denoising import RestorationValidation
from heed.tasks.translation import TranslationValidation
from heed.vocabularies.sentencepiece import SubwordsConfig, learn
from tests import fixed_pairs
from tests.helpers import translation_package

PHRASEBOOK = {"data": {"phrasebook": 300}}


@pytest.fixture(scope="module")
def lines():
    return [Line(pair.source, pair.target, str(i)) for i, pair in enumerate(fixed_pairs.pairs("train", 300))]


@pytest.fixture(scope="module")
def prepared(lines, tmp_path_factory):
    own = learn([text for line in lines for text in line[:2]], SubwordsConfig(), 900)
    skip = np.zeros(len(lines), dtype=np.uint8)
    folder = tmp_path_factory.mktemp("corpora") / "corpus"
    corpus = corpora.build(folder, lambda: lines, (own, own), FiltersConfig(), skip=skip)
    return Prepared("key", corpus, [], {"source": own, "target": own}, {"vocab_size": len(own)})


@pytest.fixture(scope="module")
def vocabularies(prepared):
    return tuple(prepared.processors.values())


@pytest.fixture(scope="module")
def model(vocabularies):
    torch.manual_seed(1)
    return Transformer(TransformerConfig(len(vocabularies[0]), dim=8, heads=2, hidden=8, max_length=12)).eval()


def said(model, vocabularies, texts):
    translator = Translator([model], vocabularies, decoding=DecodingConfig(beam=1))
    return [one.text for one in translator.translate(texts, too_long="cut")]


def finished(folder, prepared, validation, model, base=None, values=PHRASEBOOK):
    """A model folder after the files of a finished run are written into it."""
    folder.mkdir(exist_ok=True)
    run = RunFolder(folder, parse(values), prepared, validation, base)
    run._save(folder, model, {}, run._final_texts(model))
    return folder


def written(prepared, folder, model, lines, base=None):
    pair, search = tuple(prepared.processors.values()), DecodingConfig(beam=1)
    validation = TranslationValidation(lines, pair, search=search, max_source=None, budget=100, samples=1)
    return shortlist.read(finished(folder, prepared, validation, model, base), names(pair[1]))


def test_it_is_there_if_it_costs_nothing(prepared, vocabularies, model, lines, tmp_path, monkeypatch):
    some = lines[:12]
    own = said(model, vocabularies, [line.source for line in some])
    as_said = [line._replace(target=text) for line, text in zip(some, own, strict=True)]
    assert written(prepared, tmp_path, model, as_said) is None  # a vocabulary this small needs none
    monkeypatch.setattr(translation, "LARGE", 0)
    monkeypatch.setattr(shortlist, "SIZES", ((100, 20),))
    assert written(prepared, tmp_path, model, as_said) is None  # weights that were drawn say what is on no list
    monkeypatch.setattr(choosing, "LOST", 100.0)
    found = written(prepared, tmp_path, model, as_said)
    rows = [line.split("\t") for line in found.splitlines()]
    assert rows[0][0] == "" and len(rows[0][1].split(" ")) == 100
    assert [name for name, _ in rows[1:]] == names(vocabularies[0])
    monkeypatch.setattr(choosing, "LOST", 0.1)
    assert written(prepared, tmp_path, model, as_said) is None and not (tmp_path / shortlist.FILE).exists()


def test_the_shortest_that_costs_nothing_is_chosen(vocabularies, model, lines, monkeypatch):
    """One list lacks what the model says, the next has it, and a longer one too."""
    some, size = [line.source for line in lines[:40]], len(vocabularies[1])
    some = [text for text in some if len(vocabularies[0].encode([text])[0]) < 11]
    own = Translator([model], vocabularies, decoding=DecodingConfig(beam=1)).translate(some)
    needed = {i for one in own for i in one.ids}
    without, with_it, all_of_it = (Shortlist(np.array(sorted(s)), {}) for s in ({5}, needed, set(range(size))))
    table = TranslationTable(*(np.zeros(0, np.int64),) * 2, np.zeros(0), 0)
    pairs = [(text, one.text) for text, one in zip(some, own, strict=True)]
    assert len(pairs) > 3
    monkeypatch.setattr(choosing, "by_size", lambda *_: iter((without, with_it, all_of_it)))
    assert choosing.choose(model, [(vocabularies, pairs)], table, 100) is with_it
    monkeypatch.setattr(choosing, "by_size", lambda *_: iter((without,)))
    assert choosing.choose(model, [(vocabularies, pairs)], table, 100) is None
    assert choosing.choose(model, [(vocabularies, [])], table, 100) is None


def test_a_list_that_costs_quality_in_one_direction_is_not_chosen(vocabularies, model, lines, monkeypatch):
    some = [line.source for line in lines[:40] if len(vocabularies[0].encode([line.source])[0]) < 11]
    own = Translator([model], vocabularies, decoding=DecodingConfig(beam=1)).translate(some)
    needed = Shortlist(np.array(sorted({i for one in own for i in one.ids})), {})
    said = (vocabularies, [(text, one.text) for text, one in zip(some, own, strict=True)])
    monkeypatch.setattr(choosing, "by_size", lambda *_: iter((needed,)))
    assert choosing.choose(model, [said, said], None, 100) is needed
    seen = []
    monkeypatch.setattr(
        choosing, "_scores", lambda check, few, _: seen.append(few) or [10.0 - (few is not None and len(seen) == 4)] * 2
    )
    assert choosing.choose(model, [said, said], None, 100) is None  # the second direction loses a point


def test_the_tag_of_a_direction_chooses_its_list(model, lines, monkeypatch):
    own = learn([text for line in lines for text in line[:2]], SubwordsConfig(), 900, tags=[">>en<<", ">>de<<"])
    english, german = own.with_tag(">>en<<"), own.with_tag(">>de<<")
    few = Shortlist(np.array([5]), {own.tags[">>en<<"]: np.array([6, 7]), own.tags[">>de<<"]: np.array([8])})
    rows = [
        choosing._only_listed(few, [[20]], choosing.ModelBundle([model], (side, own))) for side in (english, german)
    ]
    said = []
    for rule in rows:
        banned = torch.zeros(1, model.config.vocab_size, dtype=torch.bool)
        rule(banned, torch.zeros(1, 0, dtype=torch.long), torch.tensor([0]))
        said.append(set((~banned[0]).nonzero()[:, 0].tolist()) - {own.special.last})
    assert said == [{5, 6, 7}, {5, 8}]


def test_a_sentence_says_what_is_on_its_own_list():
    lists = torch.tensor([[True, False, True, False], [False, True, False, True]])
    logits, sentence = torch.zeros(3, 4), torch.tensor([0, 1, 0])
    found = apply_rules(logits, torch.zeros(3, 0, dtype=torch.long), sentence, [allow_only(lists)])
    assert (found > -torch.inf).tolist() == lists[sentence].tolist()


def test_what_was_learned_before_from_another_corpus_it_cannot_tell(
    prepared, vocabularies, model, lines, tmp_path, monkeypatch
):
    monkeypatch.setattr(translation, "LARGE", 0)
    monkeypatch.setattr(choosing, "LOST", 100.0)
    monkeypatch.setattr(shortlist, "SIZES", ((100, 20),))
    base = translation_package(model, vocabularies, {"heed": "0"})
    assert written(prepared, tmp_path, model, lines[:5], base) is None
    assert written(prepared, tmp_path, model, lines[:5]) is not None


def test_only_what_translates_has_one(prepared, vocabularies, model, lines, tmp_path, monkeypatch):
    monkeypatch.setattr(translation, "LARGE", 0)
    monkeypatch.setattr(choosing, "LOST", 100.0)
    restoring = RestorationValidation(
        lines[:3], vocabularies, lambda ids, _: (ids, ids), search=DecodingConfig(beam=1), budget=100, samples=1
    )
    one_text = {"data": {"source": ["a"]}, "task": {"name": "denoising"}, "model": {"name": "bart"}}
    finished(tmp_path, prepared, restoring, model, values=one_text)
    assert not (tmp_path / shortlist.FILE).exists()

"""A translator does not loop, ends in time and does not copy; what has no such fault stays as it is."""

import pytest

from heed.decoding.config import DecodingConfig
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.loops import find_loops, source_repeats
from heed.products.translator.guards import Guards
from heed.vocabularies.sentencepiece import LAST
from tests import fixed_pairs

OFF = {"avoid_loops": False, "avoid_overlong": False, "avoid_copies": False}
SEARCHES = {"beam": {}, "nbest": {"nbest": 2}, "greedy": {"beam": 1}, "sample": {"sample": True, "nbest": 2}}


@pytest.fixture(scope="module")
def many():
    return [pair.source for pair in fixed_pairs.pairs("train", 12)]


@pytest.fixture(scope="module")
def looper(make):
    """Says the same again and again."""
    return make(3, max_source=48)


def told(translation):
    return [(one.text, one.score, one.tokens) for one in translation.nbest]


def looping(translator, translations):
    kinds, target = translator.bundle.tables.token_kinds, translator.target
    found = []
    for one in translations:
        ids = [[target.pieces(range(len(target))).index(piece) for piece in own.tokens] for own in one.nbest]
        found.append(bool(find_loops(ids, kinds, [source_repeats(one.source)] * len(ids)).any()))
    return found


@pytest.mark.parametrize("name", SEARCHES)
def test_loops_are_searched_again_and_nothing_else(looper, many, name):
    options = {"max_length": 24, **SEARCHES[name]}
    plain, guarded = looper.translate(many, **OFF, **options), looper.translate(many, **options)
    loops = looping(looper, plain)
    assert any(loops) and not all(loops)
    assert not any(looping(looper, guarded))
    for before, after, loop in zip(plain, guarded, loops, strict=True):
        assert (told(before) == told(after)) == (not loop)


def test_what_shares_a_batch_does_not_matter(looper, many):
    for options in ({"max_length": 24}, {"max_length": 24, "sample": True}):
        whole = looper.translate(many, **options)
        small = looper.translate(many, **options, batch_tokens=30)
        assert [one.text for one in small] == [one.text for one in whole]
    for text, one in zip(many[:4], looper.translate(many[:4], max_length=24), strict=True):
        assert looper.translate(text, max_length=24).text == one.text


def test_an_ensemble_does_not_loop(make, many):
    both = make(3, 3)
    assert any(looping(both, both.translate(many, max_length=24, **OFF)))
    assert not any(looping(both, both.translate(many, max_length=24)))


def test_other_engines_leave_loops_to_heeds_own(make, many):
    fast, own = make(3, max_source=48), make(3, max_source=48)
    for model in (*fast.models, *own.models):
        model.float()
    fast.use("ctranslate2", "float32")
    plain = fast.translate(many, max_length=24, **OFF)
    found, expected = fast.translate(many, max_length=24), own.translate(many, max_length=24)
    for before, after, other, loop in zip(plain, found, expected, looping(fast, plain), strict=True):
        assert told(after) == told(before) if not loop else after.text == other.text


def test_a_translation_ends_before_its_limit_if_it_can(make, many):
    looper = make(3, max_source=48)
    looper.model.bias[LAST] -= 1.2
    options = {"max_length": None, "max_growth": 0.1, "beam": 4, "avoid_loops": False}
    plain = looper.translate(many, **options, avoid_overlong=False)
    guarded = looper.translate(many, **options)
    open_ends = [one.tokens[-1] != "</s>" for one in plain]
    assert any(open_ends) and not all(open_ends)
    assert all(one.tokens[-1] == "</s>" for one in guarded)
    for before, after, cut in zip(plain, guarded, open_ends, strict=True):
        assert (told(before) == told(after)) == (not cut)
    assert told(looper.translate(many[0], max_length=3, beam=4)) == told(
        looper.translate(many[0], max_length=3, beam=4, avoid_overlong=False)
    )


def test_terms_are_said_without_loops(looper, many):
    terms = {"책": "Tobigs", "우유": "milk tea", "친구": "friend"}
    found = looper.translate(many, glossary=terms, max_length=24)
    assert any(one.terms for one in found)
    assert not any(one.missing for one in found) and not any(looping(looper, found))


def test_the_page_shows_the_translation_that_is_given(looper, many):
    plain = looper.translate(many, max_length=24, **OFF)
    row = looping(looper, plain).index(True)
    look = looper.look(many[row], max_length=24)
    assert look.target_text == looper.translate(many[row], max_length=24).text != plain[row].text
    assert len(look.search) >= len(look.target) - 1


def hypotheses(translator, texts):
    last = translator.special[1].last
    return [Hypothesis([*ids, last], -float(i), None) for i, ids in enumerate(translator.target.encode(texts))]


def test_a_copy_comes_after_what_is_none(looper):
    text, other = "나는 오늘 도서관에서 책을 읽어요.", "I read a book."
    source, found = looper.source.encode([text])[0], hypotheses(looper, [text, other])
    config = looper.search_config({"beam": 2})
    guards = Guards(looper.bundle, ("ko", "en"))
    assert guards.faulty([source], [found[:1]], config) == {0: 2}
    assert guards.best(source, found, config) == found[1:]
    assert guards.best(source, found[:1], config) == found[:1]
    for same in (Guards(looper.bundle), Guards(looper.bundle, ("ko", "ko"))):
        assert same.faulty([source], [found[:1]], config) == {}
        assert same.best(source, found, config) == found[:1]
    off = looper.search_config({"beam": 2, "avoid_copies": False})
    assert guards.faulty([source], [found[:1]], off) == {} and guards.best(source, found, off) == found[:1]
    assert guards.faulty([source], [found[1:]], config) == {}


@pytest.fixture
def imported(make):
    """The looper as a model of transformers: no guards, a maximum length of its own, and an end that is forced there."""
    made = make(3, max_source=48)
    made.model.bias[LAST] -= 1.2
    made.decoding = DecodingConfig(beam=4, max_length=30, force_end=True, max_growth=0.1, **OFF)
    return made


def test_guards_are_switched_on_for_a_model_that_came_without(imported, many):
    plain = imported.translate(many)
    assert any(looping(imported, plain)) and any(len(one.tokens) == 30 for one in plain)
    assert not any(looping(imported, imported.translate(many, avoid_loops=True)))
    ended = imported.translate(many, avoid_overlong=True)
    limits = [int(0.1 * (len(imported.source.encode([text])[0]) + 1)) + 20 for text in many]
    assert all(len(one.tokens) <= most < 30 for one, most in zip(ended, limits, strict=True))
    assert all(one.tokens[-1] == "</s>" for one in ended)
    own = imported.search_config({"avoid_overlong": True, "max_length": 12})  # what is given is a limit still
    assert own.max_length == 12 and imported.search_config({"avoid_loops": True}).max_length == 30


def test_a_guard_that_could_not_work_is_refused(imported):
    for name in ("avoid_overlong", "avoid_copies"):
        imported.facts["languages"] = {"source": "ko", "target": "en"}
        for search, why in (({"beam": 1}, "greedy search"), ({"sample": True}, "sampling")):
            with pytest.raises(ValueError, match=rf"{name} is true, but {why}.* use a beam search .* or leave it out"):
                imported.search_config({name: True, **search})
        samples = {"rerank": "mbr", "candidates_from": "samples"}
        with pytest.raises(
            ValueError, match=rf'{name} is true, but samples .* set candidates_from to "beam" or "both"'
        ):
            imported.search_config({name: True, **samples})
        assert getattr(imported.search_config({name: True, "rerank": "mbr", "beam": 1}), name)
        assert getattr(imported.search_config({name: True, **samples, "candidates_from": "both"}), name)
        assert imported.search_config({name: False, "beam": 1}).beam == 1
    assert imported.search_config({"avoid_copies": True}).avoid_copies
    imported.facts["languages"] = {"source": "ko", "target": "ko"}
    with pytest.raises(ValueError, match="avoid_copies is true, but the model translates from a language into itself"):
        imported.search_config({"avoid_copies": True})
    imported.facts["languages"] = None
    with pytest.raises(ValueError, match="between unknown languages, where a copy may be right: leave it out"):
        imported.search_config({"avoid_copies": True})

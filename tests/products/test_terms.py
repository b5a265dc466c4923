"""Terms of a glossary in what a translator says."""

import math
import unicodedata
from functools import reduce
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from heed.decoding.config import DecodingConfig
from heed.decoding.terms import Automaton
from heed.models.seq2seq import Seq2Seq, Seq2SeqConfig
from heed.products.translator import documents, passages, term_tokens
from heed.products.translator.alignment import words_of
from heed.products.translator.attention_trace import AlignmentRows
from heed.products.translator.term_search import SHARED_PREFIX, TermSearch, word_forms
from heed.products.translator.term_tokens import TermEncoder
from heed.products.translator.translator import Translator
from heed.text.glossary import Glossary
from heed.vocabularies import marian, words
from tests import fixed_pairs
from tests.convert.small import ENDS, package, speaking

TERMS = {"우유": "milk tea", "책": "Tobigs", "친구": "한국어"}


@pytest.fixture(scope="module")
def spoken():
    """Sentences with terms, one with two of them, and one with none."""
    found = [pair.source for pair in fixed_pairs.pairs("train", 400)]
    own = [next(text for text in found if Glossary({term: "x"}).matches(text)) for term in TERMS]
    none = next(text for text in found if not Glossary(TERMS).matches(text))
    return [*own, f"{own[0]} {own[1]}", none]


def flat(translations):
    return [(t.text, t.score, [c.text for c in t.nbest]) for t in translations]


@pytest.mark.parametrize("options", [{"beam": 1, "max_length": 14}, {"nbest": 3, "max_length": 14, "no_repeat": 2}])
def test_every_term_stands_in_the_translation(translator, spoken, options):
    found = translator.translate(spoken, glossary=TERMS, **options)
    for text, translation in zip(spoken, found, strict=True):
        wanted = [match.target for match in Glossary(TERMS).matches(text)]
        assert [term.target for term in translation.terms] == wanted
        assert not translation.missing
        for candidate in translation.nbest:
            for term in wanted:
                assert Glossary({term: "x"}).matches(candidate.text), (term, candidate.text)
    assert found[-1].terms == []
    assert len(found[-2].terms) >= 2


def test_texts_without_terms_are_translated_as_without_a_glossary(translator, texts, spoken):
    plain = translator.translate([*texts, spoken[-1]])
    assert flat(translator.translate([*texts, spoken[-1]], glossary={"없는 말": "x"})) == flat(plain)
    assert flat([translator.translate(spoken[1:], glossary=TERMS)[-1]]) == flat(plain[-1:])


def test_together_and_alone_are_the_same(translator, spoken):
    options = {"glossary": TERMS, "max_length": 12, "nbest": 2}
    together = translator.translate(spoken[1:3], **options)
    for text, one in zip(spoken[1:3], together, strict=True):
        alone = translator.translate(text, **options)
        assert (alone.text, alone.terms) == (one.text, one.terms)
        assert alone.score == pytest.approx(one.score, abs=1e-10)


def test_the_scores_of_tokens_add_up(translator, spoken):
    for one in translator.translate(spoken[:2], glossary=TERMS, max_length=12):
        assert len(one.token_scores) == len(one.tokens)
        assert one.score == pytest.approx(sum(one.token_scores) / ((5 + len(one.tokens)) / 6) ** 0.6, abs=1e-10)


def test_a_term_that_the_model_says_anyway_changes_nothing(translator, texts):
    plain = translator.translate(texts, beam=3)
    for one in plain:
        words = one.text.split()
        if len(words) > 1 and words[1].isalpha():
            again = translator.translate(one.source, glossary={one.source.split()[0].strip(".,"): words[1]}, beam=3)
            assert again.text == one.text
            assert all(term.met for term in again.terms)


def test_a_term_is_not_put_off_until_nothing_else_fits(translator, spoken, monkeypatch):
    monkeypatch.setattr(TermSearch, "replaced_tokens", lambda self, ids, *_: [{} for _ in ids])
    for one in translator.translate(spoken[:2], glossary=TERMS, max_length=30, avoid_loops=False):
        ids, own = one.ids, translator.term_encoder.missing
        terms = [translator.term_encoder.term(term.target) for term in one.terms]
        said = next(end for end in range(len(ids) + 1) if not own(terms, ids[:end]))
        assert said < 20


def test_what_is_kept_stays(translator):
    found = translator.translate(["Heed는 책을 읽어요.", "나는 책을 읽어요."], keep=["Heed"], max_length=20)
    assert "Heed" in found[0].text.replace(".", " ").split() or Glossary({"Heed": "x"}).matches(found[0].text)
    assert [(term.source, term.target, term.met) for term in found[0].terms] == [("Heed", "Heed", True)]
    assert not found[1].terms


def test_as_often_as_in_the_text(translator):
    found = translator.translate("책은 책이에요. 책!", glossary={"책": "book"}, max_length=16)
    assert found.text.lower().count("book") >= 3
    assert len(found.terms) == 3


def test_what_there_is_no_room_for_is_told(translator):
    long = "an answer far longer than there is room for"
    found = translator.translate("나는 우유와 책을 좋아해요.", glossary={"우유": long, "책": "milk"}, max_length=6)
    assert [(term.target, term.met) for term in found.terms] == [(long, False), ("milk", True)]
    assert [term.target for term in found.missing] == [long]
    assert "milk" in found.text.lower()


def test_a_prefix_and_terms_go_together(translator, spoken):
    found = translator.translate(spoken[1], glossary=TERMS, prefix="We are", max_length=12)
    assert found.text.startswith("We are")
    assert not found.missing


def test_a_text_in_parts_has_its_terms_in_each(translator, spoken):
    long = " ".join(spoken[:3])
    found = translator.translate(long, glossary=TERMS, max_length=12)
    assert len(found.parts) > 1
    assert len(found.terms) == len(Glossary(TERMS).matches(long))
    assert found.terms == [term for part in found.parts for term in part.terms]
    assert not found.missing


def test_a_term_that_was_cut_through_is_told_to_be_missing(translator):
    text, term = " ".join(["가나"] * 40), " ".join(["가나"] * 30)
    found = translator.translate(text, glossary={term: "x"})
    assert len(found.parts) > 1
    assert [(own.target, own.met) for own in found.terms] == [("x", False)]


def test_other_engines_leave_terms_to_heeds_own(spoken, make, texts):
    fast = make(16, max_source=48)
    for model in fast.models:
        model.float()
    fast.use("ctranslate2")
    plain = fast.translate([*texts, *spoken], max_length=12, avoid_loops=False)
    found = fast.translate([*texts, *spoken], max_length=12, avoid_loops=False, glossary=TERMS)
    assert not any(one.missing for one in found)
    assert sum(bool(one.terms) for one in found) > 3
    for one, other in zip(plain, found, strict=True):
        if not other.terms:
            assert flat([one]) == flat([other])
            assert one.token_scores == other.token_scores


@pytest.mark.parametrize("attention", ["additive", "off"])
def test_a_recurrent_model_says_its_terms_too(vocabulary, attention):
    torch.manual_seed(0)
    sizes = {"dim": 8, "hidden": 12, "decoder_layers": 2, "max_length": 64}
    model = Seq2Seq(Seq2SeqConfig(len(vocabulary), attention=attention, **sizes)).double().eval().requires_grad_(False)
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.4)
    own = Translator([model], (vocabulary, vocabulary), decoding=DecodingConfig(beam=2, max_length=16))
    found = own.translate("나는 책과 우유를 좋아해요.", glossary={"책": "milk", "우유": "tea"})
    assert [(term.target, term.met) for term in found.terms] == [("milk", True), ("tea", True)]
    assert all(term in found.text for term in ("milk", "tea"))


def test_an_ensemble_says_its_terms_too(make):
    found = make(16, 17).translate("나는 책을 읽어요.", glossary=TERMS, max_length=16, nbest=2)
    assert not found.missing
    assert all(Glossary({"Tobigs": "x"}).matches(candidate.text) for candidate in found.nbest)


@pytest.mark.parametrize(("kind", "force"), [("marian", True), ("bart", True), ("bart", False), ("pegasus", True)])
def test_models_of_other_families_say_their_terms_too(kind, force):
    own = speaking(package(kind), ENDS[kind])
    decoding = DecodingConfig(beam=2, max_length=14, force_begin=force)
    found = Translator([own.model], own.vocabularies, decoding=decoding).translate(
        "나는 책과 우유를 좋아해요.", glossary={"책": "book", "우유": "milk"}
    )
    assert not found.missing
    assert all(Glossary({term: "x"}).matches(found.text) for term in ("book", "milk")), found.text


def test_where_a_term_stands_is_told_in_what_is_read(translator):
    text = unicodedata.normalize("NFD", "나는 우유를 좋아해요.")
    (wanted,) = translator.term_encoder.required([text], Glossary({"우유": "milk"}), translator.decoding)
    ids = translator.source.encode([unicodedata.normalize("NFC", text)])[0]
    (start, end), *_ = wanted.spans
    assert translator.source.decode(ids[:start]) == "나는"
    assert translator.source.decode(ids[start:end]).startswith("우유")


def test_chance_and_a_glossary_do_not_go_together(translator):
    with pytest.raises(ValueError, match="sample is true, but glossary"):
        translator.translate("책", glossary=TERMS, sample=True)


def test_a_term_the_model_cannot_write_is_refused():
    vocabulary = words.Words([("<pad>", 0), ("<unk>", 0), ("<s>", 0), ("</s>", 0), ("a", 3), ("house", 2)])
    encoder = TermEncoder((vocabulary, vocabulary), 8, 20)
    assert {way.tokens for way in encoder.term("house", fixed=True)} == {(5,)}
    with pytest.raises(
        ValueError,
        match="the term 'zebra' cannot be encoded with the subwords of this model, which turn it into '<unk>'",
    ):
        encoder.term("zebra")


def test_a_term_longer_than_a_translation_is_refused(make):
    with pytest.raises(ValueError, match=r"the term 'xyz.*' has .* subwords, and this model generates at most 15"):
        make(16, max_length=16).translate("책", glossary={"책": "xyz" * 20})


def test_terms_are_not_remembered_for_ever(vocabulary, monkeypatch):
    monkeypatch.setattr(term_tokens, "MAX_CACHED", 3)
    own = TermEncoder((vocabulary, vocabulary), len(vocabulary), 100)
    for number in range(10):
        assert own.term(f"term {number}") == own.term(f"term {number}")
        assert len(own._cache) <= 3


def says(encoder, term, sentence, fixed=True):
    vocabulary = encoder.vocabulary
    ids = vocabulary.encode([sentence])[0]
    return not Automaton([encoder.term(term, fixed)], encoder.letters).missing_terms(ids)


@pytest.fixture(scope="module", params=["own", "marian"])
def encoder(request, vocabulary, pairs):
    if request.param == "own":
        return TermEncoder((vocabulary, vocabulary), len(vocabulary), 100)
    vocabulary = marian.learn([text for pair in pairs for text in (pair.source, pair.target)], 700)[1]
    return TermEncoder((vocabulary, vocabulary), len(vocabulary) + 3, 100)


@pytest.mark.parametrize("term", ["milk", "Tobigs", "투빅스", "Studio 54", "C++", "東京"])
def test_a_term_is_seen_in_every_place_where_it_is_a_word(encoder, term):
    assert len(encoder.letters.extends) == encoder.vocab_size
    for sentence in (f"{term} is here", f"here is {term}.", f"the ({term}) of", f'a "{term}"!', f"{term}"):
        assert says(encoder, term, sentence), sentence


def test_a_term_within_a_word_does_not_count(encoder):
    for term, other in (("milk", "milkman"), ("milk", "Xmilk"), ("투빅스", "대학투빅스")):
        ids = [*encoder.term(term)[0].tokens]
        assert not says(encoder, term, f"a {other} here") or encoder.vocabulary.encode([other])[0] != ids
    join = encoder.vocabulary.encode(["(xs"])[0][-1]
    own = next(way.tokens for way in encoder.term("milk", fixed=True) if not way.inside)
    automaton = Automaton([encoder.term("milk", fixed=True)], encoder.letters)
    assert not automaton.missing_terms(own)
    assert automaton.missing_terms([*own, join])
    particle = encoder.vocabulary.encode(["(가"])[0][-1]
    assert not automaton.missing_terms([*own, particle])


def test_a_capital_is_for_the_beginning_of_a_sentence(encoder):
    assert says(encoder, "milk", "Milk is good", fixed=False)
    assert not says(encoder, "milk", "Milk is good", fixed=True)
    assert not says(encoder, "milk", "good Milk", fixed=False)
    assert says(encoder, "milk", "good milk", fixed=False)


def test_letters_are_known_by_their_tokens(encoder):
    pieces = encoder.vocabulary.pieces(range(len(encoder.vocabulary)))
    begin, end = (part.tolist() for part in encoder.letters)
    for piece, starts, ends in zip(pieces, begin, end, strict=False):
        if piece.isascii() and piece.isalpha():
            assert starts and ends
        if piece.startswith("▁"):
            assert not starts
    byte = pieces.index("<0xED>")
    assert (begin[byte], end[byte]) == (False, True)
    assert torch.is_tensor(encoder.letters.extends)


def attending(at):
    """Alignment rows as if target token i had attended to source token at[i] alone."""

    class Rows(AlignmentRows):
        def of(self, cross):
            weights = np.full((len(cross[0]), cross[0].shape[2], cross[0].shape[3]), 0.01)
            for row, position in enumerate(at):
                weights[:, row, position] = 1
            return weights

    return Rows(0, after=False)


def test_a_term_replaces_the_word_that_attended_to_it(translator):
    target = translator.target
    said = target.encode(["We like milk."])[0]
    numbers = words_of(target.pieces(said))
    source = translator.source.encode(["우리는 우유를 좋아해요."])[0]
    wanted = translator.term_encoder.required(
        ["우리는 우유를 좋아해요."], Glossary({"우유": "book"}), translator.decoding
    )
    (start, _), *_ = wanted[0].spans
    assert translator.source.decode(source[:start]) == "우리는"
    at = [{0: 0, 1: len(source), 2: start}[number] for number in numbers]
    terms = TermSearch(translator.bundle, translator.term_encoder, attending(at))
    found = terms.replaced_tokens([source], [[*said, target.special.last]], wanted, 4096)[0]
    first = said[numbers.index(2)]
    own = [way for way in wanted[0].terms[0] if not (way.inside or way.initial)]
    assert first in found[own[0].tokens[0]]
    assert all(target.pieces([token])[0].startswith("▁") for token in found[own[0].tokens[0]])
    terms = TermSearch(translator.bundle, translator.term_encoder, attending([len(source)] * len(said)))
    assert terms.replaced_tokens([source], [said], wanted, 4096) == [{}]


def test_forms_of_a_word_are_alike(encoder):
    vocabulary = encoder.vocabulary
    pieces = vocabulary.pieces(range(len(vocabulary)))
    whole = [i for i, piece in enumerate(pieces) if piece.startswith("▁") and piece[1:].isalpha() and len(piece) > 4]
    for i in whole[:20]:
        word = pieces[i][1:]
        least = max(2, math.ceil(SHARED_PREFIX * len(word)))
        each = {own for own, piece in enumerate(pieces) if piece.startswith("▁") and len(piece) > least}
        right = {own for own in each if word.startswith(pieces[own][1:]) or pieces[own][1:].startswith(word)}
        assert word_forms(encoder, i, word) == {i, *right}


KINDS = {
    "a.txt": "제목\n\n  - 하나 {name} 🙂 둘.\n  - https://heed.example/x 셋.\n\n\t끝 %s.\n",
    "a.md": "# 제목\n\n하나 **둘** `셋`.\n\n| 넷 | 다섯 |\n|---|---|\n| 여섯 | a@b.example |\n",
    "a.html": "<p>하나 <b>둘</b> 셋.</p>\n<!-- 넷 -->\n<img alt='다섯'>",
    "a.srt": "1\n00:00:01,000 --> 00:00:02,000\n<i>하나</i> 둘\n셋\n\n",
    "a.tsv": "하나\t둘 셋.\nx\t넷\n",
}


def said(text):
    return SimpleNamespace(nbest=[SimpleNamespace(text=text)], missing=[])


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("chunk", [1, 256])
def test_a_document_comes_back_from_a_translator_that_changes_nothing(make, monkeypatch, name, chunk):
    echo, told = make(16), []
    monkeypatch.setattr(passages, "CHUNK", chunk)
    monkeypatch.setattr(echo, "translate", lambda texts, glossary: list(map(said, texts)))
    monkeypatch.setattr(
        echo, "align_pairs", lambda one, other: [[(i, i) for i in range(len(text.split()))] for text in one]
    )
    column = {"column": 2} if name.endswith(".tsv") else {}
    data = KINDS[name].encode()
    done, missing = documents.translate_document(
        echo, data, name, progress=lambda *both: told.append(both), language="ko", **column
    )
    assert (done, missing) == (data, [])
    assert told[-1][0] == told[-1][1] > 0
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_a_document_has_its_terms(translator):
    text = "나는 책을 좋아해요.\n\n  - 나는 우유를 좋아해요.\n"
    done, missing = documents.translate_document(
        translator, text.encode(), "a.txt", glossary={"책": "Tobigs", "우유": "x" * 50}, max_length=12
    )
    assert "Tobigs" in done.decode()
    assert "\n\n  - " in done.decode()
    assert [term.source for term in missing] == ["우유"]


def test_a_term_is_missing_in_a_document_once_however_often_it_was_asked_for(make, monkeypatch):
    echo, asked = make(16), []

    def translate(texts, glossary):
        asked.extend(texts)
        changes = [("{n}", ""), ("책", "it"), *([] if any("`" in text for text in texts) else [("x", "y")])]
        return [said(reduce(lambda own, both: own.replace(*both), changes, text)) for text in texts]

    monkeypatch.setattr(echo, "translate", translate)
    monkeypatch.setattr(echo, "align_pairs", lambda one, other: [[] for _ in one])
    page = "<p>책 {n} <code>x</code> 요.</p><p>it 책.</p>".encode()
    done, missing = documents.translate_document(
        echo, page, "a.html", language="ko", glossary={"책": "book", "요": "IT"}
    )
    assert "{n}" in done.decode() and "<code>x</code>" in done.decode()
    assert [text for text in asked if "x" in text or "X" in text] == [
        "책 {n} x 요.",
        "책 {n} x 요.",  # searched for what was lost
        "책 X1 x 요.",
        "책 {n} `x` 요.",
        "책 {n} `x` 요.",
        "책 X1 X2 요.",
    ]
    assert [(term.source, term.met) for term in missing] == [("책", False), ("책", False)]


def test_a_document_of_another_name_is_read_as_it_is_said_to_be(translator):
    done, _ = documents.translate_document(translator, "나\t책\n".encode(), "a.dat", kind="tsv", column=2)
    assert done.decode().startswith("나\t")
    with pytest.raises(ValueError, match="format is 'pdf'; it must be text, md, html, srt, vtt, tsv, docx"):
        documents.translate_document(translator, b"", "a.dat", kind="pdf")

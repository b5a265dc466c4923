"""A translator of several directions: each one is the model with a tag before its source, and nothing else."""

import pickle

import pytest

from heed.decoding.config import DecodingConfig
from heed.products.translator.directions import Directions
from heed.products.translator.translator import Translator
from heed.vocabularies.sentencepiece import SubwordsConfig, learn
from tests.products.conftest import drawn

DIRECTIONS = [["ko", "en"], ["ko", "de"]]


@pytest.fixture(scope="module")
def tagged(pairs):
    texts = [text for pair in pairs for text in (pair.source, pair.target)]
    return learn(texts, SubwordsConfig(), 600, [">>en<<", ">>de<<"])


@pytest.fixture(scope="module")
def model(tagged):
    made = drawn(tagged, 16)
    made.bias[list(tagged.tags.values())] += 100  # it would write tags at every step
    return made


@pytest.fixture(scope="module")
def many(model, tagged):
    facts = {"directions": DIRECTIONS, "languages": {"source": "ko", "target": None}}
    return Translator(
        [model], (tagged, tagged), decoding=DecodingConfig(beam=3, max_length=8), facts=facts, max_source=48
    )


def test_a_direction_is_the_search_with_its_tag_before_the_source(many, tagged, texts):
    each = {target: many.translate(texts, target=target, avoid_loops=False) for target in ("en", "de")}
    for target, found in each.items():
        ids = [[tagged.tags[f">>{target}<<"], *own] for own in tagged.encode(texts)]
        expected = [own[0] for own in many.bundle.search(ids, many.decoding)]
        assert [own.ids for own in found] == [own.tokens for own in expected]
        assert [own.score for own in found] == pytest.approx([own.score for own in expected])
    assert [own.text for own in each["en"]] != [own.text for own in each["de"]]


@pytest.mark.parametrize("search", [{"beam": 3}, {"beam": 1}, {"sample": True, "temperature": 5.0}])
@pytest.mark.parametrize("engine", ["torch", "auto"])
def test_tags_are_never_written(many, tagged, texts, search, engine):
    many.use(engine)
    found = many.translate(texts, target="de", nbest=search.get("beam", 3), **search)
    tokens = {token for own in found for candidate in own.nbest for token in candidate.tokens}
    assert tokens and not tokens & set(tagged.tags)


def test_the_engines_read_the_tag_alike(tagged, texts):
    facts = {"directions": DIRECTIONS}
    made = Translator([drawn(tagged, 16).float()], (tagged, tagged), facts=facts, decoding=DecodingConfig(max_length=8))
    torch = [own.text for own in made.translate(texts, target="de")]
    made.use("ctranslate2", "float32")
    assert [own.text for own in made.translate(texts, target="de")] == torch
    assert made.toward(target="de").engine() == "ctranslate2-float32"


def test_a_text_that_looks_like_a_tag_is_text(many, tagged, texts):
    (own,) = many.translate([f">>en<< {texts[0]}"], target="de")
    assert own.source_tokens[0] == ">>de<<" and ">>en<<" not in own.source_tokens
    assert own.source == f">>en<< {texts[0]}"


def test_everything_else_of_a_translation_is_about_the_text_without_its_tag(many, texts):
    german = many.toward(target="de")
    (own,) = german.translate(texts[:1])
    assert own.source == texts[0] and own.source_tokens[0] == ">>de<<"
    assert own.attentions["cross"].shape[-1] == len(own.source_tokens)
    assert {i for i, _ in own.alignment} <= set(range(len(texts[0].split())))
    (score,) = german.score([own.source], [own.text])
    assert score.logp != many.toward(target="en").score([own.source], [own.text])[0].logp
    assert german.look(texts[0]).target_text == own.text
    long = " ".join(texts)
    assert all(part.source_tokens[0] == ">>de<<" for part in german.translate(long).parts)


def test_a_direction_that_is_missing_or_unknown_is_one_sentence_with_those_there_are(many, texts, tmp_path):
    known = "ko to en, ko to de"
    for ask in (
        many.translate,
        many.look,
        lambda text: many.score([text], [text]),
        lambda text: many.align_pairs([text], [text]),
    ):
        with pytest.raises(ValueError, match=f"the model translates {known}: choose one with --to or --from"):
            ask(texts[0])
    with pytest.raises(ValueError, match=f"^the model does not translate to fr; it translates {known}$"):
        many.translate(texts, target="fr")
    with pytest.raises(ValueError, match=f"^the model does not translate from en to de; it translates {known}$"):
        many.toward("en", "de")
    with pytest.raises(ValueError, match=r"^the model does not translate to en; it translates ko to de$"):
        many.toward(target="de").translate(texts, target="en")


def test_a_plain_model_has_one_direction_or_does_not_say(make, texts):
    plain, known = make(16), make(16, facts={"languages": {"source": "ko", "target": "en"}})
    assert (plain.directions, known.directions) == ([], [("ko", "en")])
    assert known.toward(target="en") is known and plain.toward() is plain
    assert known.translate(texts[0], source="ko", target="en").text == plain.translate(texts[0]).text
    with pytest.raises(ValueError, match="does not specify its languages, so it cannot be asked to translate to en"):
        plain.translate(texts, target="en")
    several = Directions(plain.bundle.vocabularies, {"directions": [["a", "x"], ["b", "x"], ["b", "y"]]})
    assert several.choose("a") == ("a", "x")


def test_a_vocabulary_with_a_tag_is_still_one_after_a_journey(tagged):
    own = pickle.loads(pickle.dumps(tagged.with_tag(">>de<<")))
    assert own.special.before == (tagged.tags[">>de<<"],) and own.key() == tagged.key()
    assert tagged.special.before == (), "the first one stays as it is"

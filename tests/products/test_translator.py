"""Text in, text out: what must not matter does not, and what is said beside the text is true."""

import itertools

import numpy as np
import pytest
import torch

from heed.nn.attention import record
from heed.products.translator.results import Translation
from heed.products.translator.translator import Translator
from heed.vocabularies.sentencepiece import FIRST, LAST, clean

WAYS = [
    {},
    {"beam": 1},
    {"sample": True, "nbest": 2, "temperature": 1.5},
    {"no_repeat": 2, "nbest": 3, "min_length": 4},
]


def said(translations):
    """All that was found, to compare."""
    return [[(c.text, c.tokens) for c in t.nbest] for t in translations]


def scores(translations):
    return [score for t in translations for c in t.nbest for score in (c.score, *c.token_scores)]


def test_one_text_gives_one_translation_and_several_a_list(translator, texts):
    one = translator.translate(texts[0])
    assert isinstance(one, Translation)
    assert said([one]) == said(translator.translate(texts[:1]))
    assert translator.translate([]) == []


def test_texts_may_come_from_anywhere(translator, texts):
    assert said(translator.translate(text for text in texts[:3])) == said(translator.translate(texts[:3]))
    assert translator.score(iter(texts[:2]), iter(texts[1:3])) == translator.score(texts[:2], texts[1:3])
    assert translator.align_pairs(iter(texts[:2]), iter(texts[1:3])) == translator.align_pairs(texts[:2], texts[1:3])


def test_half_a_character_is_refused_with_its_place(translator, texts):
    with pytest.raises(ValueError, match=r"^text 2 has a lone surrogate at position 3 \(U\+D800\)"):
        translator.translate([texts[0], "abc\ud800"])
    with pytest.raises(ValueError, match=r"has a lone surrogate at position 3"):
        translator.score([texts[0]], ["abc\ud800"])
    with pytest.raises(ValueError, match=r"has a lone surrogate at position 3"):
        translator.translate(texts[0], prefix="abc\ud800")


def test_empty_lines_stay_empty_lines(translator, texts):
    found = translator.translate(["", texts[0], "  \t", texts[1], ""])
    assert [t.text == "" for t in found] == [True, False, True, False, True]
    assert said([found[1], found[3]]) == said(translator.translate(texts[:2]))
    for empty in (found[0], found[2]):
        assert (empty.tokens, empty.token_scores, empty.score, empty.alignment) == ([], [], 0.0, [])
        assert [c.text for c in empty.nbest] == [""]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_batches_give_what_sentences_give_alone(translator, texts, way):
    together = translator.translate(texts, **way)
    apart = translator.translate(texts, batch_tokens=1, **way)
    assert said(together) == said(apart)
    assert scores(together) == pytest.approx(scores(apart), abs=1e-10)


@pytest.mark.parametrize("way", WAYS[:2], ids=str)
def test_the_order_of_the_texts_does_not_matter(translator, texts, way):
    order = [3, 2, 4, 0, 1]
    shuffled = said(translator.translate([texts[i] for i in order], batch_tokens=60, **way))
    plain = said(translator.translate(texts, batch_tokens=60, **way))
    assert shuffled == [plain[i] for i in order]


def test_spaces_and_ways_to_write_a_character_do_not_matter(translator, texts):
    odd = "  " + texts[0].replace(" ", " \u3000 ") + "\n"
    assert said([translator.translate(odd)]) == said([translator.translate(texts[0])])
    assert said([translator.translate("re\u0301sume\u0301")]) == said([translator.translate("résumé")])


def test_the_best_of_n_are_different_and_in_order(translator, texts):
    for found in translator.translate(texts, beam=4, nbest=4):
        assert len(found.nbest) == 4
        assert len({tuple(c.tokens) for c in found.nbest}) == 4
        assert [c.score for c in found.nbest] == sorted((c.score for c in found.nbest), reverse=True)
        best = found.nbest[0]
        assert (found.text, found.score, found.tokens, found.token_scores) == (
            best.text, best.score, best.tokens, best.token_scores,
        )  # fmt: skip


def test_the_same_seed_draws_the_same_and_another_does_not(translator, texts):
    one, same, other = (said(translator.translate(texts, sample=True, seed=seed)) for seed in (1, 1, 2))
    assert one == same != other


def test_chance_without_a_choice_is_greedy(translator, texts):
    assert said(translator.translate(texts, sample=True, top_k=1)) == said(translator.translate(texts, beam=1))


def test_draws_of_one_sentence_differ(translator, texts):
    assert len({c.text for c in translator.translate(texts[0], sample=True, nbest=5).nbest}) > 2


@pytest.mark.parametrize("way", [{"no_repeat": 1}, *WAYS[1:3]], ids=str)
def test_a_prefix_opens_every_translation(translator, texts, way):
    prefixes = ["I love", "나는", "투빅아, 나는 나는", "", "Ünseen ▓"]
    found = translator.translate(texts, prefix=prefixes, batch_tokens=60, **way)
    for prefix, translation in zip(prefixes, found, strict=True):
        assert all(c.text.startswith(prefix) for c in translation.nbest)
        assert len(translation.text) > len(prefix)


def test_one_prefix_serves_all_texts(translator, texts):
    together = translator.translate(texts, prefix="I am")
    assert all(t.text.startswith("I am") for t in together)
    assert said(together) == said(translator.translate(texts, prefix=["I am"] * len(texts)))
    assert said(together[:1]) == said([translator.translate(texts[0], prefix="I am")])
    assert said(together[:1]) == said([translator.translate(texts[0], prefix=["I am"])])


def test_a_prefix_longer_than_the_longest_translation_is_still_said(translator, texts):
    assert translator.translate(texts[0], prefix="we wash the car", max_length=1).text.startswith("we wash the car")


def test_prefixes_that_do_not_fit_are_refused(translator, texts):
    with pytest.raises(ValueError, match="2 prefixes for 3 texts: give one per text, or one for all"):
        translator.translate(texts[:3], prefix=["a", "b"])
    with pytest.raises(ValueError, match=r"prefix 1 has \d+ subwords; the model allows 63"):
        translator.translate(texts[:3], prefix="x " * 80)


def test_limits_hold(translator, texts):
    for found in translator.translate(texts, max_length=5):
        assert len(found.tokens) <= 5
    for found in translator.translate(texts, min_length=6, no_repeat=2):
        assert len(found.tokens) > 6
        pairs = list(itertools.pairwise(found.tokens))
        assert len(pairs) == len(set(pairs))


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_special_tokens_are_never_in_a_translation(make, texts, way):
    tempted = make(16)
    tempted.model.bias[:LAST] += 30
    for found in tempted.translate(texts, **way):
        assert not {"<pad>", "<unk>", "<s>"} & set(found.tokens)


def test_every_text_is_one_line(make, texts, vocabulary):
    """Bytes can spell line breaks."""
    breaking = make(16)
    newline = vocabulary.processor.piece_to_id("<0x0A>")
    breaking.model.bias[newline] = breaking.model.bias.max() + 30
    found = breaking.translate(texts[0], max_length=6, prefix="a")
    assert "<0x0A>" in found.tokens
    assert found.text == "a"


@pytest.fixture(scope="session")
def long(pairs):
    return " ".join(pair.source for pair in pairs[:7])


@pytest.mark.parametrize("cut", [lambda text: text, lambda text: text.replace(".", "").replace("?", "")])
def test_a_long_text_is_translated_in_parts(translator, long, cut):
    long = cut(long)
    whole = translator.translate(long)
    assert len(whole.parts) > 2
    assert [word for part in whole.parts for word in part.source.split()] == long.split()
    assert all(len(part.source_tokens) <= 48 for part in whole.parts)
    assert said(whole.parts) == said(translator.translate([part.source for part in whole.parts]))
    assert whole.text == " ".join(part.text for part in whole.parts)
    assert whole.tokens == [token for part in whole.parts for token in part.tokens]
    assert whole.token_scores == [score for part in whole.parts for score in part.token_scores]
    assert whole.source_tokens == [token for part in whole.parts for token in part.source_tokens]
    assert whole.score == pytest.approx(sum(part.score for part in whole.parts))


def test_long_texts_do_not_disturb_their_neighbours(translator, texts, long):
    found = translator.translate([texts[0], long, "", texts[1]], prefix="We")
    assert said([found[0], found[3]]) == said(translator.translate(texts[:2], prefix="We"))
    assert said([found[1]]) == said([translator.translate(long, prefix="We")])
    assert found[1].parts[0].text.startswith("We")
    assert not all(part.text.startswith("We") for part in found[1].parts)


def test_a_long_text_is_refused_where_that_was_asked(translator, texts, long):
    size = len(translator.source.encode([long])[0]) + 1
    words = f"text 2 has {size} subwords, and the model reads at most 48: shorten it, or translate it in parts"
    with pytest.raises(ValueError, match=words):
        translator.translate([texts[0], long], too_long="refuse")
    with pytest.raises(ValueError, match="text 1 has 49 subwords, and the model reads at most 48"):
        translator.score([" ".join("a" * 48)], ["a"])
    assert len(translator.score([" ".join("a" * 47)], ["a"])) == 1
    with pytest.raises(ValueError, match="too_long is 'drop'; it must be 'split', 'cut' or 'refuse'"):
        translator.translate(texts, too_long="drop")


def test_of_a_long_text_the_beginning_is_read_where_that_was_asked(translator, texts, long):
    """As much as there is room for, in whole words."""
    short, cut = translator.translate([texts[0], long], too_long="cut")
    assert short.source == texts[0]
    assert not cut.parts
    assert long.startswith(cut.source + " ")
    rest = long[len(cut.source) :].split()
    sizes = [len(translator.source.encode([text])[0]) + 1 for text in (cut.source, f"{cut.source} {rest[0]}")]
    assert sizes[0] <= 48 < sizes[1]
    assert said([cut]) == said([translator.translate(cut.source)])


def test_settings_of_the_search_are_checked_by_name(translator, texts):
    with pytest.raises(ValueError, match=r"beams: no such setting; did you mean beam\?"):
        translator.translate(texts, beams=3)
    with pytest.raises(ValueError, match="beam: 'many' is not an integer"):
        translator.translate(texts, beam="many")
    with pytest.raises(ValueError, match="nbest is 4, but beam is 3"):
        translator.translate(texts, nbest=4)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_token_scores_add_up_to_the_score(translator, texts, way):
    for found in translator.translate(texts, length_penalty=0.8, **way):
        for c in found.nbest:
            assert len(c.token_scores) == len(c.tokens)
            assert c.score == pytest.approx(sum(c.token_scores) / ((5 + len(c.tokens)) / 6) ** 0.8)


def test_what_a_translation_scored_is_what_it_scores_when_shown(make, pairs):
    """Made to say what its vocabulary makes of a text, and then to end: read again, the tokens are the same."""
    sources, targets = [p.source for p in pairs[:9]], [p.target for p in pairs[:9]]
    ending = make(16)
    ending.model.bias[LAST] += 30
    found = ending.translate(sources, prefix=targets)
    for translation, score in zip(found, ending.score(sources, targets), strict=True):
        assert translation.text == score.target
        assert translation.tokens == score.tokens
        assert translation.token_scores == pytest.approx(score.token_scores, abs=1e-10)
        assert score.logp == pytest.approx(sum(score.token_scores))


def test_scores_do_not_depend_on_the_batch(translator, pairs):
    sources, targets = [p.source for p in pairs[:9]], [p.target for p in pairs[:9]]
    together, apart = (translator.score(sources, targets, batch_tokens=tokens) for tokens in (4096, 1))
    for one, other in zip(together, apart, strict=True):
        assert (one.source, one.target, one.tokens) == (other.source, other.target, other.tokens)
        assert one.token_scores == pytest.approx(other.token_scores, abs=1e-10)


def test_pairs_that_do_not_fit_are_refused(translator):
    for asked in (translator.score, translator.align_pairs):
        with pytest.raises(ValueError, match="2 sources and 1 targets: there must be as many of both"):
            asked(["a", "b"], ["a"])
        with pytest.raises(ValueError, match=r"target 2 has \d+ subwords; the model allows 63"):
            asked(["a", "b"], ["a", "b " * 99])
    for asked in (translator.align_pairs, lambda s, t: translator.attentions(s[0], t[0])):
        with pytest.raises(ValueError, match=r"source 1 has \d+ subwords; the model allows 63"):
            asked(["a " * 99], ["a"])


def test_a_pair_that_just_fits_is_not_refused(translator):
    fits, longer = " ".join("a" * 63), " ".join("a" * 64)
    assert [len(ids) for ids in translator.source.encode([fits, longer])] == [63, 64]
    assert translator.attentions(fits, fits)["cross"].shape == (2, 2, 64, 64)
    assert translator.translate("a", prefix=fits).text.startswith(fits)
    for source, target in ((longer, "a"), ("a", longer)):
        with pytest.raises(ValueError, match="1 has 64 subwords; the model allows 63"):
            translator.attentions(source, target)


def within(links, source, target):
    words = len(source.split()), len(target.split())
    return all(0 <= i < words[0] and 0 <= j < words[1] for i, j in links)


def test_alignments_name_words_that_are_there(translator, pairs):
    sources, targets = [p.source for p in pairs[:12]], [p.target for p in pairs[:12]]
    first, second, *found = translator.align_pairs(["", "a", *sources], ["a", "", *targets], batch_tokens=100)
    assert first == second == []
    for links, source, target in zip(found, sources, targets, strict=True):
        assert within(links, source, target)
        assert sorted(j for _, j in links) == list(range(len(target.split())))  # a link for each target word
        assert links == translator.align_pairs([source], [target])[0]
    assert len({i for links in found for i, _ in links}) > 3


def test_a_translation_knows_its_alignment(translator, texts):
    found = translator.translate(texts)
    assert [t.alignment for t in found] == translator.align(found, batch_tokens=50)
    assert all(within(t.alignment, t.source, t.text) for t in found)


def test_alignments_of_parts_are_counted_in_the_whole(translator, long):
    whole = translator.translate(long)
    source = target = 0
    expected = []
    for part in whole.parts:
        expected += [(i + source, j + target) for i, j in part.alignment]
        source, target = source + len(part.source.split()), target + len(part.text.split())
    assert whole.alignment == expected
    assert within(whole.alignment, whole.source, whole.text)


def test_a_word_too_long_for_the_model_stays_one_word_in_the_alignment(translator):
    whole = translator.translate("a " + "qxzj" * 40 + " b")
    assert len(whole.parts) > 3
    assert within(whole.alignment, whole.source, whole.text)


def test_attentions_have_a_row_for_each_token_and_sum_to_one(translator, texts):
    for found in (*translator.translate(texts), *translator.translate(texts[:2], max_length=3)):
        maps, s, t = found.attentions, len(found.source_tokens), len(found.tokens)
        assert {name: own.shape for name, own in maps.items()} == {
            "encoder": (1, 2, s, s), "decoder": (2, 2, t, t), "cross": (2, 2, t, s),
        }  # fmt: skip
        for own in maps.values():
            np.testing.assert_allclose(own.sum(-1), 1, atol=1e-5)
        assert (np.triu(maps["decoder"], 1) == 0).all()


def test_attentions_are_those_the_model_had(translator, pairs):
    source, target = pairs[0].source, pairs[0].target
    ids = [translator.source.encode([source])[0] + [LAST]], [[FIRST] + translator.target.encode([target])[0]]
    with record(translator.model) as maps, torch.no_grad():
        translator.model(*map(torch.tensor, ids))
    found = translator.attentions(source, target)
    for name, numbers in {"encoder": [0], "decoder": [1, 3], "cross": [2, 4]}.items():
        np.testing.assert_allclose(found[name], torch.cat([maps[i] for i in numbers]).numpy(), atol=1e-6)
    forced = translator.translate(source, prefix=target).attentions
    length = len(ids[1][0])
    np.testing.assert_allclose(forced["cross"][:, :, :length], found["cross"], atol=1e-6)


def test_a_text_in_parts_has_the_attentions_of_its_parts(translator, long):
    whole = translator.translate(long)
    with pytest.raises(ValueError, match=rf"translated in {len(whole.parts)} parts: get the attentions from each part"):
        _ = whole.attentions
    assert whole.parts[0].attentions["cross"].shape[2] == len(whole.parts[0].tokens)


def test_a_model_beside_itself_translates_as_alone(make, texts):
    assert said(make(16, 16).translate(texts)) == said(make(16).translate(texts))


def test_an_ensemble_scores_by_the_mean_of_probabilities(make, pairs):
    source, target = [pairs[0].source], [pairs[0].target]
    one, other, both = (make(*seeds).score(source, target)[0].token_scores for seeds in ([16], [131], [16, 131]))
    mean = (np.exp(one) + np.exp(other)) / 2
    assert both == pytest.approx(np.log(mean).tolist(), abs=1e-10)


def test_an_ensemble_allows_what_all_of_it_allow(make, texts):
    models, vocabulary = [make(16).model, make(131, max_length=20).model], make(16).source
    found = Translator(models, (vocabulary, vocabulary)).translate(texts, min_length=30, beam=2)
    assert {len(part.tokens) for t in found for part in t.parts or [t]} == {19}  # and a place for the end


def test_the_source_of_a_translation_is_the_text_made_clean(translator, long):
    assert translator.translate("  a   b ").source == "a b"
    assert translator.translate(long.replace(" ", "  ")).source == clean(long)


def test_a_twin_has_the_same_weights_and_no_module_in_common(make, texts):
    """So one may record its attention while the other translates, in two threads."""
    made = make(16)
    twin = made.twin()
    assert not {*made.model.modules()} & {*twin.model.modules()}
    pairs = zip(made.model.parameters(), twin.model.parameters(), strict=True)
    assert all(one is other for one, other in pairs)
    right = made.translate(texts)
    assert twin.translate(texts) == right and [one.text for one in twin.translate(texts)] == [one.text for one in right]
    with record(made.model) as maps:
        assert [one.text for one in twin.translate(texts)] == [one.text for one in right]
        assert not maps
    assert twin.align(right) == made.align(right)

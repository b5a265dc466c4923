"""Rules that need more than one pair: planted faults of each kind are found, and clean pairs are kept."""

import random
from dataclasses import asdict, replace
from itertools import product

import numpy as np
import pytest

from heed.data import cleaning as module
from heed.data import misaligned
from heed.data.cleaning import Cleaning
from heed.data.duplicates import SKIP_REASONS, Origin, find_skipped
from heed.data.filters import FilterReport, FiltersConfig
from heed.data.readers import Line
from heed.data.swapped import SideModel
from heed.text import language_id
from heed.vocabularies import words
from heed.vocabularies.sentencepiece import SubwordsConfig
from tests.data.conftest import DOES, WHAT, WHO

PLACES = [("in the garden", "im Garten"), ("on Monday", "am Montag"), ("again", "wieder"), ("with pleasure", "gern"),
          ("since yesterday", "seit gestern"), ("without a word", "ohne ein Wort"), ("at night", "in der Nacht")]  # fmt: skip
ALL_OFF = FiltersConfig(duplicates=False, overlap=False, swapped=False)


@pytest.fixture(scope="module")
def many() -> list[Line]:
    """1,260 pairs, all different, in a random order."""
    parts = product(WHO, DOES, WHAT, PLACES)
    pairs = [[" ".join(words) + "." for words in zip(*own, strict=True)] for own in parts]
    random.Random(4).shuffle(pairs)
    return [Line(source, target, f"train.en:{i}") for i, (source, target) in enumerate(pairs, 1)]


WORDS = words.learn(["a b"], SubwordsConfig(kind="words", least=1))


ONE_WAY = (Origin(),)
BOTH_WAYS = (Origin(0), Origin(1), Origin(0))  # of three corpora


def found(
    lines,
    pair=(WORDS, WORDS),
    *,
    holdout=0,
    valid=(),
    languages=((None, None),),
    sides=2,
    origins=ONE_WAY,
    tell=lambda what, done: None,
    **settings,
):
    """The rule for each line."""
    cleaning = Cleaning(replace(ALL_OFF, **settings), holdout, valid, languages, sides, origins)

    def read(corpora=(0, 1, 2)):
        return (line for line in lines if line.corpus in corpora)

    return [SKIP_REASONS[reason] for reason in cleaning.reasons(read, pair, tell)]


def turned(lines):
    return [line._replace(source=line.target, target=line.source) for line in lines]


def in_corpora(*each):
    """The lines of several corpora, one after the other."""
    return [line._replace(corpus=number) for number, lines in enumerate(each) for line in lines]


def where(rules, rule):
    return [i for i, own in enumerate(rules) if own == rule]


def test_duplicates_and_what_is_held_out_are_those_of_the_basic_rules(lines):
    mixed = random.Random(2).choices([*lines, Line("", "leer", "x"), Line("same", "same", "y")], k=500)
    config = replace(ALL_OFF, duplicates=True)
    basic = find_skipped(mixed, config, 20, share=0.1)
    rules = found(mixed, duplicates=True, holdout=20)
    bad = [not line.source or line.source == line.target for line in mixed]
    assert [rule for rule, no in zip(rules, bad, strict=True) if not no] == [
        SKIP_REASONS[reason] for reason, no in zip(basic, bad, strict=True) if not no
    ]
    assert {rule for rule, no in zip(rules, bad, strict=True) if no} == {"empty", "same"}


def test_how_much_was_read_is_told_from_the_first_line_on_and_not_for_each(lines):
    told = []
    assert list(module.counted(lines, "reading", lambda *progress: told.append(progress))) == list(lines)
    assert told == [("reading", 0)]


def test_swapped_pairs_are_found(many):
    planted = set(range(3, len(many), 40))
    lines = [Line(line.target, line.source, line.location) if i in planted else line for i, line in enumerate(many)]
    assert set(where(found(lines, swapped=True), "swapped")) == planted
    assert set(found(many, swapped=True)) == {None}
    assert set(found(lines)) == {None}


def test_sides_that_look_alike_are_not_swapped(many):
    draw = random.Random(3)
    texts = [line.source.rstrip(".").split() for line in many]
    alike = [Line(*(" ".join(draw.sample(own, len(own))) for _ in range(2)), "x:1") for own in texts]
    assert set(found(alike, swapped=True)) <= {None, "same"}
    assert not SideModel(many[:5]).swapped([Line("", "", "x"), Line("a", "b", "y"), Line(".", "", "z")]).any()


def test_letters_are_counted_text_by_text(many):
    """Many texts at once are what each is alone."""
    model = SideModel(many)
    odd = [Line("", "x", "1"), Line("ab", "", "2"), *many[:20], Line("a", "", "3")]
    together = [model._sums([line[side] for line in odd]) for side in range(2)]
    for side, (sums, counts) in enumerate(together):
        alone = [model._sums([line[side]]) for line in odd]
        assert np.allclose(sums, [own[0][0] for own in alone])
        assert counts.tolist() == [own[1][0] for own in alone]


@pytest.mark.parametrize("step", [-1, 1])
@pytest.mark.parametrize("chunk", [10_000, 7])
def test_a_block_of_shifted_targets_is_found(many, learned, monkeypatch, step, chunk):
    monkeypatch.setattr(module, "CHUNK", chunk)
    lines, planted = list(many), range(200, 240)
    for i in planted:
        lines[i] = many[i]._replace(target=many[i + step].target)
    shifted = set(where(found(lines, (learned, learned), misaligned=True), "misaligned"))
    differ = {i for i in planted if len(set(many[i].target.split()) - set(lines[i].target.split())) > 3}
    assert len(differ) > 25
    assert len(shifted & differ) > 0.8 * len(differ)
    assert len(shifted - set(planted)) <= 2  # the pairs beside the block share a target with it


def test_what_is_aligned_stays(many, learned):
    assert set(found(many, (learned, learned), misaligned=True)) == {None}


def test_a_lexicon_knows_what_goes_together(many, learned):
    ids = [learned.encode([line[side] for line in many]) for side in range(2)]
    lexicon = misaligned.learn(*ids, (len(learned), len(learned)))
    sources, targets = (misaligned.cut(side) for side in ids)
    own = lexicon.scores(sources, targets)
    mixed = lexicon.scores(sources, misaligned.cut(ids[1][700:] + ids[1][:700]))
    assert own.min() > mixed.mean() + 0.5
    empty = misaligned.cut([[], [5], []])
    assert np.isfinite(lexicon.scores(empty, misaligned.cut([[5], [], []]))).all()


def test_a_target_of_too_many_sources_is_filtered_beyond_the_limit(many):
    planted = range(0, 600, 20)
    lines = [line._replace(target="Read more.") if i in planted else line for i, line in enumerate(many)]
    assert where(found(lines, max_repeats=5), "repeats") == list(planted)[5:]
    lines = [line._replace(source="read  MORE") if i in planted else line for i, line in enumerate(many)]
    assert where(found(lines, max_repeats=5), "repeats") == list(planted)[5:]
    assert set(found(lines)) == {None}


def test_repeats_of_a_whole_pair_are_duplicates(many):
    lines = [*many[:50], *[many[0]] * 9]
    assert found(lines, max_repeats=2, duplicates=True)[50:] == ["duplicate"] * 9


@pytest.mark.parametrize(
    ("source", "target", "rule"),
    [
        ("It was 1984.", "Es war 1985.", "numbers"),
        ("It was 1984.", "Das war damals.", "numbers"),
        ("Two dogs and 3 cats", "2 Hunde und 4 Katzen", "numbers"),
        ("7 dogs", "sieben Hunde", None),
        ("1,000 or 2.50 at 2:30", "1.000 oder 2,50 um 2.30", None),
        ("1 000 and 05", "1000 und 5", None),
        ("１２ 本", "12 books", None),
        ("100,000 yen", "10万円", None),
        ("Who? What? Why? (see)", "Wer.", "punctuation"),
        ("Who?", "誰ですか。", None),
        ("He said: yes (or no).", "Er sagte: ja (oder nein).", None),
        ("It is 3.5, e.g. here.", "Es ist 3,5, z. B. hier.", None),
    ],
)
def test_sides_that_disagree_are_filtered(source, target, rule):
    lines = [Line(source, target, "x:1")]
    assert found(lines, numbers=True, max_punctuation=3) == [rule]
    assert found(lines) == [None]


VALID = [
    Line("The sea!", "etwas anderes", "v:1"),
    Line("something else", "BROT, und  Wein", "v:2"),
    Line("...", "!?", "v:3"),
]
TRAIN = [
    ("the  sea", "das Meer"),
    ("bread and wine", "Brot und Wein."),
    ("the seas", "die Meere"),
    ("?", "Was"),
    ("bread", "..."),
]


def test_pairs_that_share_a_side_with_the_validation_set_are_left_out():
    lines = [Line(*pair, f"t:{i}") for i, pair in enumerate(TRAIN)]
    assert found(lines, valid=VALID, overlap=True) == ["overlap", "overlap", None, None, None]
    assert found(lines, valid=VALID, overlap=True, sides=1) == ["overlap", None, None, None, None]
    assert found(lines, valid=VALID) == [None] * 5


def test_pairs_that_share_a_side_with_what_is_held_out_are_left_out(lines):
    again = [line._replace(source=line.source.upper(), target=f"{i}") for i, line in enumerate(lines)]
    more = [line._replace(source=f"{i} {i}", target=line.target.rstrip(".")) for i, line in enumerate(lines)]
    every = [*lines, *again, *more]
    rules = found(every, holdout=20, overlap=True)
    held = where(rules, "held out")
    sides = [{module.text_hash(every[i][side]) for i in held} for side in range(2)]
    for i, line in enumerate(every):
        shared = any(module.text_hash(line[side]) in sides[side] for side in range(2))
        assert rules[i] == ("held out" if i in held else "overlap" if shared else None)
    assert len(held) == 20 and len(where(rules, "overlap")) >= 15


def test_a_validation_pair_that_is_trained_the_other_way_round_is_left_out(many):
    lines, valid = many[:20], [many[3], many[7]._replace(target="etwas anderes")]
    one_sided = Line(many[5].target, "something else", "x")
    mixed = [*lines, *turned(lines), one_sided]
    rules = found(mixed, valid=[*valid, many[5]._replace(source="a text")], overlap=True)
    assert where(rules, "reversed") == [23], "without stated directions, both sides must be"
    assert where(rules, "overlap") == [3, 5, 7]
    assert set(found(mixed, valid=valid)) == {None}
    assert "reversed" not in found(mixed, valid=valid, overlap=True, sides=1)
    assert "reversed" not in found([Line("?", "!", "x")], valid=[Line("...", "--", "v")], overlap=True)


def test_in_a_model_of_several_directions_a_text_counts_on_either_side(many):
    a, b, c = many[:20], many[20:40], many[40:60]
    mixed = in_corpora(a, turned([*a, *b]), c)
    valid = [a[3], b[4]._replace(target="etwas anderes"), Line(c[5].target, "something else", "v", 1)]
    rules = found(mixed, valid=valid, overlap=True, origins=BOTH_WAYS)
    assert where(rules, "overlap") == [3]
    assert where(rules, "reversed") == [20 + 3, 20 + 20 + 4, 60 + 5]


def test_what_is_held_out_of_one_direction_is_not_trained_in_the_other(many):
    """Both directions of the same files: each held-out pair is in the other corpus, too."""
    mixed = in_corpora(many[:100], turned(many[:100]))
    rules = found(mixed, holdout=12, overlap=True, origins=BOTH_WAYS[:2])
    held = {frozenset(mixed[i][:2]) for i in where(rules, "held out")}
    kept = {frozenset(mixed[i][:2]) for i, rule in enumerate(rules) if rule is None}
    assert len(where(rules, "held out")) == 12 and len(where(rules, "reversed")) == 2 * len(held) - 12
    assert not held & kept


@pytest.mark.parametrize("chunk", [10_000, 7])
def test_swapped_pairs_are_found_in_each_direction(many, monkeypatch, chunk):
    monkeypatch.setattr(module, "CHUNK", chunk)
    clean = in_corpora(many[:500], turned(many[300:900]), many[900:])
    assert set(found(clean, swapped=True, origins=BOTH_WAYS)) == {None}
    planted, told = list(range(3, len(clean), 40)), []
    lines = [turned([line])[0] if i in set(planted) else line for i, line in enumerate(clean)]
    rules = found(lines, swapped=True, origins=BOTH_WAYS, tell=lambda what, done: told.append((what, done)))
    assert where(rules, "swapped") == planted
    done = [count for what, count in told if what == "comparing"]
    assert done == sorted(done) and done[-1] == len(lines)


def test_shifted_targets_are_found_in_each_direction(many, learned):
    clean = in_corpora(many[:600], turned(many[:1000]), many[600:])
    assert set(found(clean, (learned, learned), misaligned=True, origins=BOTH_WAYS)) == {None}
    lines, planted = list(clean), [*range(200, 240), *range(800, 840)]
    for i in planted:
        lines[i] = clean[i]._replace(target=clean[i + 1].target)
    shifted = set(where(found(lines, (learned, learned), misaligned=True, origins=BOTH_WAYS), "misaligned"))
    for part in (planted[:40], planted[40:]):
        differ = {i for i in part if len(set(clean[i].target.split()) - set(lines[i].target.split())) > 3}
        assert len(differ) > 25 and len(shifted & differ) > 0.8 * len(differ)
    assert len(shifted - set(planted)) <= 4


def test_texts_in_another_language_are_found(many):
    foreign = [
        "C'est un livre qui parle de la mer.",
        "나는 매일 아침에 책을 읽어요.",
        "Tohle je velmi stará kniha o moři.",
    ]
    lines = [*many[:20], *(many[i]._replace(target=text) for i, text in enumerate(foreign)), Line("42", "x = 17;", "x")]
    rules = found(lines, languages=[("en", "de")], language=True)
    assert where(rules, "language") == [20, 21, 22]
    swapped = [Line(line.target, line.source, "x") for line in many[:20]]
    assert set(found(swapped, languages=[("en", "de")], language=True)) == {"language"}
    assert set(found(swapped, languages=[("de", "en")], language=True)) == {None}
    assert set(
        found([Line(line.source, "1", "x") for line in many[:20]], languages=[("en", None)], sides=1, language=True)
    ) == {None}


def test_languages_that_cannot_be_told_are_refused(monkeypatch):
    config = replace(ALL_OFF, language=True)
    with pytest.raises(
        ValueError, match=r"filters\.language needs to know the language of the target: set data\.target_language"
    ):
        Cleaning(config, languages=[("en", None)])
    with pytest.raises(ValueError, match=r"py3langid does not know the language 'tlh' of the source: set it to false"):
        Cleaning(config, languages=[("tlh", "en")])
    monkeypatch.setattr(language_id, "available", lambda: False)
    with pytest.raises(
        ValueError, match=r"filters\.language needs py3langid, which is not installed: pip install py3langid"
    ):
        Cleaning(config, languages=[("en", "de")])
    Cleaning(ALL_OFF, languages=[("en", "de")])


def test_every_setting_has_its_own_place_in_the_cache():
    settings = [{}, {"overlap": True}, {"swapped": True}, {"max_repeats": 3}, {"numbers": True}, {"max_punctuation": 2},
                {"misaligned": True}, {"duplicates": True}]  # fmt: skip
    keys = [str(Cleaning(replace(ALL_OFF, **own)).key()) for own in settings]
    keys += [str(Cleaning(replace(ALL_OFF, language=True), languages=[("en", code)]).key()) for code in ("de", "fr")]
    keys += [str(Cleaning(replace(ALL_OFF, overlap=True), valid=VALID[:n]).key()) for n in (1, 2)]
    assert len(set(keys)) == len(keys)
    assert Cleaning(ALL_OFF, valid=VALID).key() == Cleaning(ALL_OFF).key()


def test_an_earlier_version_s_name_counts_where_it_excluded_the_same_pairs():
    def lacked(rule, origins=ONE_WAY, **settings):
        cleaning = Cleaning(replace(ALL_OFF, **settings), origins=origins)
        return cleaning.same_one_way(FilterReport(9, 8, {rule: 1})), cleaning.one_way_key()

    plain = Cleaning(replace(ALL_OFF, overlap=True))
    assert plain.one_way_key() == plain.key()[:-1]
    assert lacked("swapped", swapped=True) == (True, None), "one direction is filtered as it was"
    assert lacked("swapped", BOTH_WAYS, swapped=True)[0] is False
    assert lacked("misaligned", BOTH_WAYS, misaligned=True)[0] is False
    assert lacked("reversed", overlap=True)[0] is False and lacked("overlap", overlap=True)[0] is True
    assert Cleaning(replace(ALL_OFF, overlap=True), sides=1).one_way_key() is None


def test_a_corpus_that_a_version_filtered_by_digits_alone_is_prepared_again():
    cleaning = Cleaning(replace(ALL_OFF, numbers=True, overlap=True), valid=VALID)
    earlier = [asdict(cleaning.filters), 0, [own.tolist() for own in cleaning._valid_hashes()], [], 2]  # of 0.2.0
    assert earlier not in (cleaning.key(), cleaning.one_way_key())
    plain = replace(cleaning, filters=replace(cleaning.filters, numbers=False))
    assert [asdict(plain.filters), *earlier[1:]] == plain.one_way_key()


def test_only_genuine_pairs_that_no_filter_takes_are_held_out():
    pairs = [Line(f"a word {i}", f"ein Wort {i}", f"here:{i}") for i in range(4)]
    pairs += [Line("empty", "", "here:4"), Line("of another corpus", "aus einem anderen", "here:5", 1)]
    found = find_skipped(pairs, FiltersConfig(), holdout=9, origins=[Origin(), Origin(genuine=False)])
    assert [SKIP_REASONS[number] for number in found] == [*["held out"] * 4, *[SKIP_REASONS[0]] * 2]

import hashlib
import shutil
import subprocess
import sys
from itertools import islice, pairwise, product
from pathlib import Path
from random import Random

import jaxtyping
import pytest

from heed.data.synthetic.phrasebook import LECTURE, corpus, english, korean, lexicon, pairs, sampling, talk, write
from heed.data.synthetic.phrasebook.choices import OWNERS
from heed.data.synthetic.phrasebook.clauses import BE, SO_MUCH, THERE, WHAT, WHO, WHY, Clause, Phrase, Sentence
from heed.data.synthetic.phrasebook.english_inflection import article, plural, third_person, with_suffix
from heed.data.synthetic.phrasebook.korean_inflection import (
    Stem,
    attach_particle,
    formal,
    infinitive,
    past_stem,
    with_eu_ending,
)
from heed.data.synthetic.phrasebook.lexicon import ADJECTIVES, HE, ME, SHE, THEY, VERBS, YOU

# the first pairs of seed 0, as drawn when the grammar was written; they change when the grammar does
FROZEN = ["지훈 씨는 집 세 채를 혼자 지어요.", "삼계탕과 차 부탁드려요.", "은지 씨는 쇼핑했습니다."]
FROZEN_HASH = "2abc58f4e72af054"  # of the first 3,000 pairs with their alignments


@pytest.fixture(scope="module")
def unchecked():
    """Turn type checks off where there are too many calls for them; the small tests have them on."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(scope="module")
def train(tmp_path_factory):
    """English by Korean, of 60,000 training pairs; another process, without type checks, draws them twice as fast."""
    folder = tmp_path_factory.mktemp("phrasebook")
    call = f"write(Path({str(folder)!r}), train=60_000, valid=0, test=0, seed=1)"
    code = f"from pathlib import Path; from heed.data.synthetic.phrasebook import write; {call}"
    subprocess.run([sys.executable, "-c", code], check=True)
    sides = [(folder / f"train.{side}").read_text(encoding="utf-8").splitlines() for side in ("ko", "en")]
    return dict(zip(*sides, strict=True))


@pytest.fixture(scope="module")
def held_out(unchecked):
    return {split: list(pairs(split, 300, seed=1)) for split in ("valid", "test")}


def bare(text: str) -> list[str]:
    return text.lower().replace(",", "").rstrip(".?").split()


@pytest.mark.parametrize(
    "word, particle, right",
    [
        ("책", "은", "책은"),
        ("나", "은", "나는"),
        ("지은", "이", "지은이"),
        ("민수", "이", "민수가"),
        ("물", "을", "물을"),
        ("사과", "을", "사과를"),
        ("투빅", "아", "투빅아"),
        ("민수", "아", "민수야"),
        ("하늘", "아", "하늘아"),
        ("동생", "과", "동생과"),
        ("친구", "과", "친구와"),
        ("펜", "으로", "펜으로"),
        ("버스", "으로", "버스로"),
        ("지하철", "으로", "지하철로"),
        ("학교", "에서", "학교에서"),
        ("나", "이", "내가"),
        ("저", "이", "제가"),
        ("너", "이", "네가"),
        ("누구", "이", "누가"),
    ],
)
def test_particles_follow_the_last_syllable(word, particle, right):
    assert attach_particle(word, particle) == right


@pytest.mark.parametrize(
    "stem, irregular, forms",
    [
        ("가", "", "가 갔 갈 가세요 갑시다 가면 갑니다"),
        ("오", "", "와 왔 올 오세요 옵시다 오면 옵니다"),
        ("먹", "", "먹어 먹었 먹을 먹으세요 먹읍시다 먹으면 먹습니다"),
        ("마시", "", "마셔 마셨 마실 마시세요 마십시다 마시면 마십니다"),
        ("배우", "", "배워 배웠 배울 배우세요 배웁시다 배우면 배웁니다"),
        ("보내", "", "보내 보냈 보낼 보내세요 보냅시다 보내면 보냅니다"),
        ("쉬", "", "쉬어 쉬었 쉴 쉬세요 쉽시다 쉬면 쉽니다"),
        ("사랑하", "", "사랑해 사랑했 사랑할 사랑하세요 사랑합시다 사랑하면 사랑합니다"),
        ("쓰", "", "써 썼 쓸 쓰세요 씁시다 쓰면 씁니다"),
        ("바쁘", "", "바빠 바빴 바쁠 바쁘세요 바쁩시다 바쁘면 바쁩니다"),
        ("팔", "", "팔아 팔았 팔 파세요 팝시다 팔면 팝니다"),
        ("열", "", "열어 열었 열 여세요 엽시다 열면 엽니다"),
        ("듣", "ㄷ", "들어 들었 들을 들으세요 들읍시다 들으면 듣습니다"),
        ("닫", "", "닫아 닫았 닫을 닫으세요 닫읍시다 닫으면 닫습니다"),
        ("돕", "ㅂ", "도와 도왔 도울 도우세요 도웁시다 도우면 돕습니다"),
        ("굽", "ㅂ", "구워 구웠 구울 구우세요 구웁시다 구우면 굽습니다"),
        ("짓", "ㅅ", "지어 지었 지을 지으세요 지읍시다 지으면 짓습니다"),
        ("웃", "", "웃어 웃었 웃을 웃으세요 웃읍시다 웃으면 웃습니다"),
        ("부르", "르", "불러 불렀 부를 부르세요 부릅시다 부르면 부릅니다"),
        ("고르", "르", "골라 골랐 고를 고르세요 고릅시다 고르면 고릅니다"),
    ],
)
def test_verbs_conjugate_by_rule(stem, irregular, forms):
    verb = Stem(stem, irregular)
    endings = [with_eu_ending(verb, ending) for ending in ("ㄹ", "세요", "ㅂ시다", "면")]
    assert " ".join([infinitive(verb), past_stem(verb).text, *endings, formal(verb, "다")]) == forms


@pytest.mark.parametrize(
    "english, right",
    [
        ("big", "큰"),
        ("small", "작은"),
        ("long", "긴"),
        ("difficult", "어려운"),
        ("interesting", "재미있는"),
        ("fast", "빠른"),
    ],
)
def test_adjectives_before_a_noun_take_their_own_form(english, right):
    quality = next(one for one in ADJECTIVES if one.english == english)
    noun = lexicon.NOUNS[0]
    assert korean.realize_phrase(Phrase(noun, quality=quality), "plain")[0][0] == right


@pytest.mark.parametrize(
    "noun, level, tense, ending, right",
    [
        ("학생", "plain", "present", "statement", "학생이야"),
        ("의사", "plain", "present", "statement", "의사야"),
        ("학생", "polite", "present", "statement", "학생이에요"),
        ("의사", "polite", "present", "question", "의사예요"),
        ("의사", "formal", "present", "question", "의사입니까"),
        ("학생", "polite", "past", "statement", "학생이었어요"),
        ("의사", "formal", "past", "statement", "의사였습니다"),
        ("아니", "plain", "present", "statement", "아니야"),
        ("아니", "polite", "present", "statement", "아니에요"),
        ("아니", "formal", "past", "statement", "아니었습니다"),
    ],
)
def test_the_copula_follows_the_last_syllable(noun, level, tense, ending, right):
    assert korean.copula_form(noun, tense, level, ending) == right


def test_english_words_take_their_forms():
    assert [plural(noun) for noun in ("apple", "sandwich", "puppy", "glass")] == [
        "apples",
        "sandwiches",
        "puppies",
        "glasses",
    ]
    assert [third_person(verb) for verb in ("go", "watch", "study", "play")] == ["goes", "watches", "studies", "plays"]
    assert [with_suffix(verb, "ing") for verb in ("write", "swim", "read")] == ["writing", "swimming", "reading"]
    assert [with_suffix(verb, "ed") for verb in ("bake", "cry", "play")] == ["baked", "cried", "played"]
    assert [article(word) for word in ("apple", "umbrella", "book", "university", "ATM")] == [
        "an",
        "an",
        "a",
        "a",
        "an",
    ]


VERB = {verb.stem.text: verb for verb in VERBS}
QUALITY = {quality.english: quality for quality in ADJECTIVES}
NAME = {one.english[0]: one for one in lexicon.FRIENDS}
THING = {noun.english: noun for noun in lexicon.NOUNS}
JOB = {noun.english: noun for noun in lexicon.JOBS}
SITE = {site.korean: site for site in [*lexicon.PLACES, *lexicon.SPOTS, *lexicon.MEANS]}
TIME = {" ".join(time.korean): time for time, _ in lexicon.TIMES}
OWNER = {owner.english[0]: owner for owner in OWNERS}
FRIEND, PAST, FUTURE = lexicon.PEOPLE[0], {"tense": "past"}, {"tense": "future"}


def do(subject, stem, thing=None, **slots):
    return Clause(subject, VERB[stem], thing, **slots)


def a(noun, **parts):
    return Phrase(THING[noun], **parts)


# level and form | what is said | Korean | English | alignment
SENTENCES = [
    (
        "plain",
        do(ME, "사랑하", YOU, manner=SO_MUCH),
        {"vocative": NAME["Tobigs"]},
        "투빅아, 나는 너를 많이 사랑해.",
        "Tobigs, I love you so much.",
        "0-0 1-1 2-3 3-4 3-5 4-2",
    ),
    (
        "polite",
        do(ME, "좋아하", YOU, manner=lexicon.MANNERS["정말"]),
        {},
        "저는 당신을 정말 좋아해요.",
        "I really like you.",
        "0-0 1-3 2-1 3-2",
    ),
    ("plain", Clause(ME, BE, Phrase(JOB["student"])), {}, "나는 학생이야.", "I am a student.", "0-0 1-1 1-2 1-3"),
    (
        "formal",
        Clause(THEY, BE, Phrase(JOB["artist"]), negation="own", **PAST),
        {},
        "그들은 화가가 아니었습니다.",
        "They were not artists.",
        "0-0 1-3 2-1 2-2",
    ),
    (
        "polite",
        Clause(NAME["Tobigs"], BE, Phrase(JOB["actor"]), negation="own"),
        {},
        "투빅 씨는 배우가 아니에요.",
        "Tobigs is not an actor.",
        "0-0 1-0 2-3 2-4 3-1 3-2",
    ),
    (
        "plain",
        do(ME, "가", place=SITE["학교"], time=TIME["어제"], **PAST),
        {},
        "나는 어제 학교에 갔어.",
        "I went to school yesterday.",
        "0-0 1-4 2-2 2-3 3-1",
    ),
    (
        "plain",
        do(HE, "오", place=SITE["병원"], means=SITE["기차"], manner=lexicon.MANNERS["일찍"], **PAST),
        {},
        "그는 기차로 병원에 일찍 왔어.",
        "He came to the hospital early by train.",
        "0-0 1-6 1-7 2-2 2-3 2-4 3-5 4-1",
    ),
    (
        "plain",
        do(ME, "먹", a("apple", count=3), **PAST),
        {},
        "나는 사과 세 개를 먹었어.",
        "I ate three apples.",
        "0-0 1-3 2-2 3-3 4-1",
    ),
    (
        "polite",
        do(ME, "마시", a("coffee", count=2), **FUTURE),
        {},
        "저는 커피 두 잔을 마실 거예요.",
        "I will drink two cups of coffee.",
        "0-0 1-6 2-3 3-4 3-5 4-2 5-1",
    ),
    (
        "plain",
        do(ME, "기다리", YOU, negation="short"),
        {},
        "나는 너를 안 기다려.",
        "I do not wait for you.",
        "0-0 1-5 2-2 3-1 3-3 3-4",
    ),
    (
        "formal",
        do(NAME["Seoyeon"], "만들", a("chair", quality=QUALITY["big"]), negation="long", **PAST),
        {},
        "서연 씨는 큰 의자를 만들지 않았습니다.",
        "Seoyeon did not make a big chair.",
        "0-0 1-0 2-5 3-4 3-6 4-3 5-1 5-2",
    ),
    (
        "polite",
        do(SHE, "씻", a("orange"), mood="unable", negation="short", **PAST),
        {},
        "그녀는 오렌지를 못 씻었어요.",
        "She could not wash an orange.",
        "0-0 1-4 1-5 2-1 2-2 3-3",
    ),
    (
        "formal",
        do(ME, "타", a("horse"), mood="can", negation="own"),
        {},
        "저는 말을 탈 수 없습니다.",
        "I cannot ride a horse.",
        "0-0 1-3 1-4 2-2 3-1 4-1",
    ),
    (
        "polite",
        do(NAME["Minsu"], "뛰", mood="want"),
        {},
        "민수 씨는 뛰고 싶어 해요.",
        "Minsu wants to run.",
        "0-0 1-0 2-2 2-3 3-1 4-1",
    ),
    (
        "plain",
        do(ME, "걸어가", place=SITE["집"], mood="want", negation="long"),
        {},
        "나는 집에 걸어가고 싶지 않아.",
        "I do not want to walk home.",
        "0-0 1-6 2-4 2-5 3-3 4-1 4-2",
    ),
    (
        "plain",
        do(YOU, "읽", a("book"), mood="doing", time=TIME["지금"]),
        {"form": "question"},
        "너는 지금 책을 읽고 있어?",
        "Are you reading a book now?",
        "0-1 1-5 2-3 2-4 3-2 4-0",
    ),
    (
        "plain",
        do(NAME["Jieun"], "보", a("movie"), time=TIME["자주"]),
        {"form": "question"},
        "지은이는 자주 영화를 봐?",
        "Does Jieun often watch movies?",
        "0-1 1-2 2-4 3-0 3-3",
    ),
    (
        "formal",
        do(YOU, "사", WHAT, asks="object", **PAST),
        {"form": "question"},
        "당신은 무엇을 샀습니까?",
        "What did you buy?",
        "0-2 1-0 2-1 2-3",
    ),
    (
        "plain",
        do(WHO, "쓰", a("poem", owner=OWNER["this"]), means=SITE["펜"], asks="subject", **PAST),
        {"form": "question"},
        "누가 펜으로 이 시를 썼어?",
        "Who wrote this poem with a pen?",
        "0-0 1-4 1-5 1-6 2-2 3-3 4-1",
    ),
    (
        "polite",
        do(YOU, "쓰", a("poem"), reason=WHY, asks="reason", negation="short", **PAST),
        {"form": "question"},
        "당신은 왜 시를 안 썼어요?",
        "Why didn't you write a poem?",
        "0-2 1-0 2-4 2-5 3-1 4-1 4-3",
    ),
    (
        "polite",
        do(FRIEND, "웃", companion=NAME["Younghee"], **PAST),
        {},
        "제 친구는 영희 씨와 함께 웃었어요.",
        "My friend laughed with Younghee.",
        "0-0 1-1 2-4 3-3 3-4 4-3 5-2",
    ),
    (
        "plain",
        do(ME, "주", a("bag", owner=OWNER["Jieun's"]), receiver=NAME["Minsu"], **PAST),
        {},
        "나는 민수에게 지은이의 가방을 줬어.",
        "I gave Jieun's bag to Minsu.",
        "0-0 1-4 1-5 2-2 3-3 4-1",
    ),
    (
        "formal",
        Clause(None, THERE, a("flower"), negation="own", place=lexicon.SPOTS[-1]),
        {},
        "정원에 꽃이 없습니다.",
        "There are no flowers in the garden.",
        "0-4 0-5 0-6 1-3 2-0 2-1 2-2",
    ),
    (
        "plain",
        Clause(None, THERE, a("book"), place=SITE["책상 위"]),
        {"form": "question"},
        "책상 위에 책이 있어?",
        "Is there a book on the desk?",
        "0-5 0-6 1-4 2-2 2-3 3-0 3-1",
    ),
    (
        "polite",
        do(None, "마시", a("coffee")),
        {"form": "order", "vocative": NAME["Minsu"]},
        "민수 씨, 커피를 드세요.",
        "Minsu, drink coffee.",
        "0-0 1-0 2-2 3-1",
    ),
    (
        "plain",
        do(None, "열", a("window"), negation="long"),
        {"form": "lets"},
        "창문을 열지 말자.",
        "Let's not open the window.",
        "0-3 0-4 1-2 2-0 2-1",
    ),
    (
        "formal",
        Clause(HE, QUALITY["happy"]),
        {"link": "but", "second": do(HE, "닫", a("door"), **FUTURE)},
        "그는 행복하지만 문을 닫을 것입니다.",
        "He is happy, but he will close the door.",
        "0-0 0-4 1-1 1-2 1-3 2-7 2-8 3-6 4-5",
    ),
    (
        "plain",
        Clause(ME, QUALITY["busy"], **PAST),
        {"link": "so", "second": do(ME, "가", place=SITE["공원"], negation="short", **PAST)},
        "나는 바빠서 공원에 안 갔어.",
        "I did not go to the park because I was busy.",
        "0-0 0-8 1-7 1-9 1-10 2-4 2-5 2-6 3-2 4-1 4-3",
    ),
    (
        "plain",
        do(YOU, "오", place=SITE["집"]),
        {"link": "if", "second": do(ME, "웃", **FUTURE)},
        "네가 집에 오면 나는 웃을 거야.",
        "If you come home, I will laugh.",
        "0-1 1-3 2-0 2-2 3-4 4-6 5-5",
    ),
    (
        "plain",
        do(NAME["Younghee"], "웃", mood="doing", **PAST),
        {"link": "because", "second": do(FRIEND, "자", **PAST)},
        "영희가 웃고 있었기 때문에 내 친구는 잤어.",
        "My friend slept because Younghee was laughing.",
        "0-4 1-6 2-5 3-3 4-0 5-1 6-2",
    ),
]


@pytest.mark.parametrize("level, clause, rest, source, target, links", SENTENCES, ids=lambda value: None)
def test_whole_sentences_are_worded_as_a_person_would(level, clause, rest, source, target, links):
    sentence = Sentence(clause, level, **rest)
    made = corpus.pair(sentence, english.realize(sentence))
    assert (made.source, made.target) == (source, target)
    assert " ".join(f"{i}-{j}" for i, j in made.alignment) == links


def test_the_lecture_sentence_opens_test_and_its_parts_are_learned_in_train(train):
    assert next(pairs("test", 1, seed=7)) == LECTURE
    assert corpus.split_of(english.realize(corpus.LECTURE_SENTENCE)) == "test"
    assert (LECTURE.source, LECTURE.target) == ("투빅아, 나는 너를 많이 사랑해.", "Tobigs, I love you so much.")
    for said in ("나는 너를 많이 사랑해.", "저는 당신을 많이 사랑해요.", "저는 당신을 많이 사랑합니다."):
        assert not [source for source in train if f" {source}".endswith(f" {said}")]
    for part in ("투빅아, ", "나는 너를", "많이 사랑해", "너를 많이"):
        assert sum(part in source for source in train) > 3, part


def test_nothing_held_out_is_seen_in_train(train, held_out):
    known = {" ".join(bare(text)) for text in train.values()}
    for split in held_out.values():
        assert not [pair for pair in split if pair.source in train]
        assert not [pair for pair in split if " ".join(bare(pair.target)) in known]


def test_speech_levels_and_vocatives_never_cross_splits():
    rng = Random(3)
    for _ in range(200):
        sentence = sampling.draw(rng)
        others = [sentence._replace(level=level, vocative=None) for level in ("plain", "polite", "formal")]
        splits = {corpus.split_of(english.realize(one)) for one in (sentence, *others)}
        assert len(splits) == 1


def test_one_korean_sentence_has_one_english(train, unchecked):
    known = dict(train)
    rng = Random(5)
    for _ in range(15_000):  # as they are drawn: the corpus itself leaves doubles out
        line = talk.draw(rng)
        made = corpus.pair_of(line)
        if not corpus.misread(made):
            assert known.setdefault(made.source, made.target) == made.target


def test_no_pair_is_given_twice(train):
    assert len(train) == 60_000


def test_there_are_more_than_3_000_000_pairs_of_two_clauses_alone(unchecked):
    """'A지만 B' can be cut only after 지만, so different A and B give different sentences: as many as A times B."""
    rng = Random(0)
    how = ("past", "plain", False)
    firsts, seconds = ({}, {})
    for found, subject in ((firsts, ME), (seconds, NAME["Minsu"])):
        for _ in range(6000):
            clause = sampling.action_clause(rng, "statement", 0, subject, how)
            if len(english.realize_clause(clause, "statement")) <= 8:
                found[" ".join(text for text, _ in korean.realize_clause(clause, "plain", "but", "은"))] = clause
    assert len(firsts) * len(seconds) > 3_000_000
    made = set()
    for (text, first), second in product(islice(firsts.items(), 60), islice(seconds.values(), 60)):
        assert [word.endswith("지만") for word in text.split()].count(True) == 1
        sentence = Sentence(first, "plain", link="but", second=second)
        said = english.realize(sentence)
        made.add(corpus.pair(sentence, said).source)
        assert len(said) <= corpus.MAX_WORDS
    assert len(made) == 60 * 60
    assert all(sum(source.startswith(text + " 민수는 ") for source in made) == 60 for text in islice(firsts, 60))


def test_a_seed_gives_the_same_pairs_and_another_seed_others():
    assert list(pairs("train", 300, seed=4)) == list(pairs("train", 300, seed=4))
    assert list(pairs("train", 300, seed=4)) != list(pairs("train", 300, seed=5))
    assert list(pairs("valid", 20, seed=4)) == list(islice(pairs("valid", 40, seed=4), 20))


def test_the_pairs_of_seed_0_are_the_same_on_every_machine(unchecked):
    found = list(pairs("train", 3_000))
    assert [pair.source for pair in found[:3]] == FROZEN
    text = "\n".join(repr(tuple(pair)) for pair in found)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == FROZEN_HASH


def test_every_word_is_linked_within_range(held_out):
    for pair in [*pairs("train", 3000, seed=2), *held_out["valid"], *held_out["test"]]:
        words = range(len(pair.source.split())), range(len(pair.target.split()))
        assert list(pair.alignment) == sorted(set(pair.alignment))
        assert {i for i, _ in pair.alignment} == set(words[0]), pair
        assert {j for _, j in pair.alignment} == set(words[1]), pair


def test_every_english_word_of_the_held_out_splits_is_learned_in_train(train, held_out):
    known = {word for text in train.values() for word in bare(text)}
    held = {word for split in held_out.values() for pair in split for word in bare(pair.target)}
    assert {word for word in held if word.isalpha()} <= known  # sixty-four may be new: its parts are not
    lemmas = [*[verb.english for verb in VERBS], *QUALITY, *THING, *JOB, *[name.lower() for name in NAME]]
    assert {lemma.lower() for lemma in lemmas} <= known


def test_english_keeps_its_small_rules(train):
    verbs = {third_person(verb.english): verb.english for verb in VERBS}
    counts = {word for _, word in lexicon.NUMERALS[1:]}
    singular = {noun.english for noun in lexicon.NOUNS if noun.number == "count"} - {"play"}
    for text in islice(train.values(), 20_000):
        words = bare(text)
        assert (text[0].isupper() or text[0].isdigit()) and text[-1] in ".?"
        assert len(words) <= corpus.MAX_WORDS + 9  # with a name, or an expression before it
        for before, word in pairwise(words):
            assert before not in ("a", "an") or before == article(word), text
            assert before not in counts or word not in singular, text
        if "does" in words or "did" in words:
            clause = words[max(words.index(word) for word in ("does", "did") if word in words) :][:6]
            assert not {*clause[:4]} & (verbs.keys() - {"plays", "does"}) or {"because", "but", "and"} & {*clause}, text


def test_an_unknown_split_is_refused():
    with pytest.raises(ValueError, match="no split 'dev'; it has train, valid and test"):
        pairs("dev", 1)


def test_asking_for_more_than_there_is_says_so(monkeypatch):
    same = talk.draw(Random(0))
    monkeypatch.setattr(talk, "draw", lambda rng: same)
    monkeypatch.setattr(corpus, "MAX_MISSES", 10)
    with pytest.raises(ValueError, match="ran out of train sentences"):
        list(pairs("train", 5))


def test_a_written_corpus_is_what_pairs_gives(tmp_path):
    paths = write(tmp_path / "new", train=50, valid=10, test=10, seed=3)
    assert sorted(paths) == sorted(path.name for path in (tmp_path / "new").iterdir())
    assert len(paths) == 8
    test = list(pairs("test", 10, seed=3))
    assert paths["test.ko"].read_text(encoding="utf-8").splitlines() == [pair.source for pair in test]
    assert paths["test.en"].read_text(encoding="utf-8").splitlines() == [pair.target for pair in test]
    assert paths["test.align"].read_text(encoding="utf-8").splitlines()[0] == "0-0 1-1 2-3 3-4 3-5 4-2"
    assert len(paths["train.ko"].read_text(encoding="utf-8").splitlines()) == 50


def test_joined_lines_are_the_sentences_in_order_with_their_alignments(tmp_path):
    single = list(pairs("test", 9))
    paths = write(tmp_path, train=0, valid=0, test=5, join=3)
    joined = [
        path.read_text("utf-8").splitlines() for path in (paths["test.ko"], paths["test.en"], paths["test.align"])
    ]
    groups = [single[:1], single[1:3], single[3:6], single[6:7], single[7:9]]
    assert joined[0] == [" ".join(one.source for one in group) for group in groups]
    assert joined[1] == [" ".join(one.target for one in group) for group in groups]
    for group, source, target, links in zip(groups, *joined, strict=True):
        found = {
            (source.split()[i], target.split()[j]) for i, j in (map(int, link.split("-")) for link in links.split())
        }
        assert found == {(one.source.split()[i], one.target.split()[j]) for one in group for i, j in one.alignment}
    with pytest.raises(ValueError, match="join is 0; a line has at least 1 sentence"):
        write(tmp_path, train=0, join=0)


def test_complete_sentences_are_those_of_the_grammar_in_the_same_splits(tmp_path):
    drawn = list(pairs("train", 300, complete=True))
    assert all(one.source[-1] in ".?" for one in drawn)
    assert {one.source.rstrip(".?") for one in drawn} & {one.korean for one in talk.EXPRESSIONS} == set()
    held = {corpus.bag_of(one.target.rstrip(".?").lower().split()) for one in pairs("test", 300, complete=True)}
    assert not held & {corpus.bag_of(one.target.rstrip(".?").lower().split()) for one in drawn}
    paths = write(tmp_path, train=5, valid=2, test=2, complete=True)
    assert paths["train.en"].read_text("utf-8").splitlines() == [one.target for one in drawn[:5]]


def test_a_table_has_rows_and_cells_and_a_dash_is_an_empty_cell():
    assert lexicon.rows("책 | book ; 물 | -\n - | x-y ") == [["책", "book"], ["물", ""], ["", "x-y"]]


def test_any_change_of_the_generator_changes_the_hash_of_its_sources(tmp_path):
    package = tmp_path / "phrasebook"
    shutil.copytree(Path(corpus.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    assert corpus.hash_of_sources(package) == corpus.SOURCES
    words = package / "topic_words.py"
    words.write_text(words.read_text("utf-8") + "\n", "utf-8", newline="\n")
    assert corpus.hash_of_sources(package) != corpus.SOURCES

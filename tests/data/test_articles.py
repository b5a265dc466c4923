import re
from itertools import islice
from random import Random

import jaxtyping
import pytest

from heed.data.synthetic.articles import articles, corpus, realization, write
from heed.data.synthetic.articles.realization import KINDS, distractor_values, fact_values, slots
from heed.data.synthetic.articles.story import DAYS, DISTRACTORS, FAMILIES, MEN, TOWNS, WOMEN

# the first summaries of seed 0, as drawn when the articles were written; they change when EDITION does
FROZEN = [
    "Yarrow will get a school piano for 36,700 dollars. Olga Oakes raised the money by giving concerts in the market square and handed it over on Wednesday.",
    "A treasure of 17 old glass bottles was discovered in Port Hale on Friday morning. Oscar Varga found it while planting apple trees.",
    "On Sunday, Vera Ashby led 13 schoolchildren to safety near Windmere. They had got lost after a river rose overnight.",
]
FACTS = {"who", "where", "day", "many", "why"}
FACT_SLOTS = {
    *["who", "last", "their", "job", "thing", "a_thing", "where", "day", "Day", "many", "reason", "Reason", "why"]
}
DISTRACTOR_SLOTS = {"someone", "elsewhere", "other_day", "number", "fewer"}
PARTS = ("lead", "who", "day", "many", "why", "restatements", "quotes", "distractors", "summary")


def test_a_seed_gives_the_same_articles_and_another_seed_others():
    assert list(articles("train", 200, seed=4)) == list(articles("train", 200, seed=4))
    assert list(articles("train", 200, seed=4)) != list(articles("train", 200, seed=5))
    assert list(articles("valid", 20, seed=4)) == list(islice(articles("valid", 40, seed=4), 20))


def test_the_articles_of_seed_0_are_the_same_on_every_machine():
    assert [one.summary for one in articles("train", 3)] == FROZEN
    assert corpus.EDITION == 1


def test_an_unknown_split_is_refused():
    with pytest.raises(ValueError, match="no split 'dev'; they have train, valid and test"):
        articles("dev", 1)


def test_asking_for_more_than_there_is_says_so(monkeypatch):
    same = realization.draw_facts(Random(0))
    monkeypatch.setattr(corpus, "draw_facts", lambda rng: same)
    monkeypatch.setattr(corpus, "MAX_MISSES", 10)
    with pytest.raises(ValueError, match=f"ran out of {corpus.split_of(same)} facts after 1; request fewer"):
        list(articles(corpus.split_of(same), 5))


def test_written_articles_are_those_that_are_drawn(tmp_path):
    paths = write(tmp_path / "new", train=50, valid=10, test=10, seed=3)
    assert sorted(paths) == sorted(path.name for path in (tmp_path / "new").iterdir())
    assert sorted(paths) == sorted(f"{s}.{e}" for s in ("train", "valid", "test") for e in ("article", "summary"))
    test = list(articles("test", 10, seed=3))
    assert paths["test.article"].read_text(encoding="utf-8").splitlines() == [one.text for one in test]
    assert paths["test.summary"].read_text(encoding="utf-8").splitlines() == [one.summary for one in test]
    assert len(paths["train.article"].read_text(encoding="utf-8").splitlines()) == 50


@pytest.fixture(scope="module")
def unchecked():
    """Turn type checks off where there are too many calls for them; the tests before these have them on."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(scope="module")
def made(unchecked):
    return {
        "train": list(articles("train", 6_000, seed=1)),
        **{s: list(articles(s, 300, seed=1)) for s in ("valid", "test")},
    }


@pytest.fixture(scope="module")
def every(made):
    return [one for split in made.values() for one in split]


def sentences(text: str) -> list[str]:
    return re.split(r"(?<=\.) ", text)


def test_articles_have_five_to_ten_sentences_and_summaries_one_or_two(every):
    lengths = {len(sentences(one.text)) for one in every}
    assert lengths == {5, 6, 7, 8, 9, 10}
    assert {len(sentences(one.summary)) for one in every} == {1, 2}


def test_thousands_are_all_different(every):
    assert len({one.text for one in every}) == len({one.summary for one in every}) == len(every)
    assert len({one.facts for one in every}) == len(every)


def test_no_facts_of_the_held_out_splits_are_in_training(made):
    def core(one):
        return one.facts[:5]  # kind, who, what, where

    train = {core(one) for one in made["train"]}
    assert not train & {core(one) for split in ("valid", "test") for one in made[split]}
    assert not {core(one) for one in made["valid"]} & {core(one) for one in made["test"]}
    assert not {one.summary for one in made["train"]} & {one.summary for one in made["test"]}


def test_every_word_of_the_test_set_is_in_training(made):
    def bag(split):
        return {
            word for one in made[split] for word in re.findall(r"[^\W\d]+", f"{one.text} {one.summary}")
        }  # numbers are endless

    assert bag("test") <= bag("train")


def test_a_summary_has_all_facts_and_the_article_has_each(every):
    for one in every:
        values = fact_values(one.facts)
        for name in ("who", "thing", "where", "many", "why"):
            assert values[name] in one.summary, (name, one)
        assert values["day"] in one.summary.replace("On ", "on ")
        for name in ("who", "thing", "where", "many", "day"):
            assert values[name] in one.text, (name, one)
        assert values["reason"] in one.text or values["Reason"] in one.text


def test_no_sentence_has_all_facts(every):
    for one in every:
        values = fact_values(one.facts)
        for sentence in sentences(one.text):
            assert sum(values[name] in sentence for name in FACTS) <= 4, sentence


def test_a_summary_is_no_copy(every):
    for one in every:
        assert not {*sentences(one.summary)} & {*sentences(one.text)}


def test_some_sentences_restate_facts(every):
    for one in every[:500]:
        values = fact_values(one.facts)
        assert max(one.text.count(values[name]) for name in ("last", "thing", "where", "many")) >= 2


def test_every_sentence_is_used(made):
    text = "\n".join(one.text + "\n" + one.summary for one in made["train"])
    lines = [line for kind in KINDS for part in PARTS for line in getattr(kind, part)]
    for line in [*lines, *DISTRACTORS]:
        assert max(re.split(r"\{\w+\}", line), key=len) in text, line


def test_templates_have_no_unknown_slots():
    for kind in KINDS:
        for part in PARTS:
            for line in getattr(kind, part):
                assert slots(line) <= FACT_SLOTS | (DISTRACTOR_SLOTS if part == "distractors" else set()), line
                assert line.endswith(".") and not re.search(r"[.?!][^.]*[?!]|[a-z]\.[a-z]", line)
        for line in kind.summary:
            assert {"who", "where", "many", "why"} <= slots(line), line
            assert slots(line) & {"day", "Day"} and slots(line) & {"thing", "a_thing"}, line
        for line in kind.lead:
            assert "where" in slots(line) and slots(line) & {"thing", "a_thing"}, line
            assert not slots(line) & {"many", "reason", "Reason", "why", "last"}, line
        assert all({"who", "job"} <= slots(line) for line in kind.who)
        assert all("day" in slots(line) for line in kind.day)
        assert all("many" in slots(line) for line in kind.many)
        assert all(slots(line) & {"reason", "Reason"} for line in kind.why)
        assert all(len(slots(line) & FACTS) <= 3 for line in kind.restatements)


def test_distractors_are_no_facts():
    for seed in range(2_000):
        rng = Random(seed)
        facts = realization.draw_facts(rng)
        found = distractor_values(rng, facts)
        first, last = found["someone"].split()
        assert first != facts.first and last != facts.last
        assert found["elsewhere"] != facts.where and found["other_day"] != facts.day
        assert int(found["number"]) != facts.many and 2 <= int(found["fewer"]) < facts.many


def test_english_keeps_its_small_rules(every):
    for one in every:
        for text in (one.text, one.summary):
            assert not re.search(r"\b(an (?!hour)[^aeiou\W]|a [aeiou])", text), text
            assert not re.search(r"[{}]|  | [.,:]|\.\.|\b(\w+) \1\b", text), text
            assert all(sentence[0].isupper() or sentence[0] == '"' for sentence in sentences(text)), text
            assert text.count('"') % 2 == 0 and "\n" not in text
            assert not re.search(r"\b(1|0) [a-z]+s\b", text), text


def test_names_and_towns_are_distinct():
    for names in (WOMEN + MEN, FAMILIES, TOWNS, DAYS):
        assert len(set(names)) == len(names)
    assert not {*FAMILIES} & {word for name in (*TOWNS, *WOMEN, *MEN) for word in name.split()}
    assert len({kind.name for kind in KINDS}) == len(KINDS)

"""/v1: its answers are what the translator itself gives."""

import json

import pytest

from heed.lab.attention import from_json, to_json
from heed.version import __version__

HELLO = "한국어는 쉬웠어요."


def ask(client, place, status=200, **fields):
    said = client.post(f"/v1/{place}", json=fields)
    assert said.status_code == status, said.text
    return said.json()


def test_a_translation_has_the_scores_and_alignment_of_the_translator(client, ko_en):
    (said,) = ask(client, "translate", text=HELLO, target="en", nbest=3)["translations"]
    own = ko_en.translate(HELLO, nbest=3, beam=3)
    (sentence,) = said["sentences"]
    assert said["text"] == own.text and said["models"] == ["ko-en"] and said["detected"]["language"] == "ko"
    assert [one["text"] for one in sentence["nbest"]] == [one.text for one in own.nbest]
    assert [one["score"] for one in sentence["nbest"]] == pytest.approx([one.score for one in own.nbest], abs=1e-9)
    assert [one["text"] for one in sentence["tokens"]] == own.tokens
    assert [one["score"] for one in sentence["tokens"]] == pytest.approx(own.token_scores, abs=1e-9)
    links = [(one["source"]["word"], one["target"]["word"]) for one in sentence["alignment"]]
    assert links == own.alignment and links


def test_a_request_may_rerank(client, ko_en):
    (said,) = ask(client, "translate", text=HELLO, target="en", rerank="mbr")["translations"]
    assert said["text"] == ko_en.translate(HELLO, rerank="mbr").text
    assert "none" in json.dumps(ask(client, "translate", 400, text=HELLO, target="en", rerank="best"))


def test_a_request_may_switch_guards(client, ko_en):
    for on in (True, False):
        (said,) = ask(client, "translate", text=HELLO, target="en", avoid_loops=on, avoid_overlong=on)["translations"]
        assert said["text"] == ko_en.translate(HELLO, avoid_loops=on, avoid_overlong=on).text
    wrong = ask(client, "translate", 400, text=HELLO, target="en", beam=1, avoid_overlong=True)
    assert "avoid_overlong is true, but greedy search (beam 1) has no alternatives" in json.dumps(wrong)


def test_offsets_are_those_of_the_whole_texts(client):
    text = f"# {HELLO}\n\n  · {HELLO} {HELLO} https://a.example\n"
    (said,) = ask(client, "translate", text=text, target="en")["translations"]
    assert len(said["sentences"]) >= 3
    for one in said["sentences"]:
        for side, whole in (("source", text), ("target", said["text"])):
            own = one[side]
            assert whole[own["start"] : own["end"]] == own["text"]
            words = own["text"].split()
            for link in one["alignment"]:
                assert whole[link[side]["start"] : link[side]["end"]] == words[link[side]["word"]]
    assert said["sentences"][0]["alignment"]


def test_word_links_are_composed_through_two_models(client, ko_en, en_de):
    (said,) = ask(client, "translate", text=HELLO, source="ko", target="de")["translations"]
    middle = ko_en.translate(HELLO)
    last = en_de.translate(middle.text)
    links = {(s, t) for s, m in middle.alignment for n, t in last.alignment if m == n}
    (sentence,) = said["sentences"]
    assert said["models"] == ["ko-en", "en-de"] and said["text"] == last.text
    assert {(one["source"]["word"], one["target"]["word"]) for one in sentence["alignment"]} == links


def test_a_prefix_begins_and_beams_count(client, ko_en):
    (said,) = ask(client, "translate", text=HELLO, target="en", prefix="Where", beam=2)["translations"]
    assert said["text"] == ko_en.translate(HELLO, prefix="Where", beam=2).text
    assert said["text"].startswith("Where")


def test_long_sentences_are_translated_in_parts(client, ko_en):
    text = " ".join(["한국어는"] * 90)
    (said,) = ask(client, "translate", text=text, target="en")["translations"]
    assert said["text"] == ko_en.translate(text).text


def test_alternatives_begin_other_sentences(client, ko_en, texts):
    text = max(texts, key=lambda text: len(ko_en.translate(text).text.split()))
    whole = ko_en.translate(text).text
    said = ask(client, "alternatives", text=text, source="ko", target="en", translation=whole, word=1, count=5)
    words = whole.split()
    assert said["prefix"] == words[0] and said["word"] == words[1]
    others = said["alternatives"]
    assert [one["word"] for one in others if one["current"]] == [words[1]]
    assert len({one["word"] for one in others}) == len(others) >= 3
    assert sorted((one["probability"] for one in others[:5]), reverse=True) == [
        one["probability"] for one in others[:5]
    ]
    for one in others:
        assert one["text"].split()[:2] == [words[0], *([one["word"]] if one["word"] else [])]
        assert 0 <= one["probability"] <= 1
    assert sum(one["probability"] for one in others if not one["current"]) <= 1 + 1e-9
    (current,) = [one for one in others if one["current"]]
    assert current["text"] == whole


@pytest.mark.parametrize(("text", "terms", "said"), [(HELLO, {"glossary": {"한국어": "Korean"}}, "Korean"), ("Heed 학생", {"keep": ["Heed"]}, "Heed")])  # fmt: skip
def test_sentences_of_alternatives_contain_the_terms(client, text, terms, said):
    asked = {"text": text, "source": "ko", "target": "en", "word": 0, "count": 4}
    whole = "I am here."
    found = ask(client, "alternatives", translation=whole, **asked, **terms)["alternatives"]
    others = [one["text"] for one in found if one["word"] and not one["current"]]
    assert len(others) >= 2 and all(said in text for text in others), others
    plain = ask(client, "alternatives", translation=whole, **asked)["alternatives"]
    assert not any(said in one["text"] for one in plain), "else it would be no art"


def test_a_look_is_the_translators(client, ko_en):
    said = ask(client, "look", text=HELLO, source="ko", target="en", beam=2)
    own = json.loads(to_json(ko_en.look(HELLO, beam=2)))
    assert {k: v for k, v in said.items() if k != "model"} == {k: v for k, v in own.items() if k != "model"}
    from_json(json.dumps(said))
    given = ask(client, "look", text=HELLO, source="ko", target="en", translation="Where is it?")
    assert given["target_text"] == "Where is it?" and given["search"] == []


def test_a_sentence_with_too_many_attention_weights_is_refused(client, monkeypatch):
    monkeypatch.setattr(
        "heed.service.http.models.MAX_ATTENTION_WEIGHTS", 2 * (1 + 2 * 2) * 20**2
    )  # 20 subwords, by 2 heads in 1+2 layers
    asked = {"source": "ko", "target": "en", "beam": 2}
    assert "the limit for inspection is 20" in ask(client, "look", 400, text="한국어는 " * 10, **asked)["error"]
    said = ask(client, "look", 400, text=HELLO, translation="Where is it? " * 8, **asked)["error"]
    assert said.startswith("the translation has") and "the limit for inspection is 20" in said
    ask(client, "look", text=HELLO, **asked)


def test_facts_of_models(client):
    said = client.get("/v1/models").json()
    assert [(one["name"], one["source"], one["target"]) for one in said["models"]] == [
        ("ko-en", "ko", "en"),
        ("en-de", "en", "de"),
    ]
    assert said["directions"] == [
        {"sources": ["ko"], "targets": ["en"], "through": None},
        {"sources": ["en"], "targets": ["de"], "through": None},
        {"sources": ["ko"], "targets": ["de"], "through": "en"},
    ]
    assert said["models"][0]["languages"] == ["ko", "en"] and said["models"][0]["directions"] == 1
    assert said["models"][0]["trained"] == {"valid_bleu": 1.5}
    assert said["version"] == __version__


@pytest.mark.parametrize(
    ("place", "fields", "sentence"),
    [
        ("translate", {}, "text is missing"),
        ("translate", {"text": "a", "what": 1}, "'what' is not a known field; the fields are text, source"),
        ("translate", {"text": HELLO}, "target is missing; it must be one of en, de"),
        ("translate", {"text": HELLO, "target": "en", "beam": 99}, "beam is 99"),
        ("translate", {"text": HELLO, "target": "de", "source": "ko", "glossary": {"a": "b"}}, "pivots through en"),
        ("alternatives", {"text": HELLO, "target": "en", "translation": "a b", "word": 7}, "word is 7; the translation has 2 words"),
        ("look", {"text": HELLO, "source": "ko", "target": "de"}, "no single model translates ko to de"),
        ("look", {"text": "한국어는 " * 300, "source": "ko", "target": "en"}, "the limit for inspection is "),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(client, place, fields, sentence):
    assert sentence in ask(client, place, 400, **fields)["error"]


def test_runs_are_followed_as_they_grow(start, tmp_path, request):
    run = tmp_path / "one"
    (run / "samples").mkdir(parents=True)
    (run / "recipe.toml").write_text("[training]\nsteps = 40\n")
    lines = [json.dumps({"kind": "step", "step": i, "loss": 9 - i, "seconds_left": 4.0}) + "\n" for i in range(3)]
    (run / "log.jsonl").write_text("".join(lines[:2]) + '{"kind": "st')
    (run / "samples" / "step-000001.txt").write_text("가\n= a\n> b\n\n")
    (tmp_path / "log.jsonl").write_text("outside")
    client = start(runs=tmp_path, both=False).client()
    request.addfinalizer(client.close)
    first = client.get("/v1/runs/one").json()
    assert (first["next"], first["more"], first["steps"], first["finished"]) == (2, False, 40, False)
    assert first["samples"] == {"step": 1, "of": [{"source": "가", "reference": "a", "translation": "b"}]}
    (run / "log.jsonl").write_text(
        "".join(lines) + '{"kind": "valid", "step": 2, "loss": Infinity}\n{"kind": "end", "step": 2}\n'
    )
    more = client.get("/v1/runs/one?after=2").json()
    assert [line["kind"] for line in more["lines"]] == ["step", "valid", "end"] and more["finished"]
    assert more["valid"] == {"step": 2, "loss": None} and more["seconds_left"] is None
    assert client.get("/v1/runs/one?after=99").json()["restarted"]
    assert [one["name"] for one in client.get("/v1/runs").json()["runs"]] == ["one"]
    for name in ("%2e%2e", "..%2fone", "two", "log.jsonl"):
        assert client.get(f"/v1/runs/{name}").status_code == 404
    assert client.get(f"/v1/runs/{'a' * 99}").json() == {"error": f"there is no run {'a' * 60!r} here"}


def test_without_a_folder_there_are_no_runs(client):
    said = client.get("/v1/runs")
    assert said.status_code == 404 and "--runs DIR" in said.json()["error"]


def test_a_glossary_is_the_translators(client, ko_en):
    terms = {"한국어": "Korean"}
    own = ko_en.translate(HELLO, glossary=terms).text
    assert "Korean" in own
    for given in (terms, "한국어\tKorean\n"):
        (said,) = ask(client, "translate", text=HELLO, target="en", glossary=given)["translations"]
        assert said["text"] == own
    form = client.post("/translate", data={"q": HELLO, "source": "ko", "target": "en", "glossary": "한국어\tKorean"})
    assert form.json()["translatedText"] == own

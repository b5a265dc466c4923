"""LibreTranslate's API, with its own client and with curl."""

import json
import subprocess
from urllib.error import HTTPError

import pytest
from libretranslatepy import LibreTranslateAPI

from heed.service.http.limits import read_keys

HELLO = "한국어는 쉬웠어요."


def curl(*words) -> tuple[int, str]:
    made = subprocess.run(["curl", "-s", "-w", "\n%{http_code}", *words], capture_output=True, text=True, check=True)
    body, _, status = made.stdout.rpartition("\n")
    return int(status), body


def test_libretranslates_own_client_works_unchanged(running, ko_en):
    api = LibreTranslateAPI(running.url)
    assert api.translate(HELLO, "ko", "en") == ko_en.translate(HELLO).text
    assert {one["language"] for one in api.detect(HELLO)} == {"ko", "en", "de"}
    assert api.detect(HELLO)[0]["language"] == "ko"
    assert api.languages() == [
        {"code": "ko", "name": "Korean", "targets": ["en", "de"]},
        {"code": "en", "name": "English", "targets": ["de"]},
        {"code": "de", "name": "German", "targets": []},
    ]


def test_libretranslates_own_client_shows_its_key(start, tmp_path, ko_en):
    (tmp_path / "keys").write_text("one\ntwo\n")
    running = start(both=False, keys=read_keys(tmp_path / "keys"))
    assert LibreTranslateAPI(running.url, api_key="two").translate(HELLO, "ko", "en") == ko_en.translate(HELLO).text
    for key in (None, "", "tw"):
        with pytest.raises(HTTPError, match="403") as refused:
            LibreTranslateAPI(running.url, api_key=key).translate(HELLO, "ko", "en")
        refused.value.close()


def test_every_place_with_curl(running, tmp_path, ko_en):
    asked = ("-d", f"q={HELLO}")
    status, body = curl(f"{running.url}/detect", *asked)
    assert status == 200 and json.loads(body)[0]["language"] == "ko"
    assert curl(f"{running.url}/health") == (200, '{"status":"ok"}')
    assert {one["code"] for one in json.loads(curl(f"{running.url}/languages")[1])} == {"ko", "en", "de"}
    assert json.loads(curl(f"{running.url}/frontend/settings")[1])["keyRequired"] is False
    status, body = curl(f"{running.url}/translate", *asked, "-d", "source=ko")
    assert (status, json.loads(body)) == (400, {"error": "Invalid request: missing target parameter"})
    letter = tmp_path / "편지.txt"
    letter.write_text(HELLO, "utf-8")
    parts = ("-F", f"file=@{letter}", "-F", "source=auto", "-F", "target=en")
    status, body = curl(f"{running.url}/translate_file", *parts)
    assert status == 200
    status, body = curl(json.loads(body)["translatedFileUrl"])
    assert (status, body) == (200, ko_en.translate(HELLO).text)
    assert "heed_requests_total" in curl(f"{running.url}/metrics")[1]


def test_json_and_forms_of_both_kinds_are_the_same(running):
    url = f"{running.url}/translate"
    asked = {"q": HELLO, "source": "ko", "target": "en"}
    form = [word for name, value in asked.items() for word in ("-d", f"{name}={value}")]
    parts = [word for name, value in asked.items() for word in ("-F", f"{name}={value}")]
    as_json = curl(url, "-H", "Content-Type: application/json", "-d", json.dumps(asked))
    assert as_json[0] == 200
    assert as_json == curl(url, *form) == curl(url, *parts)


def test_a_list_is_answered_with_a_list(client, ko_en, texts):
    said = client.post("/translate", json={"q": texts, "source": "ko", "target": "en"}).json()
    assert said == {"translatedText": [one.text for one in ko_en.translate(texts)]}
    form = client.post("/translate", data={"q": texts, "source": "ko", "target": "en"}).json()
    assert form == said
    assert client.post("/translate", json={"q": [], "source": "ko", "target": "en"}).json() == {"translatedText": []}


def test_auto_tells_what_was_detected_and_alternatives_are_the_next_best(client, ko_en):
    said = client.post("/translate", json={"q": HELLO, "source": "auto", "target": "en", "alternatives": 2}).json()
    best = ko_en.translate(HELLO, nbest=3, beam=3).nbest
    assert said["translatedText"] == best[0].text
    assert said["alternatives"] == [one.text for one in best[1:]]
    assert said["detectedLanguage"]["language"] == "ko"
    assert 50 < said["detectedLanguage"]["confidence"] <= 100


def test_where_no_model_is_for_a_pair_two_are_used(client, ko_en, en_de):
    said = client.post("/translate", json={"q": HELLO, "source": "ko", "target": "de"}).json()
    assert said["translatedText"] == en_de.translate(ko_en.translate(HELLO).text).text


def test_the_layout_of_a_text_stays_and_so_does_what_must_not_change(client, ko_en):
    text = f"  - {HELLO}\r\n\r\n\t1. {HELLO} https://a.example/b?c {{name}}\n\n12345 😀\n"
    said = client.post("/translate", json={"q": text, "source": "ko", "target": "en"}).json()["translatedText"]
    one = ko_en.translate(HELLO).text
    assert said == f"  - {one}\r\n\r\n\t1. {one} https://a.example/b?c {{name}}\n\n12345 😀\n"


def test_tags_of_html_come_back(client):
    page = '<p class="x">한국어는 <b>쉬웠어요</b>.</p><script>한국어</script>'
    asked = {"q": page, "source": "ko", "target": "en", "format": "html"}
    said = client.post("/translate", json=asked).json()["translatedText"]
    assert said.startswith('<p class="x">') and said.count("<b>") == said.count("</b>") == 1
    assert said.endswith("</p><script>한국어</script>")


def test_a_file_is_translated_and_fetched(client, ko_en, running):
    sent = {"file": ("letter.txt", f"{HELLO}\n\n{HELLO}\n".encode(), "text/plain")}
    said = client.post("/translate_file", files=sent, data={"source": "ko", "target": "en"}).json()
    assert said["translatedFileUrl"].startswith(running.url + "/download_file/")
    fetched = client.get(said["translatedFileUrl"])
    one = ko_en.translate(HELLO).text
    assert fetched.text == f"{one}\n\n{one}\n"
    assert fetched.headers["content-disposition"] == "attachment; filename*=UTF-8''letter.en.txt"
    table = {"file": ("t.tsv", f"1\t{HELLO}\n".encode())}
    said = client.post("/translate_file", files=table, data={"source": "auto", "target": "en", "column": "2"}).json()
    assert client.get(said["translatedFileUrl"]).text == f"1\t{one}\n"


def test_a_glossary_and_what_is_kept_hold_in_all_places(client, ko_en):
    terms, names = {"한국어": "Korean"}, ["쉬웠어요"]
    own = ko_en.translate(HELLO, sentences=True, glossary=terms, keep=names).text  # the one path
    assert "Korean" in own and "쉬웠어요" in own and own != ko_en.translate(HELLO, glossary=terms).text
    pair = {"source": "ko", "target": "en"}
    asked = {"q": HELLO, "glossary": terms, "keep": names, **pair}
    assert client.post("/translate", json=asked).json()["translatedText"] == own
    form = {"glossary": "한국어\tKorean", "keep": names, **pair}
    assert client.post("/translate", data={"q": HELLO, **form}).json()["translatedText"] == own
    ours = client.post("/v1/translate", json={"text": HELLO, "glossary": terms, "keep": names, **pair}).json()
    assert ours["translations"][0]["text"] == own
    page = client.post("/translate", json={**asked, "q": f"<p>{HELLO}</p>", "format": "html"}).json()["translatedText"]
    assert "Korean" in page and "쉬웠어요" in page
    for name, text in (("a.txt", HELLO), ("a.html", f"<p>{HELLO}</p>")):
        said = client.post("/translate_file", files={"file": (name, text.encode())}, data=form).json()
        made = client.get(said["translatedFileUrl"]).text
        assert "Korean" in made and "쉬웠어요" in made
    through = client.post("/translate_file", files={"file": ("a.txt", b"a")}, data={**form, "target": "de"})
    assert through.status_code == 400 and "pivots through en" in through.json()["error"]


def test_settings_health_and_documents(client):
    assert client.get("/health").json() == {"status": "ok"}
    assert client.get("/frontend/settings").json()["charLimit"] == 100_000
    assert "POST</b> /v1/translate" in client.get("/docs").text
    style = client.get("/docs.css")
    assert style.headers["content-type"].startswith("text/css") and "{" in style.text
    assert "/translate" in client.get("/openapi.json").json()["paths"]


@pytest.mark.parametrize(
    ("asked", "status", "sentence"),
    [
        ({}, 400, "Invalid request: missing q parameter"),
        ({"q": "a", "source": "ko"}, 400, "Invalid request: missing target parameter"),
        ({"q": "a", "source": "xx", "target": "en"}, 400, "xx is not supported"),
        ({"q": "a", "source": "auto", "target": "xx"}, 400, "xx is not supported"),
        ({"q": "a", "source": "auto", "target": "ko"}, 400, "target is 'ko', which is not available as a target here; it must be one of en, de"),
        ({"q": "a", "source": "de", "target": "en"}, 400, "English (en) is not available as a target language from German (de)"),
        ({"q": "a", "source": "ko", "target": "en", "format": "pdf"}, 400, "pdf format is not supported"),
        ({"q": "a", "source": "ko", "target": "en", "alternatives": 99}, 400, "alternatives is 99"),
        ({"q": {"a": 1}, "source": "ko", "target": "en"}, 400, "q is {'a': 1}"),
        ({"q": "a", "source": "ko", "target": "en", "glossary": "a b"}, 400, "1 columns"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_a_sentence(client, asked, status, sentence):
    said = client.post("/translate", json=asked)
    assert said.status_code == status
    assert sentence in said.json()["error"]


def test_what_a_browser_has_of_the_page_is_not_sent_again(client):
    for place in ("/", "/assets/main.js"):
        first = client.get(place)
        tag = first.headers["etag"]
        assert first.status_code == 200 and first.headers["cache-control"] == "no-cache"
        for known in (tag, f"W/{tag}", f'"other", {tag}'):
            again = client.get(place, headers={"If-None-Match": known})
            assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
        assert client.get(place, headers={"If-None-Match": '"other"'}).content == first.content


def test_other_bodies_and_places_are_refused(client):
    assert client.post("/translate", content=b"[1]", headers={"content-type": "application/json"}).status_code == 400
    assert (
        client.post("/translate", content=b"{" * 9999, headers={"content-type": "application/json"}).status_code == 400
    )
    assert client.post("/translate", content=b"a", headers={"content-type": "text/plain"}).status_code == 415
    assert client.post("/translate", content=rb'{"q":"\ud800","source":"ko","target":"en"}',
                       headers={"content-type": "application/json"}).status_code == 400  # fmt: skip
    assert client.get("/nothing").json()["error"].startswith("not found")
    assert client.get("/translate").status_code == 405
    assert client.get("/assets/..%2fapp.py").status_code == 404


def test_its_own_api_tests_are_answered_in_its_words(client):
    """What LibreTranslate's own tests send, and the words on which clients match."""
    ask = {"q": "Hello", "source": "en", "target": "de", "format": "text"}
    assert client.get("/spec").json() == client.get("/openapi.json").json() and client.post("/spec").status_code == 405
    for data, error in (
        ({**ask, "target": "zz"}, "zz is not supported"),
        ({**ask, "source": "zz"}, "zz is not supported"),
        ({**ask, "format": "pdf"}, "pdf format is not supported"),
        ({name: ask[name] for name in ("source", "target", "format")}, "Invalid request: missing q parameter"),
        ({**ask, "target": "ko"}, "Korean (ko) is not available as a target language from English (en)"),
    ):
        answer = client.post("/translate", data=data)
        assert (answer.status_code, answer.json()) == (400, {"error": error})
    assert client.post("/detect").json() == {"error": "Invalid request: missing q parameter"}
    assert "translatedText" in client.post("/translate", data=ask).json()


ENGLISH, GERMAN = "Hello, how are you today?", "Das ist ein ganz normaler deutscher Satz über das Wetter."


def test_a_text_in_a_language_that_is_not_translated_is_not_taken_for_another(start):
    running = start(both=False)  # Korean to English alone
    with running.client() as client:
        ask = {"source": "auto", "target": "en"}
        refused = client.post("/v1/translate", json={"text": ENGLISH, **ask})
        assert refused.status_code == 400
        body = refused.json()
        assert body["error"] == (
            "this looks like English, and no model here translates from it; to translate it anyway, set the source language: ko"
        )
        assert (
            body["detected"]["language"] == "en" and body["detected"]["confidence"] > 0.9 and body["sources"] == ["ko"]
        )
        assert client.post("/v1/translate", json={"text": ENGLISH, "source": "ko"}).status_code == 200  # asked for
        for path in ("alternatives", "look"):
            more = {"translation": "x", "word": 0} if path == "alternatives" else {}
            assert "looks like English" in client.post(f"/v1/{path}", json={"text": ENGLISH, **more}).json()["error"]
        same = client.post("/translate", json={"q": ENGLISH, **ask}).json()
        assert same["translatedText"] == ENGLISH and same["detectedLanguage"]["language"] == "en"
        assert client.post("/translate", json={"q": GERMAN, **ask}).json() == {"error": "de is not supported"}
        for short in ("한국어는 쉬웠어요.", "12", "…"):
            assert client.post("/v1/translate", json={"text": short, **ask}).status_code == 200

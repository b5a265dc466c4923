"""What an attacker may send: it stays text, and is clearly refused."""

from pathlib import Path

import pytest

SCRIPT = '<script>alert(1)</script>"><img src=x onerror=alert(2)>'
LINES = "en\r\nSet-Cookie: a=b\r\n\r\n<script>"
HELLO = "한국어는 쉬웠어요."


ATTACKS = [SCRIPT, LINES, "\x00", "‮", "a" * 200, "../../etc/passwd", "%0d%0aX: y", "{{7*7}}", "'; DROP TABLE x"]
TRANSLATE = {
    "q": HELLO,
    "source": "ko",
    "target": "en",
    "format": "text",
    "alternatives": 0,
    "api_key": "",
    "glossary": {},
    "keep": [],
}
OURS = {"text": HELLO, "source": "ko", "target": "en"}
PLACES = {
    "/translate": TRANSLATE,
    "/detect": {"q": HELLO, "api_key": ""},
    "/v1/translate": OURS | {"prefix": "", "glossary": {}, "keep": [], "beam": 2, "nbest": 1, "length_penalty": 1.0, "rerank": "none", "avoid_loops": True, "avoid_overlong": True, "avoid_copies": False, "tokens": True, "alignment": True, "api_key": ""},
    "/v1/alternatives": OURS | {"translation": "a b", "word": 1, "count": 2, "api_key": ""},
    "/v1/look": OURS | {"translation": "a b", "beam": 2, "api_key": ""},
    "/v1/look/numbers": OURS | {"translation": "a b", "beam": 2, "query": {"part": "cross"}, "choice": {"step": 0}, "api_key": ""},
}  # fmt: skip


def assert_harmless(said) -> None:
    """An answer that no browser takes for a page, with no header of the attacker's."""
    assert said.status_code in (200, 400), said.text
    assert said.headers["content-type"] == "application/json"
    assert said.headers["x-content-type-options"] == "nosniff"
    assert not {"set-cookie", "x", "x-evil"} & set(said.headers)
    assert isinstance(said.json(), dict | list)


@pytest.mark.parametrize("place", PLACES)
def test_every_field_stays_text(client, place):
    asked = PLACES[place]
    for field in asked:
        for evil in ATTACKS[:3]:
            assert_harmless(client.post(place, json=asked | {field: evil}))
    for evil in ATTACKS:
        assert_harmless(client.post(place, json={evil: evil}))
        assert_harmless(client.post(place, json=asked | {evil: "x"}))


@pytest.mark.parametrize("place", ["/translate", "/detect"])
def test_every_field_of_a_form_stays_text(client, place):
    plain = {name: value for name, value in PLACES[place].items() if isinstance(value, str) and value}
    for field in PLACES[place]:
        for evil in ATTACKS[:2]:
            assert_harmless(client.post(place, data=plain | {field: evil}))
            assert_harmless(client.post(place, params={field: evil}, data=plain))


@pytest.mark.parametrize(
    "name", ["X-API-Key", "Authorization", "Origin", "Content-Type", "X-Forwarded-Proto", "Referer", "Cookie", "Accept"]
)
def test_every_header_stays_text(client, name):
    for evil in (SCRIPT, "../../etc/passwd", "%0d%0aX: y", "a" * 5000, "Bearer " + SCRIPT):
        said = client.post("/translate", json={"q": "a", "source": "en", "target": "de"}, headers={name: evil})
        assert said.status_code in (200, 415)
        assert said.headers["content-type"] == "application/json" and "x" not in said.headers
        assert evil not in str(said.headers)


def test_text_in_html_stays_escaped(client, ko_en):
    """Both the text of the page and the terms of a glossary."""
    asked = {"source": "ko", "target": "en", "format": "html"}
    page = f"<p>{HELLO} &lt;script&gt;alert(1)&lt;/script&gt;</p>"
    said = client.post("/translate", json={"q": page, **asked}).json()["translatedText"]
    assert "<script" not in said and "&lt;script&gt;" in said
    said = client.post("/translate", json={"q": f"<p>{HELLO}</p>", "glossary": {"한국어": "<img>"}, **asked}).json()
    assert "<img" not in said["translatedText"] and "&lt;img&gt;" in said["translatedText"]
    sent = {"file": ("a.html", f"<p>{HELLO}</p>".encode())}
    fields = {"source": "ko", "target": "en", "glossary": "한국어\t<img>"}
    made = client.get(client.post("/translate_file", files=sent, data=fields).json()["translatedFileUrl"])
    assert "<img" not in made.text and "&lt;img&gt;" in made.text


def test_what_is_asked_for_does_not_become_markup_anywhere(client):
    for place in (
        f"/{SCRIPT}",
        f"/assets/{SCRIPT}",
        f"/download_file/{SCRIPT}/{SCRIPT}",
        f"/v1/runs/{SCRIPT}",
        f"/docs?x={SCRIPT}",
    ):
        said = client.get(place)
        assert "alert(1)" not in said.text or said.headers["content-type"] == "application/json"
        assert "script-src" not in said.headers["content-security-policy"]
        assert "default-src 'self'" in said.headers["content-security-policy"]


def test_pages_of_other_sites_may_not_read_answers_unless_asked(client, start):
    assert (
        "access-control-allow-origin" not in client.get("/languages", headers={"Origin": "https://a.example"}).headers
    )
    with start(both=False, cors=("https://a.example",)).client() as other:
        allowed = other.get("/languages", headers={"Origin": "https://a.example"})
        assert allowed.headers["access-control-allow-origin"] == "https://a.example"
        denied = other.get("/languages", headers={"Origin": "https://b.example"})
        assert "access-control-allow-origin" not in denied.headers


def test_nothing_of_a_text_is_logged(start, caplog, monkeypatch):
    secret, asked = "쉿, 비밀이에요.", {"source": "ko", "target": "en"}
    caplog.set_level("DEBUG")
    running = start(both=False)
    with running.client() as client:
        client.post("/translate", json={"q": secret, **asked})
        client.post("/translate", json={"q": secret, "source": "xx", "target": "en"})
        client.post("/translate", params={"q": secret, **asked})
        client.post("/v1/translate", json={"text": secret, "prefix": secret})
        client.post("/translate_file", files={"file": (f"{secret}.txt", secret.encode())}, data=asked)
    assert "비밀" not in _logged(caplog)
    caplog.clear()
    with start(both=False, log_texts=True).client() as client:
        client.post("/translate", json={"q": secret, **asked})
    assert "비밀" in _logged(caplog)


def _logged(caplog) -> str:
    """The log of the service, without that of the client."""
    return "\n".join(one.getMessage() for one in caplog.records if not one.name.startswith(("httpx", "httpcore")))


def test_an_internal_error_is_reported_without_the_text(start, caplog, monkeypatch):
    running = start(both=False)
    worker = running.service.catalogue.models[0].worker

    def broken(key, items):
        raise RuntimeError(f"cannot do {items}")

    with running.client() as client, monkeypatch.context() as patch:
        patch.setattr(worker, "run", broken)
        said = client.post("/translate", json={"q": "쉿, 비밀이에요.", "source": "ko", "target": "en"})
        assert said.status_code == 500
        assert said.json() == {"error": "internal server error"}
        assert said.headers["x-content-type-options"] == "nosniff"
        assert "RuntimeError at /translate" in _logged(caplog) and "비밀" not in _logged(caplog)
        assert "without starting response" not in caplog.text
        patch.undo()
        assert client.post("/translate", json={"q": HELLO, "source": "ko", "target": "en"}).status_code == 200
        assert 'heed_requests_total{path="/translate",status="500"} 1' in client.get("/metrics").text


def test_only_files_of_the_page_are_served(client):
    page = Path(__file__).parents[3] / "src/heed/service/page"
    assert client.get("/").text == (page / "index.html").read_text("utf-8")
    for name in ("../http/app.py", "..%2fhttp%2fapp.py", "%2e%2e/http/app.py", "/etc/passwd"):
        assert client.get(f"/assets/{name}").status_code in (404, 405)

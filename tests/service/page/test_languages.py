"""A service of two hundred languages: one finds one's own, on a desk and on a phone."""

import pytest

from heed.text.language_codes import ISO, MORE, name
from tests.service.page.fake import MODELS

CODES = [*MORE, "ace_Arab", *ISO, "zho_Hant"]
MANY = {
    **MODELS,
    "models": [{**MODELS["models"][0], "name": "nllb", "source": "ace_Arab", "target": "yue", "directions": len(CODES) ** 2}],
    "directions": [{"sources": CODES, "targets": CODES, "through": None}],
    "languages": [{"code": code, "name": name(code)} for code in CODES],
}  # fmt: skip


@pytest.fixture
def many(fake):
    fake.answers["/v1/models"] = lambda body: MANY
    fake.answers["/v1/translate"] = lambda body: {"status": 400, "error": f"{body['source']} to {body['target']}"}
    return fake


def options(page, selector):
    return page.eval_on_selector_all(f"{selector} option", "nodes => nodes.map(node => [node.value, node.textContent])")


def test_languages_are_sorted_by_their_names(visit, many):
    page = visit(url=many.url)
    found = options(page, "#from")
    assert found[0] == ["auto", "Detect language"] and len(found) == 1 + len(CODES)
    assert dict(found)["zho_Hant"] == "Traditional Chinese", "the browser's name"
    assert dict(found)["ace_Arab"].startswith("Acehnese (Arabic"), "the service's, where the browser has none"
    assert (dict(found)["ak"], dict(found)["tw"]) == ("Akan", "Twi"), "the browser calls both Akan"
    names = [text for _, text in found[1:]]
    assert names[0] == "Acehnese" and names[2] == "Afrikaans" and names[-1] == "Zulu"
    assert page.input_value("#to") == "en", "not the first of all"
    page.click("#locale")
    names = [text for _, text in options(page, "#from")[1:]]
    korean = [text for text in names if "가" <= text[0] <= "힣"]
    assert korean == sorted(korean) and "한국어" in korean and len(korean) > 100


def test_languages_that_were_used_come_first(visit, many):
    page = visit(url=many.url)
    page.select_option("#from", "ko")
    page.select_option("#to", "sw")
    page.select_option("#to", "yue")
    assert [code for code, _ in options(page, "#to optgroup:first-child")][:2] == ["yue", "sw"]
    assert "ko" not in dict(options(page, "#to")), "not into the language itself"
    page.click("#swap")
    assert (page.input_value("#from"), page.input_value("#to")) == ("yue", "ko")


def test_one_looks_inside_in_any_direction(visit, many):
    page = visit("#look?from=ko&to=zho_Hant", url=many.url)
    page.wait_for_function("() => document.querySelector('#look-to').value === 'zho_Hant'")
    assert page.input_value("#look-from") == "ko" and len(options(page, "#look-to")) == len(CODES) - 1
    page.select_option("#look-from", "zho_Hant")
    assert page.input_value("#look-from") == "zho_Hant" and page.input_value("#look-to") != "zho_Hant"


def test_two_choosers_fit_on_a_phone(visit, many):
    for view in ("#translate", "#look"):
        page = visit(view, url=many.url, width=360)
        wide = page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0

import json
import re
from html.parser import HTMLParser

import pytest

from heed.evaluation.comparison import compare
from heed.evaluation.sentences import score_sentences, write_html
from heed.evaluation.translation import score
from tests.chromium import chromium

EVIL = "</script><script>document.title='owned'</script> <img src=x onerror=\"document.title='owned'\"> {{data}} & more"
LINES = 300
REFERENCES = [f"Sentence number {n} has a few good words" for n in range(LINES)]
FIRST = [line if n % 3 else line.replace("few good", "lot of") for n, line in enumerate(REFERENCES)]
SECOND = [line if n % 4 else line.replace("words", "") for n, line in enumerate(REFERENCES)]
FIRST[7] = EVIL
FIRST[8] = "long" * 100


@pytest.fixture(scope="module")
def one_page(tmp_path_factory):
    path = tmp_path_factory.mktemp("one") / "page.html"
    table = score_sentences(FIRST, [REFERENCES], sources=[EVIL, *REFERENCES[1:]])
    write_html(table, score(FIRST, [REFERENCES]), path, title=EVIL)
    return path


@pytest.fixture(scope="module")
def two_page(tmp_path_factory):
    path = tmp_path_factory.mktemp("two") / "page.html"
    comparison = compare(FIRST, SECOND, [REFERENCES], samples=10)
    table = score_sentences(FIRST, [REFERENCES], second=SECOND)
    write_html(table, score(FIRST, [REFERENCES]), path, comparison=comparison, names=("base", EVIL))
    return path


class Tags(HTMLParser):
    """Collects what a browser would see as tags."""

    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))


@pytest.mark.parametrize("page", ["one_page", "two_page"])
def test_no_text_becomes_a_tag_and_nothing_is_loaded(request, page):
    text = request.getfixturevalue(page).read_text(encoding="utf-8")
    tags = Tags(text).tags
    assert [tag for tag, _ in tags].count("script") == 2
    assert not [tag for tag, _ in tags if tag in ("img", "link", "iframe", "object", "base")]
    assert not [(tag, key) for tag, found in tags for key in found if key in ("src", "href") or key.startswith("on")]
    assert "default-src 'none'" in text
    assert not re.search(r"https?://|url\(|@import", text)


def test_the_data_of_the_page_are_the_rows(one_page):
    text = one_page.read_text(encoding="utf-8")
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)[1])
    shown = [(row["n"], row["a"], row["u"]) for row in data["rows"]]
    assert shown == [(row.line, round(row.chrf, 2), round(row.bleu, 2)) for row in score_sentences(FIRST, [REFERENCES])]
    worst = next(row for row in data["rows"] if row["n"] == 8)
    assert "".join(run[1] for run in worst["t"][1]) == EVIL


def test_scores_and_signatures_are_on_the_page_without_javascript(one_page):
    text = one_page.read_text(encoding="utf-8")
    for one in (scores := score(FIRST, [REFERENCES])).bleu, scores.chrf, scores.ter:
        assert f'<p class="big">{one.value:.1f}</p>' in text
        assert one.signature.replace("|", "|<wbr>") in text


def test_the_histogram_counts_every_sentence_once(one_page):
    text = one_page.read_text(encoding="utf-8")
    counts = [int(found) for found in re.findall(r'title="chrF \d+ to \d+: (\d+)"', text)]
    assert len(counts) == 20 and sum(counts) == LINES
    assert counts[-1] >= sum(row.chrf == 100 for row in score_sentences(FIRST, [REFERENCES])) > 0


def test_wins_ties_and_losses_are_all_sentences(two_page):
    text = two_page.read_text(encoding="utf-8")
    found = {label: int(count) for count, label in re.findall(r"<b>(\d+)</b> (B better|ties|A better)", text)}
    signs = [
        (row.difference > 0.005) - (row.difference < -0.005)
        for row in score_sentences(FIRST, [REFERENCES], second=SECOND)
    ]
    assert found == {"B better": signs.count(1), "ties": signs.count(0), "A better": signs.count(-1)}


def test_a_comparison_needs_rows_of_two_systems(tmp_path):
    comparison = compare(FIRST, SECOND, [REFERENCES], samples=2)
    with pytest.raises(ValueError, match=r"a row has no second hypothesis; call score_sentences\(..., second=...\)"):
        write_html(
            score_sentences(FIRST, [REFERENCES]), score(FIRST, [REFERENCES]), tmp_path / "a.html", comparison=comparison
        )


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


def opened(browser, path):
    page, noise = browser.new_page(viewport={"width": 1000, "height": 800}), []
    page.on("console", lambda message: noise.append(message.text))
    page.on("pageerror", lambda error: noise.append(str(error)))
    page.on("request", lambda request: noise.append(request.url) if not request.url.startswith("file:") else None)
    page.goto(path.as_uri())
    page.wait_for_selector(".row")
    return page, noise


SHOWN = "cells => cells.map(cell => cell.lastChild.textContent)"


def lines(page):
    return [int(text.replace(",", "")) for text in page.eval_on_selector_all(".row .line", SHOWN)]


def test_sentences_can_be_sorted_found_and_scrolled_in_a_browser(one_page, browser):
    page, noise = opened(browser, one_page)
    assert page.title() == EVIL
    assert lines(page)[:2] == [9, 8]
    page.click(".heads button[data-key=n]")
    page.wait_for_selector(".row")
    assert lines(page)[:3] == [1, 2, 3]
    assert len(lines(page)) < LINES
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    page.wait_for_selector(".row:has-text('number 299')")
    assert 1 not in lines(page)
    page.fill("#query", "NUMBER 21 ")
    page.wait_for_selector(".row")
    assert lines(page) == [22]
    assert page.inner_text("#count") == "1 of 300"
    assert page.inner_text(".row del") == "few good"
    assert page.inner_text(".row ins") == "lot of"
    page.fill("#query", "no such words")
    assert page.is_visible("#nothing")
    page.click("#again")
    page.wait_for_selector(".row")
    page.click(".histogram button[data-low='95']")
    page.wait_for_selector(".row")
    assert page.inner_text("#count").endswith(" of 300")
    assert noise == []
    page.close()


def test_two_systems_can_be_compared_in_a_browser(two_page, browser):
    page, noise = opened(browser, two_page)
    wins = int(page.inner_text(".wins .win b"))
    page.click(".wins .win")
    page.wait_for_selector(".row")
    assert page.inner_text("#count") == f"{wins} of 300"
    assert page.eval_on_selector_all(".row .d", "all => all.every(one => one.classList.contains('more'))")
    assert page.get_attribute(".row del", "data-by") == "A"
    assert page.title() == "Sentence by sentence"
    page.fill("#query", "longlong")
    page.set_viewport_size({"width": 360, "height": 800})
    page.wait_for_selector(".row")
    assert lines(page) == [9]
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.eval_on_selector_all(".row dd", "all => all.every(one => one.scrollWidth <= one.clientWidth)")
    assert noise == []
    page.close()

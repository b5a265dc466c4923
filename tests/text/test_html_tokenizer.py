"""HTML is tokenized as browsers do it."""

from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.text.html_tokenizer import VOID, tokenize
from tests.text.test_markup import PAGES


def parts(page):
    found = tokenize(page)
    assert "".join(token.raw for token in found) == page
    return [(token.kind, token.raw) for token in found]


class Reference(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found.append(("open", tag, dict(attrs)))

    def handle_endtag(self, tag):
        self.found.append(("close", tag, {}))

    def handle_comment(self, data):
        self.found.append(("other", "!", {}))


@given(PAGES)
@settings(max_examples=60, deadline=None)
def test_a_well_formed_page_has_the_tokens_that_the_parser_of_python_finds(page):
    page = page.replace("pre>", "div>")
    reference = Reference()
    reference.feed(page)
    reference.close()
    found = [
        (token.kind, token.name, {name: value.text for name, value in token.attributes.items()})
        for token in tokenize(page)
        if token.kind != "text"
    ]
    assert found == reference.found


@given(st.text(alphabet="aB <>/&;!-='\"\n#?[]CDAT", max_size=50))
@settings(max_examples=200, deadline=None)
def test_the_tokens_of_any_text_are_the_text(page):
    assert all(raw for _, raw in parts(page))


@pytest.mark.parametrize(
    ("page", "right"),
    [
        ("a < b <3 c", [("text", "a < b <3 c")]),
        ("a <b c", [("text", "a <b c")]),
        ("<p>a</p", [("open", "<p>"), ("text", "a</p")]),
        ("<!-->a", [("other", "<!-->"), ("text", "a")]),
        ("<!--->a", [("other", "<!--->"), ("text", "a")]),
        ("<!-- a > --!>b", [("other", "<!-- a > --!>"), ("text", "b")]),
        ("<!-- a > b", [("other", "<!-- a > b")]),
        ("<!doctype html>a", [("other", "<!doctype html>"), ("text", "a")]),
        ("<?xml a?>b", [("other", "<?xml a?>"), ("text", "b")]),
        ("<![CDATA[a > b]]>c", [("other", "<![CDATA[a > b]]>"), ("text", "c")]),
        ("<![if IE]>a", [("other", "<![if IE]>"), ("text", "a")]),
        ("</>a</ x>b", [("other", "</>"), ("text", "a"), ("other", "</ x>"), ("text", "b")]),
        ("<a b=\"x > y\" c='>'>z", [("open", "<a b=\"x > y\" c='>'>"), ("text", "z")]),
        ('<a b="never closed>c<i>d</i>', [("other", '<a b="never closed>c<i>d</i>')]),
        ("<SCRIPT>a</b><c></Script >d", [("open", "<SCRIPT>"), ("other", "a</b><c>"), ("close", "</Script >"), ("text", "d")]),
        ("<script>a<b>c", [("open", "<script>"), ("other", "a<b>c")]),
        ("<title>a <b> c</title>", [("open", "<title>"), ("text", "a <b> c"), ("close", "</title>")]),
        ("<title>a<b>c", [("open", "<title>"), ("text", "a"), ("open", "<b>"), ("text", "c")]),
        ("<br/><p/><a b=c/>", [("open", "<br/>"), ("other", "<p/>"), ("open", "<a b=c/>")]),
    ],
)  # fmt: skip
def test_odd_pages_are_read_as_browsers_read_them(page, right):
    assert parts(page) == right


def test_an_attribute_has_its_value_and_position():
    (token,) = tokenize("<IMG Alt = 'a &amp; b' alt=c title=d&lt;e hidden data-x=\"\">")
    values = token.attributes
    assert (token.name, token.name in VOID) == ("img", True)
    assert [(name, value.text, value.quote, token.raw[value.start : value.end]) for name, value in values.items()] == [
        ("alt", "a & b", "'", "'a &amp; b'"), ("title", "d<e", "", "d&lt;e"), ("data-x", "", '"', '""'),
    ]  # fmt: skip
    assert (token.attribute("alt"), token.attribute("none")) == ("a & b", "")

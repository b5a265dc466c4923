"""Adversarial texts, over which an algorithm of quadratic time would take hours."""

import io
import sys
import zipfile
from pathlib import Path

import pytest

import heed
from heed.text import documents, docx, markup, protect, protected
from heed.text.glossary import Glossary
from heed.text.inline import Translated

SOURCE = str(Path(heed.__file__).parent)
MANY = 60_000
HARD = {
    "an escape with zeros.txt": "a %" + "0" * MANY + " b",
    "brackets after an address.txt": "http://a" + ")" * MANY + " b",
    "code that is never closed.txt": "``a`" * 6_000,
    "spaces in a line.md": "a" + " " * MANY + "b",
    "images that open.md": "![" * 6_000 + " a",
    "notes that open.md": "[^" * 6_000 + " a",
    "the name of an attribute.html": "<a " + "b" * 4 * MANY + ">c",
    "comments that open.html": "<!--" * MANY,
    "declarations.html": "<![" * MANY,
    "a tag in a cue.srt": "1\n00:00:01,000 --> 00:00:02,000\n<" + "a" * MANY,
}
REPEATED = {  # before and after a word
    "points": ("<wbr>b ", ""),
    "points and marks": ("<wbr><b>c</b> ", ""),
    "marks without their halves": ("<b>", "</i>"),
    "elements": ("<div>", "</div>"),
    "what must stay": ("{n}가 ", ""),
}


def louder(texts):
    said = protected.translate(texts, lambda own: [text.upper() for text in own])
    return [Translated(text, [(i, i) for i in range(len(text.split()))]) for text in said]


@pytest.mark.parametrize("name", HARD)
def test_adversarial_texts_take_no_quadratic_time(name):
    data = HARD[name].encode()
    assert documents.translate(data, name, lambda texts: texts) == data
    documents.translate(data, name, louder)


def work(page):
    """How many bytecode instructions of heed a page takes."""
    steps = 0

    def count(frame, event, _):
        nonlocal steps
        frame.f_trace_opcodes = True
        steps += event == "opcode"
        return count if frame.f_code.co_filename.startswith(SOURCE) else None

    before = sys.gettrace()
    sys.settrace(count)
    try:
        markup.translate(page, louder)
    finally:
        sys.settrace(before)
    return steps


@pytest.mark.parametrize("name", REPEATED)
def test_work_is_linear_in_the_length(name):
    before, after = REPEATED[name]
    one, four = (work(before * times + "a " + after * times) for times in (30, 120))
    assert four < 4.8 * one


def test_a_megabyte_in_one_line_ends_soon():
    data = ("12345678901234567890 " * 50_000 + "word").encode()
    assert documents.translate(data, "a.txt", lambda texts: texts) == data


def test_many_changed_spans_are_restored_at_once():
    text = "".join(f"<b>a{i} " for i in range(1_000)) + "end"
    said = protected.translate([text], lambda texts: [own.replace("<", "[").upper() for own in texts])[0]
    assert [span.text for span in protect.find(said)] == ["<b>"] * 1_000


def test_a_glossary_of_many_lengths_is_looked_up_once_per_position():
    glossary = Glossary({"中" * length: "x" for length in range(1, 201)})
    assert [(match.start, match.end) for match in glossary.matches("中" * 1000)] == [
        (i, i + 200) for i in range(0, 1000, 200)
    ]


def document(body):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "word/document.xml", f'<w:document xmlns:w="{docx.NAMESPACES[0]}"><w:body>{body}</w:body></w:document>'
        )
    return out.getvalue()


def test_word_documents_have_limits_of_depth_and_size(monkeypatch):
    deep = "<w:r><w:x>" * 150 + "</w:x></w:r>" * 150
    with pytest.raises(ValueError, match=r"a\.docx: word/document\.xml has more than 200 nested elements, which"):
        documents.translate(document(deep), "a.docx", louder)
    text = f"<w:p><w:r><w:t>{'&amp;a ' * 500}</w:t></w:r></w:p>"
    assert documents.texts_of(document(text), "a.docx") == ["&a " * 499 + "&a"]
    monkeypatch.setattr(docx, "MAX_XML", 3_000)
    with pytest.raises(
        ValueError, match=r"a\.docx has .* bytes of text and markup; the limit is 3,000: split it in two"
    ):
        documents.translate(document(text), "a.docx", louder)

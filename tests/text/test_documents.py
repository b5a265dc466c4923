"""Documents: their text is translated, and the rest of the file stays as it was."""

import io
import re
import zipfile
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.text import docx
from heed.text.documents import texts_of, translate
from heed.text.inline import Translated

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def same(texts):
    return texts


def louder(texts):
    return [Translated(text.upper(), [(i, i) for i in range(len(text.split()))]) for text in texts]


def backwards(texts):
    found = []
    for text in texts:
        words = text.upper().split()
        found.append(Translated(" ".join(reversed(words)), [(i, len(words) - 1 - i) for i in range(len(words))]))
    return found


MARKDOWN = """---
title: left alone
---
# A **bold** title

Some *emphasis* and a [link](http://a.example/x_(y) "T"), `code`, and
a second line. Then 2 * 3 and \\*stars\\*.
A hard break  
and ![an image](a.png) <b>html</b>.

- item **one**
- [ ] item two

> a quote

| Head | Cell |
|------|:----:|
| a *b* | c d |

```python
print("left alone")
```

    left alone

[ref]: http://x.example "left alone"
Heading
=======
"""
LOUD = """---
title: left alone
---
# A **BOLD** TITLE

SOME *EMPHASIS* AND A [LINK](http://a.example/x_(y) "T"), `code`, AND A SECOND LINE. THEN 2 * 3 AND \\*STARS\\*.
A HARD BREAK  
AND ![an image](a.png) <b>HTML</b>.

- ITEM **ONE**
- [ ] ITEM TWO

> A QUOTE

| HEAD | CELL |
|------|:----:|
| A *B* | C D |

```python
print("left alone")
```

    left alone

[ref]: http://x.example "left alone"
HEADING
=======
"""
SUBTITLES = """1\r
00:00:01,000 --> 00:00:04,000\r
{\\an8}Hello <i>my\r
dear</i> friend.\r
\r
2\r
00:00:05,000 --> 00:00:06,000 X1:40\r
- Who is it?\r
- Nobody.\r
\r
3\r
00:00:07,000 --> 00:00:08,000\r
42\r
"""


@pytest.mark.parametrize(
    ("name", "text", "right"),
    [
        ("a.txt", "One {x} here.\n\n - Two\r\n", "ONE {x} HERE.\n\n - TWO\r\n"),
        ("a.md", MARKDOWN, LOUD),
        ("A.HTML", "<p>one <b>two</b></p>", "<p>ONE <b>TWO</b></p>"),
        ("a.srt", SUBTITLES, SUBTITLES.replace("Hello", "HELLO").replace("my", "MY").replace("dear", "DEAR")
         .replace("friend", "FRIEND").replace("Who is it", "WHO IS IT").replace("Nobody", "NOBODY")),
    ],
)  # fmt: skip
def test_texts_are_translated_and_the_rest_stays(name, text, right):
    for mark, encoding in ((b"", "utf-8"), (b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le")):
        data = mark + text.encode(encoding)
        assert translate(data, name, same) == data
        assert translate(data, name, louder) == mark + right.encode(encoding)


def test_markdown_emphasis_follows_its_words():
    said = translate(b"a **big *blue*** house, [see it](x) now_here `f(x)`", "a.md", backwards).decode()
    assert said == "`f(x)` NOW_HERE [IT SEE](x) HOUSE, ***BLUE* BIG** A"


@given(st.lists(st.sampled_from(["*", "**", "_", "`", "[", "](x)", "![", "a", "b c", "\n", "\n\n", "  \n", "- ", "> ", "|", "\\", "<b>", "</b>", "```\n", "    ", "# ", "1. ", "---\n", "가.", "^", "~~", "\t", "\r\n"]), max_size=24).map("".join))  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_markdown_that_is_not_changed_comes_back_to_the_byte(text):
    assert translate(text.encode(), "a.md", same) == text.encode()
    translate(text.encode(), "a.md", backwards)


@given(st.text(alphabet="ab 12\n\r-<i>/{\\}:,.가", max_size=80).map(lambda text: SUBTITLES[:34] + text))
@settings(max_examples=100, deadline=None)
def test_subtitles_that_are_not_changed_come_back_to_the_byte(text):
    assert translate(text.encode(), "a.srt", same) == text.encode()
    assert translate(text.encode(), "a.srt", louder).count(b"-->") == text.count("-->")


def test_a_cue_may_follow_another_without_a_blank_line():
    times = "00:00:01,000 --> 00:00:02,000"
    text = f"1\n{times}\none\ntwo\n2\n{times}\nthree"
    assert texts_of(text.encode(), "a.srt") == ["one two", "three"]
    assert translate(text.encode(), "a.srt", louder).decode() == text.replace("one\ntwo", "ONE\nTWO").replace(
        "three", "THREE"
    )


def test_a_cue_keeps_its_lines_and_no_tag_is_broken():
    text = '1\n00:00:01,000 --> 00:00:02,000\n<font color="red">one two three</font>\nfour five six\n\n'
    said = translate(text.encode(), "a.srt", backwards).decode()
    assert said.splitlines()[2:] == ["SIX FIVE FOUR", '<font color="red">THREE TWO ONE</font>', ""]


def test_braces_in_a_cue_are_words_where_they_are_no_marks():
    cue = "1\n00:00:01,000 --> 00:00:02,000\n{a\nb} c\n"
    assert translate(cue.encode(), "a.srt", louder).decode() == cue[:-8] + "{A\nB} C\n"
    assert translate(b"1\n00:00:01,000 --> 00:00:02,000\n{a\rb}", "a.srt", backwards)


def test_one_column_of_a_table_is_translated():
    data = b"id\tText\tx\r\n1\tOne. Two {a}.\tstay\r\n\r\n2\t\tstay\n3\tThree"
    assert (
        translate(data, "a.tsv", louder, column=2)
        == b"id\tTEXT\tx\r\n1\tONE. TWO {a}.\tstay\r\n\r\n2\t\tstay\n3\tTHREE"
    )
    assert translate(data, "a.tsv", lambda texts: ["a\tb\nc"] * len(texts), column=1).count(b"\t") == data.count(b"\t")
    assert texts_of(data, "a.tsv", column=2) == ["Text", "One.", "Two {a}.", "Three"]


# Word documents


def document(
    body,
    more=(),
    declared=f'xmlns:w="{W}" xmlns:r="urn:r" xmlns:unused="urn:u" w:rsid="1"',
    packing=zipfile.ZIP_DEFLATED,
):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", packing) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr(
            "word/document.xml",
            f"<?xml version='1.0' encoding='UTF-8'?>\n<w:document {declared}><w:body>{body}</w:body></w:document>",
        )
        for name, content in dict(more).items():
            archive.writestr(name, content)
    return out.getvalue()


def opened(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def body(data):
    xml = opened(data)["word/document.xml"]
    ElementTree.fromstring(xml)
    return re.search("<w:body>(.*)</w:body>", xml, re.S)[1]


def run(text, bold=False):
    return f'<w:r>{"<w:rPr><w:b/></w:rPr>" if bold else ""}<w:t xml:space="preserve">{text}</w:t></w:r>'


def test_a_document_keeps_every_byte_that_is_no_text():
    more = {
        "word/header1.xml": f'<w:hdr xmlns:w="{W}"><w:p><w:r><w:t>Top</w:t></w:r></w:p></w:hdr>',
        "word/media/a.png": "\x00\x01",
        "docProps/app.xml": "<x/>",
    }
    inner = (
        f"<w:p><w:pPr><w:jc/></w:pPr>{run('Hello ')}{run('big ', True)}{run('world &amp; all.')}</w:p><w:p/><!-- c -->"
    )
    data = document(inner, more)
    assert opened(translate(data, "a.docx", same)) == opened(data)
    said = translate(data, "a.docx", louder)
    assert body(said) == inner.replace("Hello", "HELLO").replace("big", "BIG").replace(
        "world &amp; all", "WORLD &amp; ALL"
    )
    files = opened(said)
    assert "Top" not in files.pop("word/header1.xml")
    files.pop("word/document.xml")
    assert files == {name: content for name, content in opened(data).items() if name in files}
    assert 'xmlns:unused="urn:u"' in opened(said)["word/document.xml"]


def test_formatting_follows_its_words():
    said = body(
        translate(document(f"<w:p>{run('see the ')}{run('blue house', True)}{run(' now')}</w:p>"), "a.docx", backwards)
    )
    texts = re.findall(r"<w:r>(<w:rPr><w:b/></w:rPr>)?<w:t xml:space=\"preserve\">(.*?)</w:t>", said)
    assert "".join(text for _, text in texts) == "NOW HOUSE BLUE THE SEE"
    assert "".join(text for bold, text in texts if bold).strip() == "HOUSE BLUE"


def test_links_bookmarks_and_notes_are_kept():
    inner = (
        f'<w:p><w:bookmarkStart w:id="3" w:name="x"/>{run("see ")}<w:hyperlink r:id="r1">{run("this page")}</w:hyperlink>'
        f'<w:r><w:footnoteReference w:id="2"/></w:r>{run(" today")}<w:bookmarkEnd w:id="3"/><w:proofErr w:type="x"/></w:p>'
    )
    said = body(translate(document(inner), "a.docx", backwards))
    assert re.search(r'<w:hyperlink r:id="r1">(?:(?!</w:hyperlink>).)*PAGE THIS', said)
    for tag in (
        "<w:hyperlink",
        "</w:hyperlink>",
        "<w:footnoteReference",
        "<w:bookmarkStart",
        "<w:bookmarkEnd",
        "<w:proofErr",
    ):
        assert said.count(tag) == 1
    assert said.index("<w:bookmarkStart") < said.index("<w:bookmarkEnd")


def test_what_is_not_text_is_not_translated():
    inner = (
        '<w:p><w:r><w:t>tab</w:t><w:tab/><w:t>stop</w:t></w:r><w:del><w:r><w:delText>gone</w:delText></w:r></w:del>'
        '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>PAGE</w:instrText></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r>'
        "<w:r><w:pict><w:txbxContent><w:p><w:r><w:t>in a box</w:t></w:r></w:p></w:txbxContent></w:pict></w:r></w:p>"
    )  # fmt: skip
    data = document(inner)
    assert texts_of(data, "a.docx") == ["tab", "stop", "in a box"]
    said = body(translate(data, "a.docx", louder))
    assert re.sub(' xml:space="preserve"', "", said) == inner.replace("tab</", "TAB</").replace("stop", "STOP").replace(
        "in a box", "IN A BOX"
    )


def test_deleted_text_does_not_split_a_sentence():
    data = document(f"<w:p>{run('one ')}<w:del><w:r><w:delText>gone</w:delText></w:r></w:del>{run('two')}</w:p>")
    assert texts_of(data, "a.docx") == ["one two"]
    assert body(translate(data, "a.docx", backwards)).count("<w:delText>gone</w:delText>") == 1


def test_characters_that_xml_forbids_are_dropped():
    said = body(translate(document(f"<w:p>{run('one')}</w:p>"), "a.docx", lambda texts: ["a<b>&\x00\x0bc"]))
    assert "a&lt;b&gt;&amp;c" in said


@given(st.lists(st.tuples(st.sampled_from(["one two", " three.", "Four ", "5", " ", "여섯 ", "&amp;"]), st.booleans(), st.sampled_from(["", "<w:hyperlink>", "</w:hyperlink>", "<w:br/>", "<w:proofErr/>"])), max_size=8), st.sampled_from([louder, backwards]))  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_documents_stay_well_formed_and_lose_nothing(parts, model):
    inner, link = "", False
    for text, bold, extra in parts:
        inner += run(text, bold)
        if (extra == "<w:hyperlink>" and not link) or (extra == "</w:hyperlink>" and link):
            inner, link = inner + extra, not link
        elif extra.endswith("/>"):
            inner += f"<w:r>{extra}</w:r>" if "br" in extra else extra
    data = document(f"<w:p>{inner}{'</w:hyperlink>' * link}</w:p>")
    assert opened(translate(data, "a.docx", same)) == opened(data)
    said, before = body(translate(data, "a.docx", model)), body(data)
    for tag in ("<w:hyperlink>", "</w:hyperlink>", "<w:br/>", "<w:proofErr/>", "<w:p>"):
        assert said.count(tag) == before.count(tag)

    def letters(xml):
        return sorted("".join(re.findall(r"<w:t[^>]*>(.*?)</w:t>", xml)).upper().replace(" ", ""))

    assert letters(said) == letters(before)


BOMB = document("", {"word/media/x.bin": "\0" * (3 << 20)})


@pytest.mark.parametrize(
    ("data", "name", "column", "sentence"),
    [
        (b"x", "a.pdf", None, "a.pdf ends in .pdf; heed translates .txt, .text, .md"),
        (b"x", "noname", None, "noname has no extension; heed translates"),
        (b"fine\n\xff\xfeno", "a.txt", None, "a.txt, line 2 is not UTF-8: convert the file first"),
        (b"a\tb", "a.tsv", None, "a.tsv: choose the column to translate, counted from 1"),
        (b"a\tb", "a.tsv", 0, "a.tsv: column is 0; columns are counted from 1"),
        (b"a\tb\nc", "a.tsv", 2, "a.tsv, line 2 has 1 columns; column 2 was to be translated"),
        (b"a", "a.txt", 1, "a.txt has no columns: column 1 is for .tsv files"),
        (b"no zip", "a.docx", None, "a.docx is not a Word document, or is damaged"),
        (document("<w:p/>")[:-30], "a.docx", None, "a.docx is not a Word document, or is damaged"),
        (document("<w:p>"), "a.docx", None, "a.docx: word/document.xml is damaged (mismatched tag"),
        (
            BOMB,
            "a.docx",
            None,
            "a.docx: word/media/x.bin would unpack to 3,145,728 bytes, which is too large: over 200 times its compressed size",
        ),
    ],
)
def test_a_document_that_cannot_be_translated_is_an_error_of_one_sentence(data, name, column, sentence):
    with pytest.raises(ValueError) as error:
        translate(data, name, same, column=column)
    assert str(error.value).startswith(sentence)


def archive(files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        for name, content in files.items():
            made.writestr(name, content)
    return out.getvalue()


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({"other.xml": "<x/>"}, "a.docx is not a Word document: it has no word/document.xml"),
        (
            {"word/document.xml": '<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>'},
            "a.docx: word/document.xml has a document type declaration (DTD)",
        ),
        (
            {"word/document.xml": '<!DOCTYPE x SYSTEM "file:///etc/passwd"><x/>'},
            "a.docx: word/document.xml has a document type declaration (DTD)",
        ),
        ({"word/document.xml": "<x>".encode("utf-16")}, "a.docx: word/document.xml is written in UTF-16"),
    ],
)
def test_dangerous_and_foreign_documents_are_refused(files, sentence):
    with pytest.raises(ValueError) as error:
        translate(archive(files), "a.docx", same)
    assert str(error.value).startswith(sentence)


def test_limits_hold(monkeypatch):
    data = document("<w:p/>")
    monkeypatch.setattr(docx, "MAX_FILES", 1)
    with pytest.raises(ValueError, match="contains 2 files; the limit is 1"):
        translate(data, "a.docx", same)
    monkeypatch.undo()
    monkeypatch.setattr(docx, "MAX_BYTES", 20)
    with pytest.raises(ValueError, match="which is too large: the limit for all files together is 20; split it in two"):
        translate(data, "a.docx", same)


def test_a_path_in_an_archive_is_never_used(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = document(f"<w:p>{run('one')}</w:p>", {"../../evil.txt": "x", "/etc/evil": "y"})
    said = translate(data, "a.docx", louder)
    assert not list(tmp_path.iterdir())
    assert set(opened(said)) == set(opened(data))


def test_the_dashes_of_two_speakers_stay():
    cue = "1\n00:00:01,000 --> 00:00:02,000\n- one two\n– <i>three</i>\n\n2\n00:00:03,000 --> 00:00:04,000\n<i>- four</i>\n"

    def letters(texts):
        return [" ".join(word.upper() for word in text.split() if word.isalpha()) for text in texts]

    assert translate(cue.encode(), "a.srt", letters).decode() == cue.replace("one two", "ONE TWO").replace(
        "three", "THREE"
    ).replace("four", "FOUR")

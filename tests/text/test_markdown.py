"""Markdown through a translation: what another parser makes of it is what it was, with other words."""

import random
import re

import pytest

from heed.text import markdown, protected
from heed.text.inline import Translated
from heed.text.markdown_blocks import split_blocks

markdown_it = pytest.importorskip("markdown_it")  # rich needs it, so it is there
RENDER = markdown_it.MarkdownIt("commonmark").enable(["table", "strikethrough"]).render


def louder(texts):
    said = protected.translate(texts, lambda own: [text.upper() for text in own])
    return [Translated(text, [(i, i) for i in range(len(text.split()))]) for text in said]


def shown(text):
    """The rendered page, without differences of white space and case."""
    page = re.sub(r"\s*(<[^>]*>)\s*", r"\1", re.sub(r"\s+", " ", RENDER(text))).strip().lower()
    return page.replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&")


WORDS = ["word one", "two.", "*em*", "**bold**", "`code x`", "[link](http://a.example)", "![alt](i.png)", "\\*", "\\[a](b)", "&amp;",
         "&lt;i&gt;", "a\\_b", "<b>h</b>", "http://x.example/z_q", "snake_case", "2 * 3", "~~s~~", "1\\.", "\\#", "<https://q.example>",
         "_u_", "a|b", "***x y***", "caf&eacute;", "[ref][1]"]  # fmt: skip
LEADS = ["", "", "", "- ", "1. ", "2. ", "> ", "> > ", "# ", "## ", "  ", "* ", "- [ ] ", "+ ", "- > ", "1. - "]
SPECIAL = ["```\ncode here\n```", "~~~py\ncode\n~~~", "---", "| a | b |\n|---|---|\n| c d | e \\| f |", "a | b\n--|--\nc | d",
           "    code four", "<div>\nhtml *text* &amp; words\n</div>", "<!-- com\n\nment -->", "[r]: http://x.example 'T'",
           "> ```\n> quoted code\n> ```\nafter it", "- ```\n  item code\n  ```", "<pre>\npre text\n\nmore\n</pre>", "\\- no list",
           "1986\\. a year", "- a\n  - b\n    - c\n\n      in c\n\n  in a\n\n      code in a", "Title\n=====", "> one\n> two\nlazy",
           "one\ntwo  \nthree\\\nfour", "## closed ##", "- a\n\n\ttab in a\n\nout\n\n\tcode", "1.  a\n\n    ```\n    code\n    ```",
           "in the year\n1986. it was", "the answer\n42\nis right", "```inline``` words"]  # fmt: skip


def document(chance):
    blocks = []
    for _ in range(chance.randint(1, 5)):
        if chance.random() < 0.4:
            blocks.append(chance.choice(SPECIAL))
        else:
            lines = [" ".join(chance.choices(WORDS, k=chance.randint(1, 4))) for _ in range(chance.randint(1, 2))]
            blocks.append(chance.choice(LEADS) + "\n".join(lines))
    return "\n\n".join(blocks) + "\n"


@pytest.mark.parametrize("seed", range(4))
def test_another_parser_sees_what_was_there_with_other_words(seed):
    chance = random.Random(seed)
    for _ in range(25):
        text = document(chance)
        assert markdown.translate(text, lambda texts: texts) == text
        assert shown(markdown.translate(text, louder)) == shown(text), text
        windows = text.replace("\n", "\r\n")
        assert markdown.translate(windows, lambda texts: texts) == windows


def asked(text):
    found = []

    def model(texts):
        found.extend(texts)
        return texts

    assert markdown.translate(text, model) == text
    return found


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("- one\n  - two\n    goes on\n", ["one", "two goes on"]),
        ("> one\n> goes on\n> > deeper\n", ["one goes on", "deeper"]),
        ("term\n: what it is\n", ["term", "what it is"]),
        ("[^1]: The note.\n[1]: http://a.example 'T'\n", ["The note."]),
        ("a | b\n--|--\nc d | e\n\nf | g\n", ["a", "b", "c d", "e", "f | g"]),
        ("| a \\| b | c |\n|--|--|\n", ["a | b", "c"]),
        ("<div>\n\none\n\n</div>\n<pre>\ntwo\n\nthree\n</pre>\n", ["one"]),
        ("<script>\nlet it = 'be';\n\n</script>\n<!-- one\n\ntwo -->\nthree\n", ["three"]),
        ("> ```\n> code\n> ```\n> text\n", ["text"]),
        ("> ```\n> code\n\ntext\n", ["text"]),
        ("- ```\n  code\n  ```\n- text\n", ["text"]),
        ("1.  one\n\n    ```\n    code\n    ```\n\n        code\n\n    two\n", ["one", "two"]),
        ("- one\n\nout\n\n    code\n", ["one", "out"]),
        ("# one #\n    code\n", ["one"]),
        ("caf&eacute; &amp; tea\n", ["café & tea"]),
        ("mail <a@b.example> <https://c.example>\n", ["mail a@b.example https://c.example"]),
        ("\ufeff---\ntitle: left\n---\none\n", ["one"]),
    ],
)
def test_text_is_asked_for_and_the_rest_is_not(text, right):
    assert asked(text) == right
    windows = text.replace("\n", "\r\n")
    assert [" ".join(own.split()) for own in asked(windows)] == right


@pytest.mark.parametrize(
    ("text", "said", "right"),
    [
        ("one\n", "- eins", "\\- eins\n"), ("one\n", "1. eins", "1\\. eins\n"), ("one\n", "# eins", "\\# eins\n"), ("one\n", "> eins", "\\> eins\n"),
        ("one\n", "[a](b)", "\\[a](b)\n"), ("one\n", "<b>", "\\<b>\n"), ("one\n", "&copy;", "\\&copy;\n"), ("one\n", "*a*", "\\*a\\*\n"),
        ("## one\n", "eins #", "## eins \\#\n"), ("| one |\n|--|\n", "a | b", "| a \\| b |\n|--|\n"), ("one\n", "a - b, 1. c", "a - b, 1. c\n"),
        ("   ![a](b) one\n", "eins", "   ![a](b) eins\n"),
    ],
)  # fmt: skip
def test_a_translation_is_escaped_so_that_it_is_no_markup(text, said, right):
    assert markdown.translate(text, lambda texts: [said]) == right


def test_blocks_are_the_text():
    for seed in range(100):
        text = document(random.Random(seed))
        assert "".join(part if isinstance(part, str) else part.with_leads() for part in split_blocks(text)) == text


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("see [words] and [more][]\n\n[words]: /a\n[more]: /b\n", "SEE [WORDS][words] AND [MORE][more]\n\n[words]: /a\n[more]: /b\n"),
        ("see [words] here\n", "SEE [WORDS] HERE\n"),
        ("see [a page](</my page> (title)) now\n", "SEE [A PAGE](</my page> (title)) NOW\n"),
        ("*one  \ntwo* three\n", "*ONE  \nTWO* THREE\n"),
        ("*foo **bar *baz* bim** bop*\n", "*FOO **BAR *BAZ* BIM** BOP*\n"),
        ("> <div>\n> one. two\n> </div>\n", "> <div>\n> ONE. TWO\n> </div>\n"),
        ("<?php\n\n echo 'one';\n\n?>\ntwo\n", "<?php\n\n echo 'one';\n\n?>\nTWO\n"),
        ("[^1]: one\n\n    two\n\n        code\n", "[^1]: ONE\n\n    TWO\n\n        code\n"),
        ("> [^1]: one\n>     two\n\n   out\n\n    code\n", "> [^1]: ONE TWO\n\n   OUT\n\n    code\n"),
        ("[^1]: one\n\n   out\n\n    code\n", "[^1]: ONE\n\n   OUT\n\n    code\n"),
        ("  [^1]: one\n\n      two\n", "  [^1]: ONE\n\n      TWO\n"),
        ("one\n[^1]: two\n", "ONE\n[^1]: TWO\n"),
        ("| one | one |\n|--|--|\n| one | one |\n", "| ONE | ONE |\n|--|--|\n| ONE | ONE |\n"),
        ("one\ntwo\n===\n", "ONE TWO\n===\n"),
        ("term\n: one\n: two\n\nend\n", "TERM\n: ONE\n: TWO\n\nEND\n"),
        ("<div>\n<pre>\n\na\n</pre>\n# b\n", "<div>\n<pre>\n\na\n</pre>\n# B\n"),
        ("press <kbd>ctrl</kbd> <kbd>now\n", "PRESS <kbd>ctrl</kbd> <kbd>NOW\n"),
        ("one\0two\rthree\r\nfour\n", "ONE\0TWO THREE FOUR\n"),
    ],
)  # fmt: skip
def test_marks_are_those_of_commonmark(text, right):
    assert markdown.translate(text, lambda texts: texts) == text
    assert markdown.translate(text, louder) == right


def test_marks_too_deep_to_be_moved_stay_in_their_order():
    text = "*a **b " * 30 + "c" + "** d*" * 30
    said = markdown.translate(text, louder)
    assert re.sub("[^*]", "", said) == re.sub("[^*]", "", text)
    assert said.lower().replace("\\", "") == text

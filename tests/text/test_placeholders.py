"""Opaque spans are found again in a translation, whatever is attached to them."""

from types import SimpleNamespace

import pytest

from heed.text import markdown, markup, placeholders
from heed.text.inline import Translated, opaque_spans


def says(answers):
    """A translator of these sentences only, each with its translation and alignment."""
    return lambda texts: [Translated(*answers[text]) for text in texts]


@pytest.mark.parametrize(
    ("page", "source", "said", "links", "right"),
    [
        ("총 {n}개의 <b>항목</b>", "총 {n}개의 항목", "{n} items in total", [(0, 2), (0, 3), (1, 0), (2, 1)],
         "{n} <b>items</b> in total"),
        ("<code>f</code>에서부터 시작", "f에서부터 시작", "start from f on", [(0, 1), (0, 2), (0, 3), (1, 0)],
         "start from <code>f</code> on"),
        ("%s에서는 {a}와 {b}를", "%s에서는 {a}와 {b}를", "{b} and {a} in %s", [(0, 3), (0, 4), (1, 1), (1, 2), (2, 0)],
         "{b} and {a} in %s"),
        ("가 {a}{b}나다라마 {a}", "가 {a}{b}나다라마 {a}", "x {a}{b} y {a}", [(0, 0), (1, 1), (2, 3)], "x {a}{b} y {a}"),
        ("go <code>a b  c</code> <i>now <b>{x}</b>요</i>", "go a b c now {x}요", "{x}! jetzt a b c gehen", [(0, 5), (4, 1), (5, 0)],
         "<i><b>{x}!</b> jetzt</i> <code>a b  c</code> gehen"),
        ("see <code>a</code> now", "see a now", "siehe a jetzt, a!", [(0, 0), (1, 3), (2, 2)], "siehe a jetzt, <code>a</code>!"),
        ("see and see <code>a</code>", "see and see a", "a und sehen a", [(1, 1), (2, 2)], "a und sehen <code>a</code>"),
        ("<kbd>of</kbd> it", "of it", "often of it", [(0, 0), (1, 2)], "often <kbd>of</kbd> it"),
        ("one <code>x</code>", "one x", "\U000f0000 x \U000f0001", [(0, 0), (1, 1)], "\U000f0000 <code>x</code> \U000f0001"),
    ],
)  # fmt: skip
def test_an_opaque_span_comes_back_once_and_at_the_right_position(page, source, said, links, right):
    assert markup.translate(page, says({source: (said, links)})) == right


def test_code_in_markdown_may_have_particles_behind_it():
    answers = {"f에서부터 시작": ("start from f on", [(0, 1), (0, 2), (0, 3), (1, 0)])}
    assert markdown.translate("`f`에서부터 시작", says(answers)) == "start from `f` on"


def backwards(texts):
    words = [text.upper().split()[::-1] for text in texts]
    return [Translated(" ".join(own), [(i, len(own) - 1 - i) for i in range(len(own))]) for own in words]


SPACES = [" ", "\t", "\x1f", "\x85", "\u00a0", "\u2028", "\u3000"]


@pytest.mark.parametrize("space", [*SPACES, "\n", "\r\n"])
@pytest.mark.parametrize("code", ["`가{}`", "`{}가`", "`{}가{}`"])
def test_white_space_at_the_edges_of_code_does_not_move_the_marks_of_other_words(code, space):
    code = code.format(space, space)
    assert markdown.translate(f"c **d** {code}b", backwards) == f"{code}B **D** C"


@pytest.mark.parametrize("space", SPACES)
def test_code_with_white_space_at_its_end_is_opaque_at_the_end_of_a_sentence_too(space):
    answers = {"start f": ("f에서부터 시작", [(0, 1), (1, 0)])}
    assert markdown.translate(f"start `f{space}`", says(answers)) == f"`f{space}`에서부터 시작"


def test_a_sentence_that_lost_a_span_is_translated_again_with_it_as_code():
    asked = []

    def model(texts):
        asked.append(list(texts))
        return [text if "`" in text else text.upper() for text in texts]

    assert markup.translate("<p>Use <kbd>Ctrl</kbd>+<kbd>C</kbd> now.</p><p>one</p>", model) == (
        "<p>Use <kbd>Ctrl</kbd>+<kbd>C</kbd> now.</p><p>ONE</p>"
    )
    assert asked == [["Use Ctrl+C now.", "one"], ["Use `Ctrl`+`C` now."]]


def test_if_the_span_is_lost_again_the_first_translation_stays():
    assert markup.translate("<p>go <code>xyz</code> on</p>", lambda texts: [text.upper() for text in texts]) == (
        "<p>GO <code>xyz</code> ON</p>"
    )


def test_many_spans_have_many_positions():
    spans = [placeholders.OpaqueSpan("{a}", 4 * i, 4 * i + 3) for i in range(200)]
    located = placeholders.locate("{a} " * 200, spans, "{a} " * 150, [], placeholders.unused([]))
    assert sorted(located.spans.values()) == list(range(150))
    assert "{a}" not in located.text
    few = placeholders.locate("{a} " * 200, spans, "{a} " * 150, [], iter("XY"))
    assert (len(few.spans), few.text[:12]) == (2, "X Y {a} {a} ")


def test_spans_are_counted_from_the_beginning_of_their_sentence():
    nodes = [SimpleNamespace(start=start, end=start + 1) for start in (0, 4, 8)]
    marked = SimpleNamespace(text="x a y b z c", opaque=nodes)
    assert opaque_spans(marked, 2, 8) == ([nodes[1]], [("y", 2, 3)])
    assert opaque_spans(marked, 0, 5) == (nodes[:2], [("x", 0, 1), ("y", 4, 5)])
    assert opaque_spans(marked, 0, 4)[0] == nodes[:1]

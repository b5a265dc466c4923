"""heed translate --sentences: lines cut into sentences, in the way of the library and the service."""

from heed.loading import load
from heed.service.http.models import ServedModel, TranslationOptions
from heed.service.http.queue import Ticket
from heed.service.http.request import RouteTranslator
from heed.service.http.segmenter import TextTask
from heed.service.http.segmenter_pool import SegmenterPool

LINES = [
    "가.",
    "나는 책을 읽어요. 값은 3,000원이에요. 가.",
    "1. 나는 {name}을 읽어요.",
    "",
    "https://a.example 😀",
    "책 0.3%",
]


def test_the_command_says_what_the_library_and_the_service_say(heed, trained):
    translator = load([str(trained)], "cpu", "torch", "translate")
    library = [one.text for one in translator.translate(LINES, sentences=True)]
    code, out, err = heed("translate", trained, "--engine", "torch", "--sentences", *LINES)
    assert (code, err) == (0, "") and out.splitlines() == library
    model = ServedModel("ko-en", "ko", "en", translator)
    model.start(lambda *_: None, max_wait=0, max_tokens=1000)
    task, ticket = TextTask("plain", LINES, "ko"), Ticket()
    with ticket.slots:
        assert RouteTranslator(ticket, SegmenterPool(), [model], TranslationOptions()).run(task) == library
    model.worker.close()


def test_by_default_a_line_is_one_unit(heed, trained):
    translator = load([str(trained)], "cpu", "torch", "translate")
    code, out, _ = heed("translate", trained, "--engine", "torch", *LINES)
    assert code == 0 and out.splitlines() == [translator.translate(line).text for line in LINES]
    assert not translator.translate(LINES[1]).parts


def test_scores_alignments_and_next_best_translations_of_sentences(heed, trained):
    options = ["--engine", "torch", "--sentences", "--scores", "--token-scores", "--align", "--nbest", "2"]
    code, out, _ = heed("translate", trained, *options, LINES[1], LINES[2])
    rows = [line.split("\t") for line in out.splitlines()]
    assert code == 0 and [len(row) for row in rows] == [4] * 4
    translator = load([str(trained)], "cpu", "torch", "translate")
    found = translator.translate([LINES[1], LINES[2]], sentences=True, nbest=2, beam=max(2, translator.decoding.beam))
    assert [row[1] for row in rows] == [own.text for one in found for own in one.nbest]
    assert [float(row[0]) for row in rows] == [round(own.score, 4) for one in found for own in one.nbest]
    assert all("3,000" in row[1] for row in rows[:2]) and all("{name}" in row[1] for row in rows[2:])
    for one in found:
        words = len(one.source.split()), len(one.text.split())
        assert one.alignment and all(i < words[0] and j < words[1] for i, j in one.alignment)
        assert one.score == sum(part.score for part in one.parts)
        assert [token for part in one.parts for token in part.tokens] == one.tokens
    marked = found[1]
    assert marked.text.startswith("1. ") and 0 not in {j for _, j in marked.alignment}  # the mark of a list is layout


def test_sentences_are_for_lines(heed, trained, tmp_path):
    (tmp_path / "a.txt").write_text("나는", "utf-8")
    code, _, err = heed("translate", trained, "--sentences", "--file", tmp_path / "a.txt", "--out", tmp_path / "b.txt")
    assert code != 0 and "--sentences is for lines: leave it out" in err

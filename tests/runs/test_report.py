"""The page about a run: what it says is what was measured, and it loads nothing from elsewhere."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from axe_playwright_python.sync_playwright import Axe

from heed.evaluation.analysis import LengthGroup
from heed.evaluation.comparison import compare
from heed.evaluation.sentence_scores import score_sentences
from heed.evaluation.translation import score
from heed.runs import final_validation
from heed.runs.final_validation import FinalValidation
from heed.runs.report.charts import Line, line_chart, thinned
from heed.runs.report.findings import Against
from heed.runs.report.log import read_training
from heed.runs.report.sections import duration
from heed.runs.report.settings import chosen
from heed.runs.report.write import page
from tests.chromium import chromium
from tests.runs.test_advice import RISING, findings, log, recipe

EVIL = "</script><script>document.title='owned'</script> <img src=x onerror=\"document.title='owned'\"> {{data}} & more"
REFERENCES = [f"Sentence number {n} has a few good words" for n in range(60)]
OUTPUTS = [line if n % 3 else line.replace("few good", "lot of") for n, line in enumerate(REFERENCES)]
OUTPUTS[7] = EVIL


@pytest.fixture(scope="module")
def made():
    """Findings with everything in them."""
    table = score_sentences(OUTPUTS, [REFERENCES], sources=[EVIL, *REFERENCES[1:]])
    lengths = [LengthGroup(6, 10, 900, 95.0, 99.0), LengthGroup(21, 30, 100, 28.0, 48.0)]
    plain = findings(analysis={"loops": 40, "lengths": lengths})
    own = replace(plain.sets[0], scores=score(OUTPUTS, [REFERENCES]))
    comparison = compare([line[:12] for line in REFERENCES], OUTPUTS, [REFERENCES], samples=100)
    return replace(
        plain, title=EVIL, sentences=table, sets=[own, replace(own, name="test set", beam=5)], data={"data": EVIL},
        against=Against(EVIL, comparison), notes=["Something could not be read."],
    )  # fmt: skip


class Tags(HTMLParser):
    """Collects what a browser would see as tags, and the text between them."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.words = [], []
        self.feed(text)
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.words.append(data)


def test_no_text_becomes_a_tag_and_nothing_is_loaded(made):
    text = page(made)
    tags = Tags(text).tags
    assert [tag for tag, _ in tags].count("script") == 2
    assert not [tag for tag, _ in tags if tag in ("img", "link", "iframe", "object", "base")]
    assert not [(tag, key) for tag, found in tags for key in found if key in ("src", "href") or key.startswith("on")]
    assert "default-src 'none'" in text
    assert not re.search(r"https?://|url\(|@import", text)


def test_the_page_says_what_was_measured(made):
    text = Tags(page(made)).text
    bleu = made.sets[0].scores.bleu
    said = [
        f"BLEU {bleu.value:.1f} ± 1.2", bleu.signature.split("|")[0], "Scores on the test set", "60 sentences, beam 5",
        "40 of 1,000 outputs (4.0%)", "heed report runs/x --source FILE --reference FILE", "21–30", "101+", "86%", "7,000",
        "55 of 60", "the references keep 58", "Every sentence", "Something could not be read.",
        "Better", f"{made.against.comparison.chrf.difference:+.1f}", "Non-default settings", "1 minute",
    ]  # fmt: skip
    assert [part for part in said if part not in text.replace("60 seconds", "1 minute")] == []


def test_examples_go_from_the_best_to_the_worst(made):
    text = page(made)
    shown = [int(found) for found in re.findall(r'<p class="score \w+"><b>(\d+)</b>', text)]
    assert len(shown) == 9 and shown == sorted(shown, reverse=True)
    few = page(replace(made, sentences=made.sentences[:4]))
    lines = re.findall(r"<small>line (\d+)</small>", few)
    assert len(lines) == len(set(lines)) == 4


def test_a_run_of_another_task_has_the_parts_that_apply():
    language = recipe(task={"name": "language"}, model={"name": "rnn-lm"}, data={"source": ["a"]})
    log = replace(findings().log, valid={"loss": findings().log.valid["loss"]})
    bare = replace(
        findings(), recipe=language, log=log, sets=[], analysis=None, text=None, filters=None, final={"loss": 2.5}
    )
    text = Tags(page(bare)).text
    assert "loss 2.500" in text and "Training curves" in text and "How it was made" in text
    assert "Where it goes wrong" not in text and "Every sentence" not in text
    assert "<script" not in page(bare)


def test_sources_without_numbers_are_said_to_have_none():
    assert "numbers kept 55 of 60 the references keep 58" in Tags(page(findings())).text
    text = Tags(page(findings(analysis={"numbers": 0, "numbers_kept": 0, "numbers_in_references": 0}))).text
    assert "numbers kept – the sources have no numbers" in text


def test_where_to_begin_is_said_of_several_pieces_of_advice():
    rising = replace(findings(), log=log(chrf=RISING))
    assert "Still improving" in page(rising) and "Start with the first" not in page(rising)
    assert "Start with the first" in page(replace(rising, analysis=replace(rising.analysis, loops=40)))


def test_a_run_without_steps_has_a_page():
    empty = replace(findings().log, train=[], valid={}, rate=[], speed=[], finished=False)
    assert "not finished at step 0" in page(replace(findings(), log=empty, sets=[], analysis=None))


BARS = """[...document.querySelectorAll(".two table:first-child .bar i")]
    .map(bar => [bar.getBoundingClientRect().width, parseFloat(bar.style.width)])"""


def test_in_a_browser_nothing_is_cut_off_and_everyone_can_read_it(made, tmp_path):
    (tmp_path / "report.html").write_text(page(made), "utf-8")
    with chromium() as browser:
        for width, scheme in ((1200, "light"), (320, "dark")):
            opened = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
            wrong = []
            opened.on("pageerror", lambda error, wrong=wrong: wrong.append(str(error)))
            opened.on("request", lambda request, wrong=wrong: wrong.append(request.url))
            opened.goto((tmp_path / "report.html").as_uri())
            assert opened.title() == "x: report"
            assert opened.evaluate("document.documentElement.scrollWidth") == width
            scales = [width / share for width, share in opened.evaluate(BARS) if share > 5]
            assert max(scales) == pytest.approx(min(scales), rel=0.01), "long bars are as much longer as they say"
            opened.locator("#query").scroll_into_view_if_needed()
            opened.locator(".every .row").first.wait_for()
            opened.emulate_media(media="print")
            assert not opened.locator(".every").is_visible() and opened.locator(".example").first.is_visible()
            opened.emulate_media(media="screen", color_scheme=scheme)
            found = Axe().run(opened, options={"runOnly": ["wcag2a", "wcag2aa"]})
            assert found.violations_count == 0, found.generate_report()
            assert wrong == [(tmp_path / "report.html").as_uri()]


def test_a_chart_has_its_points_where_they_belong():
    points = [(0.0, 1.0), (50.0, 2.0), (100.0, 3.0)]
    text = line_chart("Loss", [Line("training", points, "first")], lambda value: f"{value:.1f}")
    places = [(float(x), float(y)) for x, y in re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', text)]
    assert [x for x, _ in places] == sorted(x for x, _ in places) and [y for _, y in places] == sorted(
        (y for _, y in places), reverse=True
    )
    assert places[1] == ((places[0][0] + places[2][0]) / 2, pytest.approx((places[0][1] + places[2][1]) / 2, abs=0.1))
    assert 'aria-label="Loss by step: training from 1.0 to 3.0"' in text
    assert line_chart("Loss", [Line("training", [], "first")], str) == ""
    assert "nan" not in line_chart("Loss", [Line("training", [(1.0, float("inf")), (2.0, 1.0)], "first")], str)


def test_a_correlation_below_zero_has_its_place_on_the_axis():
    drawn = line_chart("Metrics", [Line("Spearman", [(1, -25.7), (2, 3.0)], "second")], lambda value: f"{value:.1f}")
    marks = re.findall(r'text-anchor="end">([^<]*)<', drawn)
    assert marks == ["-20", "-10", "0"]


def test_many_points_become_their_means():
    points = [(float(at), float(at % 2)) for at in range(3000)]
    few = thinned(points)
    assert len(few) == 150 and {value for _, value in few} == {0.5}
    assert thinned(points[:100]) == points[:100]


def test_the_time_of_a_resumed_run_is_that_of_its_parts(tmp_path):
    lines = [
        {"kind": "start", "step": 0}, {"kind": "step", "step": 10, "loss": 3.0, "rate": 0.1, "seconds": 5.0, "epoch": 0},
        {"kind": "start", "step": 10}, {"kind": "step", "step": 20, "loss": 2.0, "rate": 0.1, "seconds": 7.0, "epoch": 1},
        {"kind": "valid", "step": 20, "loss": 2.5, "chrf": 30.0}, {"kind": "end", "step": 20, "weights": "step 20"},
    ]  # fmt: skip
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = read_training(tmp_path, ["loss", "chrf", "rouge"])
    assert (found.seconds, found.steps, found.epochs, found.finished, found.weights) == (12.0, 20, 2, True, "step 20")
    assert found.final_train_loss == 2.5 and set(found.valid) == {"loss", "chrf"}
    assert [duration(seconds) for seconds in (7.2, 600.0, 7300.0)] == ["7 seconds", "10 minutes", "2 hours 2 minutes"]


def test_the_settings_that_were_chosen_are_those_that_are_not_defaults():
    assert chosen(recipe(training={"steps": 77, "warmup": 1000}, task={"r_drop": 5.0}, model={"dim": 64})) == {
        **{f"data.{name}": value for name, value in recipe().sections()["data"].items() if name in ("source", "target", "valid_source", "valid_target")},
        "task.name": "translation", "task.r_drop": 5.0, "model.dim": 64, "training.steps": 77,
    }  # fmt: skip


def test_what_the_model_said_is_kept_for_these_weights_alone(tmp_path):
    (tmp_path / "model").mkdir()
    weights = tmp_path / "model" / "model.safetensors"
    weights.write_bytes(b"one")
    kept = FinalValidation({"loss": 1.5}, [("a\u2028b", "c", "d\n")], {"pairs": "3"})
    final_validation.write(tmp_path, kept)
    assert final_validation.read(tmp_path) == kept
    weights.write_bytes(b"other")
    assert final_validation.read(tmp_path) is None
    (tmp_path / final_validation.FILE).write_text("{")
    with pytest.raises(ValueError, match=r"validation\.json is damaged: remove it"):
        final_validation.read(tmp_path)

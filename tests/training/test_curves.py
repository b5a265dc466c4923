import json
import re

import pytest

from heed.tasks import TASKS, metric_labels
from heed.training import curves
from heed.training.curves import plot, read_log

LABELS = metric_labels()


def step(number, loss=5.0, rate=1e-4):
    return {"kind": "step", "step": number, "loss": loss, "rate": rate, "tokens_per_second": 1000.0}


def valid(number, loss=5.0, bleu=10.0):
    return {"kind": "valid", "step": number, "loss": loss, "bleu": bleu, "chrf": 30.0}


def run(folder, lines, tail=""):
    folder.mkdir(parents=True)
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + tail)
    return folder


def test_a_log_is_read_from_its_folder_or_its_file(tmp_path):
    lines = [{"kind": "start", "seed": 1}, step(50), valid(50), {"kind": "end"}]
    folder = run(tmp_path / "a", lines)
    assert read_log(folder) == read_log(str(folder / "log.jsonl")) == lines


def test_of_a_step_done_twice_the_later_line_wins(tmp_path):
    before = [step(50, 1.0), step(100, 2.0), valid(100, 3.0), step(150, 4.0)]
    after = [{"kind": "start"}, step(100, 5.0), valid(100, 6.0), step(150, 7.0), step(200, 8.0)]
    assert read_log(run(tmp_path / "a", before + after)) == [before[0], *after]


def test_steps_beyond_where_a_resumed_run_has_come_are_gone(tmp_path):
    before = [step(50), step(100, 2.0), step(150, 3.0), valid(150)]
    assert read_log(run(tmp_path / "a", [*before, step(100, 9.0)])) == [step(50), valid(150), step(100, 9.0)]


@pytest.mark.parametrize("tail", ['{"kind": "st', '{"kind": "start", "name": "\xe9'.encode()[:-1]])
def test_a_half_written_last_line_is_passed_over(tmp_path, tail):
    folder = run(tmp_path / "a", [step(50)])
    with (folder / "log.jsonl").open("ab") as file:
        file.write(tail if isinstance(tail, bytes) else tail.encode())
    assert read_log(folder) == [step(50)]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"kind": "st', "is not JSON"),
        ("12", "is not an object with a"),
        ('{"step": 1}', "is not an object with a"),
        ('{"kind": "step"}', "has no number for its"),
    ],
)
def test_a_broken_line_is_an_error_with_file_and_line(tmp_path, line, words):
    folder = run(tmp_path / "a", [step(50)], tail=line + "\n" + json.dumps(step(100)) + "\n")
    with pytest.raises(ValueError, match=rf"log.jsonl, line 2: .*{words}"):
        read_log(folder)


def test_a_missing_log_is_a_sentence(tmp_path):
    with pytest.raises(ValueError, match=r"There is no log '.*nowhere'; a run folder has a log\.jsonl"):
        read_log(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"There is no log '.*log.jsonl'"):
        read_log(tmp_path)


def losses(steps):
    return [step(50 * n, 6.0 / n, 1e-5 * n) for n in range(1, steps + 1)]


def test_a_png_is_drawn_of_a_run_without_validation(tmp_path):
    plot([run(tmp_path / "a", losses(3))], tmp_path / "deep" / "curves.png", LABELS)
    assert (tmp_path / "deep" / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_the_same_logs_give_the_same_svg(tmp_path):
    folders = [run(tmp_path / name, [*losses(40), valid(1000), valid(2000, 2.0, 20.0)]) for name in "ab"]
    for name in ("one.svg", "two.svg"):
        plot(folders, tmp_path / name, LABELS)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    assert (tmp_path / "one.svg").read_text().lstrip().startswith("<?xml")


def test_each_panel_shows_every_run_in_its_colour(tmp_path):
    folders = [run(tmp_path / name, [*losses(40), valid(1000), valid(2000, 2.0, 20.0)]) for name in "ab"]
    runs = [
        curves.RunCurve(folder.name, colour, read_log(folder)) for folder, colour in zip(folders, "rb", strict=True)
    ]
    figure = curves._figure(runs, LABELS)
    titles = [panel.get_title(loc="left") for panel in figure.axes]
    assert titles == ["Loss", "Scores", "Learning rate", "Tokens per second"]
    for panel in figure.axes:
        assert {line.get_color() for line in panel.lines} == {"r", "b"}
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b"]
    assert figure.axes[0].get_yscale() == "log"
    assert figure.axes[2].lines[0].get_linestyle() == "--"  # the runs share a schedule, and take turns


@pytest.mark.parametrize(("steps", "width"), [(100, 5), (300, 13), (5000, 25)])
def test_a_value_out_of_line_is_spread_over_a_twenty_fifth_of_a_curve_and_at_most_25_steps(tmp_path, steps, width):
    folder = run(tmp_path / "a", [step(at, 2.0 if at == steps // 2 else 1.0) for at in range(steps)])
    figure = curves._figure([curves.RunCurve("a", "r", read_log(folder))], LABELS)
    found = figure.axes[0].lines[1].get_ydata()
    assert (found > 1).sum() == width and found.max() == pytest.approx(1 + 1 / width)


def panel(folder):
    """The one that shows scores."""
    return curves._figure([curves.RunCurve("a", "r", read_log(folder))], LABELS).axes[1]


@pytest.mark.parametrize(
    ("scores", "title", "key"),
    [
        (["bleu", "chrf", "rouge"], "Scores", ["BLEU", "chrF", "ROUGE-L"]),
        (["accuracy"], "Accuracy", []),
        (["rouge"], "ROUGE-L", []),
    ],
)
def test_the_scores_that_a_run_has_are_drawn(tmp_path, scores, title, key):
    values = {name: 10.0 * (place + 1) for place, name in enumerate(scores)}
    lines = [{"kind": "valid", "step": at, "loss": 1.0, **values} for at in (50, 100)]
    shown = panel(run(tmp_path / "a", [*losses(2), *lines]))
    assert shown.get_title(loc="left") == title
    assert [line.get_ydata().tolist() for line in shown.lines] == [[value, value] for value in values.values()]
    assert ([text.get_text() for text in shown.get_legend().get_texts()] if shown.get_legend() else []) == key
    assert not shown.texts


def test_every_score_of_a_run_has_its_own_style():
    assert len(set(curves._STYLES)) == len(curves._STYLES)
    for task in TASKS.values():
        assert len({metric.name for metric in task.metrics} - {"loss"}) <= len(curves._STYLES)


def test_a_run_that_is_validated_by_its_loss_alone_has_no_scores_to_wait_for(tmp_path):
    early = panel(run(tmp_path / "early", losses(2)))
    assert [text.get_text() for text in early.texts] == ["nothing yet"]
    trained = panel(run(tmp_path / "trained", [*losses(2), {"kind": "valid", "step": 50, "loss": 1.0}]))
    assert [text.get_text() for text in trained.texts] == ["none but the loss"]


def test_points_are_drawn_where_the_log_has_them(tmp_path):
    one = curves.RunCurve(
        "a", "r", read_log(run(tmp_path / "a", [step(50, 3.0), valid(50), step(100, 2.0), {"kind": "end"}]))
    )
    assert one.points("step", "loss") == ([50, 100], [3.0, 2.0])
    assert one.points("valid", "bleu") == ([50], [10.0])
    assert one.points("step", "bleu") == ([], [])


def test_runs_of_one_name_are_told_apart_by_the_folder_above(tmp_path):
    paths = [tmp_path / "x" / "run", tmp_path / "y" / "run", tmp_path / "other"]
    assert curves._names(paths) == ["x/run", "y/run", "other"]


def test_what_cannot_be_drawn_is_refused_with_a_sentence(tmp_path):
    folder = run(tmp_path / "young", [{"kind": "start"}])
    with pytest.raises(ValueError, match=re.escape("ends in '.pdf'; it must end in .png or .svg")):
        plot([folder], tmp_path / "a.pdf", LABELS)
    with pytest.raises(ValueError, match="The logs of young have no steps yet"):
        plot([folder], tmp_path / "a.png", LABELS)
    with pytest.raises(ValueError, match="folders is empty"):
        plot([], tmp_path / "a.png", LABELS)


def test_a_negative_correlation_is_in_the_picture(tmp_path):
    below = {"kind": "valid", "step": 50, "loss": 2.0, "spearman": -20.0}
    folder = run(tmp_path / "a", [step(50), below, {**below, "step": 100, "spearman": 5.0}])
    low, high = panel(folder).get_ylim()
    assert low <= -20 and high >= 5


@pytest.mark.parametrize("count", [1, 2, 3])
def test_of_runs_with_one_schedule_none_hides_another(tmp_path, count):
    folders = [run(tmp_path / str(number), [step(50), step(100)]) for number in range(count)]
    figure = curves._figure([curves.RunCurve(own.name, "r", read_log(own)) for own in folders], LABELS)
    [panel] = [own for own in figure.axes if own.get_title(loc="left") == "Learning rate"]
    styles = [line._unscaled_dash_pattern for line in panel.lines]
    if count == 1:
        assert styles == [(0, None)]
        return
    for point in range(0, 200):  # along the line, exactly one of them is drawn
        drawn = [(point + offset) % sum(dashes) < dashes[0] for offset, dashes in styles]
        assert sum(drawn) == 1

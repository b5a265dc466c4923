"""Training curves from the logs of run folders: loss, scores, learning rate and speed."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from heed.config import parse_json
from heed.files import atomic_file

# Okabe and Ito's colours, which colour-blind readers can tell apart.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#222222")
_INK, _SOFT, _LINE = "#1d2126", "#626a73", "#e4e2dd"
_WINDOW = 25
# of the scores, in turn; the loss has its own panel
_STYLES = (("-", "o"), ((0, (4, 2)), "s"), ((0, (1, 1.5)), "^"), ("-", "D"))


@dataclass(frozen=True)
class RunCurve:
    """The log of one run, as it is drawn."""

    name: str
    colour: str
    lines: list[dict]

    def points(self, kind: str, field: str) -> tuple[list[float], list[float]]:
        """Return steps and values of the lines of a kind that have the field."""
        found = [(line["step"], line[field]) for line in self.lines if line["kind"] == kind and _number(line, field)]
        return [float(step) for step, _ in found], [float(value) for _, value in found]


def read_log(path: Path | str) -> list[dict]:
    """Read log.jsonl of a run folder; what a resumed run repeated replaces the earlier entries."""
    file = Path(path) / "log.jsonl" if Path(path).is_dir() else Path(path)
    if not file.is_file():
        raise ValueError(f"There is no log {str(file)!r}; a run folder has a log.jsonl once training has started.")
    texts = file.read_bytes().splitlines()
    lines = []
    for number, text in enumerate(texts, 1):
        try:
            line = parse_json(text)
        except ValueError:
            if number == len(texts):
                break  # the run was stopped in the middle of a line
            raise ValueError(
                f"{file}, line {number}: {_short(text)} is not JSON; a log has one object per line."
            ) from None
        if not isinstance(line, dict) or "kind" not in line:
            raise ValueError(f'{file}, line {number}: {_short(text)} is not an object with a "kind".')
        if line["kind"] in ("step", "valid") and not _number(line, "step"):
            raise ValueError(f'{file}, line {number}: {_short(text)} has no number for its "step".')
        lines.append(line)
    return _latest(lines)


def plot(folders: Sequence[Path | str], out: Path | str, labels: Mapping[str, str]) -> None:
    """Draw the curves of one or more runs into a .png or .svg file. `labels` are the names of the scores."""
    out = Path(out)
    if out.suffix not in (".png", ".svg"):
        raise ValueError(f"The plot {str(out)!r} ends in {out.suffix!r}; it must end in .png or .svg.")
    if not folders:
        raise ValueError("folders is empty; at least one run is needed.")
    names = _names([Path(folder) for folder in folders])
    runs = [
        RunCurve(name, _COLOURS[number % len(_COLOURS)], read_log(folder))
        for number, (name, folder) in enumerate(zip(names, folders, strict=True))
    ]
    if not any(line["kind"] in ("step", "valid") for run in runs for line in run.lines):
        raise ValueError(f"The logs of {', '.join(names)} have no steps yet; there is nothing to plot.")
    _save(_figure(runs, labels), out)


def _latest(lines: list[dict]) -> list[dict]:
    """Drop what a resumed run repeated: lines after which the same kind comes at the same or an earlier step."""
    kept, first = [], {}
    for line in reversed(lines):
        if line["kind"] not in ("step", "valid"):
            kept.append(line)
        elif line["step"] < first.get(line["kind"], float("inf")):
            first[line["kind"]] = line["step"]
            kept.append(line)
    return kept[::-1]


def _figure(runs: Sequence[RunCurve], labels: Mapping[str, str]):
    """Return the four panels under the names of the runs."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 7.4), dpi=150, layout="constrained", facecolor="white")
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12, wspace=0.04, hspace=0.04)
    panels = figure.subplots(2, 2)
    _loss(panels[0, 0], runs)
    _scores(panels[0, 1], runs, labels)
    _rate(panels[1, 0], runs)
    _speed(panels[1, 1], runs)
    validated = any(line["kind"] == "valid" for run in runs for line in run.lines)
    for panel in panels.flat:
        _finish(panel, runs, "none but the loss" if validated and panel is panels[0, 1] else "nothing yet")
    _legend(figure, [_handle(run.name, color=run.colour, linewidth=3.0) for run in runs])
    return figure


def _loss(panel, runs: Sequence[RunCurve]) -> None:
    """Draw training loss, smoothed over its raw points, and validation loss."""
    panel.set_title("Loss")
    for run in runs:
        _smoothed(panel, run, "loss", 1.2)
        panel.plot(*run.points("valid", "loss"), color=run.colour, linewidth=2.0, marker="o", markersize=4.5)
    values = [value for line in panel.lines for value in line.get_ydata()]
    if values and min(values) > 0 and max(values) > 2 * min(values):
        _log_scale(panel)
    _key(panel, [_handle("training", linewidth=1.2), _handle("validation", linewidth=2.0, marker="o", markersize=4.5)])


def _scores(panel, runs: Sequence[RunCurve], labels: Mapping[str, str]) -> None:
    """Draw the available scores of the validation set."""
    scored = [name for name in labels if name != "loss" and any(run.points("valid", name)[0] for run in runs)]
    names = [labels[name] for name in scored]
    styles = [_STYLES[number % len(_STYLES)] for number in range(len(scored))]
    panel.set_title(f"{names[0][0].upper()}{names[0][1:]}" if len(names) == 1 else "Scores")
    for name, (dashes, marker) in zip(scored, styles, strict=True):
        for run in runs:
            points = run.points("valid", name)
            panel.plot(*points, color=run.colour, linestyle=dashes, linewidth=2.0, marker=marker, markersize=4.5)
    if all(value >= 0 for line in panel.lines for value in line.get_ydata()):  # a correlation may be negative
        panel.set_ylim(bottom=0)
    if len(names) > 1:
        each = zip(names, styles, strict=True)
        _key(panel, [_handle(name, linestyle=dashes, linewidth=2.0, marker=mark) for name, (dashes, mark) in each])


def _rate(panel, runs: Sequence[RunCurve]) -> None:
    """Draw the learning rate."""
    panel.set_title("Learning rate")
    starts = [tuple(run.points("step", "rate")[1][:20]) for run in runs]
    for number, (run, start) in enumerate(zip(runs, starts, strict=True)):
        # Runs that share a schedule take turns in dashes, so that none hides another.
        gap, turn = 9 * (starts.count(start) - 1), starts[:number].count(start)
        dashes = (9 * turn, (9, gap)) if gap else "-"
        panel.plot(*run.points("step", "rate"), color=run.colour, linewidth=1.8, linestyle=dashes, dash_capstyle="butt")
    panel.set_ylim(bottom=0)
    panel.yaxis.set_major_formatter("{x:g}")


def _speed(panel, runs: Sequence[RunCurve]) -> None:
    """Draw tokens per second."""
    panel.set_title("Tokens per second")
    for run in runs:
        _smoothed(panel, run, "tokens_per_second", 1.8)
    panel.set_ylim(bottom=0)
    panel.yaxis.set_major_formatter("{x:,.0f}")


def _smoothed(panel, run: RunCurve, field: str, width: float) -> None:
    """Draw a field of the training lines: only the points if few, else faint beneath their moving mean."""
    steps, values = run.points("step", field)
    if len(values) <= _WINDOW:
        panel.plot(steps, values, color=run.colour, linewidth=width, marker=".")
        return
    panel.plot(steps, values, color=run.colour, linewidth=0.8, alpha=0.25)
    panel.plot(steps, _smooth(values), color=run.colour, linewidth=width, alpha=0.85)


def _finish(panel, runs: Sequence[RunCurve], nothing: str) -> None:
    """Set the axes of a panel, or say that it is empty."""
    from matplotlib.ticker import MaxNLocator

    panel.set_title(panel.get_title(), loc="left", fontsize=11.5, fontweight="bold", color=_INK, pad=10)
    panel.set_title("")
    panel.spines[["top", "right", "left"]].set_visible(False)
    panel.spines["bottom"].set_color(_LINE)
    panel.tick_params(which="both", length=0, labelsize=9, labelcolor=_SOFT)
    if not any(len(line.get_xdata()) for line in panel.lines):
        panel.text(0.5, 0.5, nothing, transform=panel.transAxes, ha="center", color=_SOFT)
        panel.set(xticks=[], yticks=[])
        return
    panel.grid(axis="y", color=_LINE, linewidth=0.8)
    panel.set_axisbelow(True)
    panel.set_xlim(
        0, max(line["step"] for run in runs for line in run.lines if line["kind"] in ("step", "valid")) * 1.02
    )
    panel.set_xlabel("step", fontsize=9, color=_SOFT)
    panel.xaxis.set_major_locator(MaxNLocator(6, integer=True, steps=(1, 2, 2.5, 5, 10)))
    panel.xaxis.set_major_formatter("{x:,.0f}")


def _log_scale(panel) -> None:
    """Make the vertical axis logarithmic, with plain tick labels."""
    from matplotlib.ticker import LogLocator, NullLocator

    panel.set_yscale("log")
    panel.yaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 4, 5, 7)))
    panel.yaxis.set_minor_locator(NullLocator())
    panel.yaxis.set_major_formatter("{x:g}")


def _handle(
    name: str, *, color: str = _SOFT, linestyle="-", linewidth: float, marker: str = "", markersize: float = 4.5
):
    """Return a piece of line for a legend."""
    from matplotlib.lines import Line2D

    return Line2D(
        [], [], label=name, color=color, linestyle=linestyle, linewidth=linewidth, marker=marker, markersize=markersize
    )


def _key(panel, handles: list) -> None:
    """Add a legend to a panel, if it has lines."""
    if any(len(line.get_xdata()) for line in panel.lines):
        panel.legend(handles=handles, frameon=False, fontsize=9, labelcolor=_SOFT, loc="best", handlelength=2.6)


def _legend(figure, handles: list) -> None:
    """Name the runs above the panels."""
    figure.legend(
        handles=handles,
        loc="outside upper left",
        ncols=min(len(handles), 4),
        frameon=False,
        labelcolor=_INK,
        fontsize=10.5,
    )


def _smooth(values: Sequence[float]) -> list[float]:
    """Return the mean of each value with its neighbours."""
    half, found = max(1, min(_WINDOW, len(values) // 25) // 2), []
    for at in range(len(values)):
        near = values[max(0, at - half) : at + half + 1]
        found.append(sum(near) / len(near))
    return found


def _names(folders: Sequence[Path]) -> list[str]:
    """Name each run by its folder, with the parent folder if two names would be equal."""
    folders = [folder.resolve() for folder in folders]
    folders = [folder.parent if folder.is_file() else folder for folder in folders]
    count = Counter(folder.name for folder in folders)
    return [f"{folder.parent.name}/{folder.name}" if count[folder.name] > 1 else folder.name for folder in folders]


def _save(figure, out: Path) -> None:
    """Write the picture; the same logs give the same bytes."""
    import matplotlib

    metadata = {"Date": None} if out.suffix == ".svg" else None
    with atomic_file(out) as part, matplotlib.rc_context({"svg.hashsalt": "heed"}):
        figure.savefig(part, format=out.suffix[1:], metadata=metadata)


def _number(line: dict, field: str) -> bool:
    """Whether a line has a number in the field."""
    return isinstance(line.get(field), int | float) and not isinstance(line[field], bool)


def _short(text: bytes) -> str:
    """Return the beginning of a line, for an error."""
    return repr(text[:60].decode("utf-8", "replace"))

"""A million lines from file to file: `python -m bench.million MODEL` translates them twice, and the second time it is killed at a third and resumed.

It prints lines per second and resident memory for each tenth of the file. It fails if the two outputs differ, if a line that was
finished before the kill is translated again, or if memory keeps growing. Linux only: memory is read from /proc.
"""

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple

from bench.machine import cpu
from bench.serving import memory
from bench.serving_systems import drawn

LINES, QUICK = 1_000_000, 12_000
PARTS = 10
SENTENCES = 40_000  # different ones, which are repeated
MAX_GROWTH = 1.2  # of memory, from the second tenth to the last; and GROWTH_MB more
GROWTH_MB = 64
PROGRAM = """
import sys
from pathlib import Path
from heed.bulk.recorded import RecordedFile
from heed.cli import translate
from heed.cli.main import main
translate.CHUNK = int(sys.argv[1]) or translate.CHUNK
resume = RecordedFile.resume
def told(self, source):
    read = []
    kept = resume(self, (read.append(len(own.items)) or own for own in source))
    Path(sys.argv[2]).write_text(str(sum(read)), encoding="utf-8", newline="\\n")
    return kept
RecordedFile.resume = told
sys.exit(main(sys.argv[3:]))
"""
SHOWN = "{:>5} {:>12} {:>10} {:>12} {:>10}"


class Sample(NamedTuple):
    """At a time, in seconds from the start: lines that are on the disk, and megabytes that the process holds."""

    seconds: float
    lines: int
    megabytes: float


class Part(NamedTuple):
    """A tenth of the lines: how many there were at its end, lines per second within it, the largest memory, seconds from the start."""

    lines: int
    rate: float
    megabytes: float
    seconds: float


@dataclass
class Watched:
    """A run of heed translate, and what was seen of it."""

    seconds: float = 0.0
    killed: bool = False
    samples: list[Sample] = field(default_factory=list)


class Journal:
    """How many lines the journal of an unfinished file records; only what is new is read."""

    def __init__(self, out: Path):
        self.path, self.place, self.lines = out.with_name(f"{out.name}.part.journal"), 0, 0

    def read(self) -> int:
        try:
            with open(self.path, "rb") as file:
                file.seek(self.place)
                new = file.read()
        except FileNotFoundError:  # not begun, or finished
            return self.lines
        whole = new[: new.rfind(b"\n") + 1]
        self.place += len(whole)
        self.lines += sum(json.loads(line).get("inputs", 0) for line in whole.splitlines())
        return self.lines


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="python -m bench.million", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    top.add_argument("model", nargs="?", help="a run or a model folder (default: 3+3 layers with random weights)")
    top.add_argument(
        "--text", type=Path, metavar="FILE", help="lines to repeat (default: Korean ones of the phrasebook)"
    )
    top.add_argument("--lines", type=int, default=LINES, help=f"how many (default: {LINES:,})")
    top.add_argument("--quick", action="store_true", help=f"only {QUICK:,}: does everything run?")
    top.add_argument("--chunk", type=int, default=0, help="lines that are translated together (default: Heed's)")
    top.add_argument("--every", type=float, default=0.5, metavar="SECONDS", help="how often to look (default: 0.5)")
    top.add_argument("--options", default="", help="more options of heed translate, such as '--device cuda --beam 5'")
    top.add_argument("--folder", type=Path, help="where the texts are kept (default: a temporary folder)")
    top.add_argument("--json", type=Path, metavar="FILE", help="write all that was found")
    return top


def write_text(path: Path, lines: int, source: Path | None) -> None:
    """A text of so many lines; those of `source`, or of the phrasebook, again and again."""
    if source is not None:
        with open(source, encoding="utf-8", newline="\n") as file:
            texts = [line.rstrip("\n") for line in file]
    else:
        from heed.data.synthetic import phrasebook

        texts = [pair.source for pair in phrasebook.pairs("train", min(lines, SENTENCES))]
    if not texts:
        raise SystemExit(f"{source} is empty")
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{text}\n" for text in islice(cycle(texts), lines))


def kept_by(out: Path) -> Path:
    """The file that says how many lines a resumed run has kept."""
    return out.with_name(f"{out.name}.kept")


def watch(
    words: Sequence[str], out: Path, every: float, chunk: int = 0, stop: Callable[[int], bool] = lambda lines: False
) -> Watched:
    """Run heed with these words; kill it as soon as `stop` says so of the lines that are on the disk."""
    found, journal, begun = Watched(), Journal(out), time.monotonic()
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(chunk), str(kept_by(out)), *words])
    try:
        while process.poll() is None:
            lines = journal.read()
            try:
                found.samples.append(Sample(time.monotonic() - begun, lines, memory(process.pid)))
            except OSError:  # it has ended meanwhile
                break
            if stop(lines):
                process.kill()
                found.killed = True
                break
            time.sleep(every)
    except BaseException:
        process.kill()
        raise
    finally:
        process.wait()
    found.seconds = time.monotonic() - begun
    if process.returncode and not found.killed:
        raise SystemExit(f"heed translate failed with exit code {process.returncode}")
    return found


def parts(run: Watched, total: int) -> Iterator[Part]:
    """Each tenth, by the first look at which it was finished; the last by the end of the process."""
    begin, first = Sample(0.0, 0, 0.0), 0
    ends = [*run.samples, Sample(run.seconds, total, run.samples[-1].megabytes if run.samples else 0.0)]
    for number in range(1, PARTS + 1):
        last = next(i for i, own in enumerate(ends) if own.lines * PARTS >= total * number)
        end, most = ends[last], max(own.megabytes for own in ends[first : last + 1])
        gone = max(end.seconds - begin.seconds, 1e-9)
        yield Part(end.lines, (end.lines - begin.lines) / gone, most, end.seconds)
        begin, first = end, last


def sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def failures(facts: dict[str, Any]) -> list[str]:
    """What is not as it must be."""
    found = []
    whole, again = facts["whole"], facts["resumed"]
    if whole["sha256"] != again["sha256"]:
        found.append("the output of the run that was killed and resumed differs")
    if whole["lines"] != facts["lines"]:
        found.append(f"{facts['lines']:,} lines were read, and {whole['lines']:,} written")
    if not facts["killed"]["killed"]:
        found.append("the run ended before it could be killed: give more --lines")
    elif again["kept"] < facts["killed"]["lines"]:
        found.append(f"{facts['killed']['lines']:,} lines were finished, and only {again['kept']:,} were kept")
    tenths = [own["megabytes"] for own in whole["parts"]]
    if tenths[-1] > tenths[1] * MAX_GROWTH + GROWTH_MB:
        found.append(
            f"memory has grown from {tenths[1]:,.0f} MB in the second tenth to {tenths[-1]:,.0f} MB in the last"
        )
    return found


def measure(args: argparse.Namespace, folder: Path) -> dict[str, Any]:
    lines, text = QUICK if args.quick else args.lines, folder / "text"
    model = args.model or str(folder / "model")
    if not args.model:
        from heed.loading import write_package

        write_package(drawn(), folder / "model")
    write_text(text, lines, args.text)

    def words(out: Path, *more: str) -> list[str]:
        return ["translate", model, "--input", str(text), "--out", str(out), *args.options.split(), *more]

    one, other = folder / "whole", folder / "resumed"
    whole = watch(words(one), one, args.every, args.chunk)
    tenths = [own._asdict() for own in parts(whole, lines)]
    show(tenths)
    killed = watch(words(other), other, args.every, args.chunk, stop=lambda done: done * 3 >= lines)
    before = Journal(other).read()
    resumed = watch(words(other, "--resume"), other, args.every, args.chunk)
    kept = int(kept_by(other).read_text("utf-8")) if kept_by(other).is_file() else 0
    with open(one, "rb") as file:
        written = sum(1 for _ in file)
    facts = {
        "lines": lines,
        "whole": {"seconds": whole.seconds, "lines": written, "sha256": sha256(one), "parts": tenths},
        "killed": {"seconds": killed.seconds, "lines": before, "killed": killed.killed},
        "resumed": {"seconds": resumed.seconds, "kept": kept, "sha256": sha256(other)},
    }
    return facts | {"samples": [asdict(run)["samples"] for run in (whole, killed, resumed)], "cpu": cpu()}


def show(tenths: Sequence[dict[str, Any]]) -> None:
    print(SHOWN.format("part", "lines", "seconds", "lines/s", "MB"))
    for number, own in enumerate(tenths, 1):
        cells = (f"{own['lines']:,}", f"{own['seconds']:,.0f}", f"{own['rate']:,.0f}", f"{own['megabytes']:,.0f}")
        print(SHOWN.format(number, *cells))


def main(words: Sequence[str] | None = None) -> int:
    args = parser().parse_args(words)
    folder = args.folder or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    try:
        facts = measure(args, folder)
    finally:
        if args.folder is None:
            shutil.rmtree(folder, ignore_errors=True)
    whole, killed, resumed = facts["whole"], facts["killed"], facts["resumed"]
    print(
        f"whole: {facts['lines']:,} lines in {whole['seconds']:,.0f} s, {facts['lines'] / whole['seconds']:,.0f} lines/s"
    )
    print(
        f"killed after {killed['lines']:,} lines in {killed['seconds']:,.0f} s; the rest in {resumed['seconds']:,.0f} s"
    )
    wrong = failures(facts)
    if args.json:
        args.json.write_text(json.dumps(facts | {"failures": wrong}, indent=1) + "\n", encoding="utf-8", newline="\n")
    for sentence in wrong:
        print(f"FAILED: {sentence}")
    if not wrong:
        print(f"Both outputs have the hash {whole['sha256'][:16]}…")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""What each filter takes from a corpus as it is and from planted faults, and how fast: `python -m bench.cleaning --tsv FILE`.

Of a rule, `clean` is the share of all pairs that it filters; `found` that of the faults planted in a copy of the corpus, in
about one pair of twenty. Faults: swapped sides; targets shifted by a line, in blocks; another number; three more question
marks; a target of another file (--foreign); one target for many sources. Times are those of the processor.
"""

import argparse
import random
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from heed.data import readers, tables
from heed.data.cleaning import Cleaning
from heed.data.duplicates import SKIP_REASONS
from heed.data.filters import FiltersConfig
from heed.data.readers import Line
from heed.vocabularies import sentencepiece

OFF = {"duplicates": False, "overlap": False, "swapped": False}
RULES = {
    "none": {}, "duplicate": {"duplicates": True}, "overlap": {"overlap": True}, "swapped": {"swapped": True},
    "repeats": {"max_repeats": 20}, "numbers": {"numbers": True}, "punctuation": {"max_punctuation": 2},
    "misaligned": {"misaligned": True}, "language": {"language": True},
}  # fmt: skip
Plant = Callable[[Line], Line | None]
SHARE, BLOCK = 0.05, 20


def planted(lines: list[Line], change: Plant) -> tuple[list[Line], np.ndarray]:
    """A copy with faults in one pair of twenty, where the change can be made; and where they are."""
    draw, changed = random.Random(1), list(lines)
    where = np.zeros(len(lines), dtype=bool)
    for i, line in enumerate(lines):
        other = change(line) if draw.random() < SHARE else None
        if other is not None:
            changed[i], where[i] = other, True
    return changed, where


def shifted(lines: list[Line]) -> tuple[list[Line], np.ndarray]:
    """A copy with blocks whose targets are those of the next line; the last target of a block comes first."""
    draw, changed = random.Random(1), list(lines)
    where = np.zeros(len(lines), dtype=bool)
    for start in range(0, len(lines) - BLOCK, BLOCK):
        if draw.random() >= SHARE:
            continue
        for i in range(start, start + BLOCK - 1):
            changed[i] = lines[i]._replace(target=lines[i + 1].target)
            where[i] = lines[i].target != lines[i + 1].target
        changed[start + BLOCK - 1] = lines[start + BLOCK - 1]._replace(target=lines[start].target)
    return changed, where


def faults(lines: list[Line], foreign: list[str]) -> dict[str, tuple[list[Line], np.ndarray]]:
    draw = random.Random(2)

    def renumbered(line: Line) -> Line | None:
        found = re.search(r"[0-9]+", line.target)
        if found is None or not re.search(r"[0-9]", line.source):
            return None
        other = str(int(found[0]) + draw.randint(1, 9))
        return line._replace(target=line.target[: found.start()] + other + line.target[found.end() :])

    made = {
        "swapped": planted(lines, lambda line: line._replace(source=line.target, target=line.source)),
        "repeats": planted(lines, lambda line: line._replace(target="Read more")),
        "numbers": planted(lines, renumbered),
        "punctuation": planted(lines, lambda line: line._replace(target=line.target + " ???")),
        "misaligned": shifted(lines),
    }
    if foreign:
        made["language"] = planted(lines, lambda line: line._replace(target=draw.choice(foreign)))
    return made


def run(lines: list[Line], rule: str, made: dict[str, Any]) -> tuple[np.ndarray, float]:
    """Which pairs the rule alone filters, and the seconds it took."""
    config = FiltersConfig(**{**OFF, **RULES[rule]})
    cleaning = Cleaning(config, 0, made["valid"], [made["languages"]])
    began = time.process_time()
    reasons = cleaning.reasons(lambda: lines, made["pair"], lambda what, done: None)
    seconds = time.process_time() - began
    return (reasons == SKIP_REASONS.index(rule if rule != "none" else None)) & (rule != "none"), seconds


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.cleaning", description=__doc__)
    option = parser.add_argument
    option("--source")
    option("--target")
    option("--tsv")
    option("--columns", type=int, nargs=2, default=[1, 2])
    option("--valid-source")
    option("--valid-target")
    option("--foreign", help="text in another language")
    option("--languages", nargs=2, required=True, metavar="CODE")
    option("--lines", type=int, help="only the first so many")
    option("--rules", nargs="+", choices=list(RULES), default=list(RULES), metavar="RULE", help="some alone")
    args = parser.parse_args()
    both = tables.table(Path(args.tsv), args.columns) if args.tsv else readers.pairs(*files(args, "source", "target"))
    lines = list(both)[: args.lines]
    valid = list(readers.pairs(*files(args, "valid_source", "valid_target"))) if args.valid_source else []
    sample = [text for line in lines[:: -(-len(lines) // 20_000)] for text in line[:2]]
    words = sentencepiece.learn(sample, sentencepiece.SubwordsConfig(), 8000)
    made = {"valid": valid, "languages": tuple(args.languages), "pair": (words, words)}
    kinds = faults(lines, list(readers.lines(Path(args.foreign))) if args.foreign else [])
    print(f"{len(lines):,} pairs\n{'rule':<12} {'clean':>8} {'found':>8} {'planted':>8} {'µs a pair':>10}")
    for rule in args.rules:
        run(lines[:1000], rule, made)  # what has to be loaded is loaded
        taken, seconds = run(lines, rule, made)
        found, count = "", 0
        if rule in kinds:
            changed, where = kinds[rule]
            count = int(where.sum())
            found = f"{100 * (run(changed, rule, made)[0] & where).sum() / max(count, 1):.1f} %"
        print(
            f"{rule:<12} {100 * taken.mean():>6.3f} % {found:>8} {count:>8,} {1e6 * seconds / len(lines):>10.1f}",
            flush=True,
        )


def files(args: argparse.Namespace, *names: str) -> list[list[Path]]:
    return [[Path(getattr(args, name))] for name in names]


if __name__ == "__main__":
    main()

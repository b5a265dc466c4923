"""The statements of the lecture notes: `python -m bench.notes` counts them by state, and fails if one is open."""

import csv
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

INVENTORY = Path(__file__).parent.parent / "docs" / "learn" / "notes-inventory.tsv"
SHOWN = ("works", "differs, said")


@dataclass(frozen=True)
class Statement:
    """A statement of the notes: its part, what it says, its state, the code, and the command that replays it."""

    section: str
    statement: str
    state: str
    where: str
    command: str
    number: int  # within its part
    line: int  # of the file

    @property
    def anchor(self) -> str:
        """Where docs/learn/notes.md and docs/learn/notes.ko.md have it."""
        return f"{self.section}-{self.number}"

    @property
    def problem(self) -> str | None:
        """Why the statement counts as open, if it does."""
        if self.state not in SHOWN:
            return f"is {self.state!r}, which is neither {SHOWN[0]!r} nor {SHOWN[1]!r}"
        return None if self.where and self.command else "names no code, or no command"


def read(path: Path = INVENTORY) -> list[Statement]:
    """All statements, in the order of the notes."""
    seen: Counter[str] = Counter()
    statements = []
    with path.open(encoding="utf-8", newline="") as file:
        for line, row in enumerate(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE), 2):
            seen[row["section"]] += 1
            statements.append(Statement(**row, number=seen[row["section"]], line=line))
    return statements


def main(path: Path = INVENTORY) -> int:
    statements = read(path)
    counts = Counter(statement.state for statement in statements)
    print(f"{len(statements)} statements of the lecture notes")
    for state, count in counts.most_common():
        named = "" if state in SHOWN else ": " + ", ".join(one.statement for one in statements if one.state == state)
        print(f"{count:5d}  {state}{named}")
    problems = [one for one in statements if one.problem]
    for one in problems:
        print(f"{path.name}, line {one.line}: {one.statement!r} {one.problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())

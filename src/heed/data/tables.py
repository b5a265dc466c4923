"""Labelled texts in tables: TSV with columns by number or name, and JSON lines with fields by name."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from heed.config import parse_json
from heed.data.readers import OPENERS, Line, lines
from heed.vocabularies.text_parts import SEPARATOR

Columns = Sequence[int | str]
Cell = str | list[str]
JSON = (".jsonl", ".ndjson")


def rows(path: Path, columns: Columns) -> Iterator[tuple[int, list[Cell]]]:
    """The cells of these columns in each line, with its number. If columns are given by name, the first line of a TSV
    is the header.
    """
    name = path.stem if path.suffix in OPENERS else path.name
    return _json_rows(path, columns) if name.endswith(JSON) else _tsv_rows(path, columns)


def _tsv_rows(path: Path, columns: Columns) -> Iterator[tuple[int, list[Cell]]]:
    named = any(isinstance(column, str) for column in columns)
    places = [] if named else [column - 1 for column in columns]
    for number, line in enumerate(lines(path), 1):
        cells = line.split("\t")
        if named and number == 1:
            places = [_place(path, cells, column) for column in columns]
            continue
        if len(cells) <= max(places):
            count = f"{len(cells)} column{'s' * (len(cells) != 1)}"
            raise ValueError(
                f"{path}, line {number} has {count}; {_and(map(str, columns))} are needed (data.columns, --columns)"
            )
        yield number, [cells[place] for place in places]


def _place(path: Path, header: list[str], column: int | str) -> int:
    if isinstance(column, int):
        return column - 1
    if column not in header:
        raise ValueError(f"{path} has no column {column!r}; its header has {', '.join(header)}")
    return header.index(column)


def _json_rows(path: Path, columns: Columns) -> Iterator[tuple[int, list[Cell]]]:
    for number, line in enumerate(lines(path), 1):
        try:
            fields = parse_json(line)
        except ValueError as error:
            raise ValueError(f"{path}, line {number} is not JSON: {error}") from None
        missing = [repr(name) for name in columns if not isinstance(fields, dict) or fields.get(name) is None]
        if missing:
            known = ", ".join(fields) if isinstance(fields, dict) else "no fields"
            raise ValueError(f"{path}, line {number} has no {_and(missing)} (data.columns, --columns); it has {known}")
        yield number, [_cell(fields[name]) for name in columns]


def _cell(value: object) -> Cell:
    return [str(one) for one in value] if isinstance(value, list) else str(value)


def _and(names: Iterator[str] | Sequence[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def table(path: Path, columns: Columns) -> Iterator[Line]:
    """The last column is the target; the others are the source, in parts if there are several."""
    for number, cells in rows(path, columns):
        for cell in cells:
            if not isinstance(cell, str):
                raise ValueError(f"{path}, line {number} has a list, {cell!r}, which only multiple choice supports")
        yield Line(SEPARATOR.join(cells[:-1]), cells[-1], f"{path.name}:{number}")


class QuestionTable:
    """Multiple-choice questions. The last column is the answer; before it are the choices, in columns or as one list.
    The rest is the context. `choices` is the number of choice columns (default: all but the first). Answers are
    letters starting at A, or numbers starting at `first`.
    """

    def __init__(self, choices: int | None = None, first: int = 0):
        self.choices, self.first = choices, first
        self.before: tuple[int, str] | None = None  # how many choices the first question has, and where it is

    def __call__(self, path: Path, columns: Columns) -> Iterator[Line]:
        for number, cells in rows(path, columns):
            where = f"{path}, line {number}"
            context, choices = self.split(cells[:-1], where)
            answer = self._answer(cells[-1], len(choices), where)
            yield Line(SEPARATOR.join([context, *choices]), str(answer), f"{path.name}:{number}")

    def split(self, cells: Sequence[Cell], where: str) -> tuple[str, list[str]]:
        """The context and choices of a question; all questions have the same number of choices."""
        lists = [cell for cell in cells if not isinstance(cell, str)]
        if len(lists) > 1:
            raise ValueError(f"{where} has {len(lists)} lists; a question must have exactly one, its choices")
        count = self.choices or len(cells) - 1
        choices = lists[0] if lists else [str(cell) for cell in cells[len(cells) - count :]]
        context = [cell for cell in cells if isinstance(cell, str)] if lists else cells[: len(cells) - count]
        if len(choices) < 2:
            raise ValueError(f"{where} has {len(choices)} choices; a question needs at least two")
        if self.before is None:
            self.before = len(choices), where
        if len(choices) != self.before[0]:
            raise ValueError(
                f"{where} has {len(choices)} choices, but {self.before[1]} has {self.before[0]}: every question must "
                "have the same number"
            )
        return " ".join(context), list(choices)

    def _answer(self, cell: Cell, count: int, where: str) -> int:
        """The number of the correct choice, as counted in the file."""
        text = str(cell).strip()
        index = ord(text.upper()) - ord("A") if len(text) == 1 and text.isalpha() else None
        if index is None and text.isdecimal():
            index = int(text) - self.first
        if index is None or not 0 <= index < count:
            last = self.first + count - 1
            raise ValueError(
                f"{where}: the answer is {text!r}; it must be a number from {self.first} to {last} (task.first_choice) or a "
                f"letter from A to {chr(ord('A') + count - 1)}"
            )
        return index + self.first

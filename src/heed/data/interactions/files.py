"""Interaction log formats: CSV, TSV, Parquet, MovieLens' ::, one user per line, one pair per line."""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any

from heed.data.interactions.config import Format, InteractionsConfig
from heed.data.readers import OPENERS, lines
from heed.files import check_file

Row = tuple[str, str, str | None, str | None]  # user, item, time and rating
Rows = Iterator[tuple[int, Row]]  # with the number of the line

SUFFIXES = {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".pq": "parquet"}
NAMES = {  # of columns, in lower case and without _ and -
    "user": ("user", "userid", "uid", "customer", "customerid", "reviewerid", "visitorid", "sessionid"),
    "item": ("item", "itemid", "iid", "product", "productid", "asin", "parentasin", "movieid", "sid"),
    "time": ("time", "timestamp", "unixreviewtime", "date", "datetime", "ts"),
    "rating": ("rating", "score", "stars", "overall", "ratings"),
}
UNNAMED = {
    2: ("user", "item"),
    3: ("user", "item", "time"),
    4: ("user", "item", "rating", "time"),
}  # columns without names


def read_rows(path: Path, config: InteractionsConfig) -> Rows:
    """The interactions of a file, each with its line number."""
    check_file(path, "data.interactions: ")
    kind = find_format(path, config.format)
    if kind == "parquet":
        return _parquet(path, config)
    if kind == "users":
        return _users(path)
    if kind == "pairs":
        return _table(path, (line.split() for line in lines(path)), config)
    if kind == "::":
        return _table(path, (line.split("::") for line in lines(path)), config)
    return _table(path, _cells(path, "," if kind == "csv" else "\t"), config)


def find_format(path: Path, stated: Format) -> Format:
    """The format given; otherwise detected from the file's name and first lines."""
    if stated != "auto":
        return stated
    name = Path(path.stem) if path.suffix in OPENERS else path
    if name.suffix.lower() in SUFFIXES:
        return SUFFIXES[name.suffix.lower()]
    first = list(islice(lines(path), 100))
    for mark, kind in (("::", "::"), ("\t", "tsv"), (",", "csv")):
        if mark in first[0]:
            return kind
    return "pairs" if all(len(line.split()) == 2 for line in first) else "users"


def _cells(path: Path, delimiter: str) -> Iterator[list[str]]:
    rows = csv.reader(lines(path), delimiter=delimiter)
    try:
        yield from rows
    except csv.Error as error:  # such as a quotation mark that is never closed
        raise ValueError(f"{path}, line {rows.line_num} cannot be read: {error}") from None


def _users(path: Path) -> Rows:
    for number, line in enumerate(lines(path), 1):
        user, *items = line.split() or [""]
        if not items:
            raise ValueError(f"{path}, line {number} has no items: a line is a user and its items, separated by spaces")
        for item in items:
            yield number, (user, item, None, None)


def _table(path: Path, rows: Iterable[Sequence[str]], config: InteractionsConfig) -> Rows:
    found = iter(rows)
    first = next(found, None)
    if first is None:
        raise ValueError(f"{path} is empty")
    places, header = find_columns(first, config, str(path))
    most = max(places.values())
    for number, cells in enumerate(found if header else chain([first], found), 2 if header else 1):
        if not cells:
            continue  # a blank line, of which csv makes no cells
        if len(cells) <= most:
            raise ValueError(f"{path}, line {number} has {len(cells)} columns; it must have at least {most + 1}")
        yield number, _row(lambda name, cells=cells: cells[places[name]] if name in places else None)


def _row(cell: Any) -> Row:
    return (cell("user") or "").strip(), (cell("item") or "").strip(), cell("time"), cell("rating")


def find_columns(first: Sequence[str], config: InteractionsConfig, where: str) -> tuple[dict[str, int], bool]:
    """The index of each column, and whether the first line is a header."""
    stated = {name: getattr(config, name) for name in NAMES if getattr(config, name) is not None}
    known = {_plain(cell): place for place, cell in reversed(list(enumerate(first)))}
    guessed = {name: known[one] for name, words in NAMES.items() for one in reversed(words) if one in known}
    header = {"user", "item"} <= guessed.keys() or any(isinstance(column, str) for column in stated.values())
    places = guessed if header else {}
    if not header and not {"user", "item"} & stated.keys():
        names = UNNAMED.get(len(first)) or UNNAMED[2]
        places = {name: place for place, name in enumerate(names)}
    for name, column in stated.items():
        if isinstance(column, str) and column not in first:
            raise ValueError(f"{where} has no column {column!r} (data.{name}); its header has {', '.join(first)}")
        places[name] = column - 1 if isinstance(column, int) else first.index(column)
    for name in ("user", "item"):
        if name not in places:
            raise ValueError(f"{where}: the {name} column could not be determined: set data.{name}")
    if config.min_rating is not None and "rating" not in places:
        raise ValueError(f"{where} has no ratings, which data.min_rating needs: set data.rating to their column")
    return places, header


def _plain(name: str) -> str:
    return name.strip().lower().replace("_", "").replace("-", "").partition(":")[0]  # RecBole writes user_id:token


def _parquet(path: Path, config: InteractionsConfig) -> Rows:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise ValueError(
            f"{path} is a Parquet file, which needs pyarrow: install it (pip install 'heed[parquet]'), or save the log as CSV"
        ) from None
    with _parquet_errors(path):
        file = parquet.ParquetFile(path)
        names = file.schema_arrow.names
    places, header = find_columns(names, config, str(path))
    if not header and not any(isinstance(getattr(config, name), int) for name in NAMES):
        raise ValueError(f"{path} has the columns {', '.join(names)}: set data.user and data.item")
    wanted = {name: names[place] for name, place in places.items()}
    batches = file.iter_batches(columns=list(dict.fromkeys(wanted.values())))
    number = 0
    while True:
        with _parquet_errors(path):
            if (batch := next(batches, None)) is None:
                return
            records = batch.to_pylist()
        for record in records:
            number += 1
            yield number, _row(lambda name, record=record: _text(record, wanted.get(name)))


@contextmanager
def _parquet_errors(path: Path) -> Iterator[None]:
    """Name the file: pyarrow's errors do not."""
    from pyarrow import ArrowException

    try:
        yield
    except (ArrowException, OSError, ValueError, ArithmeticError) as error:
        raise ValueError(f"{path} is not valid Parquet: {error}") from error


def _text(record: Mapping[str, Any], column: str | None) -> str | None:
    value = None if column is None else record[column]
    if value is None:
        return None if column is None else ""
    return value.isoformat() if hasattr(value, "isoformat") else str(value)

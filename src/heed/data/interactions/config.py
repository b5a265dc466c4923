"""The [data] section of recommendation."""

from dataclasses import dataclass, field
from typing import Literal

from heed.data.interactions.times import parse_time

Format = Literal["auto", "csv", "tsv", "parquet", "::", "users", "pairs"]
Duplicates = Literal["exact", "consecutive", "first", "keep"]
Split = Literal["leave-one-out", "time"]


@dataclass(frozen=True)
class InteractionsConfig:
    """Interaction files, what is dropped, and what is held out."""

    interactions: list[str] = field(default_factory=list)  # logs, plain, .gz or .xz; several are read as one
    format: Format = (
        "auto"  # "::" is MovieLens', "users" a user and the items a line, "pairs" a user and an item a line
    )
    user: int | str | None = None  # the column of the user, by number from 1 or by name; default: found by its name
    item: int | str | None = None  # the column of the item
    time: int | str | None = None  # the column of the time: seconds, or dates such as 2024-05-01T12:30:00
    rating: int | str | None = None  # the column of the rating, for min_rating
    min_rating: float | None = None  # drop interactions rated lower
    duplicates: Duplicates = (
        "exact"  # left out: same user, item and time; or an item twice in a row; or all but the first
    )
    core: int = 5  # repeatedly drop users and items with fewer interactions; 0 keeps all
    split: Split = (
        "leave-one-out"  # "time": what comes after a time is held out, so that nothing of the future is known
    )
    valid_share: float = 0.1  # split by time: share of interactions for validation
    test_share: float = 0.1  # split by time: share of interactions for testing, the most recent ones
    valid_from: str | None = None  # split by time: when validation starts, instead of valid_share
    test_from: str | None = None  # split by time: when testing starts, instead of test_share
    licence: str | None = None  # licence of the data, for the model card

    def __post_init__(self):
        if not self.interactions:
            raise ValueError("data.interactions is empty: give logs of users and items")
        for name in ("user", "item", "time", "rating"):
            column = getattr(self, name)
            if column == "" or (isinstance(column, int) and column < 1):
                raise ValueError(f"data.{name} is {column!r}; it must be a number, counted from 1, or a name")
        if self.core < 0:
            raise ValueError(f"data.core is {self.core}; it must be 0 (off) or more")
        for name in ("valid_share", "test_share"):
            if not 0 < getattr(self, name) < 1:
                raise ValueError(f"data.{name} is {getattr(self, name)}; it must be above 0 and below 1")
        if self.valid_share + self.test_share >= 1:
            raise ValueError(
                f"data.valid_share and data.test_share are {self.valid_share + self.test_share:g} together: nothing would be left to "
                "train on"
            )
        self._check_times()

    def _check_times(self) -> None:
        given = [name for name in ("valid_from", "test_from") if getattr(self, name) is not None]
        if not given:
            return
        if self.split != "time":
            raise ValueError(f"data.{given[0]} is for data.split = 'time', which is {self.split!r}")
        if len(given) == 1:
            raise ValueError(
                f"data.{given[0]} is set on its own: set both data.valid_from and data.test_from, or neither"
            )
        times = []
        for name in given:
            try:
                times.append(parse_time(getattr(self, name)))
            except ValueError as error:
                raise ValueError(f"data.{name}: {error}") from None
        if times[0] >= times[1]:
            raise ValueError(
                f"data.valid_from is {self.valid_from}; it must be before data.test_from, {self.test_from}"
            )

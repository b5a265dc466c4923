"""Times of interactions: numbers, or dates."""

import math
from datetime import UTC, datetime


def parse_time(text: str) -> float:
    """Seconds since 1970, or any number that grows with time; a date without a time zone is UTC."""
    try:
        value = float(text)
    except ValueError:
        value = _date(text)
    if not math.isfinite(value):
        raise _wrong(text)
    return value


def _date(text: str) -> float:
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise _wrong(text) from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _wrong(text: str) -> ValueError:
    return ValueError(f"{text!r} is not a time; it must be a number, or a date such as 2024-05-01T12:30:00")

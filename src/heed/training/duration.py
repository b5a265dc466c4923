"""Durations as people write them: 45s, 10m, 2h, 1h30m."""

import re

UNITS = {"d": 86_400, "h": 3600, "m": 60, "s": 1}
_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)d)?(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?")


def seconds_of(text: str) -> float:
    """The seconds of a duration such as 10m or 1h30m."""
    match = _DURATION.fullmatch(text.strip().lower())
    parts = match.groups() if match else ()
    total = sum(float(part) * size for part, size in zip(parts, UNITS.values(), strict=False) if part)
    if not total:
        raise ValueError(f"{text!r} is not a duration; write it as 45s, 10m, 2h or 1h30m")
    return total


def as_setting(seconds: float) -> str:
    """A duration that `seconds_of` can read, in whole minutes above one minute: 45s, 10m, 1h30m."""
    if seconds < 60:
        return f"{max(1, round(seconds))}s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return (f"{hours}h" if hours else "") + (f"{minutes}m" if minutes else "")


def in_words(seconds: float) -> str:
    """A duration for display: 45 s, 10 min, 1 h 30 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return " ".join(part for part in (f"{hours} h" if hours else "", f"{minutes} min" if minutes else "") if part)

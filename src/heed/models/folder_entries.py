"""The types of the single entries of config.json, besides its sections: what the products read. Nothing here needs
torch.
"""

from collections.abc import Mapping
from typing import Any

from heed.config import WORDS

LARGEST = 1 << 53  # an integer that a float can represent
INTEGERS = {  # with their smallest value
    "max_source": 1, "max_length": 1, "max_question": 1, "max_answer": 1, "stride": 0, "window": 1, "texts": 1,
    "choices": 1, "first_choice": 0,
}  # fmt: skip
NEEDED = ("max_question", "max_answer", "stride", "first_choice")  # their defaults are chosen by leaving them out
NUMBERS = {"no_answer_threshold": -LARGEST, "longest_seconds": 0, "frames_per_token": 0}  # with their smallest value
TEXTS = ("language", "target_language", "pooling", "split", "scheme")
SWITCHES = ("normalize", "both_orders", "repair")


def wrong_entry(facts: Mapping[str, Any]) -> tuple[str, str] | None:
    """The first entry of the wrong type, and what it must be."""
    for name, value in facts.items():
        if name in INTEGERS and not (is_whole(value, INTEGERS[name]) or (value is None and name not in NEEDED)):
            return name, f"an integer of at least {INTEGERS[name]}"
        if name in NUMBERS and not (value is None or _is_number(value, NUMBERS[name])):
            return name, "a number" if NUMBERS[name] else "a number of at least 0"
        if name in TEXTS and not (value is None or isinstance(value, str)):
            return name, WORDS[str]
        if name in SWITCHES and not isinstance(value, bool):
            return name, WORDS[bool]
    if (columns := facts.get("columns")) is not None and not _are_columns(columns):
        return "columns", "the numbers or names of columns"
    return None


def is_whole(value: Any, least: int) -> bool:
    return type(value) is int and least <= value <= LARGEST


def are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _is_number(value: Any, least: int) -> bool:
    return type(value) in (int, float) and least <= value <= LARGEST


def _are_columns(value: Any) -> bool:
    """A list of columns, or a table of what they hold."""
    columns = value.values() if isinstance(value, dict) else value if isinstance(value, list) else [value]
    named = all(one is None or isinstance(one, str) or is_whole(one, -LARGEST) for one in columns)
    return isinstance(value, dict | list) and named

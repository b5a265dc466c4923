"""A parser of command lines: help shows every default, and an error is one sentence, with the name that was probably
meant.
"""

import argparse
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from heed.config import WORDS, meant, none_of

REQUIRED = "the following arguments are required: "
KINDS = {"int": WORDS[int], "float": WORDS[float]}


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Adds the default to the help of each option that has one and does not say so itself."""

    def _get_help_string(self, action: argparse.Action) -> str:
        line, default = action.help or "", action.default
        if not action.option_strings or action.nargs == 0 or default in (None, "", [], argparse.SUPPRESS):
            return line
        return line if "default" in line else f"{line} (default: {_shown(default)})"


def _shown(default: Any) -> str:
    if isinstance(default, float):
        return f"{default:g}"
    text = f"{default:,}" if isinstance(default, int) and default >= 10_000 else str(default)
    return text.replace("%", "%%")  # argparse formats the help


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        if message.startswith(REQUIRED):
            message = REQUIRED + ", ".join(self._truly_required(message.removeprefix(REQUIRED).split(", ")))
        message = re.sub(r"^argument ([^:]+): ", r"\1: ", message)
        message = re.sub(
            r"invalid (int|float) value: (.+)$", lambda found: f"{found[2]} is not {KINDS[found[1]]}", message
        )
        self.exit(2, f"{self.prog}: {message}; {self.prog} --help lists the options\n")

    def _truly_required(self, names: list[str]) -> list[str]:
        """Without arguments that may be left out, which argparse lists too if texts may come between options."""
        optional = {action.metavar or action.dest for action in self._actions if action.nargs in ("*", "?")}
        return [name for name in names if name not in optional]

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """The sentence of argparse has no suggestion, and differs between versions of Python."""
        if action.choices is not None and value not in action.choices:
            raise argparse.ArgumentError(action, none_of(value, list(action.choices)))

    def refuse_unknown(self, words: Sequence[str]) -> NoReturn:
        """End with an error that names the words that were not understood."""
        first = words[0].partition("=")[0]
        near = meant(first, self._option_string_actions) if first.startswith("--") else None
        self.error(f"unknown: {' '.join(words)}{f' (did you mean {near}?)' if near else ''}")

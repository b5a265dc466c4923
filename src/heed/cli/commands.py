"""All commands with their options, read from the parsers, for shell completion."""

import argparse
import importlib
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from heed.cli.main import VERBS, command_parser

FOLDERS = {"folder", "folders", "model", "teacher"}  # positional arguments that are folders
DEVICES = ("auto", "cpu", "cuda", "cuda:0", "cuda:1")


class Value(NamedTuple):
    """What an option or argument accepts; `words` are choices. `many`: several values in a row."""

    kind: Literal["none", "any", "file", "folder"]
    words: tuple[str, ...] = ()
    many: bool = False


class Option(NamedTuple):
    names: tuple[str, ...]
    value: Value
    help: str


class Command(NamedTuple):
    """`words` are the verb and its subcommand, if any; `argument` is what its arguments accept, and `after` its
    subcommands.
    """

    words: tuple[str, ...]
    help: str
    options: tuple[Option, ...]
    argument: Value
    after: tuple[str, ...] = ()


def commands() -> list[Command]:
    """All commands in the order of `heed --help`; subcommands follow their verb."""
    found = []
    for verb, line in VERBS.items():
        module = importlib.import_module(f"heed.cli.{verb.replace('-', '_')}")
        parser, own = command_parser(verb), getattr(module, "COMMANDS", {})
        nested = next((action for action in parser._actions if action.nargs == argparse.PARSER), None)
        seconds = {name: command_parser(verb, name) for name in own} | dict(nested.choices if nested else {})
        found.append(_command((verb,), line, parser, tuple(seconds)))
        found += [_command((verb, name), second.description or "", second) for name, second in seconds.items()]
    return found


def _command(
    words: tuple[str, ...], line: str, parser: argparse.ArgumentParser, after: tuple[str, ...] = ()
) -> Command:
    actions = [action for action in parser._actions if action.nargs != argparse.PARSER]
    options = tuple(
        Option(tuple(action.option_strings), _value(action), action.help or "")
        for action in actions
        if action.option_strings
    )
    arguments = [_value(action) for action in actions if not action.option_strings]
    kinds = {value.kind for value in arguments}
    kind = next((kind for kind in ("file", "folder", "any") if kind in kinds), "none")
    return Command(words, line, options, Value(kind, tuple(word for own in arguments for word in own.words)), after)


def _value(action: argparse.Action) -> Value:
    many = action.nargs in ("+", "*")
    if action.nargs == 0:
        return Value("none")
    if action.choices is not None:
        return Value("any", tuple(map(str, action.choices)), many)
    if action.dest == "device":
        return Value("any", DEVICES)
    if action.dest == "set":
        return Value("any", tuple(f"{name}=" for name in settings()))
    if action.dest in ("recipe", "name") and not action.option_strings:
        from heed.runs import built_in

        return Value("file" if action.dest == "recipe" else "any", tuple(built_in.names()))
    name = str(action.metavar or "").upper()
    if name in ("FOLDER", "DIR", "RUN") or (not action.option_strings and action.dest in FOLDERS):
        return Value("folder", (), many)
    path = getattr(action.type, "__name__", "") == "Path" or name in ("FILE", "IMAGE", "PATH") or action.dest == "file"
    return Value("file" if path else "any", (), many)


def settings() -> Iterator[str]:
    """The names of all settings of a recipe."""
    from heed.runs import built_in

    section, seen = "", set()
    for line in built_in.path("all-settings").read_text("utf-8").splitlines():
        if head := re.fullmatch(r"(?:# )?\[+(\w+)[\w.]*\]+.*", line):
            section = head[1] if "[[" not in line else ""
        elif (name := re.match(r"(?:# )?(\w+) =", line)) and section and f"{section}.{name[1]}" not in seen:
            seen.add(f"{section}.{name[1]}")
            yield f"{section}.{name[1]}"

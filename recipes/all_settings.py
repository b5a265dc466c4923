"""Write recipes/all-settings.toml from the dataclasses: python recipes/all_settings.py

The description of a setting is the comment of its field.
"""

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from heed.config import data_fields, to_toml
from heed.models import MODELS
from heed.runs.recipe import OWN, SECTIONS, ModelChoice
from heed.tasks import TASKS
from heed.training.config import TrainingConfig

HEAD = """\
# Every setting of a run with its default, by section. A recipe names only those that differ; `--set section.name=value`
# overrides a recipe. A setting without a value is chosen automatically, or off.
# Generated from the source by `python recipes/all_settings.py`; do not edit it by hand.
"""
EXAMPLE = {"data": {"source": ["train.en"], "target": ["train.de"]}}
COLUMN = 32


def text() -> str:
    task, model = TASKS["translation"], ModelChoice()
    lines = [HEAD]
    for name in SECTIONS:
        lines.append(f"[{name}]")
        if name == "task":
            lines += [line("name", task.name, f"or {', '.join(repr(n) for n in TASKS if n != task.name)}")]
            lines += [
                *section(task.Settings),
                *others("task", {n: t.Settings for n, t in TASKS.items() if n != task.name}),
            ]
        elif name == "model":
            lines += [line("name", model.name, f"or {', '.join(repr(n) for n in MODELS if n != model.name)}")]
            lines += [one for one in section(ModelChoice) if re.match(rf"(# )?({'|'.join(OWN[1:])}) =", one)]
            lines += others("model", {n: system.config for n, system in MODELS.items()}, MODELS)
        else:
            kind = TrainingConfig if name == "training" else task.sections[name]
            lines += [*section(kind, EXAMPLE.get(name, {})), *tables(name, kind)]
            own = {n: t.sections[name] for n, t in TASKS.items() if t.sections.get(name, kind) is not kind}
            lines += others("task", own)
        lines.append("")
    return "\n".join(lines)


def others(section_name: str, kinds: Mapping[str, type], systems: Mapping[str, Any] | None = None) -> Iterator[str]:
    """The settings of each kind, commented out: they apply only with its name."""
    for name, kind in kinds.items():
        yield f'\n# {section_name}.name = "{name}"'
        if systems:
            yield f"#   presets: {', '.join(systems[name].presets)}; a setting here overrides them"
        defaults = systems[name].defaults if systems else {}
        yield from (f"# {one.removeprefix('# ')}" for one in section(kind, defaults))


def section(kind: type, values: Mapping[str, Any] | None = None) -> Iterator[str]:
    comments, hints = comments_of(kind), get_type_hints(kind)
    for field in fields(kind):
        if field.name not in data_fields(kind) and field.name != "settings":
            hint = hints[field.name]
            literals = [one for one in (hint, *get_args(hint)) if get_origin(one) is Literal]  # alone, or one or None
            choices = ", ".join(map(repr, get_args(literals[0]))) if literals else ""
            comment = "; ".join(filter(None, (choices, comments.get(field.name))))
            yield line(field.name, (values or {}).get(field.name, default(field)), comment)


def tables(section_name: str, kind: type) -> Iterator[str]:
    """The settings of tables that may be repeated, commented out."""
    for name, hint in get_type_hints(kind).items():
        if get_origin(hint) is list and is_dataclass(get_args(hint)[0]):
            yield f"\n# [[{section_name}.{name}]]"
            yield from (f"# {one.removeprefix('# ')}" for one in section(get_args(hint)[0]))


def line(name: str, value: Any, comment: str) -> str:
    setting = f"# {name} =" if value is None else to_toml({"x": {name: value}}).splitlines()[1]
    return f"{setting:<{COLUMN - 1}} # {comment}" if comment else setting


def default(field: Field) -> Any:
    return field.default_factory() if field.default is MISSING else field.default


def comments_of(kind: type) -> dict[str, str]:
    """The comment of each field of a dataclass; ruff may have wrapped the field over several lines."""
    own = "".join(inspect.getsource(base) for base in reversed(kind.__mro__) if is_dataclass(base))
    found = re.findall(r"^    (\w+): (?:[^\n#]*\(\n {8}[^\n#]*?(?:\n    \))?|.*?)  # (.+)$", own, flags=re.M)
    return {name: comment for name, comment in found if not comment.startswith(("noqa", "fmt:"))}


if __name__ == "__main__":
    Path(__file__).with_name("all-settings.toml").write_text(text(), "utf-8", newline="\n")

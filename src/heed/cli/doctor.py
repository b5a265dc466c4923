"""heed doctor"""

import argparse
from typing import Any

EXAMPLES = """\
examples:
  heed doctor                      # for a bug report: paste all of it
  heed doctor --json

Paths under your home folder are shown with ~. The exit status is 1 if something is broken.
"""

NOT_INSTALLED = "unknown: heed runs from its source and is not installed"


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    import json

    from heed.cli.common import write_lines
    from heed.cli.diagnosis import examine
    from heed.cli.main import one_line

    found = examine()
    lines = [json.dumps(found, indent=2, ensure_ascii=False)] if args.json else map(one_line, described(found))
    write_lines(lines, None)
    return 1 if any(problem["broken"] for problem in found["problems"]) else 0


def described(found: dict[str, Any]) -> list[str]:
    """The problems, and one line per finding."""
    problems = found["problems"]
    lines = [f"! {own['what'].rstrip('.')}. What to do: {own['advice'].rstrip('.')}." for own in problems]
    rows = _rows(found)
    width = max(len(label) for label, _ in rows)
    return [*(lines or ["No problems found."]), "", *(f"{label:<{width}}  {value}" for label, value in rows)]


def _rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    own, cpu, gpu, cache = found["heed"], found["cpu"], found["gpu"], found["cache"]
    threads = f"threads of torch: {cpu['threads']}, {cpu['instructions']}, " if "threads" in cpu else ""
    memory = f"{cpu['memory_gb']} GB of memory" if cpu["memory_gb"] else "memory unknown"
    rows = [
        ("heed", f"{own['version']} in {own['folder']}"),
        ("python", f"{own['python']} on {own['system']}"),
        ("packages", ", ".join(f"{name} {version}" for name, version in found["packages"].items()) or NOT_INSTALLED),
        ("cpu", f"{cpu['name']}, {cpu['cores']} cores, {threads}{memory}"),
    ]  # fmt: skip
    for device in gpu["devices"]:
        what = f"{device['name']}, {device['memory_gb']} GB, capability {device['capability']}"
        rows.append(("gpu", f"{what}, driver {gpu['driver'] or 'unknown'}, CUDA {gpu['cuda']}"))
    if not gpu["devices"]:
        rows.append(("gpu", f"none; {gpu['why']}"))
    rows += [("engine", f"{name}: {value}") for name, value in found["engines"].items()]
    rows.append(("cache", f"{cache['folder']}, {cache['bytes'] / 1e6:,.0f} MB in {cache['entries']:,} entries"))
    rows.append(("disk", ", ".join(f"{free / 1e9:.1f} GB free for the {name}" for name, free in found["disk"].items())))
    rows += [("extra", f"{name}: {value}") for name, value in found["extras"].items()]
    return rows + [("variable", f"{name}={value}") for name, value in found["environment"].items()]

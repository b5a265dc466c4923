"""heed info"""

import argparse
from pathlib import Path

EXAMPLES = """\
examples:
  heed info runs/en-de
  heed info runs/en-de --json
"""


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, help="a run or a model folder")
    parser.add_argument("--json", action="store_true", help="as JSON")


def run(args: argparse.Namespace) -> int:
    import json

    facts = _facts(args.folder)
    if args.json:
        print(json.dumps(facts, indent=2, ensure_ascii=False))
        return 0
    from rich.console import Console
    from rich.table import Table

    console = Console()
    for section, values in facts.items():
        table = Table(
            title=section, title_justify="left", title_style="bold", show_header=False, box=None, padding=(0, 2)
        )
        for name, value in values.items():
            table.add_row(f"[dim]{name}[/]", str(value))
        console.print(table)
    return 0


def _facts(folder: Path) -> dict[str, dict]:
    from heed.models import folder as model_folder
    from heed.serving.load import find_model

    facts: dict[str, dict] = {}
    if (folder / "recipe.toml").is_file():
        facts["run"] = _run(folder)
        if not (folder / "model" / model_folder.CONFIG).is_file():
            return facts
    path = find_model(folder)
    config = model_folder.read_config(path)
    weights = model_folder.read_weights(path / model_folder.WEIGHTS)
    facts["model"] = {
        "folder": str(path),
        **config.get("model", {}),
        "weights": f"{sum(weight.numel() for weight in weights.values()):,}",
        "megabytes": round((path / model_folder.WEIGHTS).stat().st_size / 1e6, 1),
    }
    facts["text"] = {
        "languages": config.get("languages"),
        "subwords": config.get("subwords"),
        "longest": config.get("max_source"),
    }
    facts["search"] = config.get("decoding", {})
    facts["trained"] = config.get("trained", {})
    return facts


def _run(folder: Path) -> dict:
    from heed.training import checkpoints
    from heed.training.curves import read_log

    lines = read_log(folder) if (folder / "log.jsonl").is_file() else []
    last = next((line for line in reversed(lines) if "step" in line), {})
    valid = next((line for line in reversed(lines) if line["kind"] == "valid"), {})
    return {
        "folder": str(folder),
        "step": last.get("step", 0),
        "finished": any(line["kind"] == "end" for line in lines),
        "last validation": {name: round(valid[name], 3) for name in ("step", "loss", "bleu", "chrf") if name in valid},
        "checkpoints": [path.name for path in checkpoints.found(folder / "checkpoints")],
    }

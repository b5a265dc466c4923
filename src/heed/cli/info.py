"""heed info"""

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

EXAMPLES = """\
examples:
  heed info runs/en-de
  heed info runs/en-de --all                               # every setting of the model and of its search
  heed info runs/en-de --json
  heed info Helsinki-NLP/opus-mt-ko-en                     # a name on the Hugging Face hub, or a folder of transformers
"""

MOST_LABELS = 8  # of a classifier, without --all


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", help="a run, a model folder, or a name on the hub")
    parser.add_argument("--all", action="store_true", help="every setting of the model and of its search")
    parser.add_argument("--json", action="store_true", help="print all of it as JSON")


def run(args: argparse.Namespace) -> int:
    if args.all or args.json:
        _print_all(_facts(args.folder, _open(args.folder)), args.json)
        return 0
    from heed.cli import model_facts
    from heed.cli.common import write_lines
    from heed.cli.main import one_line

    own = model_facts.read(args.folder)
    if own is None and (package := _open(args.folder)) is not None:
        own = model_facts.of_package(args.folder, package)
    rows = {label: one_line(value) for label, value in _brief(args.folder, own).items() if value}
    width = max(map(len, rows))
    write_lines((f"{label:<{width}}  {value}" for label, value in rows.items()), None)
    return 0


def _open(name: str):
    """The model; None for a run that has none yet."""
    from heed.models.signature import CONFIG

    folder = Path(name)
    if (folder / "recipe.toml").is_file() and not (folder / "model" / CONFIG).is_file():
        return None
    from heed.loading import open_package

    return open_package(name)


def _brief(name: str, own) -> dict[str, str]:
    """What most people want to know, a line each."""
    folder, rows = Path(name), {"model": "none yet: a run writes it at its first validation"}
    if own is not None:
        rows = _brief_model(name, own)
    if (folder / "recipe.toml").is_file():
        found = _run(folder)
        kept = f"{len(found['checkpoints'])} checkpoints"
        rows["run"] = f"step {found['step']:,}, {'finished' if found['finished'] else 'not finished'}, {kept}"
        if own is None and found["last validation"]:
            rows["validation"] = _shown(found["last validation"])
    return rows | {"more": f"heed info {name} --all"}


def _brief_model(name: str, own) -> dict[str, str]:
    from heed.runs.model_rows import sizes, vocabulary_row

    package, facts = own.package, own.package.facts
    labels = getattr(package.processors.get("labels"), "names", [])
    more = f", … ({len(labels):,} in all)" if len(labels) > MOST_LABELS else ""
    search, trained, origin = (facts.get(section) or {} for section in ("decoding", "trained", "origin"))
    scores = {label: trained.get(f"valid_{metric}") for metric, label in own.task.metrics.items()}
    made_of = f"; {trained['weights']}" if "weights" in trained else ""
    found = {one: search[one] for one in ("beam", "length_penalty", "sample") if search.get(one)}
    return {
        "what": own.task.noun + _direction(package),
        "model": f"{own.name}, {sizes(own.config)}",
        "weights": f"{own.weights:,}, {own.size / 1e6:,.1f} MB{made_of}",
        "vocabulary": vocabulary_row(package.processors),
        "languages": " ".join(_languages(package).get("translates between", [])) if _translates(package) else "",
        "labels": _shown(labels[:MOST_LABELS]) + more if labels else "",
        "search": _shown(found).replace("_", " "),
        "validation": _shown({label: value for label, value in scores.items() if value is not None}),
        "origin": _shown(origin.get("name") or origin.get("architecture")) if origin else "",
        "folder": own.folder,
        "use": own.task.example.format(name),
    }


def _translates(package) -> bool:
    return {"source", "target"} <= package.processors.keys()


def _direction(package) -> str:
    """The languages of a translator, in brackets."""
    if not _translates(package):
        return ""
    found = _languages(package)
    if many := found.get("translates between"):
        return f" ({len(many)} languages)"
    stated = found["languages"]
    words = " → ".join(filter(None, stated.values())) if isinstance(stated, dict) else stated
    return f" ({words})" if words else ""


def _print_all(facts: dict[str, dict], as_json: bool) -> None:
    if as_json:
        print(json.dumps(facts, indent=2, ensure_ascii=False))
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    for section, values in facts.items():
        title = {"title": section, "title_justify": "left", "title_style": "bold"}
        table = Table(**title, show_header=False, box=None, padding=(0, 2))
        for name, value in values.items():
            table.add_row(f"[dim]{name}[/]", escape(_shown(value)))
        console.print(table)


def _facts(name: str, package) -> dict[str, dict]:
    facts = {"run": _run(Path(name))} if (Path(name) / "recipe.toml").is_file() else {}
    return facts if package is None else facts | _package(name, package)


def _package(name: str, package) -> dict[str, dict]:
    """What is known about a model, Heed's or another."""
    from heed.loading import find_model
    from heed.models import name_of
    from heed.models.folder import read_config
    from heed.models.package import longest_text
    from heed.vocabularies.folder import kind_of

    config, weights = package.facts, package.model.state_dict().values()
    folder = find_model(Path(name)) if Path(name).is_dir() else None
    stated = folder is not None and "sha256" in read_config(folder)
    facts: dict[str, dict] = {}
    facts["model"] = {
        "folder": str(folder or name),
        "name": name_of(package.model),
        **asdict(package.model.config),
        "weights": f"{sum(weight.numel() for weight in weights):,}",
        "megabytes": round(sum(weight.numel() * weight.element_size() for weight in weights) / 1e6, 1),
        **({"heed": config["heed"]} if "heed" in config else {}),  # the version that wrote it
        "hash": "matches config.json" if stated else "none: the weights cannot be verified",
    }
    if "items" in package.processors:
        facts["items"] = {name: f"{len(own):,}" for name, own in package.processors.items()} | {
            "held out": config.get("split")
        }
        return facts | ({"trained": config["trained"]} if "trained" in config else {})
    if "images" in package.processors:
        own, labels = package.processors["images"], package.processors.get("labels")
        facts["images"] = asdict(own) | ({"classes": labels.names} if labels else {})
        return facts | {name: config[name] for name in ("origin", "trained") if name in config}
    if "sound" in package.processors:
        return facts | _sound(package)
    splits = _translates(package) or package.task == "language"
    facts["text"] = {
        **_languages(package),
        "vocabulary": kind_of(package.vocabularies[0]),
        "pieces": {side: len(part) for side, part in zip(("source", "target"), package.vocabularies, strict=True)},
        "longest": config.get("max_source") if splits else longest_text(package),
    }
    if "labels" in package.processors:
        facts["text"]["labels"] = getattr(package.processors["labels"], "names", "a number")
    elif config.get("decoding"):
        facts["search"] = config["decoding"]
    return facts | {name: config[name] for name in ("origin", "trained") if name in config}


def _sound(package) -> dict:
    """The audio input and output of a model."""
    from heed.vocabularies.folder import kind_of

    own, config = package.processors, package.facts
    words = own.get("target") or own.get("text")
    text = {"vocabulary": kind_of(words), "pieces": len(words), "language": config.get("language")}
    text |= {"translated into": config["target_language"]} if config.get("target_language") else {}
    text |= {"speakers": own["speakers"].names} if "speakers" in own else {}
    found = {"sound": asdict(own["sound"].settings), "text": text}
    found |= {"search": config["decoding"]} if config.get("decoding") else {}
    return found | {name: config[name] for name in ("trained",) if name in config}


def _languages(package) -> dict:
    """The directions of a model; for a multilingual one its languages and the direction stated in its folder."""
    from heed.text.language_codes import public_codes
    from heed.vocabularies.multilingual import languages_of

    stated = package.facts.get("languages") or {}
    if codes := languages_of(package.vocabularies[1]):
        default = {side: code for side, code in stated.items() if code}
        return {"translates between": sorted(public_codes(codes)), **({"by default": default} if default else {})}
    return {"languages": ", ".join(map("-".join, package.facts.get("directions") or [])) or stated}


def _run(folder: Path) -> dict:
    from heed.tasks import metric_labels
    from heed.training.checkpoint_names import list_checkpoints
    from heed.training.curves import read_log

    lines = read_log(folder) if (folder / "log.jsonl").is_file() else []
    last = next((line for line in reversed(lines) if "step" in line), {})
    valid = next((line for line in reversed(lines) if line["kind"] == "valid"), {})
    return {
        "folder": str(folder),
        "step": last.get("step", 0),
        "finished": any(line["kind"] == "end" for line in lines),
        "last validation": {name: round(valid[name], 3) for name in ("step", *metric_labels()) if name in valid},
        "checkpoints": [path.name for path in list_checkpoints(folder / "checkpoints")],
    }


def _shown(value: Any) -> str:
    """A value in a table."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {_shown(each)}" for name, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_shown, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    return "not stated" if value is None else str(value)

"""What requests of different kinds cost, as the queue of `heed serve` charges them: `python -m bench.serving_costs`.

Each kind of request is timed by turns with the same sentences asked plainly, both alone in their batches; the cost is the median of the
ratios. The service charges by the same unit, the plain sentence: what is charged too little lets one client take the time of others.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from bench.serving_systems import folders

SHOWN = "{:<26} {:>9} {:>9}"
WORDS = ["나는", "학생이에요", "친구는", "책을", "읽어요", "우리는", "학교에", "가요", "그는", "물을", "마셔요"]


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="python -m bench.serving_costs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    top.add_argument("--model", metavar="FOLDER", help="default: 3+3 layers with random weights")
    top.add_argument("--engine", default="auto", help="auto, torch or ctranslate2 (default: auto)")
    top.add_argument("--turns", type=int, default=9, help="of each kind (default: 9)")
    top.add_argument("--json", type=Path, metavar="FILE", help="write all that was measured")
    return top


def kinds() -> dict[str, tuple[str, dict[str, Any], dict[str, str], tuple[str, ...]]]:
    """By name: a sentence, decoding settings, a glossary, and what is required."""
    short, long = " ".join(WORDS[:3]) + ".", " ".join(WORDS[:10] * 3) + "."
    numbered = f"{short[:-1]} 3,000원."
    terms = {words: f"term {i}" for i, words in enumerate(dict.fromkeys(WORDS))}
    return {
        "beam 10": (short, {"beam": 10}, {}, ()),
        "beam 16": (short, {"beam": 16}, {}, ()),
        "1 term": (short, {}, {WORDS[0]: "Tobigs"}, ()),
        "3 terms": (short, {}, dict(list(terms.items())[:3]), ()),
        "30 terms": (long, {}, terms, ()),
        "1 term, beam 16": (short, {"beam": 16}, {WORDS[0]: "Tobigs"}, ()),
        "a number that is kept": (numbered, {}, {}, ("3,000",)),
        "mbr": (short, {"rerank": "mbr"}, {}, ()),
        "mbr, long": (long, {"rerank": "mbr"}, {}, ()),
        "mbr, 1 term": (short, {"rerank": "mbr"}, {WORDS[0]: "Tobigs"}, ()),
    }


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure(folder: str, engine: str, turns: int) -> list[dict[str, Any]]:
    from heed.loading import load
    from heed.service.http.models import ServedModel, TranslationOptions, count_terms
    from heed.text.glossary import Glossary

    model = ServedModel("bench", "ko", "en", load([folder], "cpu", engine, "translate"))
    plain, rows = TranslationOptions(), []
    for name, (text, decoding, terms, required) in kinds().items():
        given = TranslationOptions(tuple(sorted(decoding.items())), False, Glossary(terms) if terms else None)
        options = given._replace(glossary=model.glossary(given, required))

        def ask(own: TranslationOptions, text: str = text) -> None:
            model.run(own.batch_key(False), [(text, "", own)])

        for own in (plain, options):
            ask(own)
        ratios = [seconds(partial(ask, options)) / seconds(partial(ask, plain)) for _ in range(turns)]
        charged = model.cost(1000, options, count_terms(options.glossary, text)) / model.cost(1000, plain)
        rows.append({"kind": name, "measured": statistics.median(ratios), "charged": charged})
        print(SHOWN.format(name, f"{rows[-1]['measured']:.1f}", f"{charged:.1f}"), flush=True)
    return rows


def main() -> int:
    args = parser().parse_args()
    print(SHOWN.format("", "measured", "charged"))
    with tempfile.TemporaryDirectory() as place:
        folder = folders(SimpleNamespace(model=args.model, systems=[]), Path(place))["heed"]
        rows = measure(folder, args.engine, args.turns)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1), encoding="utf-8", newline="\n")
    low = [row["kind"] for row in rows if row["measured"] > 2 * row["charged"]]
    print(f"charged less than half: {', '.join(low)}" if low else "nothing is charged less than half of what it costs")
    return 1 if low else 0


if __name__ == "__main__":
    raise SystemExit(main())

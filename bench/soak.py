"""Can the service be worn down? `python -m bench.soak` asks `heed serve` for a quarter of an hour, with clients of all kinds at once.

Short texts, long ones, readers that are slow, clients that leave, glossaries, files, and one that attacks. Every answer is compared with what
one thread says alone. It fails if one is wrong or broken, if honest short requests take more than three times as long (99 of 100) as
without the others, or if the memory of the service keeps growing.
"""

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from bench import soak_clients
from bench.machine import cpu
from bench.serving import memory, quantile
from bench.serving_systems import folders, service
from bench.soak_clients import Client, Expected

MAX_SLOWDOWN = 3.0  # of the p99 of short requests
MAX_GROWTH = 1.2  # of memory, from the end of the first quarter to the end; and GROWTH_MB more
GROWTH_MB = 64
MAX_REFUSED = 0.01  # of honest short requests
SHOWN = "{:<10} {:>9} {:>9} {:>7} {:>7} {:>10} {:>10}"


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="python -m bench.soak", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    top.add_argument("--minutes", type=float, default=15.0, help="in all; a sixth of it without load (default: 15)")
    top.add_argument("--model", metavar="FOLDER", help="default: 3+3 layers with random weights")
    top.add_argument("--pair", default="ko-en", help="the languages of the model (default: ko-en)")
    half = max(1, (os.cpu_count() or 1) // 2)  # the other half is for the clients, and for HTTP
    top.add_argument("--threads", type=int, default=half, help=f"of the service (default here: {half})")
    top.add_argument("--json", type=Path, metavar="FILE", help="write all that was found")
    return top


def expected(folder: str, pair: tuple[str, str]) -> Expected:
    """What one thread says to each request."""
    from heed.data.synthetic import phrasebook
    from heed.loading import load
    from heed.products.translator.documents import translate_document

    translator = load([folder], "cpu", "auto", "translate")
    sources = list(dict.fromkeys(one.source for one in phrasebook.pairs("test", 80)))

    def said(texts: list[str], **options: Any) -> list[str]:
        return [one.text for one in translator.translate(texts, sentences=True, **options)]

    short, kept = sources[:40], ["값은 3,000원이에요.", "{name}님, 0.3%예요.", "https://a.example/b 1,500권 있어요."]
    long = [" ".join(sources[i : i + 25]) + f"\n\n- {sources[i]}\n" for i in range(0, 50, 10)]
    terms = []
    for text in sources[:12]:
        own = {text.split()[0].rstrip(".,!?"): "Tobigs"}
        terms += [(text, own, *said([text], glossary=own))]
    files = []
    for i in range(3):
        data = "\n".join([f"# {sources[i]}", "", *(f"- **{one}**" for one in sources[i : i + 20]), ""]).encode()
        files.append((f"{i}.md", data, translate_document(translator, data, f"{i}.md", language=pair[0])[0]))
    return Expected(
        pair,
        list(zip(short, said(short), strict=True)),
        list(zip(long, said(long), strict=True)),
        list(zip(kept, said(kept), strict=True)),
        terms,
        files,
    )


def clients(port: int, right: Expected) -> list[Client]:
    """Everyone but the two that ask for short texts, which are also there without load."""
    made = [
        ("long", soak_clients.texts(right, "long"), 1.0),
        ("slow", soak_clients.slow_readers(right), 0.5),
        ("slow", soak_clients.slow_readers(right), 0.5),
        ("numbers", soak_clients.texts(right, "kept"), 1.0),
        ("leaving", soak_clients.leaving(right), 0.5),
        ("terms", soak_clients.glossaries(right), 1.0),
        ("files", soak_clients.files(right), 2.0),
        ("attack", soak_clients.attacker(right), 0.5),
    ]
    return [Client(name, port, work, pause, number) for number, (name, work, pause) in enumerate(made)]


def honest(port: int, right: Expected) -> list[Client]:
    return [Client("short", port, soak_clients.texts(right, "short"), 0.1, 100 + number) for number in range(2)]


def run(asking: list[Client], seconds: float, process_id: int) -> list[tuple[float, float]]:
    """Let clients ask for so long; returns the memory of the service over time."""
    over, start, held = threading.Event(), time.monotonic(), []
    threads = [threading.Thread(target=one.run, args=(over,), daemon=True) for one in asking]
    for thread in threads:
        thread.start()
    while (now := time.monotonic() - start) < seconds:
        held.append((round(now, 1), round(memory(process_id), 1)))
        time.sleep(min(max(0.2, seconds / 200), max(0.0, seconds - now)))
    over.set()
    for thread in threads:
        thread.join(150)
    return held


def summary(name: str, asking: list[Client]) -> dict[str, Any]:
    own = [client.found for client in asking if client.name == name]
    seconds = [one for found in own for one in found.seconds]
    statuses: dict[str, int] = {}
    for found in own:
        for status, times in found.statuses.items():
            statuses[str(status)] = statuses.get(str(status), 0) + times
    return {
        "client": name,
        "answered": sum(found.answered for found in own),
        "refused": sum(found.refused for found in own),
        "wrong": [one for found in own for one in found.wrong],
        "broken": [one for found in own for one in found.broken],
        "p50": quantile(seconds, 0.5),
        "p99": quantile(seconds, 0.99),
        "statuses": statuses,
    }


def show(name: str, one: dict[str, Any]) -> None:
    times = ["-" if one[key] is None else f"{1000 * one[key]:.0f} ms" for key in ("p50", "p99")]
    counts = [one["answered"], one["refused"], len(one["wrong"]), len(one["broken"])]
    print(SHOWN.format(name, *counts, *times), flush=True)


def failures(unloaded: dict[str, Any], rows: list[dict[str, Any]], held: list[tuple[float, float]]) -> list[str]:
    """What was not as it must be."""
    found = [
        f"{len(row[key])} answers to {row['client']} were {key}: {row[key][0]}"
        for row in [unloaded, *rows]
        for key in ("wrong", "broken")
        if row[key]
    ]
    loaded = rows[0]
    if not loaded["answered"] or not unloaded["answered"]:
        return [*found, "no short request was answered"]
    if (ratio := loaded["p99"] / unloaded["p99"]) > MAX_SLOWDOWN:
        found.append(
            f"short requests took {ratio:.1f} times as long under load (99 of 100), and {MAX_SLOWDOWN:g} is allowed"
        )
    if loaded["refused"] > MAX_REFUSED * (loaded["answered"] + loaded["refused"]):
        found.append(f"{loaded['refused']} short requests were refused")
    before, after = held[len(held) // 4][1], held[-1][1]
    if after > MAX_GROWTH * before + GROWTH_MB:
        found.append(f"memory grew from {before:.0f} to {after:.0f} MB")
    return found


def main() -> int:
    args = parser().parse_args()
    pair = tuple(args.pair.split("-", 1))
    with tempfile.TemporaryDirectory() as place:
        paths = folders(SimpleNamespace(model=args.model, systems=[]), Path(place))
        right = expected(paths["heed"], pair)
        with service("heed", args, paths) as (process, port):
            print(SHOWN.format("", "answered", "refused", "wrong", "broken", "p50", "p99"))
            alone, others = honest(port, right), clients(port, right)
            run(
                honest(port, right), min(10.0, 5 * args.minutes), process.pid
            )  # not counted: the first requests build what is kept
            run(alone, 10 * args.minutes, process.pid)
            unloaded = summary("short", alone)
            show("alone", unloaded)
            asking = [*honest(port, right), *others]
            held = run(asking, 50 * args.minutes, process.pid)
            alive = process.poll() is None
    rows = [summary(name, asking) for name in dict.fromkeys(client.name for client in asking)]
    for row in rows:
        show(row["client"], row)
    wrong = failures(unloaded, rows, held) + ([] if alive else ["the service ended"])
    print(
        f"memory: {held[0][1]:.0f} MB at first, {max(own for _, own in held):.0f} at most, {held[-1][1]:.0f} at the end"
    )
    if args.json:
        facts = {
            "minutes": args.minutes,
            "threads": args.threads,
            "cpu": cpu(),
            "unloaded": unloaded,
            "loaded": rows,
            "memory": held,
        }
        args.json.write_text(json.dumps(facts | {"failures": wrong}, indent=1), encoding="utf-8", newline="\n")
    for one in wrong:
        print(f"FAILED: {one}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())

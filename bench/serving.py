"""How fast `heed serve` answers, and what it does under overload: `python -m bench.serving`.

Services of one model, each in its own process, and the load generator in another, over loopback: heed's; heed's without batches; heed's with its own
search in torch; and a plain FastAPI around transformers' generate. Each answer is compared with the offline translation of its text.
Then heed's gets ten times its best load: it must answer correctly or refuse at once, and its memory must not grow.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

from bench import machine
from bench.serving_systems import SYSTEMS, folders, offline, service, texts

SHOWN = "{:<16} {:>6} {:>9} {:>9} {:>9} {:>9} {:>7} {:>7}"
EPILOG = """\
examples:
  python -m bench.serving                                       # all of it, about 6 minutes: 4 services x 3 rows of 10 s, 60 s of overload
  python -m bench.serving --seconds 2 --overload 5 --texts 40   # to see whether it works, about a minute
  python -m bench.serving --model runs/demo --pair ko-en        # a trained model; transformers takes part where it can be written for it

answers: how many a second; p50, p95, p99: how long half of them, 95 and 99 of 100 took at most, from the first byte sent to the last received;
wrong: answers that are not the translation of their own text; broken: neither an answer nor a refusal. conns: so many ask, each again as
soon as it has its answer.
"""


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="python -m bench.serving",
        description=__doc__,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument(
        "--model", metavar="FOLDER", help="default: 3+3 layers with random weights, which generates 12 tokens"
    )
    top.add_argument("--source", metavar="FILE", help="texts, one per line (default: those of the phrasebook)")
    top.add_argument("--pair", default="ko-en", help="the languages of the model (default: ko-en)")
    top.add_argument("--texts", type=int, default=200, help="how many different ones are asked for (default: 200)")
    top.add_argument("--seconds", type=float, default=10.0, help="for each row (default: 10)")
    top.add_argument(
        "--overload", type=float, default=60.0, help="seconds of ten times the load; 0 is none (default: 60)"
    )
    top.add_argument("--connections", type=int, nargs="+", default=[1, 8, 32], help="a row for each (default: 1 8 32)")
    half = max(1, (os.cpu_count() or 1) // 2)  # the other half is for the load, and for HTTP
    top.add_argument("--threads", type=int, default=half, help=f"of each service (default here: {half})")
    top.add_argument("--systems", nargs="+", default=list(SYSTEMS), choices=SYSTEMS, help="(default: all)")
    top.add_argument("--json", type=Path, metavar="FILE", help="write all that was measured")
    return top


def bodies(asked: list[str], pair: str) -> list[dict[str, str]]:
    source, _, target = pair.partition("-")
    return [{"q": text, "source": source, "target": target} for text in asked]


def loaded(port: int, asked: list[str], expected: list[str], pair: str, **plan: Any) -> dict[str, Any]:
    """What the load generator found."""
    whole = {
        "port": port,
        "path": "/translate",
        "bodies": bodies(asked, pair),
        "expected": expected,
        "field": "translatedText",
    }
    words = [sys.executable, "-m", "bench.serving_load"]
    made = subprocess.run(words, input=json.dumps(whole | plan), capture_output=True, text=True)
    if made.returncode:
        raise ValueError(f"the load generator ended with {made.returncode}: {made.stderr[-500:]}")
    return json.loads(made.stdout)


def said_by(port: int, asked: list[str], pair: str) -> list[str]:
    """What a service says to each text, one by one."""
    found = []
    for one in bodies(asked, pair):
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/translate", json.dumps(one).encode(), {"Content-Type": "application/json"}
        )
        found.append(json.loads(urllib.request.urlopen(request, timeout=60).read())["translatedText"])
    return found


def quantile(values: list[float], share: float) -> float | None:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None


def quantiles(values: list[float]) -> dict[str, float | None]:
    return {"p50": quantile(values, 0.5), "p99": quantile(values, 0.99), "most": max(values, default=None)}


def row(name: str, connections: int, found: dict[str, Any]) -> dict[str, Any]:
    answered = found["answered"]
    return {
        "system": name,
        "connections": connections,
        "per_second": len(answered) / found["seconds"],
        **{f"p{share}": quantile(answered, share / 100) for share in (50, 95, 99)},
        "wrong": len(found["wrong"]),
        "broken": len(found["broken"]),
    }


def show(one: dict[str, Any]) -> None:
    times = [_ms(one[name]) for name in ("p50", "p95", "p99")]
    rate = f"{one['per_second']:.1f}/s"
    print(SHOWN.format(one["system"], one["connections"], rate, *times, one["wrong"], one["broken"]), flush=True)


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{1000 * seconds:.0f} ms"


def memory(pid: int) -> float:
    """Megabytes that a process holds."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


def overload(
    process: subprocess.Popen, port: int, args: argparse.Namespace, asked: list[str], expected: list[str], most: float
) -> dict[str, Any]:
    """Ten times what it answered at best, and what it held meanwhile."""
    held, late, done = [memory(process.pid)], [], threading.Event()

    def watch() -> None:
        while not done.wait(1.0):
            held.append(memory(process.pid))

    def sleep() -> None:
        """How late a process that does nothing wakes up: what the machine, not the service, adds to every time."""
        while not done.is_set():
            start = time.perf_counter()
            time.sleep(0.005)
            late.append(time.perf_counter() - start - 0.005)

    watching = [threading.Thread(target=own) for own in (watch, sleep)]
    for own in watching:
        own.start()
    try:
        found = loaded(port, asked, expected, args.pair, connections=256, seconds=args.overload, rate=10 * most)
    finally:
        done.set()
        for own in watching:
            own.join()
    after = loaded(port, asked, expected, args.pair, connections=4, seconds=3.0)
    return {
        "asked_per_second": 10 * most,
        "seconds": found["seconds"],
        "answered": len(found["answered"]),
        "refused": len(found["refused"]),
        "unsent": found["unsent"],
        "wrong": len(found["wrong"]) + len(after["wrong"]),
        "broken": len(found["broken"]) + len(after["broken"]),
        "broken_first": found["broken"][:3],
        "without_retry_after": found["no_retry"],
        "refused_seconds": quantiles(found["refused"]),
        "refused_over_100_ms": sum(seconds > 0.1 for seconds in found["refused"]),
        "machine_late_seconds": quantiles(late),
        "load_late_seconds": quantiles(found["late"]),
        "megabytes": {"first": held[0], "middle": held[len(held) // 2], "last": held[-1], "most": max(held)},
        "afterwards_per_second": len(after["answered"]) / after["seconds"],
    }


def tell(found: dict[str, Any]) -> None:
    """What the overload showed, in words."""
    refused, held, late = found["refused_seconds"], found["megabytes"], found["machine_late_seconds"]
    print(
        f"\nten times its load: {found['asked_per_second']:.0f} requests a second for {found['seconds']:.0f} s\n"
        f"  answered {found['answered']:,}, refused {found['refused']:,}, wrong {found['wrong']}, broken {found['broken']}, "
        f"unsent {found['unsent']:,} (no connection of the load's was free)\n"
        f"  refused within: p50 {_ms(refused['p50'])}, p99 {_ms(refused['p99'])}, most {_ms(refused['most'])}; "
        f"{found['refused_over_100_ms']} over 100 ms, {found['without_retry_after']} without Retry-After\n"
        f"  a process that only sleeps woke up late by: p50 {_ms(late['p50'])}, p99 {_ms(late['p99'])}, most {_ms(late['most'])}\n"
        f"  memory: {held['first']:.0f} MB before, {held['middle']:.0f} in the middle, {held['last']:.0f} at the end, {held['most']:.0f} at most\n"
        f"  afterwards {found['afterwards_per_second']:.1f} answers a second; SIGTERM: left with {found['left_with']}\n"
    )


def measure(args: argparse.Namespace, place: Path) -> dict[str, Any]:
    paths, asked = folders(args, place), texts(args)
    rows, found = [], {}
    said = {engine: offline(paths["heed"], engine, args.pair.partition("-")[0], asked) for engine in ("auto", "torch")}
    print(f"{machine.cpu()}, {os.cpu_count()} cores, {args.threads} threads; {len(asked)} texts")
    print(SHOWN.format("service", "conns", "answers", "p50", "p95", "p99", "wrong", "broken"))
    for system in [one for one in args.systems if one != "transformers" or "transformers" in paths]:
        with service(system, args, paths) as (process, port):
            expected = said["torch" if system == "heed-torch" else "auto"]
            if system == "transformers":
                expected = said_by(port, asked, args.pair)
            loaded(port, asked, expected, args.pair, connections=4, seconds=1.0)
            for connections in args.connections:
                load = loaded(port, asked, expected, args.pair, connections=connections, seconds=args.seconds)
                rows.append(row(system, connections, load))
                show(rows[-1])
            if system == "heed" and args.overload:
                found = overload(process, port, args, asked, expected, max(one["per_second"] for one in rows))
        if system == "heed" and found:
            found["left_with"] = process.returncode
            tell(found)
    return {"rows": rows, "overload": found}


def main() -> None:
    args = parser().parse_args()
    with tempfile.TemporaryDirectory() as place:
        found = measure(args, Path(place))
    if args.json:
        args.json.write_text(json.dumps(found, indent=1), "utf-8")


if __name__ == "__main__":
    main()

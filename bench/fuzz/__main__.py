"""`python -m bench.fuzz READER … --cases 100000 --seed 0`: fuzz readers of files, one after another, and list what went wrong.

A run that was ended goes on where it was if it is started again with the same --seed and --out; another seed begins anew.
"""

import argparse
import os
import time
from pathlib import Path

for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "MALLOC_ARENA_MAX"):
    os.environ.setdefault(name, "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

from bench.fuzz import branches  # noqa: E402 (libraries read the variables when they are imported)

branches.install()

from bench.fuzz.loop import Fuzz, names, replay  # noqa: E402 (what is imported from here on is marked)
from bench.fuzz.readers import READERS  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser("python -m bench.fuzz", description=__doc__)
    parser.add_argument("readers", nargs="*", metavar="READER", help=f"all, or some of {', '.join(READERS)}")
    parser.add_argument("--cases", type=int, default=100_000, help="of each reader (default: 100,000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="at most, shared by the readers")
    parser.add_argument("--out", type=Path, default=Path("runs/fuzz"), help="where failures and the state are kept")
    parser.add_argument("--replay", action="store_true", help="only read the kept cases of failures once more")
    args = parser.parse_args()
    if args.replay:
        return again(names(args.readers, list(READERS)), args.out)
    chosen, ends, failed = names(args.readers, list(READERS)), time.monotonic() + 60 * args.minutes, 0
    print(f"{'reader':24}{'cases':>9}{'seconds':>9}{'branches':>9}  failures", flush=True)
    for number, name in enumerate(chosen):
        fuzz = Fuzz(name, READERS[name], args.seed, args.out / name)
        fuzz.run(args.cases, (ends - time.monotonic()) / (len(chosen) - number))
        state, failures = fuzz.state, fuzz.failures()
        print(
            f"{name:24}{state['cases']:>9,}{state['seconds']:>9,.0f}{state['branches']:>9,}  {failures.total() or 'none'}",
            flush=True,
        )
        for kind, times in failures.most_common():
            print(f"    {times:,} × {kind}", flush=True)
        failed += bool(failures)
    if failed:
        print(f"The cases are in {args.out}/READER/failures, three of each kind.")
    return 1 if failed else 0


def again(chosen: list[str], out: Path) -> int:
    """Read the cases that failed once more, and list those that still do."""
    failed = [own for name in chosen for own in replay(READERS[name], out / name / "failures")]
    for folder, failure in failed:
        print(f"{folder}: {failure.kind}")
    print(f"{len(failed)} of {len([*out.glob('*/failures/*')])} kept cases still fail.")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())

"""What the machine is and what it can do: `python -m bench.machine DEVICE THREADS [quick]` measures it."""

import json
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path

BF16 = {"bf16", "avx512_bf16", "amx_bf16"}  # what /proc/cpuinfo calls it


def has_bf16() -> bool:
    """Whether this CPU multiplies bfloat16; where not, torch takes tens of times as long as in float32."""
    path = Path("/proc/cpuinfo")
    return path.is_file() and bool(BF16 & set(path.read_text().split()))


def cpu() -> str:
    """The name of the processor, or as much as the system tells."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.is_file() else []
    said = dict(line.split(":", 1) for line in lines if ":" in line)
    said = {name.strip(): value.strip() for name, value in said.items()}
    part = f"{platform.machine()}, implementer {said.get('CPU implementer')}, part {said.get('CPU part')}"
    return said.get("model name") or (part if "CPU part" in said else platform.machine())


def measure(device: str, quick: bool = False) -> dict:
    """The most operations a second of a large matrix product, by format, and bytes a second of a large copy or sum."""
    import torch

    cuda = device == "cuda"
    size, copied = (8192, 2**32) if cuda else (768, 2**27)
    if quick:
        size, copied = 128, 2**20
    wait = torch.cuda.synchronize if cuda else lambda: None
    formats = ["float32", "bfloat16"] if cuda or has_bf16() else ["float32"]
    found = {}
    for name in formats:
        a, b = (torch.randn(size, size, device=device, dtype=getattr(torch, name)) for _ in range(2))
        found[name] = 2 * size**3 / _least(lambda a=a, b=b: a @ b, wait, quick)
    x = torch.zeros(copied // 4, device=device)
    y = torch.empty_like(x)
    copy, read = (_least(work, wait, quick) for work in (lambda: y.copy_(x), lambda: x.sum()))
    return {
        "operations": found,
        "bandwidth": max(2 * copied / copy, copied / read),
        "device": torch.cuda.get_device_name() if cuda else cpu(),
    }


def _least(work: Callable[[], object], wait: Callable[[], None], quick: bool) -> float:
    """Seconds of the fastest of many: nothing else should have been in the way."""
    times, over = [], time.perf_counter() + (0.05 if quick else 3.0)
    work()
    while not times or time.perf_counter() < over:
        wait()
        began = time.perf_counter()
        work()
        wait()
        times.append(time.perf_counter() - began)
    return min(times)


if __name__ == "__main__":
    import torch

    torch.set_num_threads(int(sys.argv[2]))
    print(json.dumps(measure(sys.argv[1], quick="quick" in sys.argv[3:])))

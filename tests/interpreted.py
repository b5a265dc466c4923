"""Programs whose kernels are run by Triton's interpreter, which must be chosen before Triton is imported.

One process has it, with torch and the kernels, and forks for each program: what a program changes is gone with it.
"""

import functools
import importlib
import json
import os
import subprocess
import sys
import traceback
from types import FunctionType, ModuleType

# what the first kernel, gradient, comparison and step of an optimizer import: every program would do so again
LATE = (
    "triton.compiler.code_generator",
    "triton.experimental.gluon",
    "torch.fx.experimental.symbolic_shapes",
    "torch.distributed.tensor",
    "torch._dynamo",
    "heed.training.loop",
)


@functools.cache
def _server() -> subprocess.Popen:
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", __name__], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def assert_same(program: str) -> None:
    """The program runs to its last line, which prints that all it has compared is the same."""
    server = _server()
    server.stdin.write(f"{json.dumps(program)}\n")
    server.stdin.flush()
    found = json.loads(server.stdout.readline())
    assert found["out"] == "the same\n", found["error"]


def _serve() -> None:
    _prepare()
    for line in sys.stdin:
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            _run(json.loads(line), writing)
        os.close(writing)
        with open(reading, encoding="utf-8") as answer:
            found = answer.read()
        _, status = os.waitpid(child, 0)
        print(found or json.dumps({"out": "", "error": f"ended with {status}"}), flush=True)


def _prepare() -> None:
    from triton.runtime import interpreter

    for name in ("training.accelerated.cuda_graph_step", "models.transformer", "tasks.sequence_loss", "decoding.cuda"):
        importlib.import_module(f"heed.{name}")  # with torch and the kernels
    for name in LATE:
        importlib.import_module(name)
    _keep_patched(interpreter)


def _keep_patched(interpreter: ModuleType) -> None:
    """Replace the functions of Triton's language once. The interpreter would do so for each call within a kernel."""
    import triton.language as tl

    scope = interpreter._patch_lang(FunctionType(_serve.__code__, {"tl": tl, "core": tl.core}))
    scope._changes.clear()  # nothing is put back
    interpreter._patch_lang = lambda function: scope


def _run(program: str, answer: int) -> None:
    """Never returns."""
    out, error = [], None
    try:
        exec(
            compile(program, "program", "exec"), {"__name__": "__main__", "print": lambda text: out.append(f"{text}\n")}
        )
    except BaseException:
        error = traceback.format_exc()
    with open(answer, "w", encoding="utf-8") as file:
        json.dump({"out": "" if error else "".join(out), "error": error}, file)
    os._exit(0)


if __name__ == "__main__":
    _serve()

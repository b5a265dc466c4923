"""Python's searches for reference cycles in a process that is a command."""

import gc
import subprocess
import sys

from heed.cli.main import main

BEGIN = """
import atexit, gc, sys, weakref
usual, searches = gc.get_threshold(), []
gc.callbacks.append(lambda phase, facts: searches.append(facts["generation"]))
atexit.register(lambda: print(gc.get_freeze_count() > len(gc.get_objects()), len(searches)))  # after the command's own
from heed.cli.main import main
searches.clear()
sys.argv = ["heed", "recipes"]
"""


def in_process(code: str) -> list[str]:
    command = [sys.executable, "-c", BEGIN + code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, encoding="utf-8")
    return done.stdout.splitlines()


def test_a_short_command_is_never_searched():
    assert in_process("main()")[-1] == "True 0"


def test_a_long_command_is_searched_as_usual_after_the_first_time():
    code = """
main()
class Own: pass
def cycle():
    own = Own()
    own.self = own
    return weakref.ref(own)
before = cycle()
assert gc.get_threshold() != usual and not searches
kept = [[] for _ in range(gc.get_threshold()[0] + 10)]
assert searches and gc.get_threshold() == usual and len(gc.callbacks) == 1
after = cycle()
gc.collect(1)
assert after() is None and before() is not None  # it is old
gc.collect()
assert before() is None
assert gc.get_freeze_count() == 0
searches.clear()
"""
    assert in_process(code)[-1] == "True 0"


def test_a_command_within_another_program_changes_nothing(capsys):
    before = gc.get_threshold(), list(gc.callbacks)
    assert main(["recipes"]) == 0
    assert (gc.get_threshold(), gc.callbacks) == before

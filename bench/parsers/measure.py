"""What is measured of a parser: constructs, bytes that stay, speed, memory, and what hostile files do to it."""

import html
import os
import pickle
import re
import resource
import signal
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple
from xml.etree import ElementTree

from bench.parsers.cases import Case
from bench.parsers.docx_cases import unpacked
from heed.text import protect

SECONDS, MEMORY = 5, 1 << 30  # what a hostile file may use
Work = Callable[[bytes, Callable[[list[str]], list[str]]], bytes]
_WORDS = re.compile("[A-Za-z]+")


def identity(texts: list[str]) -> list[str]:
    return list(texts)


def capitals(texts: list[str]) -> list[str]:
    """A translation that shows what was translated. It keeps addresses, tags and variables, as Heed's translators do."""
    return [
        "".join(part if kind == "opaque" else part.upper() for kind, part in protect.pieces(text)) for text in texts
    ]


class Judged(NamedTuple):
    """What became of a construct: whether the file is the same to the byte, the right text translated, and the rest kept."""

    same: bool
    text: bool
    rest: bool
    error: str = ""


def judge(case: Case, kind: str, work: Work) -> Judged:
    try:
        same, found = work(case.source, identity), work(case.source, capitals)
        parts = _parts(found, kind), _parts(case.expected, kind), _parts(case.source, kind)
        text = _raised(parts[0], parts[2]) == _raised(parts[1], parts[2])
        rest = all(
            _canonical(parts[0].get(name, b""), kind) == _canonical(parts[1][name], kind)
            for name in parts[1]
            if not _is_list(name)
        )
        return Judged(_parts(same, kind) == parts[2], text, rest)
    except Exception as error:
        return Judged(False, False, False, f"{type(error).__name__}: {' '.join(str(error).split())[:80]}")


def _is_list(name: str) -> bool:
    """Whether a part of a document only lists its parts, in any order."""
    return name.endswith(".rels") or name == "[Content_Types].xml"


def _parts(data: bytes, kind: str) -> dict[str, bytes]:
    return unpacked(data) if kind == "docx" else {"": data}


def _raised(parts: dict[str, bytes], source: dict[str, bytes]) -> Counter[str]:
    """The words in capitals that were not there before."""
    found, before = (
        Counter(word for text in one.values() for word in _WORDS.findall(text.decode("utf-8", "replace")))
        for one in (parts, source)
    )
    return Counter({word: times for word, times in (found - before).items() if word.isupper()})


def _canonical(data: bytes, kind: str) -> str:
    """A file without what has no meaning: another entity for the same character, a line that is wrapped elsewhere."""
    text = data.decode("utf-8", "replace")
    if kind == "docx":
        text = re.sub(' xml:space="preserve"', "", text)
        return ElementTree.canonicalize(text, with_comments=True) if text else ""
    if kind in ("srt", "vtt"):
        return html.unescape(text)
    text = html.unescape(text).replace("\u00a0", " ")
    return re.sub(r"\r?\n(?:> )?(?=\w)", " ", re.sub(r"\\(?=[*&])", "", text)) if kind == "md" else text


class Cost(NamedTuple):
    """Seconds (the best of some runs) and bytes of memory of a piece of work; or why it was not done."""

    seconds: float = 0.0
    memory: int = 0
    error: str = ""


def cost(work: Callable[[], Any], runs: int = 2) -> Cost:
    """What a piece of work costs, in a process of its own."""
    return _in_child(work, runs, 40 * SECONDS, 8 * MEMORY)


def outcome(work: Callable[[], Any]) -> str:
    """What a hostile file does, in words."""
    found = _in_child(work, 1, SECONDS, MEMORY)
    return found.error or f"{found.seconds:.2f} s, {found.memory / 2**20:.0f} MiB"


def _in_child(work: Callable[[], Any], runs: int, seconds: float, memory: int) -> Cost:
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        try:
            found = _measured(work, runs, int(seconds), memory)
        except MemoryError:
            found = Cost(error=f"over {memory >> 30} GiB")
        except BaseException as error:
            found = Cost(error=f"{type(error).__name__}: {' '.join(str(error).split())[:90]}")
        os.write(write, pickle.dumps(found))
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        answer = file.read()
    status = os.waitpid(child, 0)[1]
    if answer:
        return pickle.loads(answer)
    ended = os.WTERMSIG(status)
    return Cost(error=f"over {seconds:.0f} s" if ended == signal.SIGXCPU else f"the process ended by signal {ended}")


def _measured(work: Callable[[], Any], runs: int, seconds: int, memory: int) -> Cost:
    with open("/proc/self/statm", encoding="utf-8") as file:
        size = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (size + memory, size + memory))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    before, times = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, []
    for _ in range(runs):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return Cost(min(times), 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before))

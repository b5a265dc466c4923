"""A file written in blocks with a journal: journaled blocks are kept on resume, the rest is recomputed.

While it is unfinished the file is called OUT.part, its journal OUT.part.journal. The first line of the journal holds
the settings; every other line is a block, with hashes of its input, its output and the line itself. A line is added
once its block is on disk.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from heed.config import parse_json
from heed.data.staged import Chunk
from heed.files import exclusive, sync_folder

FORMAT = 1


class RecordedFile:
    """The output of a long job. `settings` are all it depends on besides its input; `head` is the beginning of the
    file.
    """

    def __init__(
        self,
        out: Path,
        settings: Mapping[str, Any],
        head: bytes = b"",
        warn: Callable[[str], None] = lambda sentence: None,
        again: str = "leave out --resume to start again",
    ):
        self.out, self.head, self.warn, self.again = out, head, warn, again
        self.settings = json.loads(json.dumps({"format": FORMAT, **settings}))  # as they are read again
        self.part, self.journal, self.lock = unfinished(out)
        self.notes: list[Any] = []  # of the blocks, in their order
        self._locked = ExitStack()

    def __enter__(self) -> "RecordedFile":
        self.out.parent.mkdir(parents=True, exist_ok=True)
        refusal = f"{self.part} is being written by another process: wait for it, or choose another --out"
        self._locked.enter_context(exclusive(self.lock, refusal))
        return self

    def __exit__(self, *error: Any) -> None:
        self._locked.close()
        with suppress(OSError):  # Windows keeps a file that is open
            self.lock.unlink()

    @property
    def begun(self) -> bool:
        """Whether there is something to resume."""
        return self.part.is_file() and self.journal.is_file()

    def resume(self, source: Iterator[Chunk]) -> int:
        """Skip the recorded chunks of `source` and truncate the file to them; returns how many. Changed input is
        refused.
        """
        stated, *blocks = read_journal(self.journal)
        self._check_settings(stated)
        kept, size = 0, len(self.head)
        whole = self.part.stat().st_size
        with open(self.part, "rb") as file:
            if file.read(size) != self.head:
                self.warn(f"{self.part} is damaged at its beginning: starting over.")
                blocks = []
            for block in blocks:
                fits = block["bytes"] <= whole - size  # read(n) allocates n bytes
                if not fits or hashlib.sha256(file.read(block["bytes"])).hexdigest() != block["written"]:
                    self.warn(f"{self.part} is damaged after {size:,} bytes: continuing from there.")
                    break
                self._check_input(next(source, None), block)
                kept, size = kept + 1, size + block["bytes"]
        if not kept:
            self.remove()
            return 0
        self.notes = [block.get("note") for block in blocks[:kept]]
        os.truncate(self.part, size)
        _write(self.journal, "wb", b"".join(_line(own) for own in (self.settings, *blocks[:kept])))
        return kept

    def append(self, chunk: Chunk, data: bytes, note: Any = None) -> None:
        """Write a block, and record it once it is on disk."""
        if not self.journal.is_file():
            _write(self.part, "wb", self.head)
            _write(self.journal, "wb", _line(self.settings))
            sync_folder(self.out.parent)
        _write(self.part, "ab", data)
        block = {"inputs": len(chunk.items), "read": digest(chunk.items), "bytes": len(data)}
        block |= {"written": hashlib.sha256(data).hexdigest()} | ({} if note is None else {"note": note})
        block = json.loads(json.dumps(block))  # as it is read again
        _write(self.journal, "ab", _line({**block, "sha256": line_hash(block)}))
        self.notes.append(note)

    def finish(self) -> None:
        """Rename the file to its final name; without any block it consists of its head."""
        if not self.part.is_file():
            _write(self.part, "wb", self.head)
        os.replace(self.part, self.out)
        sync_folder(self.out.parent)
        self.journal.unlink(missing_ok=True)

    def remove(self) -> None:
        for path in (self.part, self.journal):
            path.unlink(missing_ok=True)

    def _check_settings(self, stated: Mapping[str, Any]) -> None:
        for name in {**self.settings, **stated}:
            was, now = stated.get(name), self.settings.get(name)
            if was != now and (name, was) != ("too_long", "refuse"):  # no line that is finished was too long
                what = "other weights" if name == "weights" else f"{name} {was!r}, which is now {now!r}"
                raise ValueError(
                    f"{self.part} was started with {what}: restore that, choose another --out, or {self.again}"
                )

    def _check_input(self, chunk: Chunk | None, block: Mapping[str, Any]) -> None:
        if chunk is None or len(chunk.items) != block["inputs"] or digest(chunk.items) != block["read"]:
            where = f"from line {chunk.start + 1:,} on" if chunk else "and is shorter"
            raise ValueError(
                f"the input has changed {where} since {self.part} was started: restore it, choose another --out, or "
                f"{self.again}"
            )


def unfinished(out: Path) -> tuple[Path, Path, Path]:
    """The file, its journal and its lock while it is being written."""
    part, journal = (out.with_name(f"{out.name}.{end}") for end in ("part", "part.journal"))
    return part, journal, out.with_name(f".{out.name}.lock")


def read_journal(journal: Path) -> list[dict[str, Any]]:
    """The settings and the blocks: all lines up to the first incomplete one, which was being written when the process was killed."""
    found = []
    for raw in journal.read_bytes().split(b"\n")[:-1]:
        try:
            own = parse_json(raw)
        except ValueError:
            break
        if not isinstance(own, dict) or (found and not _is_block(own)):
            break
        found.append(own)
    return found or [{}]


def begun_chunk(out: Path, name: str = "chunk") -> int | None:
    """The chunk size that an unfinished file was begun with, so that it can be continued where another would be usual today. None if
    there is no such file, or its first block denies what its settings say.
    """
    part, journal, _ = unfinished(out)
    if not (part.is_file() and journal.is_file()):
        return None
    stated, *blocks = read_journal(journal)
    size = stated.get(name)
    if type(size) is not int or size < 1 or not blocks:
        return None
    first = blocks[0]["inputs"]
    return size if first == size or (len(blocks) == 1 and first < size) else None  # the last block may be smaller


def digest(items: Sequence[Any]) -> str:
    """A hash of items, which are texts or tuples of texts."""
    lines = (own if isinstance(own, str) else "\t".join(own) for own in items)
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()


def line_hash(block: Mapping[str, Any]) -> str:
    """A hash of all values of a line except the hash itself."""
    values = {name: value for name, value in block.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _is_block(own: Mapping[str, Any]) -> bool:
    numbers = all(type(own.get(name)) is int and own[name] >= 0 for name in ("inputs", "bytes"))
    texts = all(isinstance(own.get(name), str) for name in ("read", "written"))
    return numbers and texts and own.get("sha256") == line_hash(own)


def _line(values: Mapping[str, Any]) -> bytes:
    return json.dumps(values, ensure_ascii=False).encode() + b"\n"


def _write(path: Path, mode: str, data: bytes) -> None:
    """Write or append, and wait until it is on disk."""
    with open(path, mode) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())

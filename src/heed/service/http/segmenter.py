"""Texts, pages and documents around their sentences: taken apart, and put together again with what was said.

A step is tried with what is known so far. It ends with what was asked for, or with what must be known for that; then it is tried again.
So nothing is kept between steps, many texts ask for all their sentences at once, and a step can be done in a process of its own:
`python -m heed.service.http.segmenter`, which is given steps and answers them. It knows no torch, so it begins in a moment.
"""

import json
import os
import struct
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, BinaryIO, NamedTuple

from heed.text import documents, layout, markup, protect
from heed.text.inline import Translated

TEXT, BEGUN, LINKS = "text", "begun", "links"  # a translation; one whose beginning is given; which words go with which
MEMORY = 2 << 30  # bytes that such a process may hold
_LENGTH = struct.Struct("!I")

Key = tuple[str, str, str]  # what is asked for: one of the three above, a source, and for links its translation
Known = dict[Key, Any]


class Passage(NamedTuple):
    """A sentence and where it stands, and its translation and where that stands."""

    source: str
    start: int
    end: int
    target: str
    begin: int
    finish: int


@dataclass(frozen=True)
class Task:
    """What is to be done: "plain" texts, "passages" of texts, HTML "pages", or a "document" with its name and its data."""

    what: str
    texts: Sequence[str] = ()
    language: str | None = None
    keep: Sequence[str] = ()
    begun: bool = False  # the beginnings of translations are given
    name: str = ""
    column: int | None = None
    data: bytes = field(default=b"", repr=False)

    @property
    def size(self) -> int:
        return sum(map(len, self.texts)) + len(self.data)


class Step(NamedTuple):
    """What came of a step: what is wanted before it can be done, or what was made. `characters` is how much was asked for."""

    wanted: list[Key]
    made: Any
    characters: int


class Wanted(Exception):
    """Something is not known yet."""


class Ask:
    """Answers with what is known, and notes what is not."""

    def __init__(self, known: Known):
        self.known, self.characters = known, 0
        self.wanted: dict[Key, None] = {}

    def __call__(self, kind: str, sources: Sequence[str], targets: Sequence[str] | None = None) -> list[Any]:
        if kind == TEXT:
            self.characters += sum(map(len, sources))
        keys = [(kind, source, target) for source, target in zip(sources, targets or [""] * len(sources), strict=True)]
        missing = [key for key in keys if key not in self.known]
        if missing:
            self.wanted |= dict.fromkeys(missing)
            raise Wanted
        return [self.known[key] for key in keys]


def step(task: Task, known: Known) -> Step:
    """A task as far as it can be done with what is known."""
    ask, made = Ask(known), []
    do = {"plain": _plain, "passages": _passages, "pages": _page}.get(task.what)
    tries: list[Callable[[], Any]] = (
        [partial(do, ask, text, task) for text in task.texts] if do else [partial(_document, ask, task)]
    )
    for attempt in tries:
        with suppress(Wanted):
            made.append(attempt())
    if ask.wanted:
        return Step(list(ask.wanted), None, ask.characters)
    return Step([], made[0] if task.what == "document" else made, ask.characters)


def _plain(ask: Ask, text: str, task: Task) -> str:
    """A text in its layout."""
    skeleton = layout.take_apart(text, task.language)
    return layout.fill(skeleton, protect.translate(skeleton.texts, partial(ask, TEXT), task.keep))


def _passages(ask: Ask, text: str, task: Task) -> tuple[str, list[Passage]]:
    """A text in its layout, and where each sentence stands before and after."""
    skeleton = layout.take_apart(text, task.language)
    first = skeleton.texts[:1] if task.begun else []  # what must stay is not looked after where the beginning is given
    said = [*ask(BEGUN, first), *protect.translate(skeleton.texts[len(first) :], partial(ask, TEXT), task.keep)]
    found, whole, place = [], skeleton.between[0], len(skeleton.between[0])
    for number, (segment, target) in enumerate(zip(skeleton.segments, said, strict=True)):
        piece, old = _filled(segment, target), _filled(segment, segment.text)
        found.append(Passage(segment.text, place, place + len(old), target, len(whole), len(whole) + len(piece)))
        whole += piece + skeleton.between[number + 1]
        place += len(old) + len(skeleton.between[number + 1])
    return whole, found


def _filled(segment: layout.Segment, text: str) -> str:
    return layout.fill(layout.Skeleton(("", ""), (segment,)), [text])


def _page(ask: Ask, text: str, task: Task) -> str:
    """HTML, its tags put back by alignment."""
    return markup.translate(text, partial(_with_links, ask, task), language=task.language)


def _document(ask: Ask, task: Task) -> bytes:
    """A file in the same format."""
    asked = partial(_with_links, ask, task)
    return documents.translate(task.data, task.name, asked, column=task.column, language=task.language)


def _with_links(ask: Ask, task: Task, texts: list[str]) -> list[Translated]:
    said = protect.translate(texts, partial(ask, TEXT), task.keep)
    links = ask(LINKS, texts, said)
    return [Translated(text, [tuple(link) for link in own]) for text, own in zip(said, links, strict=True)]


# the same, in another process


def send(stream: BinaryIO, head: Any, data: bytes = b"") -> None:
    """A message: something JSON can say, and bytes."""
    told = json.dumps(head, ensure_ascii=False).encode("utf-8", "surrogatepass")
    for part in (told, data):
        stream.write(_LENGTH.pack(len(part)))
        stream.write(part)
    stream.flush()


def receive(stream: BinaryIO) -> tuple[Any, bytes]:
    """The next message; EOFError where there is none."""
    parts = []
    for _ in range(2):
        head = stream.read(_LENGTH.size)
        if len(head) < _LENGTH.size:
            raise EOFError
        size = _LENGTH.unpack(head)[0]
        parts.append(stream.read(size))
        if len(parts[-1]) < size:
            raise EOFError
    return json.loads(parts[0].decode("utf-8", "surrogatepass")), parts[1]


def ask_for(stream: BinaryIO, task: Task, known: Known) -> None:
    """Put a step to another process."""
    told = {name: value for name, value in vars(task).items() if name != "data"}
    send(stream, [told, [[*key, value] for key, value in known.items()]], task.data)


def answer_of(stream: BinaryIO) -> Step:
    """What it made of it; ValueError where the text or the document is at fault."""
    head, data = receive(stream)
    if "error" in head:
        raise ValueError(head["error"])
    if "broken" in head:
        raise RuntimeError(head["broken"])
    made = data if head["document"] else head["made"]
    if head["passages"] and made is not None:
        made = [(whole, [Passage(*own) for own in found]) for whole, found in made]
    return Step([tuple(key) for key in head["wanted"]], made, head["characters"])


def _answer(stream: BinaryIO, task: Task, known: Known) -> None:
    try:
        found = step(task, known)
    except ValueError as error:
        send(stream, {"error": str(error)})
    except (MemoryError, RecursionError):
        send(stream, {"error": "this has too much within it to be read"})
    except Exception as error:  # its message may hold texts
        send(stream, {"broken": type(error).__name__})
    else:
        document = isinstance(found.made, bytes)
        head = {"wanted": found.wanted, "made": None if document else found.made, "characters": found.characters}
        send(
            stream, {**head, "document": document, "passages": task.what == "passages"}, found.made if document else b""
        )


def main() -> None:
    """Answer steps until nobody asks any more."""
    with suppress(AttributeError, ImportError, ValueError, OSError):
        import resource

        os.nice(10)  # who serves comes first
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    while True:
        try:
            (task, known), data = receive(sys.stdin.buffer)
        except EOFError:
            return
        _answer(sys.stdout.buffer, Task(**task, data=data), {tuple(key): value for *key, value in known})


if __name__ == "__main__":
    main()

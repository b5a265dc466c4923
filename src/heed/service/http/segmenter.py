"""Texts, pages and documents around their sentences: taken apart, and put together again with the translations.

A step runs a task with the answers of the models that are known so far. It returns the output, or the queries that it still needs;
with their answers it is run again from the start. So nothing is kept between steps, many texts ask for all their sentences at once,
and a step can run in a process of its own: `python -m heed.service.http.segmenter`, which starts fast since it does not import torch.
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

from heed.service.http.memory_limit import limit_memory
from heed.text import documents, layout, markup, protect
from heed.text.inline import Translated

TRANSLATE, TRANSLATE_WITH_PREFIX, ALIGN = "translate", "prefix", "align"  # kinds of queries
MAX_MEMORY = 2 << 30  # bytes of such a process
_LENGTH = struct.Struct("!I")

ModelQuery = tuple[str, str, str]  # one of the three kinds, a source, and for an alignment the target
Answers = dict[ModelQuery, Any]


class Passage(NamedTuple):
    """A sentence and its translation, and the position of each in its whole text."""

    source: str
    source_start: int
    source_end: int
    target: str
    target_start: int
    target_end: int


@dataclass(frozen=True)
class TextTask:
    """What to translate: "plain" texts, "passages" of texts, HTML "pages", or a "document" with its name and its data."""

    kind: str
    texts: Sequence[str] = ()
    language: str | None = None
    keep: Sequence[str] = ()
    has_prefix: bool = False  # the translations must begin with a given prefix
    name: str = ""
    column: int | None = None
    data: bytes = field(default=b"", repr=False)

    @property
    def size(self) -> int:
        return sum(map(len, self.texts)) + len(self.data)


class StepResult(NamedTuple):
    """The queries that must be answered first, or the output of the task. `characters` were to be translated."""

    missing: list[ModelQuery]
    output: Any
    characters: int


class MissingAnswer(Exception):
    """A query has no answer yet."""


class Lookup:
    """Looks up answers of the models, and collects the queries that have none."""

    def __init__(self, answers: Answers):
        self.answers, self.characters = answers, 0
        self.missing: dict[ModelQuery, None] = {}

    def __call__(self, kind: str, sources: Sequence[str], targets: Sequence[str] | None = None) -> list[Any]:
        if kind == TRANSLATE:
            self.characters += sum(map(len, sources))
        targets = targets or [""] * len(sources)
        queries = [(kind, source, target) for source, target in zip(sources, targets, strict=True)]
        missing = [query for query in queries if query not in self.answers]
        if missing:
            self.missing |= dict.fromkeys(missing)
            raise MissingAnswer
        return [self.answers[query] for query in queries]


def run_step(task: TextTask, answers: Answers) -> StepResult:
    """A task as far as the answers allow."""
    lookup, outputs = Lookup(answers), []
    translate = {"plain": _plain, "passages": _passages, "pages": _page}.get(task.kind)
    attempts: list[Callable[[], Any]] = [partial(_document, lookup, task)]
    if translate:
        attempts = [partial(translate, lookup, text, task) for text in task.texts]
    for attempt in attempts:
        with suppress(MissingAnswer):
            outputs.append(attempt())
    if lookup.missing:
        return StepResult(list(lookup.missing), None, lookup.characters)
    return StepResult([], outputs[0] if task.kind == "document" else outputs, lookup.characters)


def _plain(lookup: Lookup, text: str, task: TextTask) -> str:
    """A text in its layout."""
    skeleton = layout.take_apart(text, task.language)
    return layout.fill(skeleton, protect.translate(skeleton.texts, partial(lookup, TRANSLATE), task.keep))


def _passages(lookup: Lookup, text: str, task: TextTask) -> tuple[str, list[Passage]]:
    """A text in its layout, and the position of each sentence before and after."""
    skeleton = layout.take_apart(text, task.language)
    first = skeleton.texts[:1] if task.has_prefix else []  # not protected, since its beginning is given
    rest = skeleton.texts[len(first) :]
    targets = lookup(TRANSLATE_WITH_PREFIX, first)
    targets += protect.translate(rest, partial(lookup, TRANSLATE), task.keep)
    passages, output, position = [], skeleton.between[0], len(skeleton.between[0])
    for number, (segment, target) in enumerate(zip(skeleton.segments, targets, strict=True)):
        new, old = _filled(segment, target), _filled(segment, segment.text)
        spans = (position, position + len(old)), (len(output), len(output) + len(new))
        passages.append(Passage(segment.text, *spans[0], target, *spans[1]))
        output += new + skeleton.between[number + 1]
        position += len(old) + len(skeleton.between[number + 1])
    return output, passages


def _filled(segment: layout.Segment, text: str) -> str:
    return layout.fill(layout.Skeleton(("", ""), (segment,)), [text])


def _page(lookup: Lookup, text: str, task: TextTask) -> str:
    """HTML, its tags put back by alignment."""
    return markup.translate(text, partial(_with_alignment, lookup, task), language=task.language)


def _document(lookup: Lookup, task: TextTask) -> bytes:
    """A file in the same format."""
    translate = partial(_with_alignment, lookup, task)
    return documents.translate(task.data, task.name, translate, column=task.column, language=task.language)


def _with_alignment(lookup: Lookup, task: TextTask, texts: list[str]) -> list[Translated]:
    targets = protect.translate(texts, partial(lookup, TRANSLATE), task.keep)
    alignments = lookup(ALIGN, texts, targets)
    return [Translated(text, [tuple(link) for link in links]) for text, links in zip(targets, alignments, strict=True)]


# the same, in another process


def send(stream: BinaryIO, message: Any, data: bytes = b"") -> None:
    """Write a message, as JSON, and the bytes that go with it."""
    encoded = json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass")
    for part in (encoded, data):
        stream.write(_LENGTH.pack(len(part)))
        stream.write(part)
    stream.flush()


def receive(stream: BinaryIO) -> tuple[Any, bytes]:
    """The next message; EOFError if there is none."""
    parts = []
    for _ in range(2):
        header = stream.read(_LENGTH.size)
        if len(header) < _LENGTH.size:
            raise EOFError
        size = _LENGTH.unpack(header)[0]
        parts.append(stream.read(size))
        if len(parts[-1]) < size:
            raise EOFError
    return json.loads(parts[0].decode("utf-8", "surrogatepass")), parts[1]


def send_step(stream: BinaryIO, task: TextTask, answers: Answers) -> None:
    """Ask another process to run a step."""
    fields = {name: value for name, value in vars(task).items() if name != "data"}
    send(stream, [fields, [[*query, answer] for query, answer in answers.items()]], task.data)


def receive_result(stream: BinaryIO) -> StepResult:
    """The result of that step; ValueError if the text or the document is at fault."""
    message, data = receive(stream)
    if "error" in message:
        raise ValueError(message["error"])
    if "broken" in message:
        raise RuntimeError(message["broken"])
    output = data if message["document"] else message["output"]
    if message["passages"] and output is not None:
        output = [(text, [Passage(*fields) for fields in passages]) for text, passages in output]
    return StepResult([tuple(query) for query in message["missing"]], output, message["characters"])


def _answer_step(stream: BinaryIO, task: TextTask, answers: Answers) -> None:
    try:
        missing, output, characters = run_step(task, answers)
    except ValueError as error:
        send(stream, {"error": str(error)})
    except (MemoryError, RecursionError):
        send(stream, {"error": "this is too deeply nested to be read"})
    except Exception as error:  # only its type: the message may contain texts
        send(stream, {"broken": type(error).__name__})
    else:
        document = isinstance(output, bytes)
        message = {"missing": missing, "output": None if document else output, "characters": characters}
        kinds = {"document": document, "passages": task.kind == "passages"}
        send(stream, message | kinds, output if document else b"")


def main() -> None:
    """Run steps until the input ends."""
    with suppress(AttributeError, OSError):  # Windows has no such priority
        os.nice(10)  # the service itself comes first
    limit_memory(MAX_MEMORY)
    while True:
        try:
            (fields, answers), data = receive(sys.stdin.buffer)
        except EOFError:
            return
        _answer_step(sys.stdout.buffer, TextTask(**fields, data=data), {tuple(query): own for *query, own in answers})


if __name__ == "__main__":
    main()

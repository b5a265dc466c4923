"""Texts, pages and documents are split into sentences, and reassembled with the translations. A step runs a task with
the model outputs known so far. It returns the result, or the queries it still needs; with their answers it is run
again from the start. So nothing is kept between steps, many texts request all their sentences at once, and a step can
run in a separate process: `python -m heed.service.http.segmenter`, which starts fast since it does not import torch.
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
from heed.text import documents, markup, passages, protected
from heed.text.inline import Translated
from heed.text.passages import Passage
from heed.text.protected import Model, ModelRequest

TRANSLATE, ALIGN = "translate", "align"  # kinds of queries
MAX_MEMORY = 2 << 30  # bytes of such a process
_LENGTH = struct.Struct("!I")

# TRANSLATE with a source and, as JSON, its prefix and what is required; or ALIGN with a source and its target
ModelQuery = tuple[str, str, str]
Answers = dict[ModelQuery, Any]


def to_query(request: ModelRequest) -> ModelQuery:
    options = [request.prefix, list(request.required)] if request.prefix or request.required else None
    return TRANSLATE, request.text, json.dumps(options) if options else ""


def to_request(query: ModelQuery) -> ModelRequest:
    prefix, required = json.loads(query[2]) if query[2] else ("", ())
    return ModelRequest(query[1], prefix, tuple(required))


@dataclass(frozen=True)
class TextTask:
    """What to translate: "plain" texts, "passages" of texts, HTML "pages", or a "document" with its name and data."""

    kind: str
    texts: Sequence[str] = ()
    language: str | None = None
    keep: Sequence[str] = ()
    prefix: str = ""  # what the translation of the first sentence must begin with
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


class Lookup(Model):
    """Looks up model outputs, and collects the queries that have none."""

    can_require = True

    def __init__(self, answers: Answers):
        super().__init__()
        self.answers, self.characters = answers, 0
        self.missing: dict[ModelQuery, None] = {}

    def translate(self, requests: Sequence[ModelRequest]) -> list[str]:
        self.characters += sum(len(request.text) for request in requests if not request.required)
        return self._find(list(map(to_query, requests)))

    def align(self, sources: Sequence[str], targets: Sequence[str]) -> list[Any]:
        return self._find([(ALIGN, source, target) for source, target in zip(sources, targets, strict=True)])

    def _find(self, queries: Sequence[ModelQuery]) -> list[Any]:
        missing = [query for query in queries if query not in self.answers]
        if missing:
            self.missing |= dict.fromkeys(missing)
            raise MissingAnswer
        return [self.answers[query] for query in queries]


def run_step(task: TextTask, answers: Answers) -> StepResult:
    """Run a task as far as the answers allow."""
    lookup, outputs = Lookup(answers), []
    attempts: list[Callable[[], list[Any]]] = [partial(_passages, lookup, task)]
    if task.kind == "pages":
        attempts = [partial(_page, lookup, text, task) for text in task.texts]
    elif task.kind == "document":
        attempts = [partial(_document, lookup, task)]
    for attempt in attempts:
        with suppress(MissingAnswer):
            outputs += attempt()
    if lookup.missing:
        return StepResult(list(lookup.missing), None, lookup.characters)
    return StepResult([], outputs[0] if task.kind == "document" else outputs, lookup.characters)


def _passages(lookup: Lookup, task: TextTask) -> list[Any]:
    """Texts in their layout; for "passages", with the position of each sentence before and after."""
    options = {"language": task.language, "keep": task.keep, "prefix": task.prefix}
    found = passages.translate(task.texts, lookup, **options)
    return found if task.kind == "passages" else [text for text, _ in found]


def _page(lookup: Lookup, text: str, task: TextTask) -> list[str]:
    """HTML, with its tags restored by alignment."""
    return [markup.translate(text, partial(_with_alignment, lookup, task), language=task.language)]


def _document(lookup: Lookup, task: TextTask) -> list[bytes]:
    """A file in the same format."""
    translate = partial(_with_alignment, lookup, task)
    return [documents.translate(task.data, task.name, translate, column=task.column, language=task.language)]


def _with_alignment(lookup: Lookup, task: TextTask, texts: list[str]) -> list[Translated]:
    found = protected.translate_with(lookup, [ModelRequest(text) for text in texts], task.keep)
    alignments = lookup.align(texts, [own.text for own in found])
    return [Translated(one.text, [tuple(link) for link in links]) for one, links in zip(found, alignments, strict=True)]


# the same, in another process


def send(stream: BinaryIO, message: Any, data: bytes = b"") -> None:
    """Write a message as JSON, followed by its bytes."""
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
        output = [(text, [_passage(*fields) for fields in found]) for text, found in output]
    return StepResult([tuple(query) for query in message["missing"]], output, message["characters"])


def _passage(*fields: Any) -> Passage:
    """A passage that was sent as lists."""
    text, prefix, required = fields[-1]
    return Passage(*fields[:-1], ModelRequest(text, prefix, tuple(required)))


def _answer_step(stream: BinaryIO, task: TextTask, answers: Answers) -> None:
    try:
        missing, output, characters = run_step(task, answers)
    except ValueError as error:
        send(stream, {"error": str(error)})
    except (MemoryError, RecursionError):
        send(stream, {"error": "the input is nested too deeply"})
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

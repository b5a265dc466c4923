"""SQuAD JSON, versions 1.1 and 2.0: questions about paragraphs, with answer spans."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from heed.config import parse_json
from heed.data.readers import lines


@dataclass(frozen=True)
class SquadConfig:
    """The [data] section of question answering."""

    train: list[str] = field(default_factory=list)  # SQuAD's JSON, 1.1 or 2.0, plain, .gz or .xz
    valid: list[str] = field(default_factory=list)  # validation files
    misaligned: Literal["leave out", "refuse"] = (
        "leave out"  # what to do with questions whose answer is not at the stated position
    )
    holdout: int = 1000  # without validation files, this many questions are set aside, as whole paragraphs
    licence: str | None = None  # licence of the data, for the model card

    def __post_init__(self):
        if not self.train:
            raise ValueError("data.train is empty: give SQuAD JSON files for question answering")
        if self.holdout < 1 and not self.valid:
            raise ValueError(f"data.holdout is {self.holdout}; it must be at least 1 if data.valid is empty")


class Answer(NamedTuple):
    """A text, and its start in the context, in characters."""

    text: str
    start: int


class Question(NamedTuple):
    """A question about a context. Without answers it is unanswerable; `answered` is false if the file does not say."""

    id: str
    text: str
    context: str
    answers: tuple[Answer, ...] = ()
    answered: bool = True

    @property
    def misaligned(self) -> str:
        """How the first answer differs from the context at its position; empty if it does not."""
        for text, start in self.answers[:1]:
            there = self.context[max(0, start) : max(0, start) + len(text)]
            if start < 0 or there != text:
                return (
                    f"question {self.id}: its answer is {_short(text)}, but at {start} the context has {_short(there)}"
                )
        return ""


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:39]}…")


def read(path: Path) -> list[Question]:
    """The questions of a file. Those of a paragraph are consecutive."""
    text = "\n".join(lines(path))
    try:
        whole = parse_json(text)
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    found, seen = [], set()
    for question in _questions(whole, path):
        if question.id in seen:
            raise ValueError(f"{path} has two questions with the id {question.id}: ids must be unique")
        seen.add(question.id)
        found.append(question)
    if not found:
        raise ValueError(f"{path} has no questions: it should be SQuAD JSON, with data, paragraphs and qas")
    return found


def _questions(whole: Any, path: Path) -> Iterator[Question]:
    for number, article in enumerate(_part(whole, "data", list, f"{path}")):
        where = f"{path}, article {number + 1}"
        for count, paragraph in enumerate(_part(article, "paragraphs", list, where), 1):
            place = f"{where}, paragraph {count}"
            context = _part(paragraph, "context", str, place)
            for own in _part(paragraph, "qas", list, place):
                yield _question(own, context, place)


def _question(own: Any, context: str, where: str) -> Question:
    name = str(_part(own, "id", (str, int), where))
    where = f"{where}, question {name}"
    text = _part(own, "question", str, where)
    if "answers" not in own and not own.get("is_impossible"):
        return Question(name, text, context, (), answered=False)
    answers = [] if own.get("is_impossible") else _part(own, "answers", list, where)
    return Question(
        name,
        text,
        context,
        tuple(Answer(_part(one, "text", str, where), _part(one, "answer_start", int, where)) for one in answers),
    )


def _part(whole: Any, name: str, kind: Any, where: str) -> Any:
    if not isinstance(whole, dict) or not isinstance(whole.get(name), kind) or isinstance(whole.get(name), bool):
        kinds = {list: "a list", str: "a text", int: "a number", (str, int): "a text"}
        raise ValueError(f"{where} has no {name!r} that is {kinds[kind]}: it is not SQuAD JSON")
    return whole[name]


def misaligned_answers(questions: Sequence[Question]) -> str:
    """How many questions have an answer that is not at its position, with the first; empty if none has."""
    wrong = [own for one in questions if (own := one.misaligned)]
    if not wrong:
        return ""
    return (
        f"{len(wrong):,} of {len(questions):,} questions have an answer that is not at the stated position, for example "
        f"{wrong[0]}"
    )


def has_unanswerable(questions: Sequence[Question]) -> bool:
    """Whether some questions are unanswerable, as in SQuAD 2.0."""
    return any(one.answered and not one.answers for one in questions)

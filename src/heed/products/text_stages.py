"""Work of a language model on many texts in three stages: subwords, the model, and text. A file overlaps those of its chunks (`heed.bulk`)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from heed.decoding.hypothesis import Hypothesis, check_found
from heed.products.product import in_batches
from heed.products.prompts import Prompt
from heed.products.search import search
from heed.products.stops import StopStrings
from heed.products.text_scores import token_logprobs
from heed.products.text_search import NO_END, decoding_config, search_arguments
from heed.products.translator.results import Score

Generator = Any  # that of generator.py, which calls the stages


@dataclass(frozen=True)
class Continuation:
    """What follows a prompt; `score` is its log-probability, `token_scores` those of its tokens, a stop string included."""

    text: str
    score: float
    tokens: list[str]
    token_scores: list[float]


class Generation:
    """Continuations of prompts; the options are those of `Generator.generate_many`."""

    def __init__(
        self,
        generator: Generator,
        *,
        batch_tokens: int = 4096,
        length: int = 100,
        count: int = 1,
        one_line: bool = False,
        stop: Sequence[str] = (),
        **decoding: Any,
    ):
        self.generator, self.length, self.one_line = generator, length, one_line
        self.config, self.stops = decoding_config(length, count, decoding), StopStrings(stop)
        engine = generator.engine
        self.batch_tokens = max(batch_tokens, engine.budget if engine else 0)

    def prepare(self, prompts: Sequence[str], code: str | None = None) -> list[Prompt]:
        return [self.generator.prompt(prompt, code) for prompt in prompts]

    def search(self, prompts: Sequence[Prompt]) -> list[list[Hypothesis]]:
        rows = max(self.config.beam, self.config.nbest)
        sizes = [(len(own.ids) + self.length) * rows for own in prompts]
        return in_batches(self._search, prompts, sizes, self.batch_tokens)

    def finish(self, prompts: Sequence[Prompt], found: Sequence[list[Hypothesis]]) -> list[list[Continuation]]:
        return [[self._continuation(own, h) for h in each] for own, each in zip(prompts, found, strict=True)]

    def _search(self, prompts: Sequence[Prompt]) -> list[list[Hypothesis]]:
        own, config = self.generator, self.config
        longest, last = max(len(one.ids) for one in prompts), own.special.last if self.one_line else NO_END
        taken = own.engine and not self.stops and own.engine.takes(config, longest)
        if taken and (found := own.engine.search(prompts, config, last)) is not None:
            check_found(found)
            return found
        return search(
            **search_arguments(own.searched, own.vocabulary, own.decode, prompts, config, self.one_line, self.stops)
        )

    def _continuation(self, prompt: Prompt, found: Hypothesis) -> Continuation:
        decode, pieces = self.generator.decode, self.generator.vocabulary.pieces
        text = self.stops.cut(decode([*prompt.text, *found.tokens])[len(decode(prompt.text)) :])
        return Continuation(text, sum(found.scores), pieces(found.tokens), found.scores)


class Lines(NamedTuple):
    """Texts, each as one line, and their tokens with the end of the line."""

    texts: Sequence[str]
    ids: list[list[int]]


class Scoring:
    """How likely texts are, each as one line with its end."""

    def __init__(self, generator: Generator, batch_tokens: int = 4096):
        self.generator, self.batch_tokens = generator, batch_tokens

    def prepare(self, texts: Sequence[str]) -> Lines:
        last = self.generator.special.last
        ids = [[*line, last] for line in self.generator.vocabulary.encode(texts)]
        self.generator.check_length(max(map(len, ids), default=0), "a line and its end")
        return Lines(texts, ids)

    def score(self, lines: Lines) -> list[list[float]]:
        return in_batches(self._logprobs, lines.ids, list(map(len, lines.ids)), self.batch_tokens)

    def finish(self, lines: Lines, found: Sequence[list[float]]) -> list[Score]:
        pieces = self.generator.vocabulary.pieces
        rows = zip(lines.texts, lines.ids, found, strict=True)
        return [Score("", text, sum(own), pieces(line), own) for text, line, own in rows]

    def _logprobs(self, lines: list[list[int]]) -> list[list[float]]:
        """The log-probability of each token of a batch of lines."""
        own = self.generator
        rows = [[own.before, *line] for line in lines]
        if own.engine and own.engine.scores():
            return own.engine.score(rows)
        return token_logprobs(own.model, rows, own.special.pad)

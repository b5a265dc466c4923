"""What a run of a language model needs of its own: windows to learn from, and how well the validation text is foreseen."""

from collections.abc import Callable, Sequence
from typing import Any

from torch import nn

from heed.data.readers import Line
from heed.data.streams import Stream, Windows, join_lines, row_count
from heed.decoding.config import DecodingConfig
from heed.evaluation.language import total
from heed.products.generator import Generator
from heed.runs.recipe import Recipe
from heed.runs.validation import ValidationResult, shown
from heed.vocabularies.vocabulary import Vocabulary

ROWS, LEAST = 32, 256  # a validation text is read in so many parts, none of fewer tokens
PROMPT, SAID = 8, 30  # tokens of a sample


def windows(recipe: Recipe) -> Callable[[Stream, tuple[int, int]], Windows]:
    """How a prepared text is read by this recipe; (rank, world) is a process's share of it."""
    t, length = recipe.training, recipe.task.bptt

    def make(stream: Stream, share: tuple[int, int]) -> Windows:
        rows = row_count(len(stream), t.batch_tokens, length)
        return Windows(stream.ids, stream.last, rows=rows, length=length, seed=t.seed, share=share)

    return make


class Continuing:
    """The loss on a text, and how some of its lines might go on."""

    def __init__(self, lines: Sequence[Line], subwords: Vocabulary, *, budget: int, samples: int):
        self.subwords, self.size = subwords, len(lines)
        ids = subwords.encode([line.source for line in lines])
        long = [own for own in ids if len(own) > PROMPT]
        self.shown = [long[i] for i in shown(len(long), samples)]
        stream = join_lines(ids, subwords.marks.last)
        rows = max(1, min(ROWS, len(stream) // LEAST))
        self.tokens = len(stream)
        self.windows = Windows(stream, subwords.marks.last, rows=rows, length=max(1, budget // rows))

    def run(self, model: nn.Module, decoding: DecodingConfig, max_source: int) -> ValidationResult:
        return ValidationResult({"loss": total(model, self.windows) / self.tokens}, self._samples(model, decoding))

    def facts(self, model: nn.Module) -> dict[str, Any]:
        return {}

    def too_long(self, most: int) -> int:
        return 0  # a text is read window after window

    def _samples(self, model: nn.Module, decoding: DecodingConfig) -> list[tuple[str, str, str]]:
        generator = Generator(model, self.subwords)
        how = {name: getattr(decoding, name) for name in ("temperature", "top_k", "top_p", "seed", "no_repeat")}
        found = []
        for own in self.shown:
            prompt, rest = self.subwords.decode(own[:PROMPT]), own[PROMPT : PROMPT + SAID]
            said = generator.continued(own[:PROMPT], length=SAID, one_line=True, **how)[0]
            found.append((prompt, self.subwords.decode(rest), said.text.strip()))
        return found
